"""How tasks are submitted, whoever speaks to the database: a generator that asks statements and is sent their rows.

While a task with the same business key is in the queue, whatever its status, that one is the answer (ruling 13). Keys
are looked up before anything is inserted, so that known duplicates draw no ids. It commits nothing.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from tidings.db.asking import Ask, Flow, batches, text_size
from tidings.errors import TaskRefused
from tidings.model.submission import AcceptedTask, Submitted
from tidings.model.task import TaskStatus

# A key that is taken when we insert and free when we look may have been so for a moment: it was archived meanwhile.
_ATTEMPTS = 3
_ENDED = (TaskStatus.SUCCESS, TaskStatus.FAIL_TERMINAL)

Key = tuple[str, str]
"""Type, and business key as the hex of its UTF-8: rows come back so, as a caller's session may have any charset."""


@dataclass(frozen=True)
class Found:
    """A task that was there before us. `digest` is None if it has no payload."""

    id: int
    status: TaskStatus
    digest: str | None


def submitting(tasks: Sequence[AcceptedTask], *, replace: bool = False) -> Flow[list[Submitted]]:
    """What each task came to, in the order given. With `replace` a finished one makes room for the new one."""
    firsts: dict[Key, int] = {}
    for place, task in enumerate(tasks):
        firsts.setdefault(_key(task), place)
    found = yield from _find("find_tasks", [tasks[place] for place in firsts.values()])
    if replace:
        yield from _archive([one.id for one in found.values() if one.status in _ENDED])
        found = {key: one for key, one in found.items() if one.status not in _ENDED}
    new: dict[Key, int] = {}
    for _ in range(_ATTEMPTS):
        missing = [tasks[place] for key, place in firsts.items() if key not in found and key not in new]
        new |= yield from _insert(missing)
        found |= yield from _find("find_tasks_now", [task for task in missing if _key(task) not in new])
    if lost := [tasks[place] for key, place in firsts.items() if key not in found and key not in new]:
        raise _refused(lost)

    def outcome(place: int, task: AcceptedTask) -> Submitted:
        key = _key(task)
        first = firsts[key]
        if there := found.get(key):
            return Submitted(there.id, there.status, duplicate=True, payload_differs=there.digest != _digest(task))
        if place == first:
            return Submitted(new[key])
        return Submitted(new[key], duplicate=True, payload_differs=tasks[first].payload != task.payload)

    return [outcome(place, task) for place, task in enumerate(tasks)]


def _find(statement: str, tasks: Sequence[AcceptedTask]) -> Flow[dict[Key, Found]]:
    found: dict[Key, Found] = {}
    for batch in batches([(task.biz_type, task.biz_key) for task in tasks], lambda key: 0):
        rows = yield Ask(statement, {"keys": batch})
        found |= {
            (row["biz_type"], row["key_hex"]): Found(row["id"], TaskStatus(row["status"]), row["digest"])
            for row in rows
        }
    return found


def _archive(ids: Sequence[int]) -> Flow[None]:
    for batch in batches(ids, lambda id: 0):
        yield Ask("archive_finished", {"ids": json.dumps(batch)})


def _insert(tasks: Sequence[AcceptedTask]) -> Flow[dict[Key, int]]:
    """The ids of those that were stored; a key that somebody else took meanwhile has none."""
    now = [task for task in tasks if task.run_at is None]
    later = [task for task in tasks if task.run_at is not None]
    made: dict[Key, int] = {}
    for batch in batches(now, _size):
        rows = yield Ask("insert_tasks", {"tasks": [_columns(task) for task in batch]})
        made |= {(row["biz_type"], row["key_hex"]): row["id"] for row in rows}
    for batch in batches(later, _size):
        rows = yield Ask("insert_later_tasks", {"tasks": [(*_columns(task), task.run_at) for task in batch]})
        made |= {(row["biz_type"], row["key_hex"]): row["id"] for row in rows}
    return made


def _columns(task: AcceptedTask) -> tuple[str | int, ...]:
    return (task.biz_type, task.biz_key, task.payload, task.priority, task.max_retries, task.correlation_id)


def _key(task: AcceptedTask) -> Key:
    return (task.biz_type, task.biz_key.encode().hex())


def _size(task: AcceptedTask) -> int:
    return text_size(task.payload)


def _digest(task: AcceptedTask) -> str:
    return hashlib.sha256(task.payload.encode()).hexdigest()


def _refused(tasks: Sequence[AcceptedTask]) -> TaskRefused:
    names = ", ".join(f"{task.biz_type} {task.biz_key}" for task in tasks[:3])
    return TaskRefused(
        f"The database did not take {'this task' if len(tasks) == 1 else 'some of these tasks'}: {names}.",
        "What it refuses, its constraints and triggers say; `tidings doctor` knows those that are ours.",
        field="tasks",
    )
