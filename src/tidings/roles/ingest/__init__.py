"""Appends events to the log and does nothing else: one, a batch, or many callers in one commit."""
