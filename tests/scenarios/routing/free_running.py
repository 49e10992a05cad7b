"""A free run: crowds of producers write, routers and backends and the server are killed, and nobody waits for anybody.

It ends when enough events were written, some of them long after the last outage; then everybody finishes and the
routers drain.
"""

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Coroutine
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from tests.scenarios.routing.crowd import Crowd, crowd_process
from tests.scenarios.routing.finishing import finish_prepared
from tests.scenarios.routing.journal import DATABASE_ERRORS, Journal
from tests.scenarios.routing.producing import Mix
from tests.scenarios.routing.stage import PRODUCER, ROUTER, looking_at
from tests.scenarios.routing.words import WORDS, insert
from tests.scenarios.routing.wrong_readers import ByLastId, Forgetful
from tests.support.database import Database
from tests.support.processes import Process, tidings
from tests.support.sessions import connect
from tests.support.waiting import eventually, pause
from tidings.flow import OWNER
from tidings.roles.routes import routers

T = TypeVar("T")

DOMAIN_ROUTER = "billing"
# A transaction that is prepared before the first event and finished after all others.
WHOLE_RUN = "whole-run"
BETWEEN_KILLED_ROUTERS = (1.0, 3.0)
# A router that was started so long ago is at work, also on a busy machine.
STARTED_WITHIN = 6.0
BETWEEN_KILLED_BACKENDS = (0.3, 1.5)
# Routers need a moment to find a restarted server again; what is written in the calm behind it must not wait.
BEFORE_OUTAGE, AFTER_OUTAGE = 1.0, 6.0
CALM = 4.0


@dataclass(frozen=True)
class Scale:
    """How much is written, how fast, and how often the server is killed meanwhile."""

    events: int
    pace: float
    rows: int
    crashes: int
    producers: int = 4
    within: float = 100


@dataclass
class Report:
    """What a run leaves for its checks."""

    journal: Journal = field(default_factory=Journal)
    # From when to when nobody could route all events: no server, or a domain whose new router is starting.
    outages: list[tuple[float, float]] = field(default_factory=list)
    killed: list[str] = field(default_factory=list)
    waiting_for_the_long_one: list[int] = field(default_factory=list)
    seen_by_last_id: set[int] = field(default_factory=set)
    seen_by_forgetful: set[int] = field(default_factory=set)

    def is_near_outage(self, moment: float) -> bool:
        return any(start - BEFORE_OUTAGE <= moment <= end + AFTER_OUTAGE for start, end in self.outages)


@dataclass(frozen=True)
class RunningRouter:
    name: str
    process: Process
    since: float


