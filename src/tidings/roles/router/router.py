"""One named router: a step is one pass over what became visible, in one transaction.

It locks its cursor, reads, decides, writes, moves the cursor. It never skips an event, in whatever order transactions
commit, and waits for no open transaction: what it passed without seeing it remembers as holes.
"""

import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial

from tidings.db.engine import Engine
from tidings.decisions.holes import (
    Chunk,
    Holes,
    Reading,
    all_ranges,
    gaps,
    next_chunk,
    remembered,
    settle,
    unwitnessed,
    witnessed,
)
from tidings.decisions.routing import (
    NO_HISTORY,
    NOTHING,
    Configuration,
    Decision,
    Existing,
    History,
    Planned,
    histories,
    plan,
)
from tidings.errors import DatabaseError, GateClosed, NotFound, RouterHeld, StatementFailed
from tidings.model.event import LoggedEvent
from tidings.model.route import DEFAULT_ROUTER, EVERY_DOMAIN, RouteAttemptStatus
from tidings.roles.router.operations import Cursor, RouterOperations
from tidings.roles.router.witness import Witness
from tidings.roles.router.writing import write, write_carefully
from tidings.telemetry.bus import tell
from tidings.telemetry.notices import EventsRouted, RouterStopped, RouterWorking, WritersUnknown

BATCH = 1_000
FAN_OUT = 5_000
_SECONDS_BETWEEN_DOUBTS = 5.0


class Outcome(StrEnum):
    ROUTED = "routed"
    IDLE = "idle"
    BUSY = "busy"
    CLOSED = "closed"
    HELD = "held"


@dataclass(frozen=True)
class Pass:
    """What one pass came to; `reason` says why nothing was done."""

    outcome: Outcome
    reason: str = ""
    read: int = 0
    late: int = 0
    sagas: int = 0
    tasks: int = 0
    holes: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def did_work(self) -> bool:
        return self.outcome is Outcome.ROUTED


@dataclass(frozen=True)
class Memory:
    """The holes of a cursor as it was when it had this stamp."""

    stamp: tuple[int, int] | None
    holes: Holes


@dataclass(frozen=True)
class Batch:
    """The events of one pass: those that arrived late first. Those after `handled` stay for the next one."""

    chunk: Chunk
    late: Sequence[LoggedEvent]
    fresh: Sequence[LoggedEvent]
    late_is_complete: bool
    planned: Sequence[Planned] = ()
    handled: int = 0

    @property
    def events(self) -> list[LoggedEvent]:
        return [*self.late, *self.fresh]

    def reading(self) -> Reading:
        late = self.late[: self.handled]
        complete = self.late_is_complete and len(late) == len(self.late)
        return Reading(self.chunk, {event.id for event in late}, None if complete else late[-1].id)

    @property
    def passed(self) -> list[int]:
        return [event.id for event in self.fresh[: max(0, self.handled - len(self.late))]]


