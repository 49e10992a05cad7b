"""`/v1/tasks`: internal work, done once for each business key."""

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Request
from pydantic import Field

from tidings.api.context import By, Has
from tidings.api.describing import (
    PRINTABLE,
    VISIBLE,
    Answer,
    CursorText,
    Given,
    Id,
    Limit,
    Moment,
    PageOf,
    Shown,
    about,
    in_utc,
    shown,
    stored_json,
)
from tidings.api.paging import paged
from tidings.api.problems import Refused
from tidings.decisions.submitting import LAST_PRIORITY, MOST_RETRIES, accept_task
from tidings.ids import new_correlation_id
from tidings.model.key import Scope
from tidings.model.task import LONGEST_KEY, LONGEST_TYPE, TaskStatus
from tidings.model.task_command import TaskCommanded, TaskCommandOutcome
from tidings.roles.observer.listing import Page
from tidings.roles.observer.task_pages import TaskFilter, TaskPages
from tidings.roles.observer.tasks import TaskObserver
from tidings.roles.task_producer.operations import TaskProducerOperations
from tidings.roles.tasks import commands

router = APIRouter(tags=["tasks"])
ROLE = "dead_letter_operator"
_STATUS = "0 pending, 1 processing, 2 success, 3 to be retried, 4 failed for good."
_REASONS = {
    TaskCommandOutcome.KEY_TAKEN: "is archived, and another task has its business key now",
    TaskCommandOutcome.NOT_FAILED: "has not failed for good",
    TaskCommandOutcome.UNDER_WAY: "is being run by a worker",
    TaskCommandOutcome.ENDED: "has ended",
}


class NewTask(Given):
    """A task to be submitted."""

    biz_type: str = Field(description="Its type: visible ASCII, at most 50.", examples=["EMAIL_SEND"])
    biz_key: str = Field(description="Which one it is: one task for each, at most 100.", examples=["order-7"])
    payload: Any = Field(
        None, description="Any JSON; its text is kept byte for byte.", examples=[{"to": "a@example.com"}]
    )
    priority: int = Field(10, strict=True, ge=0, le=LAST_PRIORITY, description="The smaller, the sooner.")
    run_at: Moment | None = Field(None, description="Not before then.")
    max_retries: int = Field(3, strict=True, ge=0, le=MOST_RETRIES, description="How often it may be run again.")
    correlation_id: str | None = Field(None, description="Made when it is left out.")
    replace: bool = Field(False, strict=True, description="A finished one with this key makes room.")


class RawPayload(msgspec.Struct):
    """The same body once more: its payload as text, which is kept so."""

    payload: msgspec.Raw = msgspec.Raw(b"null")


class SubmittedTask(Shown):
    """Which task a request came to."""

    id: int = Field(description="The task's id.", examples=[9])
    status: int = Field(description=_STATUS)
    duplicate: bool = Field(description="It was there before under this business key; nothing was stored now.")
    payload_differs: bool = Field(description="A duplicate, but with another payload; the first one stays.")


class Task(Shown):
    """A task, without its payload."""

    id: int = Field(description="Its id.", examples=[9])
    biz_type: str = Field(description="Its type.")
    biz_key: str = Field(description="Its business key.")
    status: int = Field(description=_STATUS)
    priority: int = Field(description="The smaller, the sooner.")
    retry_count: int = Field(description="How often it was retried.")
    max_retries: int = Field(description="How often it may be.")
    next_run_time: Moment = Field(description="When it is due.")
    result_msg: str | None = Field(description="What became of it.")
    created_at: Moment = Field(description="When it was submitted.")
    updated_at: Moment = Field(description="When it last changed.")


class TaskDeed(Shown):
    """What somebody did to a task."""

    actor: str = Field(description="Who.")
    action: str = Field(description="What.")
    detail: Any = Field(description="More of it.")
    created_at: Moment = Field(description="When.")


class WholeTask(Task):
    """A task with its payload."""

    payload: Any = Field(description="As it was submitted.")
    correlation_id: str = Field(description="What belongs together.")
    worker_id: str | None = Field(description="Who ran it last.")
    archived_at: Moment | None = Field(description="When it went to the history; null while it is in the queue.")
    audit: list[TaskDeed] = Field(description="What people did to it.")


class Cancellation(Given):
    """Why a task is cancelled."""

    reason: str = Field("", max_length=500, description="It is kept with the task and in the audit log.")


class Commanded(Shown):
    """What a command came to."""

    id: int = Field(description="Which task was meant.")
    task_id: int | None = Field(description="The one in the queue now: a new one for an archived one.")
    outcome: TaskCommandOutcome = Field(description="retried, submitted_anew or cancelled.")


