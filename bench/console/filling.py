"""An installation that has run for a month: so many events with all that came of them, made by a few statements."""

import time
from collections.abc import Callable

from bench.backlog import AT_ONCE, JOBS, SAGAS, TASKS
from tests.roles.observer.world import without_guards
from tests.support.database import Database
from tests.support.engine_words import Words
from tests.support.sessions import Session, connect
from tidings.flow import OWNER

SAGAS_OF_AN_EVENT = 3
SUBSCRIPTIONS = 200
MONTH = 30 * 86_400
RARE_TYPE, BUSY_TYPE = "audit.ordered", "order.paid"
HISTORY = "sys_pending_tasks_history"
TABLES = (
    *("events", "route_attempts", SAGAS, JOBS, "dead_letters", TASKS, HISTORY, "audit_log", "route_dead_letters"),
    *("subscriptions", "delivery_lanes", "delivery_totals", "api_keys"),
)
# One in a hundred is given up, one waits to be retried, one has its turn to come; one in a thousand is under way.
_STATUS = (
    "CASE WHEN MOD({n}, 100) = 1 THEN 'DeadLettered' WHEN MOD({n}, 100) = 2 THEN 'PendingRetry'"
    " WHEN MOD({n}, 100) = 3 THEN 'Pending' WHEN MOD({n}, 1000) = 4 THEN 'InProgress' ELSE 'Completed' END"
)
_PAYLOAD = "CONCAT('{\"to\": \"', seq, '@example.com\"}')"


