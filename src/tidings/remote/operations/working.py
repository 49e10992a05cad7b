"""Internal work; and how everything stands."""

import datetime
from typing import Any
from urllib.parse import quote

from tidings.remote import answers as a
from tidings.remote.calling import PAGE_SIZE, Call, get, post, raw_json

Moment = datetime.datetime


def submit_task(
    biz_type: str,
    biz_key: str,
    payload: Any = None,
    *,
    priority: int = 10,
    run_at: Moment | None = None,
    max_retries: int = 3,
    correlation_id: str | None = None,
    replace: bool = False,
) -> Call[a.SubmittedTask]:
    """Submit a task; while there is one with this type and key, that one is the answer."""
    given = {
        "biz_type": biz_type,
        "biz_key": biz_key,
        "payload": raw_json(payload),
        "priority": priority,
        "run_at": run_at,
        "max_retries": max_retries,
        "correlation_id": correlation_id,
        "replace": replace,
    }
    return post("/v1/tasks", a.SubmittedTask, given, is_repeatable=not replace)


def tasks(
    *,
    biz_type: str = "",
    biz_key: str = "",
    status: int | None = None,
    archived: bool = False,
    since: Moment | None = None,
    until: Moment | None = None,
    page_size: int = PAGE_SIZE,
) -> Call[a.Page[a.Task]]:
    """All tasks that fit, newest first; of one type by business key."""
    return get(
        "/v1/tasks",
        a.Page[a.Task],
        biz_type=biz_type,
        biz_key=biz_key,
        status=status,
        archived=archived or None,
        since=since,
        until=until,
        limit=page_size,
    )


def task(id: int) -> Call[a.WholeTask]:
    """One task, wherever it is."""
    return get(f"/v1/tasks/{id}", a.WholeTask)


def retry_task(id: int) -> Call[a.Commanded]:
    """Let a task start anew that failed for good."""
    return post(f"/v1/tasks/{id}/retry", a.Commanded, is_repeatable=False)


def cancel_task(id: int, *, reason: str = "") -> Call[a.Commanded]:
    """Cancel a task that waits."""
    return post(f"/v1/tasks/{id}/cancel", a.Commanded, {"reason": reason}, is_repeatable=False)


def why(kind: str, id: int) -> Call[a.Explanation]:
    """Where an `event`, a `saga` or a `task` is, what it waits for, and what would change it."""
    return get(f"/v1/why/{quote(kind, safe='')}/{id}", a.Explanation)


def stats() -> Call[a.Stats]:
    """How much there is to do."""
    return get("/v1/stats", a.Stats)
