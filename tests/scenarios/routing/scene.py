"""One router in this process and a few producers, for histories that are written down statement by statement."""

import asyncio
import itertools
from collections.abc import Sequence
from typing import Self

from tests.scenarios.routing.stage import PRODUCER, ROUTER, Cursor, Verdict, looking_at
from tests.scenarios.routing.words import WORDS, insert
from tests.support.database import Database
from tests.support.fault_proxy import FaultProxy
from tests.support.sessions import Session, connect
from tests.support.waiting import eventually
from tidings.errors import DatabaseError
from tidings.model.route import DEFAULT_ROUTER
from tidings.roles.router.passes import Pass
from tidings.roles.router.router import Router

BATCH = 20


class Scene:
    def __init__(self, database: Database) -> None:
        self.database = database
        self.words = WORDS[database.kind]
        self._tags = itertools.count(1)
        self._closing: list[Session | Router] = []

    async def __aenter__(self) -> Self:
        self.other = await self.producer()
        self.router = await self.new_router()
        await self.publish()
        await self.router.step()
        return self

    async def __aexit__(self, *_: object) -> None:
        for one in self._closing:
            await one.close()
        await self.database.close()

    async def new_router(self, name: str = DEFAULT_ROUTER, through: FaultProxy | None = None) -> Router:
        router = Router(await self.database.open(ROUTER, through), name, batch=BATCH)
        self._closing.append(router)
        return router

    async def producer(self) -> Session:
        session = await connect(self.database.url(PRODUCER))
        self._closing.append(session)
        return session

    async def publish(self, rows: int = 1, *, by: Session | None = None, domain: str = "default") -> list[int]:
        """The ids of new events: committed ones, unless they are part of somebody's transaction."""
        text = insert(domain, f"tag-{next(self._tags)}", rows)
        return [row[0] for row in await (by or self.other).run(text)]

    async def prepare(self, tag: str) -> list[int]:
        """A transaction that is prepared and left by its session."""
        session = await connect(self.database.url(PRODUCER))
        await session.run(self.words.begin(tag, to_prepare=True))
        ids = await self.publish(2, by=session)
        for text in self.words.prepare(tag):
            await session.run(text)
        await session.close()
        return ids

    async def finish(self, tag: str, verb: str = "COMMIT") -> None:
        """As the administrator; the server may need a moment to see that its session has left."""

        async def is_finished() -> bool:
            session = await connect(self.database.admin_url)
            try:
                await session.run(self.words.finish(tag, verb))
            except Exception:
                return False
            finally:
                await session.close()
            return True

        await eventually(is_finished, what=f"{verb} of {tag}")

    async def crash(self) -> None:
        """kill -9 of the server; sessions of producers are gone with it."""
        await asyncio.to_thread(self.database.server.kill)
        await asyncio.to_thread(self.database.server.start)
        self.other = await self.producer()

    async def restart(self) -> None:
        await asyncio.to_thread(self.database.server.restart)
        self.other = await self.producer()

    async def step(self, times: int = 1, router: Router | None = None) -> Sequence[Pass]:
        return [await self._one_step(router or self.router) for _ in range(times)]

    async def routed(self) -> set[int]:
        async with looking_at(self.database) as ledger:
            return await ledger.routed()

    async def cursor(self, name: str = DEFAULT_ROUTER) -> Cursor:
        async with looking_at(self.database) as ledger:
            return await ledger.cursor(name)

    async def drain(self, *routers: Router) -> Verdict:
        """What is wrong after these routers have come to the end and have closed all holes."""
        stepping = routers or (self.router,)

        async def is_drained() -> bool:
            for router in stepping:
                await self._one_step(router)
            async with looking_at(self.database) as ledger:
                return await ledger.is_drained(*(router.name for router in stepping))

        await eventually(is_drained, what="cursors at the end and all holes closed")
        async with looking_at(self.database) as ledger:
            return await ledger.verdict()

    async def _one_step(self, router: Router) -> Pass:
        """A router whose sessions died with the server tries again, as its loop does."""

        async def done() -> Pass | None:
            try:
                return await router.step()
            except DatabaseError:
                return None

        found = await eventually(done, timeout=20, what="a pass")
        assert found is not None
        return found
