"""What the dead-letter operator asks of the database and writes into it."""

import datetime
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tidings.db.operations import AuditedOperations
from tidings.db.session import Row
from tidings.model.dead_letter import MassRequeueStatus, Requeued, RequeueOutcome


@dataclass(frozen=True)
class Filter:
    """Which dead letters; 0 and '' stand for any."""

    since: datetime.datetime
    until: datetime.datetime
    subscription_id: int = 0
    error_code: str = ""
    event_type: str = ""

    @property
    def arguments(self) -> dict[str, Any]:
        return asdict(self)

    def as_json(self) -> str:
        return json.dumps({**self.arguments, "since": self.since.isoformat(), "until": self.until.isoformat()})

    @classmethod
    def from_json(cls, text: str) -> "Filter":
        found = json.loads(text)
        return cls(
            datetime.datetime.fromisoformat(found["since"]),
            datetime.datetime.fromisoformat(found["until"]),
            found["subscription_id"],
            found["error_code"],
            found.get("event_type", ""),
        )


@dataclass(frozen=True)
class MassRequeue:
    id: int
    status: MassRequeueStatus
    filter: Filter
    rate: int
    requested_by: str
    total: int
    position: int
    last_id: int
    started_count: int
    already_count: int
    refused_count: int

    @property
    def handled(self) -> int:
        return self.started_count + self.already_count + self.refused_count


class DeadLetterOperations(AuditedOperations):
    async def requeue(self, ids: Sequence[int]) -> list[Requeued]:
        return _requeued(await self._rows("requeue", ids=ids)) if ids else []

    async def resend(self, ids: Sequence[int]) -> list[Requeued]:
        return _requeued(await self._rows("resend", ids=ids)) if ids else []

    async def count_letters(self, filter: Filter, limit: int) -> tuple[int, int]:
        """How many there are, and the last id of them."""
        row = await self._row("count_letters", limit=limit, **filter.arguments)
        assert row is not None
        return int(row["total"]), int(row["last_id"])

    async def count_refused(self, filter: Filter, limit: int) -> dict[int, tuple[bool, int]]:
        """By subscription: whether it is active, and how many of the letters are its own."""
        rows = await self._rows("count_refused", limit=limit, **filter.arguments)
        return {row["subscription_id"]: (bool(row["active"]), row["letters"]) for row in rows}

    async def insert_mass(self, filter: Filter, rate: int, requested_by: str, total: int, last_id: int) -> int:
        row = await self._row(
            "insert_mass", filter=filter.as_json(), rate=rate, requested_by=requested_by, total=total, last_id=last_id
        )
        assert row is not None
        return int(row["id"])

    async def mass(self, mass_id: int) -> MassRequeue | None:
        return _mass(await self._row("mass", id=mass_id))

    async def lock_mass(self, mass_id: int) -> MassRequeue | None:
        return _mass(await self._row("lock_mass", id=mass_id))

    async def next_letters(self, mass: MassRequeue, limit: int) -> list[int]:
        rows = await self._rows(
            "next_letters", position=mass.position, last_id=mass.last_id, limit=limit, **mass.filter.arguments
        )
        return [row["id"] for row in rows]

    async def move_mass(self, mass_id: int, position: int, started: int, already: int, refused: int) -> None:
        await self._run("move_mass", id=mass_id, position=position, started=started, already=already, refused=refused)

    async def end_mass(self, mass_id: int, status: MassRequeueStatus) -> bool:
        return bool(await self._run("end_mass", id=mass_id, status=status.value))


def _requeued(rows: Sequence[Row]) -> list[Requeued]:
    """The routine's first column is named after what was asked for."""
    found = [row.values() for row in rows]
    return [Requeued(id, saga_id, generation, RequeueOutcome(said)) for id, saga_id, generation, said in found]


def _mass(row: Row | None) -> MassRequeue | None:
    if row is None:
        return None
    return MassRequeue(**{**row, "status": MassRequeueStatus(row["status"]), "filter": Filter.from_json(row["filter"])})