class Router:
    """`engine` is one of the role event_router, with room for two sessions."""

    def __init__(
        self, engine: Engine, name: str = DEFAULT_ROUTER, *, batch: int = BATCH, fan_out: int = FAN_OUT
    ) -> None:
        self.name = name
        self._engine = engine
        self._batch = batch
        self._fan_out = fan_out
        self._witness = Witness(engine)
        self._memory: Memory | None = None
        self._configuration: Configuration | None = None
        self._purges = False
        self._doubted_at = float("-inf")
        self._told = ""

    async def step(self) -> Pass:
        """One pass, after a look at who is still writing; says how much it did."""
        self._memory = await self._witnessed(self._memory or await self._recall())
        try:
            done, memory = await self._careful_if_refused()
        except GateClosed as closed:
            done, memory = Pass(Outcome.CLOSED, closed.what), self._memory
        except RouterHeld as held:
            done, memory = Pass(Outcome.HELD, held.what), self._memory
        self._memory = memory
        if done.did_work and self._purges:
            await self._forget_settled()
        self._announce(done)
        return done

    async def close(self) -> None:
        await self._witness.close()

    async def _careful_if_refused(self) -> tuple[Pass, Memory | None]:
        try:
            return await RouterOperations.step(self._engine, self._pass)
        except StatementFailed:
            return await RouterOperations.step(self._engine, partial(self._pass, carefully=True))

    async def _recall(self) -> Memory:
        """What the table says; who may fill the holes is not known yet."""

        async def recall(operations: RouterOperations) -> Memory:
            cursor = await operations.read_cursor(self.name)
            holes = remembered(await operations.holes(self.name))
            return Memory(cursor.stamp if cursor else None, holes)

        return await RouterOperations.step(self._engine, recall)

    async def _witnessed(self, memory: Memory) -> Memory:
        """An error here drops no hole, and stops nothing else."""
        if not memory.holes:
            return memory
        try:
            seen = await self._witness.look()
        except DatabaseError as error:
            tell(WritersUnknown(self.name, error.what))
            return Memory(memory.stamp, unwitnessed(memory.holes))
        return memory if seen is None else Memory(memory.stamp, witnessed(memory.holes, seen))

    async def _forget_settled(self) -> None:
        try:
            await self._witness.forget_settled()
        except DatabaseError as error:
            tell(WritersUnknown(self.name, error.what))

    async def _pass(self, operations: RouterOperations, carefully: bool = False) -> tuple[Pass, Memory | None]:
        cursor = await operations.lock_cursor(self.name)
        if cursor is None:
            return await self._without_cursor(operations), None
        await self._refuse_if_closed(operations)
        await self._refuse_if_doubtful(operations, cursor)
        memory = self._memory
        if memory is None or memory.stamp != cursor.stamp:
            memory = Memory(cursor.stamp, remembered(await operations.holes(self.name)))
        batch = await self._planned(operations, cursor, await self._read(operations, cursor, memory.holes))
        return await self._written(operations, cursor, memory, batch, carefully)

    async def _without_cursor(self, operations: RouterOperations) -> Pass:
        if await operations.read_cursor(self.name) is not None:
            return Pass(Outcome.BUSY, "another instance of this router is at work")
        await self._refuse_if_closed(operations)
        if self.name != DEFAULT_ROUTER or not await operations.make_cursor(self.name, EVERY_DOMAIN):
            raise NotFound(
                f"There is no router {self.name}.", f"Make it with `tidings routers add {self.name} --domain …`."
            )
        return Pass(Outcome.ROUTED, "the cursor was made")

    async def _refuse_if_closed(self, operations: RouterOperations) -> None:
        try:
            closed = await operations.closed_gates(self.name)
        except StatementFailed as error:
            raise GateClosed(f"The gates can't be read, so they are closed. {error.what}") from error
        if closed:
            raise GateClosed(
                f"Closed: {', '.join(f'gate {name}' for name in closed)}.",
                " ".join(f"`tidings gates open {name}`" for name in closed),
            )

    async def _refuse_if_doubtful(self, operations: RouterOperations, cursor: Cursor) -> None:
        standing = await operations.standing(self.name)
        remedy = f"Find out what happened to the log, then `tidings routers confirm {self.name}`."
        if not standing.is_same:
            raise RouterHeld(f"Event {cursor.last_event_id}, the last one routed, is gone or is another one.", remedy)
        drawn = await operations.last_number()
        if drawn < cursor.position:
            raise RouterHeld(f"Event ids are at {drawn}, behind {cursor.position}, which was routed.", remedy)
        await self._refuse_if_unprovable(operations)
        if self._configuration is None or self._configuration.version != standing.version:
            routes, subscribers = await operations.routes(), await operations.subscribers()
            self._configuration = Configuration(standing.version, routes, subscribers)

    async def _refuse_if_unprovable(self, operations: RouterOperations) -> None:
        now = time.monotonic()
        if now - self._doubted_at < _SECONDS_BETWEEN_DOUBTS:
            return
        wrong = [condition for condition in await operations.proof_conditions() if not condition.is_right]
        if wrong:
            raise RouterHeld(
                "It can't be proven that no event is skipped: "
                + "; ".join(f"{one.name} is {one.value}, not {one.wanted}" for one in wrong),
                "Put that right on the server; `tidings doctor` shows it too.",
            )
        self._doubted_at = now

    async def _read(self, operations: RouterOperations, cursor: Cursor, holes: Holes) -> Batch:
        most_late = max(1, self._batch // 2)
        chunk = next_chunk(holes, most_late)
        if chunk.wide:
            ((lo, hi),) = chunk.ranges
            late = await operations.events_between(lo, hi, most_late)
        else:
            late = await operations.events_among(chunk.ids)
        fresh = await operations.events_after(cursor.position, self._batch - len(late))
        return Batch(chunk, late, fresh, late_is_complete=not (chunk.wide and len(late) == most_late))

    async def _planned(self, operations: RouterOperations, cursor: Cursor, batch: Batch) -> Batch:
        """Decides until the batch is full of sagas."""
        others = await operations.other_routers(self.name)
        self._purges = cursor.event_domain == EVERY_DOMAIN or (
            EVERY_DOMAIN not in others.values() and self.name < min(others, default="~")
        )
        mine = [event for event in batch.events if _is_ours(event.event_domain, cursor.event_domain, others.values())]
        known = await self._histories(operations, batch)
        waiting = await operations.unresolved_among([number for number, one in known.items() if one.was_failed])
        existing = await self._existing(operations, [event for event in mine if event.id in known], known)
        ours = {event.id for event in mine if event.id not in waiting}
        planned: list[Planned] = []
        sagas = handled = 0
        for event in batch.events:
            if sagas >= self._fan_out:
                break
            handled += 1
            if event.id not in ours:
                continue
            one = plan(event, self._decide(event), known.get(event.id, NO_HISTORY), existing.get(event.id, NOTHING))
            if one.decisions:
                planned.append(one)
                sagas += one.sagas
        return Batch(batch.chunk, batch.late, batch.fresh, batch.late_is_complete, planned, handled)

    def _decide(self, event: LoggedEvent) -> tuple[Decision, ...]:
        assert self._configuration is not None
        return self._configuration.decide(event)

    async def _histories(self, operations: RouterOperations, batch: Batch) -> dict[int, History]:
        attempts = await operations.attempts_among([event.id for event in batch.late])
        if batch.fresh:
            attempts += await operations.attempts_between(batch.fresh[0].id, batch.fresh[-1].id)
        return histories(attempts)

    async def _existing(
        self, operations: RouterOperations, events: Sequence[LoggedEvent], known: Mapping[int, History]
    ) -> dict[int, Existing]:
        """Asked only where a decision is another one than before."""
        changed = [
            (event.id, decision.biz_type)
            for event in events
            for decision in plan(event, self._decide(event), known[event.id], NOTHING).decisions
            if decision.status is RouteAttemptStatus.SENT
        ]
        biz_types = {biz_type for _, biz_type in changed if biz_type}
        return await operations.existing({event_id for event_id, _ in changed}, biz_types)

    async def _written(
        self, operations: RouterOperations, cursor: Cursor, memory: Memory, batch: Batch, carefully: bool
    ) -> tuple[Pass, Memory]:
        passed = batch.passed
        settled = settle(memory.holes, batch.reading(), gaps(cursor.position, passed))
        if not batch.handled and not settled.removed:
            return Pass(Outcome.IDLE, holes=len(all_ranges(settled.holes))), Memory(cursor.stamp, settled.holes)
        refused: dict[int, str] = {}
        if carefully:
            refused = await write_carefully(operations, self.name, batch.planned)
        else:
            await write(operations, self.name, batch.planned)
        await operations.change_holes(self.name, settled.removed, settled.added)
        done = _summary(batch, refused, len(all_ranges(settled.holes)))
        position = passed[-1] if passed else cursor.position
        await operations.move_cursor(
            self.name,
            position,
            position if passed else cursor.last_event_id,
            done.counts,
            {"read": done.read, "late": done.late, "sagas": done.sagas, "tasks": done.tasks, "holes": done.holes}
            | dict(done.counts),
        )
        return done, Memory((cursor.runs + 1, position), settled.holes)

    def _announce(self, done: Pass) -> None:
        """A pause is told once, and its end."""
        if done.did_work and done.read:
            tell(EventsRouted(self.name, done.read, done.late, done.sagas, done.tasks, done.holes, **done.counts))
        stopped = done.reason if done.outcome in (Outcome.CLOSED, Outcome.HELD) else ""
        if stopped and stopped != self._told:
            tell(RouterStopped(self.name, stopped))
        elif self._told and not stopped and done.outcome is not Outcome.BUSY:
            tell(RouterWorking(self.name))
        self._told = stopped


def _is_ours(domain: str, scope: str, taken: Collection[str]) -> bool:
    return domain == scope or (scope == EVERY_DOMAIN and domain not in taken)


def _summary(batch: Batch, refused: Mapping[int, str], holes: int) -> Pass:
    written = [one for one in batch.planned if one.event.id not in refused]
    statuses = Counter(decision.status for one in written for decision in one.decisions)
    counts = {status.value: statuses[status] for status in RouteAttemptStatus}
    counts[RouteAttemptStatus.FAILED.value] += len(refused)
    return Pass(
        Outcome.ROUTED,
        read=batch.handled,
        late=min(batch.handled, len(batch.late)),
        sagas=sum(one.sagas for one in written),
        tasks=sum(bool(decision.biz_type) for one in written for decision in one.decisions),
        holes=holes,
        counts=counts,
    )
