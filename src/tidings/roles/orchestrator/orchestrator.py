"""One orchestrator: a step takes in new results, then starts what is due, each in one small transaction.

It alone moves sagas and creates jobs, and it never touches a lease. Any number of them may run at once.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tidings.db.engine import Engine
from tidings.decisions.advancing import Buried, Completed, Ignored, Retried, RetryPolicy
from tidings.decisions.pacing import (
    FAILING_LANES_AT_ONCE,
    FlowLimits,
    Window,
    free_room,
    lanes_to_serve,
    next_turn,
    rooms,
)
from tidings.decisions.retrying import Backoff
from tidings.errors import StatementFailed
from tidings.roles.orchestrator.announcing import announce_applied, announce_started
from tidings.roles.orchestrator.applying import Applied, Refused, apply
from tidings.roles.orchestrator.hints import EPOCH, Hints, Mark
from tidings.roles.orchestrator.lanes import Lanes
from tidings.roles.orchestrator.news import News, look_for_news
from tidings.roles.orchestrator.operations import OrchestratorOperations, Subscription
from tidings.roles.orchestrator.starting import Begun, Started, start
from tidings.roles.orchestrator.totals import Totals
from tidings.telemetry.bus import tell
from tidings.telemetry.notices import RowSetAside

BATCH = 500
_SECONDS_BETWEEN_COUNTS = 0.5
SECONDS_ASIDE = 60.0


@dataclass(frozen=True)
class Advanced:
    """How much one step did."""

    completed: int = 0
    retried: int = 0
    buried: int = 0
    ignored: int = 0
    started: int = 0

    @property
    def moves(self) -> int:
        return self.completed + self.retried + self.buried + self.ignored + self.started

    @property
    def did_work(self) -> bool:
        return self.moves > 0


@dataclass(frozen=True)
class Configuration:
    """Subscriptions at one version; `lanes` are those that may be sent to, ascending."""

    version: int
    subscriptions: Mapping[int, Subscription]
    lanes: Sequence[int]


class Turns(NamedTuple):
    """The lanes that had the last turn: of those that do well, and of those that only fail."""

    well: int = 0
    failing: int = 0


class Orchestrator:
    """`engine` is one of the role saga_orchestrator; `policy` holds for subscriptions that have none of their own."""

    def __init__(
        self,
        engine: Engine,
        policy: RetryPolicy,
        limits: FlowLimits,
        *,
        batch: int = BATCH,
        seconds_aside: float = SECONDS_ASIDE,
    ) -> None:
        self._engine = engine
        self._policy = policy
        self._limits = limits
        self._batch = batch
        self._seconds_aside = seconds_aside
        self._hints = Hints()
        self._configuration = Configuration(-1, {}, ())
        self._lanes = Lanes(limits)
        self._totals = Totals()
        self._active: Counter[int] = Counter()
        self._counted_at = float("-inf")
        self._turns = Turns()
        # As the database said at the beginning of the step.
        self._now, self._newest = EPOCH, 0
        self._aside: dict[tuple[str, int], float] = {}

    async def step(self) -> Advanced:
        """Results first: they make room for what is due."""
        self._bring_back_from_aside()
        with self._hints.swept_if_time():
            applied = await self._take_in()
            started = await self._begin()
        outcomes = Counter(type(one.outcome) for one in applied)
        return Advanced(
            completed=outcomes[Completed],
            retried=outcomes[Retried],
            buried=outcomes[Buried] + sum(one.is_buried for one in started),
            ignored=outcomes[Ignored],
            started=sum(not one.is_buried for one in started),
        )

    async def look(self) -> bool:
        """Whether a step would find something; one statement, which no hint shortens."""
        return await OrchestratorOperations.alone(self._engine, OrchestratorOperations.has_news)

    async def _take_in(self) -> list[Applied]:
        async def work(operations: OrchestratorOperations, carefully: bool) -> tuple[list[Applied], Refused]:
            await self._look_at_configuration(operations)
            aside = self._aside_of("job")
            finished = await operations.finished_jobs(self._hints.job, self._batch + len(aside))
            new = [job for job in finished if job.result.job_id not in aside]
            if not new:
                return [], []
            taken, refused = await apply(operations, new, self._policy_of, carefully=carefully)
            await self._totals.add_applied(operations, taken, self._now)
            return taken, refused

        applied, refused = await OrchestratorOperations.careful_step(self._engine, work)
        for one, error in refused:
            self._set_aside("job", one.job.result.job_id, error)
        if applied:
            self._hints.job = min(one.job.result.job_id for one in applied)
            self._lanes.took_in(applied, self._active, self._now)
            # Others start jobs too, whose results come to us: there are never less than none.
            self._active = self._active - Counter(one.job.result.subscription_id for one in applied)
        announce_applied(applied)
        return applied

    async def _begin(self) -> list[Started]:
        if is_time := time.monotonic() - self._counted_at >= _SECONDS_BETWEEN_COUNTS:
            await self._tell_windows()

        async def work(operations: OrchestratorOperations, carefully: bool) -> tuple[News, Begun, Turns] | None:
            if not is_time and not self._free_room:
                return None
            # Here as well: this transaction may begin long after the one before, and a pause holds from its commit on.
            await self._look_at_configuration(operations)
            news = await look_for_news(operations, self._hints, self._batch)
            waiting = news.waiting(self._configuration.lanes)
            if waiting and is_time:
                await self._count(operations)
            return news, *await self._serve(operations, waiting, news, carefully)

        looked = await OrchestratorOperations.careful_step(self._engine, work)
        if looked is None:
            return []
        news, begun, self._turns = looked
        for one, error in begun.refused:
            self._set_aside("saga", one.saga.id, error)
        self._hints.saw_news(Mark(self._newest, self._now))
        self._hints.started(one.saga for one in begun.started)
        self._hints.emptied(begun.emptied, self._now)
        self._hints.empty = news.left_empty({one.saga.id for one in begun.started}, begun.emptied)
        self._active.update(one.saga.subscription_id for one in begun.started if not one.is_buried)
        announce_started(begun.started)
        return [*begun.started]

    async def _serve(
        self, operations: OrchestratorOperations, waiting: Sequence[int], news: News, carefully: bool
    ) -> tuple[Begun, Turns]:
        """Those of the waiting lanes that have room, and news or their turn."""
        full = self._lanes.full(self._active)
        with_room = [lane for lane in waiting if lane not in full]
        failing = self._lanes.probing(with_room)
        well = [lane for lane in with_room if lane not in failing]
        turn = next_turn(well, self._turns.well)
        turn_of_failing = next_turn([*failing], self._turns.failing, FAILING_LANES_AT_ONCE)
        lanes = [*lanes_to_serve(turn, news.lanes, frozenset(well)), *turn_of_failing]
        free = self._free_room
        found = rooms(self._lanes.sizes(lanes), self._active, free)
        if not found:
            return Begun(), self._turns
        begun = await start(
            operations,
            found,
            self._hints.lanes,
            news.known,
            free,
            self._policy_of,
            probing=failing,
            aside=self._aside_of("saga"),
            carefully=carefully,
        )
        await self._totals.add_started(operations, begun.started, self._now)
        return begun, Turns((turn or [self._turns.well])[-1], (turn_of_failing or [self._turns.failing])[-1])

    @property
    def _free_room(self) -> int:
        return free_room(self._active, self._limits, self._batch)

    async def _look_at_configuration(self, operations: OrchestratorOperations) -> None:
        version, self._now, self._newest = await operations.config_version()
        if version != self._configuration.version:
            subscriptions = await operations.subscriptions()
            lanes = [one.id for one in subscriptions.values() if one.may_be_sent_to]
            self._configuration = Configuration(version, subscriptions, lanes)

    async def _count(self, operations: OrchestratorOperations) -> None:
        """Others start jobs too; in between our own are counted as they come and go."""
        hints = self._hints
        found = await operations.under_way(hints.active, hints.job, hints.windows)
        self._active = Counter(found.active)
        self._lanes.saw(found.lanes, found.active, found.crowded, self._now)
        hints.saw_active(found.oldest, self._now)
        self._counted_at = time.monotonic()

    async def _tell_windows(self) -> None:
        """Lock, merge, write: what several have learnt at once is no less than what each of them has."""
        lanes = self._lanes.to_tell()
        if not lanes:
            return

        async def work(operations: OrchestratorOperations) -> dict[int, Window]:
            shared = await operations.lock_lanes(lanes)
            windows = {lane: self._lanes.merged(lane, shared.get(lane)) for lane in lanes}
            await operations.change_lanes({lane: windows[lane] for lane in lanes if lane in shared})
            await operations.add_lanes({lane: windows[lane] for lane in lanes if lane not in shared})
            return windows

        self._lanes.told(await OrchestratorOperations.step(self._engine, work))

    def _policy_of(self, subscription_id: int) -> RetryPolicy:
        own = self._configuration.subscriptions.get(subscription_id)
        if own is None or (own.max_retry_limit is None and own.base_delay_seconds is None):
            return self._policy
        backoff = self._policy.backoff
        return RetryPolicy(
            own.max_retry_limit or self._policy.max_retry_limit,
            Backoff(own.base_delay_seconds or backoff.base, backoff.longest, backoff.jitter),
        )

    def _set_aside(self, kind: str, id: int, error: StatementFailed) -> None:
        """It is tried again after a while; until then it does not stop its neighbours."""
        self._aside[kind, id] = time.monotonic() + self._seconds_aside
        tell(RowSetAside("orchestrator", f"{kind}:{id}", error.what))

    def _bring_back_from_aside(self) -> None:
        now = time.monotonic()
        self._aside = {row: until for row, until in self._aside.items() if until > now}

    def _aside_of(self, kind: str) -> frozenset[int]:
        return frozenset(id for what, id in self._aside if what == kind)
