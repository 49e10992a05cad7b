"""An independent checker: compares what producers committed, what receivers got and what the tables say.

It shares no code with the product: plain SQL on drivers that the product does not use, its own words for what must be.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

import psycopg
import pymysql

TERMINAL = {"Completed", "DeadLettered"}
SAGA_MOVES = {
    ("Pending", "InProgress"),
    ("InProgress", "Completed"),
    ("InProgress", "PendingRetry"),
    ("InProgress", "DeadLettered"),  # by way of PendingRetry, in one UPDATE
    ("PendingRetry", "InProgress"),
    ("PendingRetry", "DeadLettered"),
}
JOB_MOVES = {
    ("Pending", "Leased"),
    ("Leased", "Completed"),
    ("Leased", "Failed"),
    ("Leased", "Pending"),
}


@dataclass(frozen=True)
class Committed:
    """An event as its producer knows it: the correlation id is its own, and never used twice."""

    correlation_id: str
    event_type: str
    payload: str


@dataclass(frozen=True)
class Subscriber:
    """Where a subscription's requests arrive, and which types it wants."""

    id: int
    path: str
    event_type: str
    secret: str | None = None

    def wants(self, event_type: str) -> bool:
        if self.event_type.endswith("*"):
            return event_type.startswith(self.event_type[:-1])
        return event_type == self.event_type


class Arrival(Protocol):
    """One line of the receiver's ledger."""

    @property
    def path(self) -> str: ...
    @property
    def headers(self) -> dict[str, str]: ...
    @property
    def body(self) -> bytes: ...
    @property
    def answered(self) -> int | None: ...
    @property
    def attempt(self) -> int: ...
    @property
    def message(self) -> str: ...

    def verify(self, secret: str) -> None: ...


@dataclass
class Tables:
    """Every row that tells about deliveries."""

    events: list[dict[str, Any]]
    sagas: list[dict[str, Any]]
    jobs: list[dict[str, Any]]
    dead_letters: list[dict[str, Any]]
    saga_moves: list[dict[str, Any]] = field(default_factory=list)
    job_moves: list[dict[str, Any]] = field(default_factory=list)


class Checker:
    """`url` is that of a login that may read everything and make tables and triggers."""

    def __init__(self, url: str, schema: str) -> None:
        self._url, self._schema = url, schema
        self._is_postgresql = urlsplit(url).scheme == "postgresql"

    def watch(self) -> None:
        """Keeps a history of every move of sagas and jobs from now on, by triggers of its own."""
        self._run(_WATCH_POSTGRESQL if self._is_postgresql else _WATCH_MYSQL)

    def stop_watching(self) -> None:
        self._run(_UNWATCH_POSTGRESQL if self._is_postgresql else _UNWATCH_MYSQL)

    def problems(
        self,
        committed: Iterable[Committed],
        arrivals: Sequence[Arrival],
        subscribers: Collection[Subscriber],
        *,
        faults: bool,
        requeued: Mapping[str, int] | None = None,
    ) -> list[str]:
        """What is not as it must be when everything has come to its end.

        `faults`: whether something was broken. `requeued`: how often somebody asked for a next generation, by event.
        """
        return [*_problems(self._read(), list(committed), arrivals, subscribers, faults, requeued or {})]

    def is_at_rest(self) -> bool:
        """Whether every event was routed, and nothing is under way."""
        # In this order: what was routed before the first look has its sagas at the second.
        (unrouted,) = self._rows(
            "SELECT COUNT(*) AS n FROM events e"
            " WHERE NOT EXISTS (SELECT 1 FROM route_attempts a WHERE a.event_id = e.id)"
        )
        (open_ones,) = self._rows(
            "SELECT COUNT(*) AS n FROM webhook_delivery_sagas WHERE status NOT IN ('Completed', 'DeadLettered')"
        )
        return not unrouted["n"] and not open_ones["n"]

    def _read(self) -> Tables:
        text = "CAST(payload AS text)" if self._is_postgresql else "payload"
        snapshot = "CAST(payload_snapshot AS text)" if self._is_postgresql else "payload_snapshot"
        return Tables(
            self._rows(f"SELECT id, event_type, correlation_id, {text} AS payload FROM events ORDER BY id"),
            self._rows("SELECT * FROM webhook_delivery_sagas ORDER BY id"),
            self._rows("SELECT * FROM webhook_delivery_jobs ORDER BY id"),
            self._rows(f"SELECT id, saga_id, event_id, {snapshot} AS payload, final_error_code FROM dead_letters"),
            self._rows("SELECT * FROM checked_saga_moves ORDER BY id"),
            self._rows("SELECT * FROM checked_job_moves ORDER BY id"),
        )

    def _connect(self) -> Any:
        if self._is_postgresql:
            return psycopg.connect(
                self._url, autocommit=True, row_factory=psycopg.rows.dict_row, options=f"-c search_path={self._schema}"
            )
        parts = urlsplit(self._url)
        return pymysql.connect(
            host=parts.hostname,
            port=parts.port or 3306,
            user=unquote(parts.username or ""),
            password=unquote(parts.password or ""),
            database=self._schema,
            autocommit=True,
            cursorclass=pymysql.cursors.DictCursor,
        )

    def _rows(self, text: str) -> list[dict[str, Any]]:
        connection = self._connect()
        try:
            with connection.cursor() as cursor:
                cursor.execute(text)
                return list(cursor.fetchall())
        finally:
            connection.close()

    def _run(self, texts: Sequence[str]) -> None:
        connection = self._connect()
        try:
            with connection.cursor() as cursor:
                for text in texts:
                    cursor.execute(text)
        finally:
            connection.close()


