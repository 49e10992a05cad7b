"""What the rows that contradict each other mean, in words."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tidings.model.ledger import Difference
from tidings.model.saga import SagaStatus

Rows = Iterable[Mapping[str, Any]]

_STRAYS = {
    "route_attempts": ("route_attempt", "was decided about event {event_id}, which is not in the log"),
    "webhook_delivery_sagas": ("saga", "delivers event {event_id}, which is not in the log"),
    "dead_letters": ("dead_letter", "belongs to a saga that is not there"),
    "route_dead_letters": ("route_dead_letter", "holds event {event_id}, which is not in the log"),
    "generations": ("saga", "is a next generation, and the one before it is not there"),
}


def sagas_missing_or_too_many(rows: Rows) -> Iterator[Difference]:
    for row in rows:
        wanted, there = int(row["wanted"]), int(row["there"])
        text = f"routers wrote down {wanted} deliveries, and there are {there} sagas"
        yield Difference(f"event:{row['event_id']}", row["event_id"], text)


def sagas_contradicted(rows: Rows) -> Iterator[Difference]:
    for row in rows:
        for text in _contradictions(row):
            yield Difference(f"saga:{row['id']}", row["event_id"], text)


def _contradictions(row: Mapping[str, Any]) -> Iterator[str]:
    status = SagaStatus(row["status"])
    expected = {
        "delivered": (status is SagaStatus.COMPLETED, "successful jobs that were taken in"),
        "under_way": (status is SagaStatus.IN_PROGRESS, "jobs that are under way or not taken in"),
        "dead_letters": (status is SagaStatus.DEAD_LETTERED, "dead letters"),
    }
    for column, (wanted, name) in expected.items():
        if int(row[column]) != wanted:
            yield f"is {status}, and has {row[column]} {name} instead of {int(wanted)}"
    if row["applied"] != row["attempt_count"]:
        yield f"counts {row['attempt_count']} attempts, and {row['applied']} results were taken in"


def strays(rows: Rows) -> Iterator[Difference]:
    for row in rows:
        kind, text = _STRAYS[row["place"]]
        yield Difference(f"{kind}:{row['id']}", row["event_id"], text.format(event_id=row["event_id"]))


def tasks_missing(rows: Rows) -> Iterator[Difference]:
    for row in rows:
        text = f"routers wrote down a task {row['biz_type']}, which neither waits nor is in the history"
        yield Difference(f"event:{row['event_id']}", row["event_id"], text)


def tasks_doubled(rows: Rows) -> Iterator[Difference]:
    for row in rows:
        text = f"({row['biz_type']}, {row['biz_key']}) waits, and is in the history too"
        yield Difference(f"task:{row['id']}", None, text)
