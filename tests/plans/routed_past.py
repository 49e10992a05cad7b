"""A log with a past: so many events, each routed to two subscriptions but a few, with a stretch of ids never used."""

from tests.support.database import Database
from tests.support.engine_words import Words
from tests.support.sessions import Session, connect
from tidings.flow import OWNER

# Every so many events one was not decided about: what a hole may still have in it.
UNDECIDED = 100
SUBSCRIBERS = 2

TABLES = ("events", "route_attempts", "webhook_delivery_sagas", "route_holes", "route_dead_letters")
_COUNT_ON_FROM = {
    "postgresql": "SELECT setval(pg_get_serial_sequence('{0}.events', 'id'), {1} - 1) WHERE {1} > 1",
    "mysql": "ALTER TABLE {0}.events AUTO_INCREMENT = {1}",
}


class Past:
    """Made as the owner of the schema, in a few statements."""

    def __init__(self, database: Database, owner: Session, admin: Session, size: int) -> None:
        self._database, self._owner, self._admin = database, owner, admin
        self._words = Words(database)
        self.size = size
        # Half of the events, as many ids as there are events without any, the other half.
        self.first = self.last = 0
        self.gap = (0, 0)

    @classmethod
    async def of(cls, database: Database, size: int) -> "Past":
        owner, admin = await connect(database.url(OWNER)), await connect(database.admin_url)
        past = cls(database, owner, admin, size)
        for table in TABLES:
            await owner.run(past._words.leave_alone(table))
        return past

    async def open(self) -> None:
        """Gates, a cursor, a route and subscriptions."""
        await self._owner.run("INSERT INTO route_worker_cursors (worker_name, event_domain) VALUES ('default', '*')")
        await self._owner.run("INSERT INTO gates (name, is_open) VALUES ('routing', true), ('router:default', true)")
        await self._owner.run("INSERT INTO routes (event_type, target) VALUES ('*', 'webhook')")
        await self.subscribe(SUBSCRIBERS, "order.*")

    async def subscribe(self, count: int, event_type: str) -> None:
        await self._owner.run(
            "INSERT INTO subscriptions (event_type, callback_url, active, verified)"
            f" SELECT '{event_type}', 'https://receiver.example/', true, true FROM {self._words.numbers(count)}"
        )

    async def happen(self) -> None:
        """After what is there already; the cursor stands at the end of it."""
        ((base,),) = await self._owner.run("SELECT COALESCE(MAX(id), 0) FROM events")
        half = self.size // 2
        self.first, self.last = base + 1, base + 2 * self.size
        self.gap = (base + half + 1, self.last - half)
        for number in (self.first, self.gap[1] + 1):
            await self._count_on_from(number)
            await self.publish(half)
        await self._count_on_from(self.last + 1)
        decided = f"id > {base} AND MOD(id, {UNDECIDED}) <> 0"
        await self._owner.run(
            "INSERT INTO route_attempts (event_id, worker_name, route_id, route_kind, status, matched, idempotency_key)"
            f" SELECT id, 'default', 1, 'webhook', 'sent', {SUBSCRIBERS}, CONCAT('wrk:default:1:', id) FROM events"
            f" WHERE {decided} ORDER BY id"
        )
        await self._owner.run(
            "INSERT INTO webhook_delivery_sagas (event_id, subscription_id, correlation_id)"
            f" SELECT e.id, s.id, e.correlation_id FROM (SELECT id, correlation_id FROM events WHERE {decided}) e"
            " CROSS JOIN subscriptions s ORDER BY e.id, s.id"
        )
        if self._database.family == "mysql":
            await self._owner.run("TRUNCATE event_writers")
        await self.stand_at_the_end()

    def undecided(self, count: int, after: int = 0) -> list[int]:
        """So many of them, all over the older half; those with another `after` are others."""
        every = range(-(-self.first // UNDECIDED) * UNDECIDED, self.gap[0], UNDECIDED)
        return [*every[after :: len(every) // count]][:count]

    async def publish(self, count: int) -> None:
        payload = """'{"order": 4711}'"""
        await self._owner.run(
            f"INSERT INTO events (event_type, payload) SELECT 'order.paid', {payload} FROM {self._words.numbers(count)}"
        )

    async def stand_at(self, position: int) -> None:
        """As a person's rewind does, with the identity of the last event that the router shall have routed."""
        columns = "id, correlation_id, created_at"
        last = f"SELECT {{}} FROM events WHERE id <= {position} ORDER BY id DESC LIMIT 1"
        identity = ", ".join(f"last_event_{column} = ({last.format(column)})" for column in columns.split(", "))
        await self._owner.run(f"UPDATE route_worker_cursors SET position = {position}, runs = runs + 1, {identity}")

    async def stand_at_the_end(self) -> None:
        ((last,),) = await self._owner.run("SELECT MAX(id) FROM events")
        await self.stand_at(last)

    async def leave_holes(self, *ranges: tuple[int, int]) -> None:
        values = ", ".join(f"('default', {lo}, {hi})" for lo, hi in ranges)
        await self._owner.run(f"INSERT INTO route_holes (worker_name, lo, hi) VALUES {values}")

    async def analyse(self) -> None:
        for table in TABLES:
            await self._owner.run(self._words.analyse(table))

    async def forget_holes(self) -> None:
        await self._owner.run("DELETE FROM route_holes")

    async def _count_on_from(self, number: int) -> None:
        await self._admin.run(_COUNT_ON_FROM[self._database.family].format(self._database.names.schema, number))

    async def close(self) -> None:
        await self._owner.close()
        await self._admin.close()