def _problems(
    tables: Tables,
    committed: list[Committed],
    arrivals: Sequence[Arrival],
    subscribers: Collection[Subscriber],
    faults: bool,
    requeued: Mapping[str, int],
) -> Iterable[str]:
    event_ids = {event["correlation_id"]: event["id"] for event in tables.events}
    yield from _events(tables, committed)
    yield from _sagas(tables, committed, subscribers, event_ids)
    yield from _generations(tables, requeued)
    yield from _ends(tables, faults)
    yield from _moves(tables)
    yield from _requests(tables, committed, arrivals, subscribers, event_ids)


def _events(tables: Tables, committed: list[Committed]) -> Iterable[str]:
    """Nothing lost, nothing invented, nothing changed."""
    stored = Counter((one["correlation_id"], one["event_type"], one["payload"]) for one in tables.events)
    known = Counter((one.correlation_id, one.event_type, one.payload) for one in committed)
    yield from (f"event {key} was committed and is not there" for key in known - stored)
    yield from (f"event {key} is there and nobody committed it" for key in stored - known)


def _sagas(
    tables: Tables, committed: list[Committed], subscribers: Collection[Subscriber], event_ids: Mapping[str, int]
) -> Iterable[str]:
    """Each event × matching subscription has one saga that was routed; and no other."""
    wanted = Counter(
        (event_ids.get(event.correlation_id), subscriber.id)
        for event in committed
        for subscriber in subscribers
        if subscriber.wants(event.event_type)
    )
    routed = Counter((saga["event_id"], saga["subscription_id"]) for saga in tables.sagas if saga["generation"] == 0)
    yield from (f"no saga for event and subscription {key}" for key in wanted - routed)
    yield from (f"one saga too many for event and subscription {key}" for key in routed - wanted)


def _generations(tables: Tables, requeued: Mapping[str, int]) -> Iterable[str]:
    """Without a gap, and as many as somebody asked for."""
    generations: dict[tuple[int, int], list[int]] = defaultdict(list)
    for saga in tables.sagas:
        generations[saga["event_id"], saga["subscription_id"]].append(saga["generation"])
    asked = {event["id"]: requeued.get(event["correlation_id"], 0) for event in tables.events}
    made: Counter[int] = Counter()
    for (event, subscription), found in generations.items():
        made[event] += len(found) - 1
        if sorted(found) != [*range(len(found))]:
            yield f"event {event} and subscription {subscription} have the generations {sorted(found)}"
    for event, count in asked.items():
        if made[event] != count:
            yield f"event {event} was given {made[event]} new generations, and {count} were asked for"


def _ends(tables: Tables, faults: bool) -> Iterable[str]:
    jobs = defaultdict(list)
    for job in tables.jobs:
        jobs[job["saga_id"]].append(job)
    letters = Counter(letter["saga_id"] for letter in tables.dead_letters)
    payloads = {event["id"]: event["payload"] for event in tables.events}
    for letter in tables.dead_letters:
        if letter["payload"] != payloads.get(letter["event_id"]):
            yield f"dead letter {letter['id']} does not say what its event said"
    for saga in tables.sagas:
        name, own = f"saga {saga['id']}", jobs.pop(saga["id"], [])
        if saga["status"] not in TERMINAL:
            yield f"{name} is {saga['status']} and not ended"
        if letters[saga["id"]] != (saga["status"] == "DeadLettered"):
            yield f"{name} is {saga['status']} and has {letters[saga['id']]} dead letters"
        yield from _attempts(name, saga, sorted(own, key=lambda job: int(job["attempt_no"])), faults)
    yield from (f"jobs of saga {saga}, which is not there" for saga in jobs)


