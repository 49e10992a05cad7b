"""The story of one event as steps on one line of time. Pure: from what the observer read."""

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tidings.model.job import JobStatus
from tidings.model.route import RouteAttemptStatus
from tidings.model.saga import SAGA_MOVES, SagaStatus
from tidings.model.task import TaskStatus
from tidings.roles.observer.stories import Story

Row = Mapping[str, Any]
# What happens at the same moment comes in this order.
KINDS = (
    "accepted",
    "decided",
    "set_aside",
    "set_right",
    "planned",
    "again",
    "attempt",
    "buried",
    "task",
    "due",
)
_DECIDED = {
    RouteAttemptStatus.SENT: "good",
    RouteAttemptStatus.FAILED: "bad",
    RouteAttemptStatus.DRY_RUN: "warn",
    RouteAttemptStatus.SKIPPED: "warn",
    RouteAttemptStatus.DISABLED: "warn",
}
_ATTEMPTED = {JobStatus.COMPLETED: "good", JobStatus.FAILED: "bad"}
_TASKS = {TaskStatus.SUCCESS: "good", TaskStatus.FAIL_TERMINAL: "bad", TaskStatus.FAIL_RETRY: "warn"}


@dataclass(frozen=True)
class Step:
    """`of` is the row that it is made from; `subscription_id` is 0 for what concerns all of them."""

    at: datetime.datetime
    kind: str
    tone: str
    of: Row
    subscription_id: int = 0
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Delivery:
    """What has come of the event for one subscription: its last generation."""

    subscription_id: int
    saga: Row
    dead_letter_id: int | None

    @property
    def may_be_requeued(self) -> bool:
        return self.saga["status"] == SagaStatus.DEAD_LETTERED and self.dead_letter_id is not None

    @property
    def may_be_resent(self) -> bool:
        return bool(self.saga["status"] == SagaStatus.COMPLETED)


def steps_of(story: Story, now: datetime.datetime, subscription_id: int = 0) -> list[Step]:
    """In the order in which things happened; with a subscription only what concerns it."""
    everything = [*_routing(story.event), *_deliveries(story, now), *_tasks(story.event)]
    chosen = [step for step in everything if not subscription_id or step.subscription_id in (0, subscription_id)]
    return sorted(chosen, key=lambda step: (step.at, KINDS.index(step.kind), step.of["id"]))


def deliveries_of(story: Story) -> list[Delivery]:
    latest: dict[int, Row] = {}
    for saga in sorted(story.event["sagas"], key=lambda saga: int(saga["generation"])):
        latest[saga["subscription_id"]] = saga
    letters = {letter["saga_id"]: letter["id"] for letter in story.dead_letters}
    return [Delivery(id, saga, letters.get(saga["id"])) for id, saga in sorted(latest.items())]


def is_over(story: Story) -> bool:
    """No delivery that is shown will change by itself."""
    return not any(SAGA_MOVES[SagaStatus(saga["status"])] for saga in story.event["sagas"])


def _routing(event: Row) -> Iterator[Step]:
    yield Step(event["created_at"], "accepted", "good", event)
    for attempt in event["route_attempts"]:
        yield Step(attempt["created_at"], "decided", _DECIDED[RouteAttemptStatus(attempt["status"])], attempt)
    for letter in event["route_dead_letters"]:
        yield Step(letter["created_at"], "set_aside", "bad", letter)
        if letter["resolved_at"]:
            yield Step(letter["resolved_at"], "set_right", "good", letter)


def _deliveries(story: Story, now: datetime.datetime) -> Iterator[Step]:
    letters = {letter["saga_id"]: letter for letter in story.dead_letters}
    sagas: Sequence[Row] = story.event["sagas"]
    before = {(saga["subscription_id"], saga["generation"] + 1): saga for saga in sagas}
    for saga in sagas:
        to = saga["subscription_id"]
        if saga["generation"]:
            former = before.get((to, saga["generation"]))
            yield Step(saga["created_at"], "again", "busy", saga, to, _again(story, former, letters))
        else:
            yield Step(saga["created_at"], "planned", "quiet", saga, to)
        for job in saga["jobs"]:
            yield Step(job["finished_at"] or job["created_at"], "attempt", _tone(job), job, to, {"saga": saga})
        if letter := letters.get(saga["id"]):
            yield Step(letter["failed_at"], "buried", "bad", letter, to, {"saga": saga})
        if saga["status"] != SagaStatus.IN_PROGRESS and SAGA_MOVES[SagaStatus(saga["status"])]:
            yield Step(max(saga["next_attempt_at"], now), "due", "busy", saga, to)


def _tone(job: Row) -> str:
    return _ATTEMPTED.get(JobStatus(job["status"]), "busy")


def _again(story: Story, former: Row | None, letters: Mapping[int, Row]) -> dict[str, Any]:
    """What it was made of, and by whom, if the audit log names it; a requeue of many does not name each one."""
    letter = letters.get(former["id"]) if former else None
    asked = {
        "dead_letters.requeued": letter["id"] if letter else None,
        "sagas.resent": former["id"] if former else None,
    }
    by = next((deed.actor for deed in story.deeds if asked.get(deed.action) in deed.ids), "")
    return {"was_dead": letter is not None, "by": by}


def _tasks(event: Row) -> Iterator[Step]:
    for task in event["tasks"]:
        yield Step(task["updated_at"], "task", _TASKS.get(TaskStatus(task["status"]), "busy"), task)
