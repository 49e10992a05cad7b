"""Publishing inside the caller's own transaction, on whatever connection he has. Imports no driver by itself."""

from tidings.client.publishing import Event, publish, publish_many

__all__ = ["Event", "publish", "publish_many"]
