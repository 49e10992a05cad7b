"""Publishing and submitting in a caller's own transaction, on whatever connection they have; no driver is imported."""

from tidings.client.publishing import Event, publish, publish_many
from tidings.client.submitting import NewTask, submit_task, submit_tasks

__all__ = ["Event", "NewTask", "publish", "publish_many", "submit_task", "submit_tasks"]
