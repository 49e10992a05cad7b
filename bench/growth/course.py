"""One installation with a backlog, in which every role takes its step in turn, always with the same amount of work.

What waits stays as much as it was: each round adds what it takes away. Only so many jobs wait for a worker, however
long the backlog is: the orchestrator sees to that, so it is so here too.
"""

import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Any, Self

from bench.backlog import JOBS, TASKS, Backlog, filling
from bench.guards.delivery import thread_of
from bench.guards.measuring import cpu_seconds
from bench.payload import KEY, TASK_TYPE
from tests.plans.counters import Reads, counters_of
from tests.support.database import Database
from tidings.courier import Courier, Guard
from tidings.db.engine import Engine
from tidings.decisions.advancing import RetryPolicy
from tidings.decisions.pacing import FlowLimits
from tidings.decisions.retrying import Backoff
from tidings.roles.orchestrator.orchestrator import Orchestrator
from tidings.roles.router.router import Router
from tidings.roles.task_worker.claiming import Claim, Claimer
from tidings.roles.worker.worker import Worker, WorkerLimits
from tidings.vault import Vault

BATCH = 200
BUSY = 50
"""Subscriptions that get new events; the others have a part of the backlog only."""
WAITING_JOBS = 1_000
PRIORITIES = 10
STEPS = {
    "route": "event_router",
    "start": "saga_orchestrator",
    "claim": "job_worker",
    "apply": "saga_orchestrator",
    "task claim": "task_worker",
}
_POLICY = RetryPolicy(9, Backoff(3600, 3600, 0))
_ROOM = FlowLimits(active_jobs_max=1_000_000, window_start=100_000, window_max=100_000)
_NO_ROOM = FlowLimits(active_jobs_max=0, window_start=100_000, window_max=100_000)
_LIMITS = WorkerLimits(lease_seconds=3600, slots=10_000, max_in_flight=10_000, timeout=15, margin=5)

Step = Callable[[], Awaitable[int]]


@dataclass(frozen=True)
class Cost:
    """Seconds of one step: by the clock, and of processor time in the database and in this process together."""

    wall: float
    cpu: float


class Course:
    def __init__(self, database: Database, subscriptions: int) -> None:
        self.database = database
        self.size = 0
        self.costs: dict[str, list[Cost]] = defaultdict(list)
        self.subscriptions = subscriptions
        self._kinds = min(BUSY, subscriptions)
        self._stack = AsyncExitStack()
        self._claimed = Claim()

    @classmethod
    async def laid(cls, database: Database, subscriptions: int) -> Self:
        """On an installation that is empty."""
        course = cls(database, subscriptions)
        await course._lay()
        return course

    async def _lay(self) -> None:
        self._backlog: Backlog = await self._stack.enter_async_context(filling(self.database))
        types = [f"kind-{number}" for number in range(self.subscriptions)]
        await self._backlog.subscribe(["https://receiver.example/"] * len(types), types)
        await self._backlog.open_gates()
        await self._open()
        engines, courier = self._engines, Courier(Guard(allow_networks=(ip_network("127.0.0.0/8"),)))
        self._router = Router(engines["event_router"], batch=BATCH)
        self._starter, self._applier = (
            Orchestrator(engines["saga_orchestrator"], _POLICY, limits, batch=BATCH) for limits in (_ROOM, _NO_ROOM)
        )
        self._worker = Worker(engines["job_worker"], courier, Vault([KEY]), "bench", _LIMITS)
        self._claimer = Claimer(engines["task_worker"], "bench")

    async def connect(self) -> None:
        """After `disconnect`: everybody goes on with new sessions."""
        await self._open()
        for role, engine in self._engines.items():
            self._speak_by(role, engine)

    async def disconnect(self) -> None:
        await self._router.close()
        await self.database.close()

    async def _open(self) -> None:
        self._engines: dict[str, Engine] = {role: await self.database.open(role) for role in {*STEPS.values()}}
        self._threads = {role: await thread_of(engine) for role, engine in self._engines.items()}

    def _speak_by(self, role: str, engine: Engine) -> None:
        everybody: tuple[Any, ...] = (self._router, self._starter, self._applier, self._worker, self._claimer)
        for one in (*everybody, self._router._witness):
            if one._engine.owner == role:
                one._engine = engine

    async def grow(self, size: int) -> None:
        """Until so many events wait for the router, sagas for their start and tasks; as many deliveries have ended."""
        more = size - self.size
        await self._backlog.add_events(more, self._kinds)
        await self._backlog.add_sagas(more, self.subscriptions)
        await self._backlog.add_past(more, self.subscriptions)
        await self._backlog.add_tasks(more, PRIORITIES)
        if not self.size:
            await self._backlog.add_jobs(WAITING_JOBS, self.subscriptions)
        await self._backlog.tidy()
        self.size = size

    async def round(self) -> None:
        """One step of each role, each with a full batch."""
        await self._bring_work()
        for name in STEPS:
            await self._measured(name)

    async def reads(self) -> Mapping[str, Reads]:
        """What one more step of each has the server read. Nobody else may be connected: sessions count at their end."""
        counters = await counters_of(self.database)
        await self._bring_work()
        found = {}
        for name, role in STEPS.items():
            engine = await self.database.open(role)
            self._speak_by(role, engine)
            await self._backlog.be_counted()
            await counters.start()
            await self._do(name)
            await self._router.close()
            await engine.close()
            found[name] = await counters.read(role)
            await self._after(name)
        await counters.close()
        return found

    async def close(self) -> None:
        await self.disconnect()
        await self._stack.aclose()

    async def _bring_work(self) -> None:
        await self._backlog.add_events(BATCH, self._kinds)
        # All of the best priority: a claim takes of one at a time.
        await self._backlog.add_tasks(BATCH)

    async def _measured(self, name: str) -> None:
        thread, own = self._threads[STEPS[name]], time.process_time()
        server, began = cpu_seconds(thread), time.perf_counter()
        await self._do(name)
        wall, worked = time.perf_counter() - began, time.process_time() - own
        self.costs[name].append(Cost(wall, worked + cpu_seconds(thread) - server))
        await self._after(name)

    async def _do(self, name: str) -> None:
        steps: Mapping[str, Step] = {
            "route": self._route,
            "start": self._start,
            "claim": self._claim,
            "apply": self._apply,
            "task claim": self._claim_tasks,
        }
        done = await steps[name]()
        assert done == BATCH, f"{name}: {done} instead of {BATCH}"

    async def _after(self, name: str) -> None:
        """What others do before the next step has its work."""
        if name == "claim":
            await self._backlog.run(
                f"UPDATE {JOBS} SET status = 'Completed', response_status = 200, duration_ms = 12,"
                " finished_at = created_at WHERE status = 'Leased'"
            )
        elif name == "task claim":
            ids = ", ".join(str(task.id) for task in self._claimed.tasks)
            await self._backlog.run(f"UPDATE {TASKS} SET status = 2, version = version + 1 WHERE id IN ({ids})")

    async def _route(self) -> int:
        return (await self._router.step()).sagas

    async def _start(self) -> int:
        return (await self._starter.step()).started

    async def _claim(self) -> int:
        return len(await self._worker._lease(BATCH))

    async def _apply(self) -> int:
        return (await self._applier.step()).completed

    async def _claim_tasks(self) -> int:
        # As once a second: what the bench brings was due long ago, before what was claimed last.
        self._claimer._sweep()
        self._claimed = await self._claimer.claim({TASK_TYPE: BATCH}, BATCH)
        return len(self._claimed.tasks)
