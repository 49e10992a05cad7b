"""`tidings.submit_task`: a task written in the caller's own transaction: it is there if and only if that commits.

The caller's login needs the role `task_producer`. On a connection in autocommit each statement is a transaction of its
own: a single task is safe there, of many some may be stored without the others.
"""

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tidings.client.driving import drive, then
from tidings.client.listing import accepted_list
from tidings.decisions.submitting import accept_task
from tidings.errors import TaskRefused
from tidings.ids import new_correlation_id
from tidings.model.event import EventLimits
from tidings.model.submission import AcceptedTask
from tidings.roles.task_producer.submitting import submitting

_STATEMENTS = "tidings.roles.task_producer"
_LIMITS = EventLimits()


@dataclass(frozen=True)
class NewTask:
    """One task of `submit_tasks`. `payload` is JSON text, or a value that becomes JSON."""

    biz_type: str
    biz_key: str
    payload: Any
    priority: int = 10
    run_at: datetime.datetime | None = None
    max_retries: int = 3
    correlation_id: str | None = None


def submit_task(
    connection: Any,
    biz_type: str,
    biz_key: str,
    payload: Any,
    priority: int = 10,
    run_at: datetime.datetime | None = None,
    max_retries: int = 3,
    correlation_id: str | None = None,
    replace: bool = False,
    *,
    schema: str = "tidings",
    limits: EventLimits = _LIMITS,
) -> Any:
    """Writes one task on the caller's connection: a `Submitted`, or an awaitable of it if the connection is async.

    A str or bytes as payload is JSON text and is kept byte for byte; anything else becomes JSON. The smaller the
    `priority`, the sooner; it is not run before `run_at`; after the first run there are at most `max_retries` more.
    While a task with this type and key is in the queue, finished or not, that one is the answer, as a duplicate; with
    `replace` one that is finished goes to the history, and the new one takes its place.
    """
    task = NewTask(biz_type, biz_key, payload, priority, run_at, max_retries, correlation_id)
    flow = submitting([_accepted(task, limits)], replace=replace)
    return then(drive(connection, _STATEMENTS, schema, flow), lambda all: all[0])


def submit_tasks(
    connection: Any,
    tasks: Iterable[NewTask | Mapping[str, Any]],
    *,
    replace: bool = False,
    schema: str = "tidings",
    limits: EventLimits = _LIMITS,
) -> Any:
    """The same for many, in few statements: a list of `Submitted` in the order given, or an awaitable of it.

    If one of them is refused, nothing was written.
    """
    accepted = accepted_list(tasks, NewTask, "task", TaskRefused, lambda task: _accepted(task, limits))
    return drive(connection, _STATEMENTS, schema, submitting(accepted, replace=replace))


def _accepted(task: NewTask, limits: EventLimits) -> AcceptedTask:
    return accept_task(
        task.biz_type,
        task.biz_key,
        task.payload,
        priority=task.priority,
        run_at=task.run_at,
        max_retries=task.max_retries,
        correlation_id=new_correlation_id() if task.correlation_id is None else task.correlation_id,
        limits=limits,
    )
