"""Stepped histories: producers and readers advance one statement or one pass at a time; a seeded scheduler picks who.

All readers watch the same history. What was visible before a pass and fits into it must be routed after it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random
from typing import Protocol

from tests.scenarios.routing.finishing import finish_prepared
from tests.scenarios.routing.journal import Journal
from tests.scenarios.routing.obstacles import Barriers
from tests.scenarios.routing.producing import Left, Producer
from tests.scenarios.routing.stage import PRODUCER, Ledger, Verdict, few
from tests.scenarios.routing.words import WORDS
from tests.scenarios.routing.wrong_readers import ByLastId, Forgetful
from tests.support.database import Database
from tests.support.sessions import connect
from tests.support.waiting import eventually

PRODUCERS = 4
MOVES = 60
# Longer than any statement that is not held up by another producer.
PATIENCE = 0.05
DRAINED_WITHIN = 30


class Router(Protocol):
    """As much of a router as a history needs."""

    async def step(self) -> object: ...

    async def close(self) -> None: ...


NewRouter = Callable[[], Router]


@dataclass
class Result:
    """What one history came to."""

    seed: int
    verdict: Verdict
    stalled: list[str]
    open_holes: tuple[tuple[int, int], ...]
    late: int
    skipped_by_last_id: set[int]
    skipped_by_forgetful: set[int]

    def complaints(self) -> list[str]:
        found = [f"{name}: {few(ids)}" for name, ids in vars(self.verdict).items() if ids]
        found += self.stalled
        if self.open_holes:
            found.append(f"holes that never closed: {self.open_holes}")
        return [f"seed {self.seed}: {what}" for what in found]


class Theatre:
    """The sessions that one history after another uses, and what their producers met."""

    def __init__(self, database: Database, ledger: Ledger, barriers: Barriers, new_router: NewRouter) -> None:
        self.database, self.ledger, self.barriers, self.new_router = database, ledger, barriers, new_router
        self.words = WORDS[database.kind]
        self.journal = Journal()

    async def play(self, seed: int) -> Result:
        history = History(self, seed)
        try:
            await history.begin()
            await history.run()
            return await history.end()
        finally:
            await history.leave()
            self.journal.errors += history.journal.errors
            self.journal.done += history.journal.done


@asynccontextmanager
async def theatre(database: Database, new_router: NewRouter) -> AsyncIterator[Theatre]:
    holder, watcher = await connect(database.url(PRODUCER)), await connect(database.admin_url)
    ledger = await Ledger.of(database)
    try:
        yield Theatre(database, ledger, Barriers(holder, watcher, WORDS[database.kind]), new_router)
    finally:
        await holder.close()
        await watcher.close()
        await ledger.close()


class History:
    """One seeded history, on tables that may hold earlier ones."""

    def __init__(self, theatre: Theatre, seed: int) -> None:
        self.journal = Journal()
        self._theatre, self._seed, self._ledger = theatre, seed, theatre.ledger
        self._chance = Random(seed)
        self._left: list[Left] = []
        self._held_up: dict[AsyncIterator[int], asyncio.Future[int]] = {}
        self._stalled: list[str] = []
        self._visible: list[set[int]] = []
        self._routers: list[Router] = []
        self._producers = [self._producer(number) for number in range(PRODUCERS)]

    async def begin(self) -> None:
        self._start = await self._ledger.last_id()
        self._by_last_id = ByLastId(self._ledger.session, self._start)
        self._forgetful = Forgetful(self._ledger.session, self._start)
        # Sometimes two instances of one router take turns, as on two machines.
        self._routers = [self._theatre.new_router() for _ in range(self._chance.choice([1, 1, 2]))]
        await self._routers[0].step()
        self._moving = [producer.transactions() for producer in self._producers]
        if self._chance.random() < 0.3:
            self._producers.append(self._producer(PRODUCERS))
            self._moving.append(self._producers[-1].one_long_transaction())

    async def run(self) -> None:
        for _ in range(MOVES):
            if self._chance.random() < 0.6:
                await self._move(self._chance.choice(self._moving))
            else:
                await self._route()
            if self._chance.random() < 0.02:
                await self._replace_a_router()

    async def end(self) -> Result:
        """Everybody finishes, the router drains, and the tables are compared."""
        for producer in self._producers:
            producer.enough = True
        await asyncio.gather(*map(self._exhaust, self._moving))
        await finish_prepared(self._theatre.database, self._chance)
        open_holes = await self._drain()
        await self._by_last_id.step()
        await self._forgetful.step()
        committed = await self._ledger.committed(self._start)
        return Result(
            self._seed,
            await self._ledger.verdict(self._start),
            self._stalled,
            open_holes,
            len(self.journal.late()),
            committed - self._by_last_id.seen,
            committed - self._forgetful.seen,
        )

    async def leave(self) -> None:
        for statement in self._held_up.values():
            statement.cancel()
        for producer in self._producers:
            await producer.leave()
        for router in self._routers:
            await router.close()

    def _producer(self, number: int) -> Producer:
        theatre, chance = self._theatre, Random(self._chance.random())
        url = theatre.database.url(PRODUCER)
        put_up = theatre.barriers.put_up
        return Producer(f"{self._seed}-{number}", url, theatre.words, chance, self.journal, put_up, self._left)

    async def _move(self, moving: AsyncIterator[int]) -> None:
        """One more statement; when somebody else holds it up, the others go on."""
        statement = self._held_up.pop(moving, None) or asyncio.ensure_future(anext(moving))
        await asyncio.wait({statement}, timeout=PATIENCE)
        if statement.done():
            statement.result()
        else:
            self._held_up[moving] = statement

    async def _exhaust(self, moving: AsyncIterator[int]) -> None:
        if moving in self._held_up:
            await self._held_up.pop(moving)
        async for _ in moving:
            pass

    async def _route(self) -> None:
        self._visible.append(await self._ledger.committed(self._start))
        self._routers.append(self._routers.pop(0))
        await self._routers[-1].step()
        await self._by_last_id.step()
        await self._forgetful.step()
        # One of two may find holes of the other, which it has to look at a second time before it knows enough.
        if len(self._visible) >= (1 if len(self._routers) == 1 else 4):
            missed = self._visible.pop(0) - await self._ledger.routed(self._start)
            if missed:
                self._stalled.append(f"visible before the last passes and not routed after them: {few(missed)}")

    async def _replace_a_router(self) -> None:
        """As if it had been killed: the new one knows nothing but what the tables say."""
        await self._routers.pop(0).close()
        self._routers.append(self._theatre.new_router())
        self._visible.clear()

    async def _drain(self) -> tuple[tuple[int, int], ...]:
        """The holes that do not close; backends that were killed may need a moment to end."""

        async def is_drained() -> bool:
            for router in self._routers:
                await router.step()
            return await self._ledger.is_drained()

        try:
            await eventually(is_drained, timeout=DRAINED_WITHIN, what="the router to drain")
        except AssertionError:
            cursor = await self._ledger.cursor()
            return cursor.holes or ((cursor.position + 1, await self._ledger.last_id()),)
        return ()
