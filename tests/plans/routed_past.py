"""A log with a past: so many events, each routed to two subscriptions but a few, with a stretch of ids never used."""

from tests.support.database import Database
from tests.support.sessions import Session, connect
from tidings.flow import OWNER

# Every so many events one was not decided about: what a hole may still have in it.
UNDECIDED = 100
SUBSCRIBERS = 2

TABLES = ("events", "route_attempts", "webhook_delivery_sagas", "route_holes", "route_dead_letters")


class Past:
    """Made as the owner of the schema, in a few statements."""

    def __init__(self, database: Database, owner: Session, admin: Session, size: int) -> None:
        self._database, self._owner, self._admin = database, owner, admin
        self.size = size
        # Half of the events, as many ids as there are events without any, the other half.
        self.first = self.last = 0
        self.gap = (0, 0)

    @classmethod
    async def of(cls, database: Database, size: int) -> "Past":
        owner, admin = await connect(database.url(OWNER)), await connect(database.admin_url)
        past = cls(database, owner, admin, size)
        for text in _words(database).keep_statistics:
            await owner.run(text)
        return past

    async def open(self) -> None:
        """Gates, a cursor, a route and subscriptions."""
        await self._owner.run("INSERT INTO route_worker_cursors (worker_name, event_domain) VALUES ('default', '*')")
        await self._owner.run("INSERT INTO gates (name, is_open) VALUES ('routing', true), ('router:default', true)")
        await self._owner.run("INSERT INTO routes (event_type, target) VALUES ('*', 'webhook')")
        await self.subscribe(SUBSCRIBERS, "order.*")

    async def subscribe(self, count: int, event_type: str) -> None:
        numbers = _words(self._database).numbers(count)
        await self._owner.run(
            "INSERT INTO subscriptions (event_type, callback_url, active, verified)"
            f" SELECT '{event_type}', 'https://receiver.example/', true, true FROM {numbers}"
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
        for text in _words(self._database).forget_writers:
            await self._owner.run(text)
        await self.stand_at_the_end()

    def undecided(self, count: int, after: int = 0) -> list[int]:
        """So many of them, all over the older half; those with another `after` are others."""
        every = range(-(-self.first // UNDECIDED) * UNDECIDED, self.gap[0], UNDECIDED)
        return [*every[after :: len(every) // count]][:count]

    async def publish(self, count: int) -> None:
        payload = """'{"order": 4711}'"""
        await self._owner.run(
            f"INSERT INTO events (event_type, payload) SELECT 'order.paid', {payload}"
            f" FROM {_words(self._database).numbers(count)}"
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
        for text in _words(self._database).analyse:
            await self._owner.run(text)

    async def forget_holes(self) -> None:
        await self._owner.run("DELETE FROM route_holes")

    async def _count_on_from(self, number: int) -> None:
        for text in _words(self._database).count_on_from(self._database.names.schema, number):
            await self._admin.run(text)

    async def close(self) -> None:
        await self._owner.close()
        await self._admin.close()


class _PostgresWords:
    keep_statistics = tuple(f"ALTER TABLE {table} SET (autovacuum_enabled = off)" for table in TABLES)
    analyse = tuple(f"ANALYZE {table}" for table in TABLES)
    forget_writers: tuple[str, ...] = ()

    @staticmethod
    def numbers(count: int) -> str:
        return f"generate_series(1, {count})"

    @staticmethod
    def count_on_from(schema: str, number: int) -> tuple[str, ...]:
        return (f"SELECT setval(pg_get_serial_sequence('{schema}.events', 'id'), {number - 1}) WHERE {number} > 1",)


class _MariaDBWords:
    keep_statistics = tuple(f"ALTER TABLE {table} STATS_AUTO_RECALC = 0" for table in TABLES)
    analyse = tuple(f"ANALYZE TABLE {table}" for table in TABLES)
    forget_writers = ("TRUNCATE event_writers",)

    @staticmethod
    def numbers(count: int) -> str:
        return f"seq_1_to_{count}"

    @staticmethod
    def count_on_from(schema: str, number: int) -> tuple[str, ...]:
        return (f"ALTER TABLE {schema}.events AUTO_INCREMENT = {number}",)


def _words(database: Database) -> type[_PostgresWords] | type[_MariaDBWords]:
    return _PostgresWords if database.family == "postgresql" else _MariaDBWords
