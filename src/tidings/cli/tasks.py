"""`tasks`: the queue of internal work: what waits, what became of it, and what a person can do about it."""

import datetime
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import typer

from tidings.cli.acting import as_role, observed, person
from tidings.cli.context import settings
from tidings.cli.listing import AsJson, Limit, moment, say_more, show_list, show_one
from tidings.cli.output import out, show_json
from tidings.cli.publishing import read_payload
from tidings.db.engine import Engine
from tidings.decisions.submitting import accept_task
from tidings.errors import InputRefused
from tidings.ids import new_correlation_id
from tidings.model.event import EventLimits
from tidings.model.submission import AcceptedTask, Submitted
from tidings.model.task import TaskStatus
from tidings.model.task_command import TaskCommanded, TaskCommandOutcome
from tidings.roles.observer.listing import END, Shown, page_of
from tidings.roles.observer.tasks import TaskObserver
from tidings.roles.task_producer.operations import TaskProducerOperations
from tidings.roles.tasks import commands
from tidings.settings.values import BadValue, read_duration

ROLE = "dead_letter_operator"
COLUMNS = ("id", "biz_type", "biz_key", "status", "priority", "retry_count", "next_run_time", "result_msg")
AUDIT_COLUMNS = ("created_at", "actor", "action", "detail")
COMMAND_COLUMNS = ("id", "task_id", "says")
_WORDS = {
    TaskStatus.PENDING: "pending",
    TaskStatus.PROCESSING: "processing",
    TaskStatus.SUCCESS: "success",
    TaskStatus.FAIL_RETRY: "to be retried",
    TaskStatus.FAIL_TERMINAL: "failed for good",
}

app = typer.Typer(help="Tasks: internal work, done once for each business key.")

Ids = Annotated[list[int], typer.Argument(min=1, max=END, metavar="ID…")]


def add_to(root: typer.Typer) -> None:
    root.add_typer(app, name="tasks", no_args_is_help=True)


@app.command("list")
def list_(
    status: Annotated[
        int | None,
        typer.Option(min=0, max=4, help=f"Only these: {', '.join(f'{s.value} {w}' for s, w in _WORDS.items())}."),
    ] = None,
    type: Annotated[str, typer.Option(help="Only this type, by business key.")] = "",
    key: Annotated[str, typer.Option(help="With --type: only this business key.")] = "",
    archived: Annotated[bool, typer.Option("--archived", help="Those of the history.")] = False,
    before: Annotated[
        int | None, typer.Option(min=1, max=END, metavar="ID", help="Go on after this one of a page.")
    ] = None,
    after: Annotated[
        int | None,
        typer.Option(min=1, max=END, metavar="ID", help="With --status or --type: go on after this one of a page."),
    ] = None,
    limit: Limit = 50,
    json: AsJson = False,
) -> None:
    """List tasks, newest first; of one status the longest due first; of one type by business key."""
    _check(status, type, key, archived)

    async def found(observer: TaskObserver) -> list[Shown]:
        if archived:
            return await _archived(observer, type, key, limit, before or END, after or 0)
        if status is not None:
            return await observer.tasks_of_status(TaskStatus(status), limit, after or 0)
        return await _queued(observer, type, key, limit, before or END, after or 0)

    tasks = observed(TaskObserver, found)
    show_list(
        tasks if json else [_worded(one) for one in tasks], COLUMNS, as_json=json, nothing="There is no such task."
    )
    say_more(page_of(tasks, limit).next, "--before" if status is None and not type else "--after")


async def _archived(observer: TaskObserver, type: str, key: str, limit: int, before: int, after: int) -> list[Shown]:
    if key:
        return await observer.archived_of_key(type, key, limit, after)
    return await (observer.archived_of_type(type, limit, after) if type else observer.archived(limit, before))


async def _queued(observer: TaskObserver, type: str, key: str, limit: int, before: int, after: int) -> list[Shown]:
    if key:
        return await observer.task_of_key(type, key)
    return await (observer.tasks_of_type(type, limit, after) if type else observer.tasks(limit, before))


def _check(status: int | None, type: str, key: str, archived: bool) -> None:
    if status is not None and (type or archived):
        raise InputRefused(
            "A status can't be combined with a type or the history: no index would serve that.",
            "Choose one.",
            field="status",
        )
    if key and not type:
        raise InputRefused("A business key belongs to a type.", "Add --type.", field="key")


@app.command()
def show(id: Annotated[int, typer.Argument(min=1, max=END)], json: AsJson = False) -> None:
    """Show one task, wherever it is, with its payload and what people did to it."""
    task = dict(observed(TaskObserver, lambda observer: observer.task(id)))
    if json:
        show_one(task, as_json=True)
        return
    audits = task.pop("audit")
    show_one(_worded(task), as_json=False)
    if audits:
        out.print()
        show_list(audits, AUDIT_COLUMNS, as_json=False, nothing="")