def _attempts(name: str, saga: Mapping[str, Any], jobs: list[dict[str, Any]], faults: bool) -> Iterable[str]:
    """One counted attempt for each job, numbered without a gap, each taken in once; the last one tells the end."""
    if [job["attempt_no"] for job in jobs] != [*range(1, len(jobs) + 1)]:
        yield f"{name} has attempts {[job['attempt_no'] for job in jobs]}"
    if saga["attempt_count"] != len(jobs):
        yield f"{name} counts {saga['attempt_count']} attempts and has {len(jobs)} jobs"
    for job in jobs:
        if job["status"] not in ("Completed", "Failed"):
            yield f"job {job['id']} of {name} is {job['status']}"
        elif job["applied_at"] is None:
            yield f"the result of job {job['id']} of {name} was never taken in"
        if job["lease_resets"] and not faults:
            yield f"job {job['id']} of {name} lost its lease, and nothing was broken"
    succeeded = [job for job in jobs if job["status"] == "Completed"]
    if len(succeeded) != (saga["status"] == "Completed"):
        yield f"{name} is {saga['status']} with {len(succeeded)} jobs that succeeded"
    if succeeded and succeeded[-1] is not jobs[-1]:
        yield f"{name} was tried again after it had succeeded"


def _moves(tables: Tables) -> Iterable[str]:
    """By the history: only allowed moves, one into an end, none out of it, never two active jobs for one saga."""
    ends: Counter[int] = Counter()
    for move in tables.saga_moves:
        pair = (move["old_status"], move["new_status"])
        if pair not in SAGA_MOVES:
            yield f"saga {move['saga_id']} moved {pair[0]} → {pair[1]}"
        ends[move["saga_id"]] += pair[1] in TERMINAL
    yield from (f"saga {saga} ended {times} times" for saga, times in ends.items() if times > 1)
    for move in tables.job_moves:
        pair = (move["old_status"], move["new_status"])
        if pair not in JOB_MOVES:
            yield f"job {move['job_id']} moved {pair[0]} → {pair[1]}"
        if pair[1] == "Completed" and move["old_token"] != move["new_token"]:
            yield f"job {move['job_id']} was completed under another token than it was leased"
        if "Pending" in pair and move["old_token"] == move["new_token"]:
            yield f"job {move['job_id']} moved {pair[0]} → {pair[1]} and kept its token"


def _requests(
    tables: Tables,
    committed: list[Committed],
    arrivals: Sequence[Arrival],
    subscribers: Collection[Subscriber],
    event_ids: Mapping[str, int],
) -> Iterable[str]:
    events = {event.correlation_id: event for event in committed}
    at = {subscriber.path: subscriber for subscriber in subscribers}
    tries: Counter[tuple[int, int, int]] = Counter()
    last: dict[tuple[int, int, int], int | None] = {}
    well: set[tuple[int, int]] = set()
    messages: dict[tuple[int, int], set[str]] = defaultdict(set)
    for arrival in arrivals:
        event, subscriber = events.get(arrival.headers["tidings-correlation-id"]), at.get(arrival.path)
        if event is None or subscriber is None or not subscriber.wants(event.event_type):
            yield f"nobody asked for the request to {arrival.path} with {arrival.headers['tidings-correlation-id']}"
            continue
        yield from _content(arrival, event, subscriber)
        key = (event_ids[event.correlation_id], subscriber.id)
        tries[(*key, arrival.attempt)] += 1
        last[(*key, arrival.attempt)] = arrival.answered
        messages[key].add(arrival.message)
        if arrival.answered is not None and 200 <= arrival.answered < 300:
            well.add(key)
    for saga in tables.sagas:
        if saga["status"] == "Completed" and (saga["event_id"], saga["subscription_id"]) not in well:
            yield f"saga {saga['id']} is Completed, and its receiver never said so"
    yield from (f"event and subscription {key} came under {ids}" for key, ids in messages.items() if len(ids) > 1)
    yield from _repetitions(tables, tries)
    yield from _answers(tables, last)


def _answers(tables: Tables, last: Mapping[tuple[int, int, int], int | None]) -> Iterable[str]:
    """Of the requests of one attempt the last one counts: whoever sent an earlier one had lost its lease by then."""
    sagas = {saga["id"]: saga for saga in tables.sagas}
    generations = Counter((saga["event_id"], saga["subscription_id"]) for saga in tables.sagas)
    for job in tables.jobs:
        saga = sagas[job["saga_id"]]
        pair, said = (saga["event_id"], saga["subscription_id"]), job["response_status"]
        answered = last.get((*pair, job["attempt_no"]))
        if said is not None and answered not in (None, said) and generations[pair] == 1:
            yield f"job {job['id']} says {said}, and the last request of that attempt was answered {answered}"


