"""Sessions that stand in the product's way: one that ends another's, one that locks rows the other way round."""

import threading
from typing import Any
from urllib.parse import unquote, urlsplit

import psycopg
import pymysql

BALLAST = 500
ENOUGH, MOST_LOOKS, MOST_TRIES = 6, 50, 4
# Long enough that somebody waits for us, shorter than the second after which PostgreSQL looks for deadlocks.
STANDING, RESTING = 0.6, 0.7


def end_a_session(url: str, chance: float) -> None:
    """One session of the product, wherever it is, as an administrator would."""
    connection = _connect(url)
    try:
        with connection.cursor() as cursor:
            if _is_postgresql(url):
                cursor.execute("SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'tidings %' ORDER BY pid")
                found = [row[0] for row in cursor.fetchall()]
                if found:
                    cursor.execute(f"SELECT pg_terminate_backend({found[int(chance * len(found))]})")
            else:
                cursor.execute("SELECT id FROM information_schema.processlist WHERE user LIKE 'tidings%' ORDER BY id")
                found = [row[0] for row in cursor.fetchall()]
                if found:
                    cursor.execute(f"KILL {found[int(chance * len(found))]}")
    except (psycopg.Error, pymysql.MySQLError):
        pass  # it was gone, or the server is
    finally:
        connection.close()


def cross(url: str, schema: str) -> None:
    """Stands in the way until somebody was in a circle with us, and lost: the product must run its step again."""
    before = _deadlocks(url)
    for _ in range(MOST_TRIES):
        if _cross_once(url, schema) and _deadlocks(url) > before:
            return
        before = _deadlocks(url)
        # Whoever waited for us must be able to report before its leases end.
        threading.Event().wait(RESTING)


def _cross_once(url: str, schema: str) -> bool:
    """Locks the later half of the leased jobs, waits, and then wants the others, which whoever reports both may have.

    Whether we got everything; otherwise it was us who lost, or the server is away.
    """
    try:
        connection = _connect(url, schema)
    except (psycopg.Error, pymysql.MySQLError):
        return False
    try:
        with connection.cursor() as cursor:
            _be_heavy(cursor, _is_postgresql(url))
            leased = _leased(cursor)
            middle = len(leased) // 2
            _lock(cursor, leased[middle:])
            threading.Event().wait(STANDING)
            _lock(cursor, leased[:middle])
        connection.rollback()
        return bool(leased)
    except (psycopg.Error, pymysql.MySQLError):
        return False
    finally:
        connection.close()


def _lock(cursor: Any, ids: list[int]) -> None:
    if ids:
        listed = ", ".join(map(str, ids))
        cursor.execute(f"SELECT id FROM webhook_delivery_jobs WHERE id IN ({listed}) ORDER BY id FOR UPDATE")
        cursor.fetchall()


def _be_heavy(cursor: Any, is_postgresql: bool) -> None:
    """PostgreSQL ends whoever looks for circles first, InnoDB whoever has changed less."""
    if is_postgresql:
        cursor.execute("SET deadlock_timeout = '10s'")
        cursor.execute("SET lock_timeout = '2s'")
        return
    cursor.execute("SET innodb_lock_wait_timeout = 2")
    cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
    cursor.execute("CREATE TABLE IF NOT EXISTS chaos_ballast (n int)")
    cursor.execute("START TRANSACTION")
    cursor.executemany("INSERT INTO chaos_ballast VALUES (%s)", [(n,) for n in range(BALLAST)])


def _deadlocks(url: str) -> int:
    """How many the server has seen, of whomever."""
    try:
        connection = _connect(url)
    except (psycopg.Error, pymysql.MySQLError):
        return 0
    try:
        with connection.cursor() as cursor:
            if _is_postgresql(url):
                cursor.execute("SELECT sum(deadlocks) FROM pg_stat_database")
            else:
                cursor.execute(
                    "SELECT variable_value FROM information_schema.global_status"
                    " WHERE variable_name = 'INNODB_DEADLOCKS'"
                )
            return int((cursor.fetchone() or (0,))[0] or 0)
    except (psycopg.Error, pymysql.MySQLError):
        return 0
    finally:
        connection.close()


def _leased(cursor: Any) -> list[int]:
    """Of several jobs, as soon as there are so many."""
    leased: list[int] = []
    for _ in range(MOST_LOOKS):
        cursor.execute("SELECT id FROM webhook_delivery_jobs WHERE status = 'Leased' ORDER BY id")
        leased = [row[0] for row in cursor.fetchall()]
        if len(leased) >= ENOUGH:
            break
        threading.Event().wait(0.02)
    return leased


def _is_postgresql(url: str) -> bool:
    return urlsplit(url).scheme == "postgresql"


def _connect(url: str, schema: str = "") -> Any:
    if _is_postgresql(url):
        return psycopg.connect(url, connect_timeout=5, options=f"-c search_path={schema}" if schema else "")
    parts = urlsplit(url)
    return pymysql.connect(
        host=parts.hostname,
        port=parts.port or 3306,
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        database=schema or None,
        connect_timeout=5,
        ssl_disabled=True,
    )
