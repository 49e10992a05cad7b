"""Sessions that stand in the product's way: one that ends another's, one that locks rows the other way round."""

import os
import signal
import threading
from contextlib import closing, suppress
from typing import Any
from urllib.parse import unquote, urlsplit

import psycopg
import pymysql

from tests.support.waiting import wait_until

ERRORS = (psycopg.Error, pymysql.MySQLError)
BALLAST = 500
ENOUGH, MOST_LOOKS, MOST_TRIES = 6, 50, 4
# Long enough that somebody waits for us, shorter than the second after which PostgreSQL looks for deadlocks.
STANDING, RESTING = 0.6, 0.7


def end_a_session(url: str, chance: float) -> None:
    """One session of the product, wherever it is, as an administrator would."""
    end = "SELECT pg_terminate_backend({})" if _is_postgresql(url) else "KILL {}"
    # Where it is gone by then, or the server is, there is nothing to end.
    with suppress(*ERRORS), closing(_connect(url)) as connection:
        cursor = connection.cursor()
        if found := _sessions(cursor, _is_postgresql(url)):
            cursor.execute(end.format(found[int(chance * len(found))]))


def kill_a_backend(url: str, chance: float) -> None:
    """SIGKILL for one process of PostgreSQL, which then ends all others and recovers; returns when it has."""
    with suppress(psycopg.Error, ProcessLookupError), closing(_connect(url)) as connection:
        cursor = connection.cursor()
        found = _sessions(cursor, True)
        if not found:
            return
        os.kill(found[int(chance * len(found))], signal.SIGKILL)
        # Ours is ended, too: until then it is the old server that answers.
        while True:
            cursor.execute("SELECT 1")
            threading.Event().wait(0.01)
    wait_until(lambda: _answers(url), 60, "the server to recover")


def _sessions(cursor: Any, is_postgresql: bool) -> list[int]:
    cursor.execute(
        "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'tidings %' ORDER BY pid"
        if is_postgresql
        else "SELECT id FROM information_schema.processlist WHERE user LIKE 'tidings%' ORDER BY id"
    )
    return [row[0] for row in cursor.fetchall()]


def _answers(url: str) -> bool:
    try:
        _connect(url).close()
    except psycopg.Error:
        return False
    return True


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
    with suppress(*ERRORS), closing(_connect(url, schema)) as connection:
        cursor = connection.cursor()
        _be_heavy(cursor, _is_postgresql(url))
        leased = _leased(cursor)
        middle = len(leased) // 2
        _lock(cursor, leased[middle:])
        threading.Event().wait(STANDING)
        _lock(cursor, leased[:middle])
        connection.rollback()
        return bool(leased)
    return False


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
    with suppress(*ERRORS), closing(_connect(url)) as connection:
        cursor = connection.cursor()
        cursor.execute(
            "SELECT sum(deadlocks) FROM pg_stat_database"
            if _is_postgresql(url)
            else "SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'INNODB_DEADLOCKS'"
        )
        return int((cursor.fetchone() or (0,))[0] or 0)
    return 0


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