@router.post("/tasks", summary="Submit a task", **about(Scope.OPERATOR, SubmittedTask, status=202, of_all_domains=True))
async def submit(given: NewTask, request: Request, api: Has) -> Answer:
    """While there is one with this type and key in the queue, finished or not, that one is the answer."""
    task = accept_task(
        given.biz_type,
        given.biz_key,
        _raw_payload(await request.body()),
        priority=given.priority,
        run_at=given.run_at,
        max_retries=given.max_retries,
        correlation_id=new_correlation_id() if given.correlation_id is None else given.correlation_id,
        limits=api.limits,
    )

    async def work(operations: TaskProducerOperations) -> Any:
        return await operations.submit([task], replace=given.replace)

    (done,) = await api.as_role(
        "task_producer", lambda engine: TaskProducerOperations.step(engine, work), wakes="task-worker"
    )
    return Answer(shown(SubmittedTask, vars(done), status=int(done.status)), status_code=202)


@router.get("/tasks", summary="List tasks", **about(Scope.VIEWER, PageOf[Task], "bad_cursor", of_all_domains=True))
async def list_tasks(
    api: Has,
    biz_type: Annotated[
        str, Query(max_length=LONGEST_TYPE, pattern=VISIBLE, description="Only of this type, by key.")
    ] = "",
    biz_key: Annotated[
        str, Query(max_length=LONGEST_KEY, pattern=PRINTABLE, description="With biz_type: only of this key.")
    ] = "",
    status: Annotated[int | None, Query(ge=0, le=4, description=f"Only these: {_STATUS}")] = None,
    archived: Annotated[bool, Query(description="Those of the history.")] = False,
    since: Annotated[Moment | None, Query(description="With archived: archived then or later.")] = None,
    until: Annotated[Moment | None, Query(description="With archived: archived then or before.")] = None,
    limit: Limit = 50,
    cursor: CursorText = None,
) -> Answer:
    """Newest first; of one type by business key; of one status that waits, the sooner first."""
    if biz_key and not biz_type:
        raise Refused("invalid", "A business key belongs to a type.", [("?biz_key", "needs biz_type")])
    if biz_key and (status is not None or since or until):
        raise Refused("invalid", "A business key can't be combined with more: it has few tasks.")
    if (since or until) and not archived:
        raise Refused("invalid", "Only the history is known by time.", [("?since", "needs archived=true")])
    chosen = None if status is None else TaskStatus(status)
    filter = TaskFilter(biz_type, biz_key, chosen, in_utc(since), in_utc(until))

    async def read(observer: TaskPages, place: Any) -> Page:
        return await (observer.history if archived else observer.queue)(filter, limit, place)

    filters = {**vars(filter), "archived": archived}
    return Answer(await paged(api, "tasks", filters, cursor, TaskPages, read, lambda row: shown(Task, row)))


@router.get("/tasks/{id}", summary="One task", **about(Scope.VIEWER, WholeTask, "not_found", of_all_domains=True))
async def show_task(id: Id, api: Has) -> Answer:
    """Wherever it is, with its payload and what people did to it."""
    found = await api.observed(TaskObserver, lambda observer: observer.task(id))
    return Answer(shown(WholeTask, found, payload=stored_json(found["payload"])))


@router.post(
    "/tasks/{id}/retry",
    summary="Let a task start anew that failed for good",
    **about(Scope.OPERATOR, Commanded, "not_found", "conflict", of_all_domains=True),
)
async def retry(id: Id, api: Has, caller: By) -> Answer:
    """An archived one is submitted as a new task."""
    (done,) = await api.as_role(ROLE, lambda engine: commands.retry(engine, [id], caller.actor), wakes="task-worker")
    return _commanded(done)


@router.post(
    "/tasks/{id}/cancel",
    summary="Cancel a task that waits",
    **about(Scope.OPERATOR, Commanded, "not_found", "conflict", of_all_domains=True),
)
async def cancel(id: Id, api: Has, caller: By, given: Cancellation | None = None) -> Answer:
    """It counts as failed for good. One that is being run can't be reached."""
    reason = given.reason if given else ""
    (done,) = await api.as_role(ROLE, lambda engine: commands.cancel(engine, [id], reason, caller.actor))
    return _commanded(done)


def _raw_payload(body: bytes) -> bytes:
    try:
        return bytes(msgspec.json.decode(body, type=RawPayload).payload)
    except msgspec.DecodeError as error:
        # Python reads more than JSON, such as NaN.
        raise Refused("malformed", f"The body is no JSON: {error}.") from None


def _commanded(done: TaskCommanded) -> Answer:
    if done.outcome is TaskCommandOutcome.NOT_FOUND:
        raise Refused("not_found", f"There is no task {done.id}.")
    if done.outcome in _REASONS:
        raise Refused("conflict", f"Task {done.id} {_REASONS[done.outcome]}.")
    return Answer(shown(Commanded, vars(done)))
