"""A history of every row that matters, kept by triggers of the checker, in the very transactions that change them."""

from dataclasses import dataclass

COLUMNS = (
    "what, op, row_id, parent_id, peer_id, old_status, new_status, old_token, new_token, number, place, worker, note,"
    " answer, until_at, at"
)


@dataclass(frozen=True)
class Watched:
    """Which columns of a table go into the history; `when` limits the updates that do, `ops` what is watched at all."""

    table: str
    parent: str = "NULL"
    peer: str = "NULL"
    status: str = "NULL"
    token: str = "NULL"
    number: str = "NULL"
    place: str = "NULL"
    worker: str = "NULL"
    note: str = "NULL"
    answer: str = "NULL"
    until: str = "NULL"
    id: str = "id"
    when: str = ""
    ops: str = "IUD"


WATCHED = {
    "event": Watched("events", note="correlation_id", ops="ID"),
    "saga": Watched(
        "webhook_delivery_sagas",
        parent="event_id",
        peer="subscription_id",
        status="status",
        number="attempt_count",
        place="generation",
        note="final_error_code",
        until="next_attempt_at",
    ),
    "job": Watched(
        "webhook_delivery_jobs",
        parent="saga_id",
        peer="subscription_id",
        status="status",
        token="lease_token",
        number="lease_resets",
        place="attempt_no",
        worker="worker_id",
        note="error_code",
        answer="response_status",
        until="lease_until",
    ),
    "letter": Watched("dead_letters", parent="saga_id", peer="subscription_id", ops="ID"),
    "task": Watched(
        "sys_pending_tasks",
        status="status",
        token="version",
        number="retry_count",
        place="max_retries",
        worker="worker_id",
        note="result_msg",
        when="OLD.version <> NEW.version OR OLD.status <> NEW.status",
    ),
    "archived": Watched(
        "sys_pending_tasks_history", status="status", token="version", number="retry_count", note="biz_key", ops="ID"
    ),
    "check": Watched("endpoint_checks", peer="subscription_id", status="outcome", note="challenge"),
    "lane": Watched("delivery_lanes", token="window_size", number="failures", id="subscription_id", ops="U"),
}
OPS = {"I": "INSERT", "U": "UPDATE", "D": "DELETE"}


def watch(is_postgresql: bool) -> list[str]:
    moment = "timestamptz" if is_postgresql else "datetime(6)"
    identity = "GENERATED ALWAYS AS IDENTITY" if is_postgresql else "AUTO_INCREMENT"
    table = (
        f"CREATE TABLE chaos_history (id bigint {identity} PRIMARY KEY, what varchar(10) NOT NULL, op char(1) NOT NULL,"
        " row_id bigint, parent_id bigint, peer_id bigint, old_status varchar(20), new_status varchar(20),"
        " old_token bigint, new_token bigint, number bigint, place bigint, worker varchar(200), note varchar(200),"
        f" answer int, until_at {moment}, at {moment} NOT NULL)"
    )
    make = _postgresql if is_postgresql else _mysql
    return [table, *(text for what, one in WATCHED.items() for text in make(what, one))]


def unwatch(is_postgresql: bool) -> list[str]:
    names = [(f"chaos_{what}_{op.lower()}", one.table) for what, one in WATCHED.items() for op in one.ops]
    dropped = [f"DROP TRIGGER IF EXISTS {name}{f' ON {table}' if is_postgresql else ''}" for name, table in names]
    functions = [f"DROP FUNCTION IF EXISTS {name}()" for name, _ in names] if is_postgresql else []
    return [*dropped, *functions, "DROP TABLE IF EXISTS chaos_history"]


def _insert(what: str, op: str, one: Watched, now: str, cut: str) -> str:
    def of(side: str, column: str) -> str:
        return "NULL" if column == "NULL" or (side, op) in (("OLD", "I"), ("NEW", "D")) else f"{side}.{column}"

    def either(column: str) -> str:
        return of("OLD" if op == "D" else "NEW", column)

    # Who loses a lease is known by the old row, who gets one by the new one.
    worker = f"COALESCE({of('NEW', one.worker)}, {of('OLD', one.worker)})" if one.worker != "NULL" else "NULL"
    note = "NULL" if one.note == "NULL" else cut.format(either(one.note))
    values = [
        f"'{what}'",
        f"'{op}'",
        either(one.id),
        either(one.parent),
        either(one.peer),
        of("OLD", one.status),
        of("NEW", one.status),
        of("OLD", one.token),
        of("NEW", one.token),
        either(one.number),
        either(one.place),
        worker,
        note,
        either(one.answer),
        of("OLD", one.until),
        now,
    ]
    return f"INSERT INTO chaos_history ({COLUMNS}) VALUES ({', '.join(values)})"


def _postgresql(what: str, one: Watched) -> list[str]:
    texts = []
    for op in one.ops:
        name = f"chaos_{what}_{op.lower()}"
        insert = _insert(what, op, one, "statement_timestamp()", "left({}, 200)")
        when = f" WHEN ({one.when})" if one.when and op == "U" else ""
        texts += [
            f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT"
            f" AS $$ BEGIN {insert}; RETURN NULL; END $$",
            f"CREATE TRIGGER {name} AFTER {OPS[op]} ON {one.table} FOR EACH ROW{when} EXECUTE FUNCTION {name}()",
        ]
    return texts


def _mysql(what: str, one: Watched) -> list[str]:
    texts = []
    for op in one.ops:
        insert = _insert(what, op, one, "UTC_TIMESTAMP(6)", "LEFT({}, 200)")
        body = f"IF {one.when} THEN {insert}; END IF" if one.when and op == "U" else insert
        name = f"chaos_{what}_{op.lower()}"
        texts.append(f"CREATE TRIGGER {name} AFTER {OPS[op]} ON {one.table} FOR EACH ROW {body}")
    return texts
