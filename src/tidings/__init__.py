"""Tidings: from your own database transaction to signed webhooks and tasks, with one database and nothing else."""


def __getattr__(name: str) -> str:
    """`__version__`, looked up when asked for: the look-up takes longer than everything else here."""
    if name == "__version__":
        from importlib.metadata import version

        return version("tidings")
    raise AttributeError(f"module 'tidings' has no attribute {name!r}")
