"""Configures who gets which events. Pure configuration: it writes subscriptions and the audit log, and nothing else."""