class FreeRun:
    def __init__(self, database: Database, seed: int, scale: Scale, folder: Path) -> None:
        self.report = Report()
        self._database, self._scale, self._folder = database, scale, folder
        self._words = WORDS[database.kind]
        self._chance = Random(seed)
        self._processes = AsyncExitStack()
        self._routers: list[RunningRouter] = []
        self._journals: list[Path] = []

    async def run(self) -> Report:
        async with self._processes:
            await self._prepare_for_the_whole_run()
            await self._start_routers("default", 3)
            crowd = self._crowd()
            others = await self._start_other_crowd()
            troubles = [
                asyncio.create_task(trouble())
                for trouble in (self._kill_routers, self._kill_backends, self._watch_wrongly)
            ]
            long = asyncio.create_task(crowd.write_long())
            writing = asyncio.create_task(crowd.write())
            try:
                others = await _unless_one_fails(self._through_the_milestones(others), *troubles, long, writing)
                crowd.enough()
                others.terminate()
                await writing
                await asyncio.to_thread(others.wait, 30)
                await self._all_but_the_long_one()
                crowd.long.enough = True
                await long
            finally:
                await _cancel(*troubles, long, writing)
                await crowd.leave()
            self._collect()
            await self._drain()
        return self.report

    async def _through_the_milestones(self, others: Process) -> Process:
        """A router takes its domain over, the other crowd dies, the server is killed: each after a share of events."""
        crashes = [(number + 1) / (self._scale.crashes + 1) for number in range(self._scale.crashes)]
        milestones = sorted([(0.25, "take over"), (0.5, "other crowd"), *((share, "crash") for share in crashes)])
        for share, what in milestones:
            await self._written(share)
            match what:
                case "take over":
                    await self._take_over()
                case "other crowd":
                    await asyncio.to_thread(others.kill)
                    others = await self._start_other_crowd()
                case "crash":
                    await self._crash()
        await self._written(1.0)
        await pause(self.report.outages[-1][1] + AFTER_OUTAGE + CALM - time.time())
        return others

    async def _written(self, share: float) -> None:
        async def enough() -> bool:
            await pause(0.5)
            with suppress(*DATABASE_ERRORS):
                async with looking_at(self._database) as ledger:
                    return await ledger.count() >= share * self._scale.events
            return False

        await eventually(enough, timeout=self._scale.within, what=f"{share:.0%} of the events to be written")

    async def _prepare_for_the_whole_run(self) -> None:
        session = await connect(self._database.url(PRODUCER))
        await session.run(self._words.begin(WHOLE_RUN, to_prepare=True))
        await session.run(insert("default", WHOLE_RUN, 3))
        for text in self._words.prepare(WHOLE_RUN):
            await session.run(text)
        await session.close()
        session = await connect(self._database.url(PRODUCER))
        await session.run(insert("default", "first", 1))
        await session.close()

    def _crowd(self) -> Crowd:
        scale, url = self._scale, self._database.url(PRODUCER)
        return Crowd(
            "here",
            self._database.kind,
            url,
            self._chance.getrandbits(32),
            self.report.journal,
            size=scale.producers,
            pace=scale.pace / 2,
            mix=Mix(rows=scale.rows),
        )

    async def _start_other_crowd(self) -> Process:
        scale, number = self._scale, len(self._journals)
        self._journals.append(self._folder / f"journal-{number}")
        crowd = crowd_process(
            f"there{number}",
            self._database.kind,
            self._database.url(PRODUCER),
            self._chance.getrandbits(32),
            self._journals[-1],
            size=scale.producers,
            pace=scale.pace / 2,
            rows=scale.rows,
        )
        return await self._start(crowd)

    async def _start(self, process: Process) -> Process:
        await asyncio.to_thread(process.start)
        self._processes.push_async_callback(asyncio.to_thread, process.__exit__)
        return process

    async def _start_routers(self, name: str, count: int) -> None:
        """Returns when one of them has made a pass."""
        for _ in range(count):
            await self._start_router(name)

        async def has_run() -> bool:
            async with looking_at(self._database) as ledger:
                return await ledger.has_run(name)

        await eventually(has_run, timeout=30, what=f"the first pass of router {name}")

    async def _start_router(self, name: str) -> None:
        process = tidings("run", "router", "--name", name, **self._database.environment())
        self._routers.append(RunningRouter(name, await self._start(process), time.monotonic()))

    async def _take_over(self) -> None:
        start = time.time()
        await routers.add(await self._database.open("route_admin"), DOMAIN_ROUTER, DOMAIN_ROUTER, "test")
        await self._start_routers(DOMAIN_ROUTER, 2)
        self.report.outages.append((start, time.time()))

    async def _crash(self) -> None:
        start = time.time()
        await asyncio.to_thread(self._database.server.kill)
        await asyncio.to_thread(self._database.server.start)
        self.report.outages.append((start, time.time()))
        self.report.killed.append("server")

    async def _kill_routers(self) -> None:
        while True:
            await pause(self._chance.uniform(*BETWEEN_KILLED_ROUTERS))
            if victim := self._router_to_kill():
                self._routers.remove(victim)
                assert victim.process.is_running(), f"a router ended by itself:\n{victim.process.output}"
                await asyncio.to_thread(victim.process.kill)
                await self._start_router(victim.name)
                self.report.killed.append("router")

    def _router_to_kill(self) -> "RunningRouter | None":
        """One of those that are at work, if another one of its name is so too."""
        settled = [router for router in self._routers if time.monotonic() - router.since > STARTED_WITHIN]
        names = Counter(router.name for router in settled)
        spare = [router for router in settled if names[router.name] > 1]
        return self._chance.choice(spare) if spare else None

    async def _kill_backends(self) -> None:
        while True:
            await pause(self._chance.uniform(*BETWEEN_KILLED_BACKENDS))
            login = self._database.names.login(self._chance.choice([PRODUCER, PRODUCER, ROUTER]))
            with suppress(*DATABASE_ERRORS):
                killer = await connect(self._database.admin_url)
                try:
                    if found := await killer.run(self._words.backends(login)):
                        await killer.run(self._words.kill(self._chance.choice(found)[0]))
                        self.report.killed.append("backend")
                finally:
                    await killer.close()

    async def _watch_wrongly(self) -> None:
        """The two wrong readers see the same history; what they lost shows that it could be lost."""
        readers: tuple[ByLastId, ...] = ()
        while True:
            with suppress(*DATABASE_ERRORS):
                session = await connect(self._database.url(OWNER))
                readers = readers or (ByLastId(session), Forgetful(session, patience=5))
                self.report.seen_by_last_id, self.report.seen_by_forgetful = (reader.seen for reader in readers)
                for reader in readers:
                    reader.session = session
                try:
                    await self._look_on(readers)
                finally:
                    await session.close()
            await pause(0.2)

    async def _look_on(self, readers: tuple[ByLastId, ...]) -> None:
        while True:
            for reader in readers:
                await reader.step()
            await pause(0.05)

    async def _all_but_the_long_one(self) -> None:
        """What others have committed is routed while two transactions are still open."""

        async def is_routed() -> bool:
            async with looking_at(self._database) as ledger:
                self.report.waiting_for_the_long_one = (await ledger.verdict()).skipped
            return not self.report.waiting_for_the_long_one

        # To look at all of a million takes seconds, and the first look may come too early.
        with suppress(AssertionError):
            await eventually(is_routed, timeout=30 + self._scale.events / 10_000)

    async def _drain(self) -> None:
        await finish_prepared(self._database, self._chance, verbs=("COMMIT",), undone={*self.report.journal.undone})
        names = {router.name for router in self._routers}

        async def is_drained() -> bool:
            async with looking_at(self._database) as ledger:
                return await ledger.is_drained(*names)

        try:
            await eventually(is_drained, timeout=self._scale.within, what="all cursors at the end, all holes closed")
        except AssertionError as error:
            error.add_note(await self._state_of_routers())
            raise
        for router in self._routers:
            router.process.terminate()
        for router in self._routers:
            # Told to stop before it had begun, it ends by the signal.
            assert await asyncio.to_thread(router.process.wait, 30) in (0, -signal.SIGTERM), router.process.output

    async def _state_of_routers(self) -> str:
        async with looking_at(self._database) as ledger:
            lines = [f"the last event is {await ledger.last_id()}"]
            for name in sorted({router.name for router in self._routers}):
                cursor = await ledger.cursor(name)
                lines.append(f"{name} is at {cursor.position} with {len(cursor.holes)} holes, {cursor.holes[:10]}")
            writers = await ledger.session.run(self._words.writers)
        lines += [f"writers: {writers}"]
        return "\n".join([*lines, *(router.process.output[-2000:] for router in self._routers)])

    def _collect(self) -> None:
        for path in self._journals:
            self.report.journal.add_file(path)


async def _unless_one_fails(work: Coroutine[Any, Any, T], *beside: "asyncio.Task[None]") -> T:
    """The result of this work, unless what runs beside it and should not end ends before."""
    working = asyncio.create_task(work)
    await asyncio.wait({working, *beside}, return_when=asyncio.FIRST_COMPLETED)
    if not working.done():
        await _cancel(working, *beside)
        raise AssertionError("a part of the run ended too early")
    return working.result()


async def _cancel(*tasks: "asyncio.Task[Any]") -> None:
    """Ends what still runs; a task that had failed before shows its error."""
    for task in tasks:
        task.cancel()
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(result, Exception):
            raise result
