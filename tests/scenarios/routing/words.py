"""How each engine says what producers do: inserts of every shape, prepared transactions, waits, kills."""

from collections.abc import Sequence
from typing import Protocol

COLUMNS = "event_domain, event_type, correlation_id, payload"
TYPE = "order.paid"
EMPTY = "'{}'"


class Words(Protocol):
    """The part of a producer's language that differs between the engines."""

    copies: bool
    who_am_i: str
    prepared: str
    writers: str

    def begin(self, tag: str, *, to_prepare: bool) -> str: ...

    def prepare(self, tag: str) -> Sequence[str]: ...

    def finish(self, tag: str, verb: str) -> str: ...

    def insert_hung(self, domain: str, tag: str, wait: str, shape: int) -> str: ...

    def insert_ignored(self, domain: str, tag: str, external_id: str) -> str: ...

    def slept(self, seconds: float) -> str: ...

    def locked(self, key: int) -> str: ...

    def lock(self, key: int) -> str: ...

    def unlock(self, key: int) -> str: ...

    def is_waiting(self, key: int, backend: int) -> str: ...

    def kill(self, backend: int) -> str: ...

    def backends(self, login: str) -> str: ...

    def epoch(self, column: str) -> str: ...


def insert(domain: str, tag: str, rows: int) -> str:
    values = ", ".join([_values(domain, tag, EMPTY)] * rows)
    return f"INSERT INTO events ({COLUMNS}) VALUES {values} RETURNING id"


def insert_select(domain: str, tag: str, rows: int) -> str:
    return f"INSERT INTO events ({COLUMNS}) {_select(domain, tag, rows, EMPTY)} RETURNING id"


def insert_external(domain: str, tag: str, external_id: str) -> str:
    row = f"('{domain}', '{TYPE}', '{tag}', '{{}}', '{external_id}')"
    return f"INSERT INTO events ({COLUMNS}, external_id) VALUES {row} RETURNING id"


def _values(domain: str, tag: str, payload: str) -> str:
    return f"('{domain}', '{TYPE}', '{tag}', {payload})"


def _select(domain: str, tag: str, rows: int, payload: str) -> str:
    numbers = " UNION ALL ".join(f"SELECT {n} AS n" for n in range(1, rows + 1))
    return f"SELECT '{domain}', '{TYPE}', '{tag}', {payload} FROM ({numbers}) AS numbers"


class PostgresWords:
    copies = True
    who_am_i = "SELECT pg_backend_pid()"
    prepared = "SELECT gid FROM pg_prepared_xacts"
    writers = (
        "SELECT l.virtualtransaction, a.state, a.query FROM pg_locks l LEFT JOIN pg_stat_activity a USING (pid)"
        " WHERE l.relation = 'events'::regclass AND l.mode = 'RowExclusiveLock'"
    )

    def begin(self, tag: str, *, to_prepare: bool) -> str:
        return "BEGIN"

    def prepare(self, tag: str) -> Sequence[str]:
        return (f"PREPARE TRANSACTION '{tag}'",)

    def finish(self, tag: str, verb: str) -> str:
        return f"{verb} PREPARED '{tag}'"

    def insert_hung(self, domain: str, tag: str, wait: str, shape: int) -> str:
        # Of a single row the id is the first column to be made. In a SELECT the wait would come before any id.
        return f"INSERT INTO events ({COLUMNS}) VALUES {_values(domain, tag, wait)} RETURNING id"

    def insert_ignored(self, domain: str, tag: str, external_id: str) -> str:
        head, _, tail = insert_external(domain, tag, external_id).rpartition(" RETURNING ")
        return f"{head} ON CONFLICT DO NOTHING RETURNING {tail}"

    def slept(self, seconds: float) -> str:
        return f"('{{}}' || pg_sleep({seconds})::text)::json"

    def locked(self, key: int) -> str:
        return f"('{{}}' || pg_advisory_xact_lock_shared({key})::text)::json"

    def lock(self, key: int) -> str:
        return f"SELECT pg_advisory_lock({key})"

    def unlock(self, key: int) -> str:
        return f"SELECT pg_advisory_unlock({key})"

    def is_waiting(self, key: int, backend: int) -> str:
        return f"SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objid = {key}"

    def kill(self, backend: int) -> str:
        return f"SELECT pg_terminate_backend({backend})"

    def backends(self, login: str) -> str:
        return f"SELECT pid FROM pg_stat_activity WHERE usename = '{login}' ORDER BY pid"

    def epoch(self, column: str) -> str:
        return f"extract(epoch FROM {column})::float8"


class MariaDBWords:
    copies = False
    who_am_i = "SELECT CONNECTION_ID()"
    prepared = "XA RECOVER"
    writers = "SELECT id, state, info FROM information_schema.processlist"

    def begin(self, tag: str, *, to_prepare: bool) -> str:
        return f"XA START '{tag}'" if to_prepare else "BEGIN"

    def prepare(self, tag: str) -> Sequence[str]:
        return f"XA END '{tag}'", f"XA PREPARE '{tag}'"

    def finish(self, tag: str, verb: str) -> str:
        return f"XA {verb} '{tag}'"

    def insert_hung(self, domain: str, tag: str, wait: str, shape: int) -> str:
        # The first row reserves the ids of all; a SELECT reserves 1, 2, 4 … and holds up other inserts meanwhile.
        if shape % 3:
            rows = [_values(domain, tag, payload) for payload in (EMPTY, wait, EMPTY)]
            return f"INSERT INTO events ({COLUMNS}) VALUES {', '.join(rows)} RETURNING id"
        payload = f"IF(n = 4, {wait}, '{{}}')"
        return f"INSERT INTO events ({COLUMNS}) {_select(domain, tag, 6, payload)} RETURNING id"

    def insert_ignored(self, domain: str, tag: str, external_id: str) -> str:
        return insert_external(domain, tag, external_id).replace("INSERT", "INSERT IGNORE", 1)

    def slept(self, seconds: float) -> str:
        return f"IF(SLEEP({seconds}), '{{}}', '{{}}')"

    def locked(self, key: int) -> str:
        return f"IF(GET_LOCK('hang {key}', 30) + RELEASE_LOCK('hang {key}'), '{{}}', '{{}}')"

    def lock(self, key: int) -> str:
        return f"SELECT GET_LOCK('hang {key}', 0)"

    def unlock(self, key: int) -> str:
        return f"SELECT RELEASE_LOCK('hang {key}')"

    def is_waiting(self, key: int, backend: int) -> str:
        return f"SELECT 1 FROM information_schema.processlist WHERE id = {backend} AND state = 'User lock'"

    def kill(self, backend: int) -> str:
        return f"KILL {backend}"

    def backends(self, login: str) -> str:
        return f"SELECT id FROM information_schema.processlist WHERE user = '{login}' ORDER BY id"

    def epoch(self, column: str) -> str:
        return f"TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {column}) / 1e6"


WORDS: dict[str, Words] = {"postgresql": PostgresWords(), "mariadb": MariaDBWords()}
