"""An installation with a past, for pages that are looked at: ordinary, or full of what an attacker would write."""

import json
from collections.abc import Sequence

from tests.support.database import Database
from tests.support.engine_words import Words
from tidings.model.totals import HOURS_KEPT

# Visible ASCII without spaces, so that it passes for a type too; each would do something if it were no text.
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img/src=x/onerror=alert(2)>',
    "'><svg/onload=alert(3)>",
    "javascript:alert(4)",
    "{{7*7}}${7*7}<%=7*7%>",
    "</pre></textarea></title><script>alert(5)</script>",
    "<div/hx-get=/keys/hx-trigger=load></div>",
    "<base/href=//evil.example/><form/action=//evil.example>",
)
PLACE = {
    "postgresql": "mod(extract(epoch FROM {moment})::bigint / {wide}, {places})",
    "mysql": "MOD(TIMESTAMPDIFF(SECOND, '1970-01-01', {moment}) DIV {wide}, {places})",
}
ENDPOINTS = (
    ("order.*", "https://billing.example.com/hooks/orders", "Billing"),
    ("invoice.paid", "https://erp.example.com/in/tidings", "ERP"),
    ("*", "https://warehouse.example.net/events", "Warehouse"),
    ("shipment.*", "https://track.example.org/v2/webhook", "Tracking page"),
    ("user.created", "https://crm.example.com/hooks", "CRM"),
)
TYPES = ("order.paid", "order.created", "invoice.paid", "shipment.sent", "user.created")


