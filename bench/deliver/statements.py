"""Where PostgreSQL's time goes: what each statement took during a block, by the server's own account, by our names."""

import pkgutil
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bench.showing import out, table
from tests.support.database import Database
from tests.support.sessions import connect
from tidings import roles
from tidings.db.dialect import POSTGRESQL
from tidings.db.statements import load_statements

_MOST = 25
_LONGEST_NAME = 60
HEADINGS = ("statement", "calls", "rows", "ms", "share", "ms each", "pages each", "log MB")
_ASK = f"""
    SELECT query, calls, rows, total_exec_time, shared_blks_hit + shared_blks_read, wal_bytes
      FROM pg_stat_statements ORDER BY total_exec_time DESC LIMIT {_MOST}
"""
# The server drops the comments that go before, among them our name, puts numbers in the place of constants, and writes
# only the first one of a list.
_COMMENTS = re.compile(r"--[^\n]*|/\*.*?\*/")
_VALUES = re.compile(r"'[^']*'|\$\d+|\{\d+\}|\b\d+\b")
_LISTS = re.compile(r"\?(, \?)* ?\)")


@asynccontextmanager
async def dearest(database: Database, title: str) -> AsyncIterator[None]:
    session = await connect(database.admin_url)
    await session.run("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
    await session.run("SELECT pg_stat_statements_reset()")
    try:
        yield
    finally:
        rows = await session.run(_ASK)
        await session.close()
    names = _names()
    whole = sum(float(row[3]) for row in rows) or 1
    shown = [
        (
            names.get(_bare(query), _bare(query)[:_LONGEST_NAME]),
            f"{calls:,}",
            f"{count:,}",
            f"{ms:,.0f}",
            f"{ms / whole:.0%}",
            f"{ms / max(1, calls):.2f}",
            f"{pages / max(1, calls):,.0f}",
            f"{float(wal) / 1e6:,.1f}",
        )
        for query, calls, count, ms, pages, wal in rows
    ]
    out.print(table(f"{title}: statements", HEADINGS, shown))


def _names() -> dict[str, str]:
    packages = [package.name for package in pkgutil.iter_modules(roles.__path__, "tidings.roles.") if package.ispkg]
    return {
        _bare(statement.text): statement.name
        for package in ("tidings.runtime", *packages)
        for statement in load_statements(package, POSTGRESQL).values()
    }


def _bare(text: str) -> str:
    text = " ".join(_VALUES.sub("?", _COMMENTS.sub("", text)).split())
    return _LISTS.sub("?)", text)
