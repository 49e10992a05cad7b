"""Measures what a second worker process brings, and what saturates first."""
