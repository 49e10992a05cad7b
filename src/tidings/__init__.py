"""Tidings: from your own database transaction to signed webhooks and tasks, with one database and nothing else."""

from importlib.metadata import version

__version__ = version("tidings")
