"""Tidings: from your own database transaction to signed webhooks and tasks, with one database and nothing else."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidings.client import Event, NewTask, publish, publish_many, submit_task, submit_tasks
    from tidings.courier.signing import verify
    from tidings.decisions.verifying import answer_challenge
    from tidings.errors import EventRefused, SignatureRefused, TaskRefused, TidingsError
    from tidings.model.event import EventLimits, Published
    from tidings.model.submission import Submitted
    from tidings.model.task import TaskStatus
    from tidings.remote import ApiError, ApiUnreachable, AsyncClient, Client
    from tidings.tasks import Fail, Retry, TaskContext, task

    __version__: str

__all__ = [
    "ApiError",
    "ApiUnreachable",
    "AsyncClient",
    "Client",
    "Event",
    "EventLimits",
    "EventRefused",
    "Fail",
    "NewTask",
    "Published",
    "Retry",
    "SignatureRefused",
    "Submitted",
    "TaskContext",
    "TaskRefused",
    "TaskStatus",
    "TidingsError",
    "answer_challenge",
    "publish",
    "publish_many",
    "submit_task",
    "submit_tasks",
    "task",
    "verify",
]

_HOMES = {
    "ApiError": "tidings.remote",
    "ApiUnreachable": "tidings.remote",
    "AsyncClient": "tidings.remote",
    "Client": "tidings.remote",
    "Event": "tidings.client",
    "EventLimits": "tidings.model.event",
    "EventRefused": "tidings.errors",
    "Fail": "tidings.tasks",
    "NewTask": "tidings.client",
    "Published": "tidings.model.event",
    "Retry": "tidings.tasks",
    "SignatureRefused": "tidings.errors",
    "Submitted": "tidings.model.submission",
    "TaskContext": "tidings.tasks",
    "TaskRefused": "tidings.errors",
    "TaskStatus": "tidings.model.task",
    "TidingsError": "tidings.errors",
    "publish": "tidings.client",
    "publish_many": "tidings.client",
    "submit_task": "tidings.client",
    "submit_tasks": "tidings.client",
    "task": "tidings.tasks",
    "answer_challenge": "tidings.decisions.verifying",
    "verify": "tidings.courier.signing",
}


def __getattr__(name: str) -> Any:
    """Looked up when asked for: `import tidings` costs nothing to those who want one part of it."""
    if name == "__version__":
        from importlib.metadata import version

        return version("tidings")
    if name not in _HOMES:
        raise AttributeError(f"module 'tidings' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
