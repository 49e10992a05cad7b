"""Takes all rows of an installation away, past the guards, by one session that can be kept for many tests.

Only tables that something was written to are truncated: that takes a few milliseconds for each, and there are forty.
"""

from collections.abc import Sequence
from typing import Any, Protocol, Self
from urllib.parse import urlsplit

import psycopg
import pymysql

_SECONDS_FOR_LOCKS = 30
_TOUCHED = {
    # A table that was ever written to has a page, and a number that was drawn is gone, whoever rolled back.
    "postgresql": """
        SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE n.nspname = %s AND c.relkind = 'r' AND (pg_relation_size(c.oid) > 0 OR EXISTS (
               SELECT 1 FROM pg_depend d JOIN pg_class s ON s.oid = d.objid
                WHERE d.refobjid = c.oid AND d.classid = 'pg_class'::regclass
                  AND CASE WHEN s.relkind = 'S' THEN pg_sequence_last_value(s.oid) IS NOT NULL END))""",
    "mysql": """
        SELECT table_name FROM information_schema.tables
         WHERE table_schema = %s AND auto_increment > 1""",
}


class Cursor(Protocol):
    def execute(self, text: str, arguments: Any = None) -> Any: ...
    def fetchall(self) -> Sequence[Any]: ...


class Emptier:
    """Connects when it is first needed."""

    def __init__(self, family: str, admin_url: str, schema: str, tables: Sequence[str]) -> None:
        self._family = family
        self._url = urlsplit(admin_url)
        self._schema = schema
        self._tables = set(tables)
        self._connection: Any = None

    def empty(self) -> None:
        try:
            self._empty()
        except (psycopg.OperationalError, pymysql.OperationalError, pymysql.InterfaceError):
            # The server was stopped or killed meanwhile. Not `pymysql.err.…`: Django's way loads a second `err`.
            self.close()
            self._empty()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.close()

    def _empty(self) -> None:
        if self._connection is None:
            self._connection = self._connect()
        with self._connection.cursor() as cursor:
            touched = sorted(self._tables & self._touched(cursor))
            if self._family == "postgresql":
                if touched:
                    cursor.execute(f"TRUNCATE {', '.join(touched)} RESTART IDENTITY")
            else:
                for table in touched:
                    cursor.execute(f"TRUNCATE {table}")

    def _touched(self, cursor: Cursor) -> set[str]:
        cursor.execute(_TOUCHED[self._family], (self._schema,))
        found = {row[0] for row in cursor.fetchall()}
        if self._family == "mysql":
            # What has no numbers.
            rest = sorted(self._tables - found)
            cursor.execute(" UNION ALL ".join(f"(SELECT '{name}' FROM {name} LIMIT 1)" for name in rest))
            found |= {row[0] for row in cursor.fetchall()}
        return found

    def _connect(self) -> Any:
        if self._family == "postgresql":
            made = psycopg.connect(self._url.geturl(), autocommit=True, application_name="tests.emptying")
            made.execute(f"SET session_replication_role = replica; SET lock_timeout = '{_SECONDS_FOR_LOCKS}s';")
            made.execute(f"SET search_path = {self._schema}")
            return made
        made = pymysql.connect(
            host=self._url.hostname,
            port=self._url.port,
            user=self._url.username,
            password=self._url.password or "",
            database=self._schema,
            autocommit=True,
        )
        with made.cursor() as cursor:
            cursor.execute(f"SET FOREIGN_KEY_CHECKS = 0, lock_wait_timeout = {_SECONDS_FOR_LOCKS}")
        return made