@app.command()
def submit(
    biz_type: Annotated[str, typer.Argument(metavar="TYPE", help="Such as EMAIL_SEND.")],
    biz_key: Annotated[str, typer.Argument(metavar="KEY", help="Such as an order's number: one task for each.")],
    payload: Annotated[
        str, typer.Argument(metavar="[PAYLOAD|-|@FILE]", help="JSON text, - for standard input, or @ and a file.")
    ] = "{}",
    priority: Annotated[int, typer.Option(help="0 to 127; the smaller, the sooner.")] = 10,
    run_at: Annotated[
        str | None, typer.Option(help="Not before then: 2026-01-31T10:00:00Z, or in 15m, 2h, 3d.")
    ] = None,
    max_retries: Annotated[int, typer.Option(help="How often it may be run again.")] = 3,
    correlation_id: Annotated[str | None, typer.Option(help="Made when none is given.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="A finished one with this key makes room.")] = False,
    json: AsJson = False,
) -> None:
    """Submit one task and print its id; while there is one with this key, that one."""
    ingest = settings().ingest
    task = accept_task(
        biz_type,
        biz_key,
        read_payload(payload, ingest.max_payload),
        priority=priority,
        run_at=_time_to_come(run_at),
        max_retries=max_retries,
        correlation_id=new_correlation_id() if correlation_id is None else correlation_id,
        limits=EventLimits(ingest.max_payload, ingest.max_nesting),
    )
    _show_submitted(as_role("task_producer", lambda engine: _store(engine, task, replace), wakes="task-worker"), json)


@app.command()
def retry(ids: Ids, json: AsJson = False) -> None:
    """Let tasks that failed for good start anew; those of the history as new tasks. Ends with 1 if any is refused."""
    _show_commanded(as_role(ROLE, lambda engine: commands.retry(engine, ids, person()), wakes="task-worker"), json)


@app.command()
def cancel(
    ids: Ids,
    reason: Annotated[str, typer.Option(help="Why; it is kept with the task and in the audit log.")] = "",
    json: AsJson = False,
) -> None:
    """Cancel tasks that wait: they count as failed for good. Ends with 1 if any is refused."""
    _show_commanded(as_role(ROLE, lambda engine: commands.cancel(engine, ids, reason, person())), json)


async def _store(engine: Engine, task: AcceptedTask, replace: bool) -> Submitted:
    (submitted,) = await TaskProducerOperations.step(
        engine, lambda operations: operations.submit([task], replace=replace)
    )
    return submitted


def _time_to_come(text: str | None) -> datetime.datetime | None:
    """A moment, or how long from now."""
    if text is None:
        return None
    try:
        return datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=read_duration(text))
    except (BadValue, OverflowError):
        return moment(text, "run_at")


def _show_submitted(submitted: Submitted, json: bool) -> None:
    if json:
        show_json(asdict(submitted))
        return
    differs = ", with another payload" if submitted.payload_differs else ""
    was = f" (duplicate: it was there before, {_WORDS[submitted.status]}{differs})" if submitted.duplicate else ""
    out.print(f"task {submitted.id}{was}", markup=False)


def _show_commanded(done: Sequence[TaskCommanded], json: bool) -> None:
    show_list(
        [{**asdict(one), "outcome": str(one.outcome), "says": _says(one)} for one in done],
        COMMAND_COLUMNS,
        as_json=json,
        nothing="",
    )
    if not all(one.outcome.is_done for one in done):
        raise typer.Exit(1)


def _says(one: TaskCommanded) -> str:
    was = _WORDS[one.status] if one.status is not None else ""
    return {
        TaskCommandOutcome.RETRIED: "will be run again",
        TaskCommandOutcome.SUBMITTED_ANEW: "was archived; will be run as this new task",
        TaskCommandOutcome.CANCELLED: "will not be run",
        TaskCommandOutcome.NOT_FOUND: "there is none with this id",
        TaskCommandOutcome.KEY_TAKEN: "refused: it is archived, and another task has its business key now",
        TaskCommandOutcome.NOT_FAILED: f"refused: it has not failed for good, it is {was}",
        TaskCommandOutcome.UNDER_WAY: "refused: a worker is running it",
        TaskCommandOutcome.ENDED: f"refused: it has ended, {was}",
    }[one.outcome]


def _worded(task: Shown) -> Shown:
    """The status as number and word."""
    return {**task, "status": f"{task['status']} {_WORDS[TaskStatus(task['status'])]}"}