class Furnished:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._words = Words(database)

    async def ordinary(self) -> None:
        """A day of deliveries: most went well, one endpoint is down, some wait."""
        await self._routing()
        await self._subscriptions(ENDPOINTS)
        await self._events(120)
        await self._deliveries()
        await self._totals()
        await self._tasks()
        await self._deeds()

    async def hostile(self) -> None:
        """The same tables, with the worst in every column that somebody else fills."""
        await self._routing()
        await self._subscriptions([(text, f"https://x.example/{text}", f"{text} ☃ {text}") for text in HOSTILE])
        for number, text in enumerate(HOSTILE, 1):
            await self._given_by_callers(number, text)
            await self._given_by_operators(text)
            await self._given_by_endpoints(number, text)
        await self._deliveries(error=HOSTILE[0], excerpt="".join(HOSTILE), worker=HOSTILE[2])
        await self._totals()

    async def _given_by_callers(self, number: int, text: str) -> None:
        payload = json.dumps({text: text, "list": [text]})
        await self._insert(
            "events",
            event_type=text,
            event_domain=text,
            event_stream=text,
            external_id=text,
            correlation_id=text,
            payload=payload,
        )
        task = {"biz_type": text[:50], "biz_key": text, "payload": payload, "result_msg": text}
        await self._insert("sys_pending_tasks", **task, status=4)
        await self._insert("sys_pending_tasks_history", **task, status=2, id=700 + number)
        await self._insert(
            "route_dead_letters",
            event_id=number,
            worker_name=text,
            idempotency_key=f"{number}{text}",
            event_snapshot=json.dumps({"a": text}),
            error=text,
        )

    async def _given_by_operators(self, text: str) -> None:
        detail = json.dumps({text: text, "list": [text]})
        await self._insert("audit_log", actor=text, action=text, subject=text, detail=detail, request_id=text)
        await self._insert("gates", name=text, is_open=True, reason=text, changed_by=text)
        await self._insert("worker_presence", worker_id=text, process=text[:40], host=text, pid=1, version=text[:40])
        await self._insert("api_keys", public_id=text[:40], key_hash="x", name=text, scopes="viewer", created_by=text)
        await self._insert(
            "routes", event_type=text, event_domain=text, event_stream=text, target="task", task_biz_type=text[:50]
        )
        await self._insert("route_worker_cursors", worker_name=text, event_domain=text, last_run_summary=detail)

    async def _given_by_endpoints(self, number: int, text: str) -> None:
        await self._insert("delivery_lanes", subscription_id=number, window_size=1, failures=3, last_error_code=text)
        await self._insert(
            "endpoint_checks",
            subscription_id=number,
            kind="test",
            url=text,
            host=text,
            challenge="x",
            outcome="failed",
            error_code=text,
            expires_at="2040-01-01 00:00:00",
        )

    async def sql(self, text: str) -> None:
        await self._database.sql(text)

    async def _routing(self) -> None:
        for gate in ("routing", "router:default"):
            await self._insert("gates", name=gate, is_open=True, reason="", changed_by="cli:mira")
        await self._insert("routes", event_type="*", target="webhook")
        await self._insert("routes", event_type="user.created", target="task", task_biz_type="EMAIL_SEND")
        await self._insert("routes", event_type="shipment.*", target="task", task_biz_type="LABEL_PRINT", dry_run=True)
        await self._insert(
            "route_worker_cursors", worker_name="default", event_domain="*", position=118, runs=412, sent_count=118
        )
        for process in ("router", "orchestrator", "worker", "worker", "cleaner", "task-worker", "api"):
            seen = await self._database.value("SELECT COUNT(*) FROM worker_presence")
            await self._insert(
                "worker_presence",
                worker_id=f"{process}-{seen}",
                process=process,
                host="node-1",
                pid=100 + seen,
                version="0.1.0",
            )

    async def _subscriptions(self, endpoints: Sequence[tuple[str, str, str]]) -> None:
        for type, url, description in endpoints:
            await self._insert(
                "subscriptions", event_type=type, callback_url=url, description=description, active=True, verified=True
            )
        await self._insert(
            "subscriptions",
            event_type="order.*",
            callback_url="https://new.example.com/in",
            description="Not verified yet",
        )
        await self._insert(
            "subscriptions",
            event_type="*",
            callback_url="https://old.example.com/in",
            description="On holiday",
            active=True,
            verified=True,
            paused=True,
        )

    async def _events(self, count: int) -> None:
        cases = " ".join(f"WHEN {place} THEN '{type}'" for place, type in enumerate(TYPES))
        payload = 'CONCAT(\'{"order": \', n.seq, \', "total": "\', n.seq * 7, \'.90", "currency": "EUR"}\')'
        await self.sql(
            "INSERT INTO events (event_type, external_id, payload, created_at)"
            f" SELECT CASE MOD(n.seq, {len(TYPES)}) {cases} END, CONCAT('ord-', n.seq), {self._words.json(payload)},"
            f" {self._words.ago(f'({count} - n.seq) * 41 + 70')} FROM {self._words.numbers(count, 'n')} ORDER BY n.seq"
        )

    async def _deliveries(
        self, error: str = "http_503", excerpt: str = "upstream unavailable", worker: str = "worker-3"
    ) -> None:
        """Each event to two of the first five; one of ten fails for good, one waits for its next attempt."""
        await self.sql(
            "INSERT INTO webhook_delivery_sagas"
            " (event_id, subscription_id, correlation_id, created_at, next_attempt_at)"
            " SELECT e.id, s.id, e.correlation_id, e.created_at, e.created_at FROM events e CROSS JOIN subscriptions s"
            " WHERE s.id <= 5 AND MOD(e.id + s.id, 3) = 0 ORDER BY e.id, s.id"
        )
        status = "CASE MOD(id, 10) WHEN 3 THEN 'DeadLettered' WHEN 7 THEN 'PendingRetry' ELSE 'Completed' END"
        done = "CASE WHEN MOD(s.id, 10) IN (3, 7) THEN 'Failed' ELSE 'Completed' END"
        for attempt in (1, 2, 3):
            where = "" if attempt == 1 else " WHERE MOD(s.id, 10) = 3"
            now = self._words.ago(f"{(4 - attempt) * 15}")
            await self.sql(
                "INSERT INTO webhook_delivery_jobs"
                " (saga_id, subscription_id, status, attempt_at, attempt_no, worker_id,"
                " response_status, error_code, response_excerpt, duration_ms, created_at, finished_at, applied_at)"
                f" SELECT s.id, s.subscription_id, {done}, {now}, {attempt}, {self._text(worker)},"
                " CASE WHEN MOD(s.id, 10) IN (3, 7) THEN 503 ELSE 200 END,"
                f" CASE WHEN MOD(s.id, 10) IN (3, 7) THEN {self._text(error)} END,"
                f" {self._words.binary(excerpt.encode())}, 40 + MOD(s.id * 37, 400), {now}, {now}, {now}"
                f" FROM webhook_delivery_sagas s{where}"
            )
        await self.sql(
            f"UPDATE webhook_delivery_sagas SET attempt_count = CASE WHEN MOD(id, 10) = 3 THEN 3 ELSE 1 END,"
            f" final_error_code = CASE WHEN MOD(id, 10) IN (3, 7) THEN {self._text(error)} END,"
            f" next_attempt_at = CASE WHEN MOD(id, 10) = 7 THEN {self._words.ago('-90')} ELSE next_attempt_at END,"
            f" updated_at = {self._words.now}, status = {status}"
        )
        await self.sql(
            "INSERT INTO dead_letters (saga_id, event_id, subscription_id, final_error_code, payload_snapshot)"
            " SELECT s.id, s.event_id, s.subscription_id, s.final_error_code, e.payload"
            " FROM webhook_delivery_sagas s JOIN events e ON e.id = s.event_id WHERE s.status = 'DeadLettered'"
        )
        await self.sql(
            "INSERT INTO route_attempts"
            " (event_id, worker_name, route_id, route_kind, status, matched, idempotency_key, created_at)"
            " SELECT e.id, 'default', 1, 'webhook', 'sent', 2, CONCAT('default:', e.id, ':1'), e.created_at"
            " FROM events e"
        )

    async def _totals(self) -> None:
        words = self._words
        for most, of, unit, wide in ((1500, "0", "minute", 60), (40, "s.id", "hour", 3600)):
            who = "" if of == "0" else " CROSS JOIN subscriptions s"
            moment = words.start_of(unit, words.ago(f"(n.seq - 1) * {wide}"))
            place = PLACE[self._database.family].format(moment=moment, wide=wide, places=HOURS_KEPT * 3600 // wide)
            # A quarter of an hour ago an endpoint went down.
            down = "CASE WHEN n.seq BETWEEN 8 AND 19 THEN 38 - 2 * n.seq + MOD(n.seq * 7, 9) ELSE MOD(n.seq * 7, 5) END"
            bad = down if of == "0" else "CASE WHEN s.id = 2 THEN 90 + MOD(n.seq, 7) ELSE MOD(n.seq, 3) END"
            where = "" if of == "0" else " WHERE s.id <= 5"
            await self.sql(
                "INSERT INTO delivery_totals (subscription_id, place, slot, began_at, delivered, failed, dead,"
                f" within_100ms, within_300ms, within_1s) SELECT {of}, {place}, 1, {moment},"
                f" ROUND(90 + 45 * SIN(n.seq / 9.0)) + MOD(n.seq * 13, 17), {bad},"
                " CASE WHEN MOD(n.seq, 17) = 0 THEN 2 ELSE 0 END, 60, 30, 8"
                f" FROM {words.numbers(most, 'n')}{who}{where}"
            )
        if await self._database.value("SELECT COUNT(*) FROM delivery_lanes") == 0:
            await self._insert("delivery_lanes", subscription_id=1, window_size=512, failures=0)
            await self._insert(
                "delivery_lanes", subscription_id=2, window_size=1, failures=14, last_error_code="http_503"
            )

    async def _tasks(self) -> None:
        await self.sql(
            "INSERT INTO sys_pending_tasks (biz_type, biz_key, payload, status, retry_count, result_msg)"
            " SELECT CASE MOD(n.seq, 3) WHEN 0 THEN 'EMAIL_SEND' WHEN 1 THEN 'LABEL_PRINT' ELSE 'REPORT' END,"
            " CONCAT('order-', n.seq), '{\"order\": 7}',"
            " CASE WHEN n.seq < 12 THEN 0 WHEN n.seq < 15 THEN 3 WHEN n.seq < 20 THEN 2 ELSE 4 END, MOD(n.seq, 3),"
            " CASE WHEN n.seq >= 20 THEN 'SMTPServerDisconnected: connection lost' END"
            f" FROM {self._words.numbers(24, 'n')}"
        )

    async def _deeds(self) -> None:
        for action, subject in (
            ("subscription.created", "subscription:1"),
            ("subscription.paused", "subscription:7"),
            ("gate.opened", "gate:routing"),
            ("dead_letter.requeued", "dead_letter:1"),
        ):
            await self._insert(
                "audit_log", actor="key:7hG2kQ9fLx0a", action=action, subject=subject, detail='{"reason": "planned"}'
            )

    async def _insert(self, table: str, **columns: object) -> None:
        values = ", ".join(self._literal(value) for value in columns.values())
        await self.sql(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values})")

    def _literal(self, value: object) -> str:
        return str(value).lower() if isinstance(value, bool | int) else self._text(str(value))

    def _text(self, text: str) -> str:
        # On MariaDB the backslash, which JSON has before a quotation mark, is an escape.
        kept = text if self._database.family == "postgresql" else text.replace("\\", "\\\\")
        return "'" + kept.replace("'", "''") + "'"
