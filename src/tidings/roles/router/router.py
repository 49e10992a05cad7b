"""One named router: a step is one pass over what became visible, in one transaction.

It locks its cursor, reads, decides, writes, moves the cursor. It never skips an event, in whatever order transactions
commit, and waits for no open transaction: what it passed without seeing it remembers as holes.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from tidings.db.engine import Engine
from tidings.decisions.holes import (
    Holes,
    all_ranges,
    gaps,
    is_ripe,
    next_chunk,
    refreshed,
    remembered,
    settle,
    unwitnessed,
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
from tidings.errors import DatabaseError, GateClosed, NotFound, RouterHeld
from tidings.model.event import LoggedEvent
from tidings.model.route import DEFAULT_ROUTER, EVERY_DOMAIN, RouteAttemptStatus
from tidings.roles.router.doubts import Doubts, another_log, is_lost
from tidings.roles.router.gates import gates_of, refuse_if_closed
from tidings.roles.router.operations import Cursor, RoutedEvent, RouterOperations
from tidings.roles.router.passes import Batch, Outcome, Pass, summary
from tidings.roles.router.witness import Witness
from tidings.roles.router.writing import bury, write, write_carefully
from tidings.telemetry.bus import is_heard, tell
from tidings.telemetry.notices import (
    EventNotRouted,
    EventRouted,
    EventsRouted,
    RouterStopped,
    RouterWorking,
    WritersUnknown,
)

BATCH = 1_000
FAN_OUT = 5_000
# Holes looked at in one pass, as a multiple of the batch: most are found empty, which is cheap.
_PROBES = 2
_SECONDS_BETWEEN_LOOKS = 0.02
# How long a glance is enough for an idle router: what comes late into a hole, or was done to the log, only a pass sees.
SECONDS_WITH_HOLES, SECONDS_WITHOUT = 0.25, 5.0
# How long nothing is looked at when a gate is closed, or something must be confirmed.
SECONDS_STOPPED = 0.25


@dataclass(frozen=True)
class Memory:
    """The holes of a cursor as it was when it had this stamp, and the last event that was routed by then."""

    stamp: tuple[int, int] | None
    holes: Holes
    last_event: RoutedEvent | None = None


class Router:
    """`engine` is one of the role event_router, with room for two sessions. `on_routed`: a pass was committed."""

    def __init__(
        self,
        engine: Engine,
        name: str = DEFAULT_ROUTER,
        *,
        batch: int = BATCH,
        fan_out: int = FAN_OUT,
        on_routed: Callable[[Pass], None] = lambda done: None,
    ) -> None:
        self.name = name
        self._engine = engine
        self._on_routed = on_routed
        self._batch = batch
        self._fan_out = fan_out
        self._witness = Witness(engine)
        self._memory: Memory | None = None
        self._configuration: Configuration | None = None
        self._purges = False
        self._doubts = Doubts()
        self._told = ""
        self._decided: Sequence[Planned] = ()
        self._connections = 0
        self._stopped_until = self._next_pass = float("-inf")

    async def step(self) -> Pass:
        """One pass, after a look at who is still writing; says how much it did."""
        self._memory = await self._witnessed(self._memory or await self._recall())
        try:
            done, memory = await RouterOperations.careful_step(self._engine, self._pass)
        except GateClosed as closed:
            done, memory = Pass(Outcome.CLOSED, closed.what, closed.remedy), self._memory
        except RouterHeld as held:
            # The log is not what it was, so neither is what is known of its holes.
            done, memory = Pass(Outcome.HELD, held.what, held.remedy), None
        self._memory = memory
        self._announce(done)
        self._rest(done.outcome)
        if done.did_work:
            self._on_routed(done)
            if self._purges:
                await self._forget_settled(done.read)
        return done

    async def look(self) -> bool:
        """Whether a pass is worth its while: one statement that reads a row of the log at most."""
        now, stamp = time.monotonic(), self._memory.stamp if self._memory else None
        if now < self._stopped_until:
            return False
        if stamp is None or now >= self._next_pass or self._connections != self._engine.connections:
            return True
        return await RouterOperations.alone(self._engine, lambda operations: operations.has_changed(self.name, stamp))

    async def outwait_writers(self, seconds: float) -> None:
        """Looks until nobody is left who could fill the holes, or for so long. What one process has seen is lost for
        the next, so that without this a router which runs for a single pass closes no hole while others write."""
        until = time.monotonic() + seconds
        self._memory = await self._witnessed(self._memory or await self._recall())
        while not is_ripe(self._memory.holes) and time.monotonic() < until:
            await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)
            self._memory = await self._witnessed(self._memory)

    async def close(self) -> None:
        await self._witness.close()

    async def _recall(self) -> Memory:
        """What the table says; who may fill the holes is not known yet."""

        async def recall(operations: RouterOperations) -> Memory:
            cursor = await operations.read_cursor(self.name)
            holes = remembered(await operations.holes(self.name))
            return Memory(cursor.stamp, holes, cursor.last_event) if cursor else Memory(None, holes)

        return await RouterOperations.step(self._engine, recall)

    async def _witnessed(self, memory: Memory) -> Memory:
        """An error here drops no hole, and stops nothing else."""
        if not memory.holes:
            return memory
        try:
            return replace(memory, holes=await self._witness.look(memory.holes))
        except DatabaseError as error:
            tell(WritersUnknown(self.name, error.what))
            return replace(memory, holes=unwitnessed(memory.holes))

    async def _forget_settled(self, events: int) -> None:
        try:
            await self._witness.forget_after(events)
        except DatabaseError as error:
            tell(WritersUnknown(self.name, error.what))

    async def _pass(self, operations: RouterOperations, carefully: bool) -> tuple[Pass, Memory | None]:
        self._decided = ()
        cursor = await operations.lock_cursor(self.name) or await self._made_cursor(operations)
        if cursor is None:
            return Pass(Outcome.BUSY, "another instance of this router is at work"), self._memory
        await self._refuse_if_closed(operations)
        if lost := await self._lost_event(operations, cursor):
            await operations.remember_lost(self.name, lost)
            held = another_log(replace(cursor, last_event_id=lost.id))
            return Pass(Outcome.HELD, held.what, held.remedy), None
        standing = await self._doubts.refuse_if_any(operations, cursor)
        await self._configure(operations, standing.version)
        memory = await self._memory_of(operations, cursor)
        batch = await self._planned(operations, cursor, await self._read(operations, cursor, memory.holes))
        return await self._written(operations, cursor, memory, batch, carefully)

    async def _made_cursor(self, operations: RouterOperations) -> Cursor | None:
        """The first pass of the router that covers every domain makes its cursor. None: another instance has it."""
        if await operations.read_cursor(self.name) is not None:
            return None
        if self.name == DEFAULT_ROUTER:
            await self._refuse_if_closed(operations)
            if await operations.make_cursor(self.name, EVERY_DOMAIN):
                return await operations.lock_cursor(self.name)
            if await operations.read_cursor(self.name) is not None:
                return None
        raise NotFound(
            f"There is no router {self.name}.", f"Make it with `tidings routers add {self.name} --domain …`."
        )

    async def _lost_event(self, operations: RouterOperations, cursor: Cursor) -> RoutedEvent | None:
        """What this process knows and the log does not. Asked where we were connected anew and the cursor is not
        where we left it: another instance may have moved it, or another server may have been given its place."""
        known = self._memory
        if known is None or known.last_event is None or known.stamp == cursor.stamp:
            return None
        if self._connections == self._engine.connections or not await is_lost(operations, cursor, known.last_event):
            return None
        return known.last_event

    async def _memory_of(self, operations: RouterOperations, cursor: Cursor) -> Memory:
        """What we know of the holes; as the table has them where somebody else has moved the cursor."""
        known = self._memory or Memory(None, ())
        if known.stamp == cursor.stamp:
            return known
        return Memory(cursor.stamp, refreshed(known.holes, await operations.holes(self.name)), cursor.last_event)

    async def _refuse_if_closed(self, operations: RouterOperations) -> None:
        await refuse_if_closed(operations, *gates_of(self.name))

    async def _configure(self, operations: RouterOperations, version: int) -> None:
        """The version was read before the rest, so that a change in between is noticed by the next pass."""
        if self._configuration is None or self._configuration.version != version:
            self._configuration = Configuration(version, await operations.routes(), await operations.subscribers())

    async def _read(self, operations: RouterOperations, cursor: Cursor, holes: Holes) -> Batch:
        most_late = max(1, self._batch // 2)
        chunk = next_chunk(holes, _PROBES * self._batch)
        late = await operations.events_within(chunk.ranges, most_late)
        fresh = await operations.events_after(cursor.position, self._batch - len(late))
        return Batch(chunk, late, fresh, late_is_complete=len(late) < most_late)

    async def _planned(self, operations: RouterOperations, cursor: Cursor, batch: Batch) -> Batch:
        """Decides until the batch is full of sagas; an event that fills more than one has one of its own."""
        if not batch.events:
            return batch
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
            decisions = self._decide(event) if event.id in ours else ()
            one = plan(event, decisions, known.get(event.id, NO_HISTORY), existing.get(event.id, NOTHING))
            if sagas and sagas + one.sagas > self._fan_out:
                break
            handled += 1
            sagas += one.sagas
            if one.decisions:
                planned.append(one)
        return replace(batch, planned=planned, handled=handled)

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
        settled = settle(memory.holes, batch.reading(), gaps(cursor.position, [event.id for event in passed]))
        if not batch.handled and not settled.removed:
            return Pass(Outcome.IDLE, holes=len(all_ranges(settled.holes))), replace(memory, holes=settled.holes)
        refused: tuple[EventNotRouted, ...] = ()
        if carefully:
            refused = await self._written_carefully(operations, batch.planned)
        else:
            await write(operations, self.name, batch.planned)
        set_aside = {refusal.event_id for refusal in refused}
        self._decided = [one for one in batch.planned if one.event.id not in set_aside]
        await operations.change_holes(self.name, settled.removed, settled.added)
        done = summary(batch, self._decided, refused, len(all_ranges(settled.holes)))
        position = passed[-1].id if passed else cursor.position
        await operations.move_cursor(
            self.name,
            position,
            position if passed else cursor.last_event_id,
            done.counts,
            {"read": done.read, "late": done.late, "sagas": done.sagas, "tasks": done.tasks, "holes": done.holes}
            | dict(done.counts),
        )
        last = RoutedEvent(position, passed[-1].correlation_id) if passed else cursor.last_event
        return done, Memory((cursor.runs + 1, position), settled.holes, last)

    async def _written_carefully(
        self, operations: RouterOperations, planned: Sequence[Planned]
    ) -> tuple[EventNotRouted, ...]:
        refused = await write_carefully(operations, self.name, planned)
        for one, error in refused:
            await bury(operations, self.name, one, error)
        return tuple(EventNotRouted(self.name, one.event.id, one.event.correlation_id, error) for one, error in refused)

    def _rest(self, outcome: Outcome) -> None:
        now = time.monotonic()
        has_holes = self._memory is not None and bool(self._memory.holes)
        self._next_pass = now + (SECONDS_WITH_HOLES if has_holes else SECONDS_WITHOUT)
        self._stopped_until = now + (SECONDS_STOPPED if outcome in (Outcome.CLOSED, Outcome.HELD) else 0)
        self._connections = self._engine.connections

    def _announce(self, done: Pass) -> None:
        """A pause is told once, and its end."""
        for refusal in done.refused:
            tell(refusal)
        for one in self._decided if is_heard(EventRouted) else ():
            statuses = tuple(decision.status.value for decision in one.decisions)
            tasks = sum(bool(decision.biz_type) for decision in one.decisions)
            tell(EventRouted(one.event.correlation_id, one.event.id, self.name, statuses, one.sagas, tasks))
        if done.did_work and done.read:
            tell(EventsRouted(self.name, done.read, done.late, done.sagas, done.tasks, done.holes, **done.counts))
        if done.outcome is Outcome.BUSY:
            return
        stopped = done.reason if done.outcome in (Outcome.CLOSED, Outcome.HELD) else ""
        if stopped and stopped != self._told:
            tell(RouterStopped(self.name, stopped))
        elif self._told and not stopped:
            tell(RouterWorking(self.name))
        self._told = stopped


def _is_ours(domain: str, scope: str, taken: Collection[str]) -> bool:
    return domain == scope or (scope == EVERY_DOMAIN and domain not in taken)