class Filling:
    """`events` of them, three sagas each, four jobs to three sagas; tasks, dead letters and deeds in proportion."""

    def __init__(self, database: Database, owner: Session, events: int, say: Callable[[str], None]) -> None:
        self._words = Words(database)
        self._owner, self._say = owner, say
        self.events = events

    @classmethod
    async def of(cls, database: Database, events: int, say: Callable[[str], None]) -> None:
        # The guards would refuse what has ended already when it begins.
        await without_guards(database)
        owner = await connect(database.url(OWNER))
        filling = cls(database, owner, events, say)
        await filling._happen()
        await owner.close()

    async def _happen(self) -> None:
        steps = (
            self._configure,
            self._publish,
            self._deliver,
            self._attempt,
            self._give_up,
            self._route,
            self._work,
            self._sum_up,
            self._act,
            self._analyse,
        )
        for step in steps:
            began = time.perf_counter()
            await step()
            self._say(f"  {step.__name__.strip('_')}: {time.perf_counter() - began:.0f} s")

    async def _configure(self) -> None:
        await self._run(
            "INSERT INTO subscriptions (event_domain, event_type, callback_url, active, verified, description)"
            " SELECT '*', CASE WHEN MOD(seq, 10) = 0 THEN 'order.*' ELSE '*' END,"
            " CONCAT('https://receiver-', seq, '.example/hooks'), MOD(seq, 50) <> 0, MOD(seq, 40) <> 0,"
            f" CONCAT('Receiver ', seq) FROM {self._words.numbers(SUBSCRIPTIONS)}"
        )
        await self._run("INSERT INTO routes (event_type, target) VALUES ('*', 'webhook')")
        await self._run(
            "INSERT INTO routes (event_type, target, task_biz_type, dry_run)"
            f" SELECT CONCAT('kind-', seq, '.*'), 'task', CONCAT('KIND_', seq), MOD(seq, 5) = 0"
            f" FROM {self._words.numbers(60)}"
        )
        for gate in ("routing", "router:default"):
            await self._run(f"INSERT INTO gates (name, is_open, changed_by) VALUES ('{gate}', true, 'bench')")

    async def _publish(self) -> None:
        words = self._words
        payload = 'CONCAT(\'{"order": \', seq, \', "amount": "12.50", "note": "\', REPEAT(\'x\', 120), \'"}\')'
        for first in range(0, self.events, AT_ONCE):
            count = min(AT_ONCE, self.events - first)
            n = f"({first} + seq)"
            age = f"({self.events} - {n}) * {MONTH / self.events:.6f}"
            await self._run(
                "INSERT INTO events (event_domain, event_type, event_stream, external_id, payload, correlation_id,"
                " created_at) SELECT"
                f" CASE WHEN MOD({n}, 10) = 0 THEN 'eu' ELSE 'default' END,"
                f" CASE WHEN MOD({n}, 50000) = 7 THEN '{RARE_TYPE}' WHEN MOD({n}, 3) = 0 THEN 'order.shipped'"
                f" WHEN MOD({n}, 7) = 0 THEN 'customer.changed' ELSE '{BUSY_TYPE}' END, '',"
                f" CONCAT('ext-', {n}), {words.json(payload)}, CONCAT('c-', {words.whole(f'{n} / 10')}),"
                f" {words.ago(age)} FROM {words.numbers(count)} ORDER BY seq"
            )

    async def _deliver(self) -> None:
        """Each event goes to three subscriptions."""
        words, n = self._words, f"(e.id * {SAGAS_OF_AN_EVENT} + k.seq)"
        to_come = words.ago("-3600 - MOD(e.id, 86400)")
        status = _STATUS.format(n=n)
        for lo, hi in await self._ranges("events"):
            await self._run(
                f"INSERT INTO {SAGAS} (event_id, subscription_id, status, attempt_count, next_attempt_at,"
                " final_error_code, correlation_id, created_at, updated_at) SELECT"
                f" e.id, MOD({n} * 7 + {words.whole(f'{n} / 100')}, {SUBSCRIPTIONS}) + 1, {status},"
                f" CASE {status} WHEN 'DeadLettered' THEN 3 WHEN 'Pending' THEN 0 WHEN 'InProgress' THEN 0"
                f" WHEN 'PendingRetry' THEN 1 ELSE CASE WHEN MOD({n}, 3) = 0 THEN 2 ELSE 1 END END,"
                f" CASE {status} WHEN 'PendingRetry' THEN {to_come} ELSE e.created_at END,"
                f" CASE {status} WHEN 'DeadLettered' THEN 'http_503' WHEN 'PendingRetry' THEN 'timeout' END,"
                f" e.correlation_id, e.created_at, {words.later('e.created_at', 4)}"
                f" FROM events e CROSS JOIN {words.numbers(SAGAS_OF_AN_EVENT, 'k')}"
                f" WHERE e.id BETWEEN {lo} AND {hi} ORDER BY e.id, k.seq"
            )

    async def _attempt(self) -> None:
        """What was given up failed three times, every third of the rest once before it went well."""
        words = self._words
        again = "((k.seq = 2 AND s.attempt_count >= 2) OR (k.seq = 3 AND s.attempt_count = 3))"
        ends_well = "(s.status = 'Completed' AND k.seq = s.attempt_count)"
        is_open = "s.status = 'InProgress'"
        for lo, hi in await self._ranges(SAGAS):
            await self._run(
                f"INSERT INTO {JOBS} (saga_id, subscription_id, status, lease_until, attempt_at, attempt_no, worker_id,"
                " response_status, error_code, response_excerpt, duration_ms, created_at, finished_at, applied_at)"
                f" SELECT s.id, s.subscription_id,"
                f" CASE WHEN {is_open} THEN 'Leased' WHEN {ends_well} THEN 'Completed' ELSE 'Failed' END,"
                f" CASE WHEN {is_open} THEN {words.ago('-3600')} ELSE s.created_at END,"
                f" {words.later('s.created_at', 'k.seq')}, k.seq, 'worker-1',"
                f" CASE WHEN {ends_well} THEN 200 WHEN {is_open} THEN NULL ELSE 503 END,"
                f" CASE WHEN {is_open} OR {ends_well} THEN NULL ELSE 'http_503' END,"
                f" {words.binary(b'<html>it is what it is</html>')}, 40 + MOD(s.id, 900), s.created_at,"
                f" CASE WHEN {is_open} THEN NULL ELSE {words.later('s.created_at', 'k.seq')} END,"
                f" CASE WHEN {is_open} THEN NULL ELSE {words.later('s.created_at', 'k.seq')} END"
                f" FROM {SAGAS} s CROSS JOIN {words.numbers(3, 'k')}"
                f" WHERE s.id BETWEEN {lo} AND {hi} AND s.status <> 'Pending' AND (k.seq = 1 OR {again})"
                " ORDER BY s.id, k.seq"
            )

    async def _give_up(self) -> None:
        for lo, hi in await self._ranges(SAGAS):
            await self._run(
                "INSERT INTO dead_letters (saga_id, event_id, subscription_id, final_error_code, failed_at,"
                " payload_snapshot) SELECT s.id, s.event_id, s.subscription_id, s.final_error_code, s.updated_at,"
                f" e.payload FROM {SAGAS} s JOIN events e ON e.id = s.event_id"
                f" WHERE s.status = 'DeadLettered' AND s.id BETWEEN {lo} AND {hi} ORDER BY s.id"
            )

    async def _route(self) -> None:
        """The router stands a little behind the end, with holes; one event in a thousand could not be routed once."""
        for lo, hi in await self._ranges("events"):
            await self._run(
                "INSERT INTO route_attempts (event_id, worker_name, route_id, route_kind, status, matched,"
                " idempotency_key, created_at) SELECT id, 'default', 1, 'webhook', 'sent',"
                f" {SAGAS_OF_AN_EVENT}, CONCAT('wrk:default:1:', id), created_at FROM events"
                f" WHERE id BETWEEN {lo} AND {hi} ORDER BY id"
            )
        await self._run(
            "INSERT INTO route_dead_letters (event_id, worker_name, idempotency_key, event_snapshot, error, created_at,"
            " resolved_at, resolution) SELECT id, 'default', CONCAT('wrk:default:-:', id), payload, 'value refused',"
            " created_at, CASE WHEN MOD(id, 100000) = 1 THEN NULL ELSE created_at END, 'sent'"
            " FROM events WHERE MOD(id, 1000) = 1 ORDER BY id"
        )
        await self._run(
            "INSERT INTO route_worker_cursors (worker_name, event_domain, position, last_event_id,"
            " last_event_correlation_id, last_event_created_at, runs, sent_count) SELECT 'default', '*', id, id,"
            f" correlation_id, created_at, 1000, {self.events} FROM events ORDER BY id DESC LIMIT 1"
        )
        await self._run(
            "INSERT INTO route_holes (worker_name, lo, hi)"
            f" SELECT 'default', seq * 10, seq * 10 + 2 FROM {self._words.numbers(100)}"
        )

    async def _work(self) -> None:
        """A fifth as many tasks in the queue as there are events, most of them waiting; half as many in the history."""
        words, kind = self._words, "CONCAT('KIND_', MOD(seq, 6) + 1)"
        status = (
            "CASE WHEN MOD(seq, 400) = 1 THEN 1 WHEN MOD(seq, 10) = 2 THEN 4 WHEN MOD(seq, 6) = 3 THEN 2"
            " WHEN MOD(seq, 40) = 4 THEN 3 ELSE 0 END"
        )
        columns = "biz_type, biz_key, status, payload, result_msg, next_run_time, created_at, updated_at"
        values = (
            f"{kind}, CONCAT('key-', seq), {status}, {words.json(_PAYLOAD)}, 'Max retries exceeded: TimeoutError()',"
            f" {words.ago('MOD(seq, 7200) - 3600')}, {words.ago('seq')}, {words.ago('seq * 0.9')}"
        )
        await self._run(f"INSERT INTO {TASKS} ({columns}) SELECT {values} FROM {words.numbers(self.events // 5)}")
        ended = "CASE WHEN MOD(seq, 20) = 0 THEN 4 ELSE 2 END"
        for first in range(0, self.events // 2, AT_ONCE):
            count = min(AT_ONCE, self.events // 2 - first)
            n = f"({first} + seq)"
            await self._run(
                f"INSERT INTO {HISTORY} (id, {columns}, archived_at) SELECT {10 * self.events} + {n}, {kind},"
                f" CONCAT('old-', {n}), {ended}, {words.json(_PAYLOAD)}, 'OK', {words.ago(n)}, {words.ago(n)},"
                f" {words.ago(n)}, {words.ago(f'({self.events} - {n})')} FROM {words.numbers(count)} ORDER BY seq"
            )

    async def _sum_up(self) -> None:
        """The totals of two days and of the last hours of each subscription, in two slots."""
        words = self._words
        minute = words.later(words.start_of("minute", words.now), "-a.seq", "minute")
        hour = words.later(words.start_of("hour", words.now), "1 - a.seq", "hour")
        await self._run(
            "INSERT INTO delivery_totals (subscription_id, place, slot, began_at, delivered, failed, dead) SELECT"
            f" 0, a.seq, b.seq, {minute}, 500 + MOD(a.seq * 7, 300), MOD(a.seq, 40), MOD(a.seq, 5)"
            f" FROM {words.numbers(2880, 'a')} CROSS JOIN {words.numbers(2, 'b')}"
        )
        await self._run(
            "INSERT INTO delivery_totals (subscription_id, place, slot, began_at, delivered, failed, dead,"
            " within_100ms, within_300ms, within_1s) SELECT s.id,"
            f" a.seq, b.seq, {hour}, 300, 12, 1, 200, 90, 10 FROM subscriptions s"
            f" CROSS JOIN {words.numbers(48, 'a')} CROSS JOIN {words.numbers(2, 'b')}"
        )
        await self._run(
            "INSERT INTO delivery_lanes (subscription_id, window_size, failures, last_failure_at, last_error_code)"
            f" SELECT id, CASE WHEN MOD(id, 9) = 0 THEN 1 ELSE 64 END, MOD(id, 9), {words.ago('id')}, 'http_503'"
            " FROM subscriptions"
        )

    async def _act(self) -> None:
        """What people did: a fifth as many deeds as there are events, and a hundred keys."""
        words = self._words
        detail = (
            'CONCAT(\'{"before": {"enabled": true, "event_type": "order.*"},'
            ' "after": {"enabled": false, "event_type": "order.*"}, "n": \', seq, \'}\')'
        )
        await self._run(
            "INSERT INTO audit_log (actor, action, subject, detail, created_at) SELECT"
            " CASE WHEN MOD(seq, 50000) = 9 THEN 'ada@seldom' ELSE CONCAT('key:own-', MOD(seq, 100) + 1) END,"
            " CASE MOD(seq, 4) WHEN 0 THEN 'route.changed' WHEN 1 THEN 'gate.opened' WHEN 2 THEN 'task.retried'"
            " ELSE 'subscription.changed' END,"
            " CONCAT(CASE MOD(seq, 4) WHEN 0 THEN 'route:' WHEN 1 THEN 'gate:' WHEN 2 THEN 'task:'"
            f" ELSE 'subscription:' END, MOD(seq, 1000)), {words.json(detail)},"
            f" {words.ago(f'{self.events // 5} - seq')} FROM {words.numbers(self.events // 5)} ORDER BY seq"
        )
        await self._run(
            "INSERT INTO api_keys (public_id, key_hash, name, scopes, created_by) SELECT CONCAT('own-', seq),"
            f" {words.binary(b'no hash')}, CONCAT('Program ', seq), 'publisher', 'bench' FROM {words.numbers(100)}"
        )

    async def _analyse(self) -> None:
        for table in TABLES:
            await self._run(self._words.analyse(table))

    async def _ranges(self, table: str) -> list[tuple[int, int]]:
        ((lowest, highest),) = await self._owner.run(f"SELECT MIN(id), MAX(id) FROM {table}")
        return [(lo, min(lo + AT_ONCE - 1, highest)) for lo in range(lowest, highest + 1, AT_ONCE)]

    async def _run(self, text: str) -> None:
        await self._owner.run(text)
