"""One installation whose log the router routes, and one in which bare SQL writes the same rows, in turn."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Self

from bench.writing import statements_of
from tests.support.database import Database
from tests.support.fault_proxy import FaultProxy
from tests.support.servers import MariaDBServer, PostgresServer
from tidings.db.engine import Engine, open_engine
from tidings.db.names import Names
from tidings.flow import OWNER
from tidings.roles.router.router import BATCH, FAN_OUT, Router

WARM_UP = 3
IDLE_PASSES = 50
_PAYLOAD = '{"order": 4711, "note": "' + "x" * 480 + '"}'


@dataclass
class Clock:
    """Seconds for each event, by the wall and of this process's CPU."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    async def time(self, work: Callable[[], Awaitable[int]]) -> int:
        """`work` says how many events it dealt with; none for an idle pass, which counts as one."""
        wall, cpu = time.perf_counter(), time.process_time()
        events = await work()
        self.wall.append((time.perf_counter() - wall) / (events or 1))
        self.cpu.append((time.process_time() - cpu) / (events or 1))
        return events

    @property
    def typical(self) -> float:
        return median(self.wall)

    @property
    def client_share(self) -> float:
        return sum(self.cpu) / sum(self.wall)


@dataclass(frozen=True)
class Result:
    """Of one engine at so many subscriptions; speeds in events for each second."""

    subscriptions: int
    passes: int
    events_in_a_pass: int
    routed: float
    bare: float
    client_share: float
    statements: int
    idle_ms: float
    idle_statements: int

    @property
    def ratio(self) -> float:
        return self.routed / self.bare


class Course:
    """An installation with open gates, a route for everything and subscriptions."""

    def __init__(self, database: Database, owner: Engine, engine: Engine, subscriptions: int) -> None:
        self.database, self.engine = database, engine
        self._owner = owner
        self._subscriptions = subscriptions
        self._position = 0

    @classmethod
    async def laid(cls, server: PostgresServer | MariaDBServer, name: str, subscriptions: int) -> Self:
        database = Database(server, Names(schema=name, prefix=name))
        await database.migrate()
        await database.sql("INSERT INTO gates (name, is_open) VALUES ('routing', true), ('router:default', true)")
        await database.sql("INSERT INTO routes (event_type, target) VALUES ('*', 'webhook')")
        rows = ", ".join(["('*', 'https://receiver.example/', true, true)"] * subscriptions)
        await database.sql(f"INSERT INTO subscriptions (event_type, callback_url, active, verified) VALUES {rows}")
        return cls(database, await database.open(OWNER), await database.open("event_router"), subscriptions)

    async def publish(self, count: int) -> None:
        statements = statements_of(__package__, self._owner.dialect)
        async with self._owner.transaction() as transaction:
            await transaction.run(statements["publish"], events=[("order.paid", _PAYLOAD)] * count)

    async def write_bare(self, count: int) -> int:
        """What a pass over so many events writes, in two statements that decide nothing."""
        statements = statements_of(__package__, self.engine.dialect)
        first, last = self._position + 1, self._position + count
        async with self.engine.transaction() as transaction:
            await transaction.run(statements["attempts"], first=first, last=last, matched=self._subscriptions)
            await transaction.run(statements["bare_sagas"], first=first, last=last)
        self._position = last
        return count


async def race(server: PostgresServer | MariaDBServer, subscriptions: int, seconds: float) -> Result:
    """Both in turn for so many seconds, so that whatever else the machine does meets both."""
    ours = await Course.laid(server, f"routed{subscriptions}", subscriptions)
    bare = await Course.laid(server, f"bare{subscriptions}", subscriptions)
    events = min(BATCH, FAN_OUT // subscriptions)
    router = Router(ours.engine)

    async def one_round(routing: Clock, writing: Clock) -> None:
        for course in (ours, bare):
            await course.publish(events)
        assert await routing.time(lambda: _step(router)) == events
        await writing.time(lambda: bare.write_bare(events))

    routing, writing, idling = Clock(), Clock(), Clock()
    for _ in range(WARM_UP):
        await one_round(Clock(), Clock())
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        await one_round(routing, writing)
    for _ in range(IDLE_PASSES):
        await idling.time(lambda: _step(router))
    await router.close()
    statements, idle_statements = await _statements(ours)
    for course in (ours, bare):
        await course.database.close()
    return Result(
        subscriptions,
        len(routing.wall),
        events,
        1 / routing.typical,
        1 / writing.typical,
        routing.client_share,
        statements,
        idling.typical * 1_000,
        idle_statements,
    )


async def _step(router: Router) -> int:
    return (await router.step()).read


async def _statements(course: Course) -> tuple[int, int]:
    """How many one pass sends, and one without work; all with a name, as a proxy sees them."""
    database = course.database
    with FaultProxy(database.server.port, database.kind) as proxy:
        engine = await open_engine(proxy.url(database.url("event_router")), owner="event_router", names=database.names)
        router = Router(engine)
        await router.step()
        await course.publish(10)
        proxy.clear()
        await router.step()
        working = len(proxy.seen)
        proxy.clear()
        await router.step()
        idle = len(proxy.seen)
        await router.close()
        await engine.close()
    return working, idle