def _content(arrival: Arrival, event: Committed, subscriber: Subscriber) -> Iterable[str]:
    if arrival.body != event.payload.encode():
        yield f"the receiver at {arrival.path} got other bytes than {event.correlation_id} has"
    if subscriber.secret:
        try:
            arrival.verify(subscriber.secret)
        except Exception as error:
            yield f"a request to {arrival.path} is not signed rightly: {error!r}"


def _repetitions(tables: Tables, tries: Counter[tuple[int, int, int]]) -> Iterable[str]:
    """An attempt is sent once, and once more for each time that its lease was taken from a worker."""
    sagas = {saga["id"]: saga for saga in tables.sagas}
    allowed: Counter[tuple[int, int, int]] = Counter()
    certain: Counter[tuple[int, int, int]] = Counter()
    for job in tables.jobs:
        saga = sagas[job["saga_id"]]
        key = (saga["event_id"], saga["subscription_id"], job["attempt_no"])
        allowed[key] += 1 + job["lease_resets"]
        certain[key] += job["response_status"] is not None
    for key, count in tries.items():
        if count > allowed[key]:
            yield f"(event, subscription, attempt) {key} was sent {count} times, {allowed[key]} are explained"
    yield from (f"(event, subscription, attempt) {key} has an answer and was never sent" for key in certain - tries)


_COLUMNS = "id {identity}, {what}_id bigint, old_status varchar(20), new_status varchar(20){tokens}"
_TOKENS = ", old_token bigint, new_token bigint"


def _history_table(what: str, identity: str, tokens: str) -> str:
    return f"CREATE TABLE checked_{what}_moves ({_COLUMNS.format(identity=identity, what=what, tokens=tokens)})"


def _postgresql_trigger(what: str, table: str, extra_columns: str, extra_values: str) -> list[str]:
    return [
        f"CREATE FUNCTION check_{what}_move() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER"
        f" SET search_path FROM CURRENT AS $$ BEGIN"
        f" INSERT INTO checked_{what}_moves ({what}_id, old_status, new_status{extra_columns})"
        f" VALUES (NEW.id, OLD.status, NEW.status{extra_values}); RETURN NULL; END $$",
        f"CREATE TRIGGER check_{what} AFTER UPDATE ON {table} FOR EACH ROW"
        f" WHEN (OLD.status IS DISTINCT FROM NEW.status) EXECUTE FUNCTION check_{what}_move()",
    ]


def _mysql_trigger(what: str, table: str, extra_columns: str, extra_values: str) -> str:
    return (
        f"CREATE TRIGGER check_{what} AFTER UPDATE ON {table} FOR EACH ROW"
        f" IF NOT (OLD.status <=> NEW.status) THEN INSERT INTO checked_{what}_moves"
        f" ({what}_id, old_status, new_status{extra_columns}) VALUES (NEW.id, OLD.status, NEW.status{extra_values});"
        " END IF"
    )


_TABLES = {"saga": "webhook_delivery_sagas", "job": "webhook_delivery_jobs"}
_EXTRA = {"saga": ("", ""), "job": (", old_token, new_token", ", OLD.lease_token, NEW.lease_token")}
_WATCH_POSTGRESQL = [
    *(
        _history_table(what, "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY", _TOKENS if what == "job" else "")
        for what in _TABLES
    ),
    *(text for what, table in _TABLES.items() for text in _postgresql_trigger(what, table, *_EXTRA[what])),
]
_WATCH_MYSQL = [
    *(_history_table(what, "bigint AUTO_INCREMENT PRIMARY KEY", _TOKENS if what == "job" else "") for what in _TABLES),
    *(_mysql_trigger(what, table, *_EXTRA[what]) for what, table in _TABLES.items()),
]
_UNWATCH_POSTGRESQL = [
    *(f"DROP TRIGGER IF EXISTS check_{what} ON {table}" for what, table in _TABLES.items()),
    *(f"DROP FUNCTION IF EXISTS check_{what}_move()" for what in _TABLES),
    *(f"DROP TABLE IF EXISTS checked_{what}_moves" for what in _TABLES),
]
_UNWATCH_MYSQL = [
    *(f"DROP TRIGGER IF EXISTS check_{what}" for what in _TABLES),
    *(f"DROP TABLE IF EXISTS checked_{what}_moves" for what in _TABLES),
]
