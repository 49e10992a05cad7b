"""Deliveries with a past: so many sagas that have ended, and as many that wait for a turn they do not get yet."""

from tests.support.database import Database
from tests.support.engine_words import Words
from tests.support.sessions import Session, connect
from tidings.flow import OWNER

SAGAS, JOBS = "webhook_delivery_sagas", "webhook_delivery_jobs"
TABLES = ("events", SAGAS, JOBS, "dead_letters", "subscriptions", "delivery_lanes")
LONG_AGO = "2020-01-01"


class Past:
    """Made as the owner of the schema, in a few statements."""

    def __init__(self, database: Database, owner: Session, size: int) -> None:
        self._database, self._owner, self._words = database, owner, Words(database)
        self.size = size
        self._snapshot: Session | None = None

    @classmethod
    async def of(cls, database: Database, size: int) -> "Past":
        past = cls(database, await connect(database.url(OWNER)), size)
        for table in TABLES:
            await past._run(past._words.leave_alone(table))
        # One that is busy, one that is paused, one with news, one that fails and was switched off.
        for active, paused in (("true", "false"), ("true", "true"), ("true", "false"), ("false", "false")):
            await past._run(
                "INSERT INTO subscriptions (event_type, callback_url, active, verified, paused)"
                f" VALUES ('*', 'https://a.example/', {active}, true, {paused})"
            )
        return past

    async def happen(self) -> None:
        """`size` sagas and twice as many jobs that ended; as many sagas wait in a paused lane, and for another time."""
        # Of other sagas: no job can be made for one that has ended, and updates would leave old versions behind.
        columns = "saga_id, subscription_id, attempt_at, attempt_no, status, lease_until, applied_at"
        await self._run(
            f"INSERT INTO {JOBS} ({columns}) SELECT -seq, 1, '{LONG_AGO}', 1, 'Completed', '{LONG_AGO}', '{LONG_AGO}'"
            f" FROM {self._words.numbers(2 * self.size)}"
        )
        await self.publish(1, self.size, status="Completed", due=LONG_AGO)
        await self.publish(2, self.size, due=LONG_AGO)
        await self.publish(1, self.size, due="2100-01-01")
        await self.publish(1, self.size, status="PendingRetry", due="2100-01-01")

    async def give_up(self) -> None:
        """What has ended has a dead letter each, one in a thousand of them for another subscription than the rest."""
        await self._run(
            "INSERT INTO dead_letters (saga_id, event_id, subscription_id, payload_snapshot)"
            f" SELECT id, event_id, CASE WHEN MOD(id, 1000) = 0 THEN 3 ELSE 1 END, '{{}}' FROM {SAGAS}"
            " WHERE status = 'Completed' ORDER BY id"
        )

    async def churn(self) -> None:
        """As many again go their whole way, in one statement each, so that each leaves its old versions behind."""
        first = await self.publish(1, self.size, status="Pending", due=LONG_AGO)
        await self._make_jobs(first)
        of_these = f"saga_id >= {first}"
        await self._run(f"UPDATE {SAGAS} SET status = 'InProgress' WHERE id >= {first}")
        await self._run(f"UPDATE {JOBS} SET status = 'Leased', lease_until = '2020-01-02' WHERE {of_these}")
        await self._run(f"UPDATE {JOBS} SET status = 'Failed', finished_at = '2020-01-02' WHERE {of_these}")
        await self._run(f"UPDATE {JOBS} SET applied_at = '2020-01-02' WHERE {of_these}")
        await self._run(f"UPDATE {SAGAS} SET status = 'PendingRetry' WHERE id >= {first}")
        await self._run(f"UPDATE {SAGAS} SET status = 'InProgress' WHERE id >= {first}")
        await self._run(f"UPDATE {SAGAS} SET status = 'Completed' WHERE id >= {first}")

    async def publish(self, subscription: int | str, count: int, status: str = "Pending", due: str = "") -> int:
        """So many events with a saga each, due now or then; returns the first saga."""
        # No two at the same moment: so many at once are never written.
        words = self._words
        when = words.later(words.moment(due), "id", "microsecond") if due else words.now_of_a_row
        ((last,),) = await self._owner.run("SELECT COALESCE(MAX(id), 0) FROM events")
        ((first,),) = await self._owner.run(f"SELECT COALESCE(MAX(id), 0) + 1 FROM {SAGAS}")
        await self._run(f"INSERT INTO events (event_type, payload) SELECT 'a', '{{}}' FROM {words.numbers(count)}")
        await self._run(
            f"INSERT INTO {SAGAS} (event_id, subscription_id, correlation_id, status, next_attempt_at)"
            f" SELECT id, {subscription}, 'c', '{status}', {when} FROM events WHERE id > {last} ORDER BY id"
        )
        return int(first)

    async def hang(self, lanes: int) -> None:
        """So many more subscriptions, which only fail: one attempt of each is under way, `size` sagas wait in all."""
        ((first,),) = await self._owner.run("SELECT MAX(id) + 1 FROM subscriptions")
        await self._run(
            "INSERT INTO subscriptions (event_type, callback_url, active, verified)"
            f" SELECT '*', 'https://b.example/', true, true FROM {self._words.numbers(lanes)}"
        )
        await self._run(
            "INSERT INTO delivery_lanes (subscription_id, window_size, failures, last_failure_at, last_error_code)"
            f" SELECT id, 1, 20, '{LONG_AGO}', 'timeout' FROM subscriptions WHERE id >= {first}"
        )
        under_way = await self.publish(f"{first} + MOD(id, {lanes})", lanes, status="InProgress", due=LONG_AGO)
        await self._make_jobs(under_way)
        await self._run(f"UPDATE {JOBS} SET status = 'Leased', lease_until = '2100-01-01' WHERE saga_id >= {under_way}")
        await self.publish(f"{first} + MOD(id, {lanes})", self.size, due=LONG_AGO)

    async def queue(self, count: int) -> None:
        """Sagas under way whose jobs wait for a worker."""
        first = await self.publish(3, count, status="InProgress")
        await self._make_jobs(first)

    async def report(self, good: int, bad: int = 0, stale: int = 0) -> None:
        """Sagas under way whose jobs went well, went wrong, or whose worker is silent."""
        for lane, count, state in (
            (3, good, "status = 'Completed'"),
            (4, bad, "status = 'Failed', error_code = 'timeout'"),
            (3, stale, f"status = 'Leased', lease_until = '{LONG_AGO}'"),
        ):
            if count:
                first = await self.publish(lane, count, status="InProgress")
                await self._make_jobs(first)
                await self._run(f"UPDATE {JOBS} SET {state} WHERE saga_id >= {first}")

    async def settle(self) -> None:
        """What is under way ends, so that the next measurement begins like the last one."""
        await self._run(f"UPDATE {JOBS} SET status = 'Completed' WHERE status IN ('Pending', 'Leased')")
        await self._run(
            f"UPDATE {JOBS} SET applied_at = created_at WHERE applied_at IS NULL AND status IN ('Completed', 'Failed')"
        )
        await self._run(f"UPDATE {SAGAS} SET status = 'Completed' WHERE status = 'InProgress'")

    async def analyse(self) -> None:
        for table in TABLES:
            await self._run(self._words.analyse(table))

    async def hold_a_transaction_open(self) -> None:
        """Somebody's report, a backup, a console that was forgotten: what it could still see is kept."""
        self._snapshot = await connect(self._database.url("observer"))
        for text in self._words.look_back:
            await self._snapshot.run(text)
        await self._snapshot.run(f"SELECT COUNT(*) FROM {SAGAS} WHERE id < 0")

    async def close(self) -> None:
        if self._snapshot is not None:
            await self._snapshot.close()
        await self._owner.close()

    async def _make_jobs(self, first: int) -> None:
        await self._run(
            f"INSERT INTO {JOBS} (saga_id, subscription_id, attempt_at, attempt_no, lease_until)"
            f" SELECT id, subscription_id, next_attempt_at, 1, next_attempt_at FROM {SAGAS}"
            f" WHERE id >= {first} ORDER BY id"
        )

    async def _run(self, text: str) -> None:
        await self._owner.run(text)
