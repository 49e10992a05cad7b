"""Transactions, steps and sessions keep the same promises on both engines, whatever the server and the network do."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.db.statement_files.operations import ClerkOperations
from tests.db.statement_files.shelf import Shelf, ask, do, opened_shelf
from tests.support.database import SERVERS, Database
from tests.support.fault_proxy import CUT, Fault, FaultProxy
from tests.support.ports import ReservedPort
from tests.support.server_process import PASSWORD
from tests.support.waiting import eventually
from tidings.db import engine as engine_module
from tidings.db import mysql, postgresql
from tidings.db.engine import Engine, open_engine
from tidings.db.names import Names
from tidings.db.transaction import Transaction
from tidings.errors import (
    DatabaseUrlInvalid,
    DuplicateRow,
    LoginRefused,
    OutcomeUnknown,
    SchemaError,
    ServerUnreachable,
    ServerUnsuitable,
    StatementFailed,
    TransientFailure,
)
from tidings.telemetry.notices import Notice, ServerAwaited, StepRetried

pytestmark = pytest.mark.slow

shelf = pytest.fixture(opened_shelf)


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps that fail on purpose need not wait before they are run again."""
    monkeypatch.setattr(engine_module, "_FIRST_PAUSE", 0.001)


def clerk_of(transaction: Transaction, engine: Engine) -> ClerkOperations:
    return ClerkOperations(transaction, engine.dialect)


async def insert(transaction: Transaction, id: int) -> None:
    await transaction.command(f"INSERT INTO orders (id, amount) VALUES ({id}, 1)")


async def stored(shelf: Shelf) -> list[int]:
    return [row["id"] for row in await shelf.sql("SELECT id FROM orders ORDER BY id")]


# --- the session -----------------------------------------------------------------------------------------------------

DEFAULT_ISOLATION = {
    "postgresql": "ALTER ROLE postgres SET default_transaction_isolation = '{}'",
    "mysql": "SET GLOBAL TRANSACTION ISOLATION LEVEL {}",
}


@asynccontextmanager
async def server_default(shelf: Shelf, level: str) -> AsyncIterator[None]:
    await shelf.sql(DEFAULT_ISOLATION[shelf.family].format(level))
    try:
        yield
    finally:
        usual = "READ COMMITTED" if shelf.family == "postgresql" else "REPEATABLE READ"
        await shelf.sql(DEFAULT_ISOLATION[shelf.family].format(usual))


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE", "READ UNCOMMITTED"])
async def test_every_transaction_is_read_committed_whatever_the_server_prefers(shelf: Shelf, level: str) -> None:
    async with server_default(shelf, level):
        clerk = await shelf.clerk()
        async with clerk.transaction() as reader:
            (settings,) = await clerk_of(reader, clerk).ask("settings")
            assert settings["isolation"] == "read committed"
            assert len(await clerk_of(reader, clerk).ask("open_orders")) == 0
            async with clerk.transaction() as writer:
                await insert(writer, 1)
                assert len(await clerk_of(reader, clerk).ask("kept_among", ids=[1])) == 0
            assert len(await clerk_of(reader, clerk).ask("open_orders")) == 1


async def test_a_session_is_in_utc_whatever_the_server_prefers(shelf: Shelf) -> None:
    (settings,) = await ask(await shelf.clerk(), "settings")
    assert settings["zone"] in ("UTC", "+00:00")


async def test_an_update_that_changes_nothing_reports_the_rows_it_matched(shelf: Shelf) -> None:
    clerk = await shelf.clerk()
    await shelf.sql("INSERT INTO keepsakes (id, words) VALUES (1, 'same')")
    assert await do(clerk, "renamed", id=1) == 1
    assert await do(clerk, "renamed", id=2) == 0


@pytest.mark.parametrize("value", ["'too long for ten'", "NULL"])
async def test_a_value_that_does_not_fit_is_an_error_not_another_value(shelf: Shelf, value: str) -> None:
    clerk = await shelf.clerk()
    text = f"INSERT INTO orders (id, amount, status) VALUES (1, 1, {value})"
    with pytest.raises(StatementFailed):
        await clerk.step(lambda transaction: transaction.command(text))
    assert await stored(shelf) == []


# --- transactions ----------------------------------------------------------------------------------------------------


async def test_a_transaction_commits_at_its_end_and_not_before(shelf: Shelf) -> None:
    clerk = await shelf.clerk()
    async with clerk.transaction() as transaction:
        await insert(transaction, 1)
        await insert(transaction, 2)
        assert await stored(shelf) == []
    assert await stored(shelf) == [1, 2]


async def test_an_exception_undoes_all_and_leaves_the_session_usable(shelf: Shelf) -> None:
    clerk = await shelf.clerk(size=1)
    (before,) = await ask(clerk, "session_id")

    async def work(transaction: Transaction) -> None:
        await insert(transaction, 1)
        raise LookupError("a mistake of ours")

    with pytest.raises(LookupError):
        await clerk.step(work)
    assert await stored(shelf) == []
    (after,) = await ask(clerk, "session_id")
    assert after["id"] == before["id"]
    await clerk.step(lambda transaction: insert(transaction, 1))
    assert await stored(shelf) == [1]


async def test_a_savepoint_undoes_its_own_part_only(shelf: Shelf) -> None:
    clerk = await shelf.clerk()
    async with clerk.transaction() as transaction:
        await insert(transaction, 1)
        with pytest.raises(StatementFailed):
            await insert_in_savepoint(transaction, 2, 1)
        with pytest.raises(LookupError):
            await insert_in_savepoint(transaction, 3, inside=mistaken)
        await insert_in_savepoint(transaction, 5, inside=insert_again)
        await insert(transaction, 6)
    assert await stored(shelf) == [1, 5, 6]


async def insert_in_savepoint(transaction: Transaction, *ids: int, inside: Any = None) -> None:
    async with transaction.savepoint():
        for id in ids:
            await insert(transaction, id)
        if inside is not None:
            await inside(transaction)


async def mistaken(transaction: Transaction) -> None:
    await insert_in_savepoint(transaction, 4)
    raise LookupError("a mistake of ours")


async def insert_again(transaction: Transaction) -> None:
    with pytest.raises(StatementFailed):
        await insert_in_savepoint(transaction, 5)


async def test_a_failure_that_was_swallowed_is_never_committed(shelf: Shelf) -> None:
    """PostgreSQL would answer COMMIT with a silent rollback, MariaDB would commit the rest."""
    clerk = await shelf.clerk()
    attempts = 0

    async def work(transaction: Transaction) -> None:
        nonlocal attempts
        attempts += 1
        await insert(transaction, 1)
        for _ in range(2):
            with pytest.raises(StatementFailed, match=r"(?i)duplicate"):
                await insert(transaction, 1)

    with pytest.raises(StatementFailed, match=r"(?i)duplicate"):
        await clerk.step(work)
    assert (attempts, await stored(shelf)) == (1, [])


async def test_a_failure_that_was_swallowed_in_a_savepoint_undoes_the_savepoint(shelf: Shelf) -> None:
    clerk = await shelf.clerk()
    async with clerk.transaction() as transaction:
        await insert(transaction, 1)
        with pytest.raises(StatementFailed):
            await swallowing(transaction)
    assert await stored(shelf) == [1]


async def swallowing(transaction: Transaction) -> None:
    async with transaction.savepoint():
        await insert(transaction, 2)
        with pytest.raises(StatementFailed):
            await insert(transaction, 2)


async def test_a_cancelled_transaction_leaves_nothing_behind_and_a_usable_engine(shelf: Shelf) -> None:
    clerk = await shelf.clerk(size=1)

    async def work(transaction: Transaction) -> None:
        await insert(transaction, 1)
        await clerk_of(transaction, clerk).ask("dawdle", seconds=3)

    step = asyncio.create_task(clerk.step(work))
    await eventually(lambda: running(shelf, "dawdle"), what="the slow statement to run")
    step.cancel()
    with pytest.raises(asyncio.CancelledError):
        await step
    assert await stored(shelf) == []
    assert await do(clerk, "add_to_till", amount=1) == 1
    await eventually(lambda: gone(shelf, "dawdle"), what="the server to end what nobody waits for")
    assert await stored(shelf) == []


async def running(shelf: Shelf, statement: str) -> bool:
    text = {
        "postgresql": "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%files.{} %'"
        " AND pid <> pg_backend_pid()",
        "mysql": "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE '%files.{} %'"
        " AND id <> CONNECTION_ID()",
    }[shelf.family]
    return bool(await shelf.value(text.format(statement)))


async def gone(shelf: Shelf, statement: str) -> bool:
    return not await running(shelf, statement)


async def test_a_cancelled_wait_for_a_session_costs_no_session(shelf: Shelf) -> None:
    clerk = await shelf.clerk(size=1)
    async with clerk.transaction():
        waiting = asyncio.create_task(ask(clerk, "session_id"))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert await ask(clerk, "session_id")


async def test_an_engine_never_has_more_sessions_than_its_size(shelf: Shelf) -> None:
    clerk = await shelf.clerk(size=3)
    together = most = 0

    async def work(transaction: Transaction) -> int:
        nonlocal together, most
        together += 1
        most = max(most, together)
        (row,) = await clerk_of(transaction, clerk).ask("session_id")
        await clerk_of(transaction, clerk).ask("dawdle", seconds=0.01)
        together -= 1
        return int(row["id"])

    sessions = await asyncio.gather(*(clerk.step(work) for _ in range(20)))
    assert (len(set(sessions)), most) == (3, 3)


async def test_a_session_that_is_in_use_when_the_engine_closes_is_closed_when_it_comes_back(shelf: Shelf) -> None:
    clerk = await shelf.clerk()
    async with clerk.transaction() as transaction:
        (row,) = await clerk_of(transaction, clerk).ask("session_id")
        await insert(transaction, 1)
        await clerk.close()
    assert await stored(shelf) == [1]
    await eventually(lambda: ended(shelf, row["id"]), what="the session to end")


async def ended(shelf: Shelf, id: int) -> bool:
    sessions = {"postgresql": "pg_stat_activity WHERE pid", "mysql": "information_schema.processlist WHERE id"}
    return not await shelf.value(f"SELECT COUNT(*) FROM {sessions[shelf.family]} = {id}")


# --- steps that are run again ----------------------------------------------------------------------------------------


async def crossing(shelf: Shelf, lock: Callable[[Transaction, int], Any]) -> tuple[list[int], Engine]:
    """Two steps that lock two orders in opposite order, and meet in between on their first attempt."""
    clerk = await shelf.clerk()
    await shelf.sql("INSERT INTO orders (id, amount) VALUES (1, 0), (2, 0)")
    met = asyncio.Barrier(2)
    attempts = [0, 0]

    async def work(transaction: Transaction, which: int) -> int:
        attempts[which] += 1
        await insert(transaction, 10 + which)
        await lock(transaction, (1, 2)[which])
        if attempts[which] == 1:
            await met.wait()
        await lock(transaction, (2, 1)[which])
        return which

    steps = [clerk.step(partial(work, which=which)) for which in (0, 1)]
    assert await asyncio.gather(*steps) == [0, 1]
    return attempts, clerk


async def earn(transaction: Transaction, id: int) -> None:
    await transaction.command(f"UPDATE orders SET amount = amount + 1 WHERE id = {id}")


async def earn_in_savepoint(transaction: Transaction, id: int) -> None:
    async with transaction.savepoint():
        await earn(transaction, id)


@pytest.mark.parametrize("lock", [earn, earn_in_savepoint])
async def test_two_steps_in_a_deadlock_both_succeed_and_each_counts_once(
    shelf: Shelf, told: list[Notice], lock: Callable[[Transaction, int], Any]
) -> None:
    """One is chosen as the victim and run again, all of it, also when the deadlock came inside a savepoint."""
    attempts, _ = await crossing(shelf, lock)
    assert sorted(attempts) == [1, 2]
    assert [type(notice) for notice in told] == [StepRetried]
    rows = await shelf.sql("SELECT id, amount FROM orders ORDER BY id")
    assert [tuple(row.values()) for row in rows] == [(1, 2), (2, 2), (10, 1), (11, 1)]


async def test_a_lock_wait_timeout_undoes_the_whole_step_and_runs_it_again(shelf: Shelf, told: list[Notice]) -> None:
    """MariaDB undoes only the statement that timed out; what came before it must not be committed."""
    clerk = await shelf.clerk()
    await shelf.sql("INSERT INTO orders (id, amount) VALUES (1, 0)")
    attempts = 0

    async def work(transaction: Transaction) -> None:
        nonlocal attempts
        attempts += 1
        await insert(transaction, 10 + attempts)
        await clerk_of(transaction, clerk).do("wait_briefly")
        await earn(transaction, 1)

    async with clerk.transaction() as holder:
        await earn(holder, 1)
        step = asyncio.create_task(clerk.step(work))
        await eventually(lambda: told, what="the step to be run again")
    await step
    assert await stored(shelf) == [1, 10 + attempts]
    assert attempts > 1
    assert await shelf.value("SELECT amount FROM orders WHERE id = 1") == 2


RAISED = {
    "postgresql": "DO $$ BEGIN RAISE SQLSTATE '{}' USING MESSAGE = 'on purpose'; END $$",
    "mysql": "SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = {}, MESSAGE_TEXT = 'on purpose'",
}
TRANSIENT: dict[str, tuple[str | int, ...]] = {
    "postgresql": ("40001", "40P01", "55P03", "57P01", "57P02", "57P03", "53300", "25006", "08006"),
    "mysql": (1205, 1213, 1020, 1040, 1203, 1290, 1792, 1053, 1927, 1158),
}
LASTING: dict[str, tuple[str | int, ...]] = {
    "postgresql": ("23505", "42501", "42P01", "22001", "P0001", "57014", "XX000"),
    "mysql": (1062, 1142, 1146, 1406, 1644, 1969, 4025),
}


async def test_which_errors_run_a_step_again_and_which_do_not(shelf: Shelf) -> None:
    clerk = await shelf.clerk()
    for code in TRANSIENT[shelf.family]:
        with pytest.raises(TransientFailure, match="on purpose"):
            async with clerk.transaction() as transaction:
                await transaction.command(RAISED[shelf.family].format(code))
    for code in LASTING[shelf.family]:
        with pytest.raises(StatementFailed, match="on purpose") as failure:
            async with clerk.transaction() as transaction:
                await transaction.command(RAISED[shelf.family].format(code))
        assert failure.value.code == str(code)


async def test_a_step_that_always_fails_gives_up_after_a_bounded_number_of_attempts(
    shelf: Shelf, told: list[Notice], hurried: None
) -> None:
    clerk = await shelf.clerk()
    attempts = 0

    async def work(transaction: Transaction) -> None:
        nonlocal attempts
        attempts += 1
        await insert(transaction, 1)
        await transaction.command(RAISED[shelf.family].format({"postgresql": "40001", "mysql": 1213}[shelf.family]))

    with pytest.raises(TransientFailure, match="on purpose"):
        await clerk.step(work)
    assert attempts == 6
    assert [(notice.step, notice.attempt) for notice in told if isinstance(notice, StepRetried)] == [
        ("clerk", attempt) for attempt in range(1, 6)
    ]
    assert await stored(shelf) == []


async def test_an_error_that_is_not_transient_is_raised_at_once(shelf: Shelf, told: list[Notice]) -> None:
    clerk = await shelf.clerk()
    attempts = 0

    async def work(transaction: Transaction) -> None:
        nonlocal attempts
        attempts += 1
        await insert(transaction, 1)
        await insert(transaction, 1)

    with pytest.raises(DuplicateRow) as failure:
        await clerk.step(work)
    assert (attempts, told) == (1, [])
    assert failure.value.code == {"postgresql": "23505", "mysql": "1062"}[shelf.family]


async def test_a_migration_under_a_running_engine_is_not_an_error(shelf: Shelf) -> None:
    clerk = await shelf.clerk(size=1)
    await shelf.sql("INSERT INTO keepsakes (id) VALUES (1)")
    assert "extra" not in dict((await ask(clerk, "kept", id=1))[0])
    await shelf.sql("ALTER TABLE keepsakes ADD COLUMN extra int")
    assert "extra" in dict((await ask(clerk, "kept", id=1))[0])


# --- connections that are lost ---------------------------------------------------------------------------------------


@pytest.fixture
def proxy(shelf: Shelf) -> Iterator[FaultProxy]:
    with FaultProxy(shelf.server.port, shelf.kind) as proxy:
        yield proxy


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_connection_lost_in_commit_is_an_unknown_outcome(shelf: Shelf, proxy: FaultProxy, when: Any) -> None:
    clerk = await shelf.clerk(proxy.url(shelf.admin_url))
    proxy.arm(Fault("clerk.commit", CUT, when))
    with pytest.raises(OutcomeUnknown, match="lost in COMMIT"):
        async with clerk.transaction() as transaction:
            await insert(transaction, 1)
    assert await stored(shelf) == {"before": [], "after": [1]}[when]
    async with clerk.transaction() as transaction:
        await insert(transaction, 2)
    assert 2 in await stored(shelf)
    await shelf.close()


async def test_a_step_whose_commit_is_lost_is_run_again(
    shelf: Shelf, proxy: FaultProxy, told: list[Notice], hurried: None
) -> None:
    clerk = await shelf.clerk(proxy.url(shelf.admin_url))
    proxy.arm(Fault("clerk.commit", CUT))
    await clerk.step(lambda transaction: insert(transaction, 1))
    assert await stored(shelf) == [1]
    assert len(told) == 1
    await shelf.close()


async def test_a_connection_lost_elsewhere_is_transient_and_not_an_unknown_outcome(
    shelf: Shelf, proxy: FaultProxy
) -> None:
    clerk = await shelf.clerk(proxy.url(shelf.admin_url))
    proxy.arm(Fault("statement_files.add_to_till", CUT, "after"))
    with pytest.raises(TransientFailure) as failure:
        async with clerk.transaction() as transaction:
            await clerk_of(transaction, clerk).do("add_to_till", amount=1)
    assert not isinstance(failure.value, OutcomeUnknown)
    assert await shelf.value("SELECT total FROM till") == 0
    await shelf.close()


async def end_session(shelf: Shelf, id: int) -> None:
    text = {"postgresql": f"SELECT pg_terminate_backend({id}, 5000)", "mysql": f"KILL {id}"}[shelf.family]
    await shelf.sql(text)
    await eventually(lambda: ended(shelf, id), what="the session to end")


async def test_sessions_that_were_ended_while_idle_are_replaced_without_an_error(
    shelf: Shelf, told: list[Notice]
) -> None:
    clerk = await shelf.clerk(size=2)
    async with clerk.transaction() as one, clerk.transaction() as two:
        ids = [(await clerk_of(each, clerk).ask("session_id"))[0]["id"] for each in (one, two)]
    for id in ids:
        await end_session(shelf, id)
    async with clerk.transaction() as transaction:
        await insert(transaction, 1)
    assert (await stored(shelf), told) == ([1], [])


async def test_a_session_that_is_ended_in_the_middle_runs_the_step_again(
    shelf: Shelf, told: list[Notice], hurried: None
) -> None:
    clerk = await shelf.clerk(size=1)
    attempts = 0

    async def work(transaction: Transaction) -> None:
        nonlocal attempts
        attempts += 1
        await insert(transaction, 10 + attempts)
        if attempts == 1:
            (row,) = await clerk_of(transaction, clerk).ask("session_id")
            await end_session(shelf, row["id"])
        await insert(transaction, 1)

    await clerk.step(work)
    assert (attempts, len(told), await stored(shelf)) == (2, 1, [1, 12])


async def test_an_engine_works_again_by_itself_after_its_server_was_restarted(
    engine_kind: str, told: list[Notice]
) -> None:
    with SERVERS[engine_kind]() as server:
        shelf = Shelf(server)
        await shelf.make()
        clerk = await shelf.clerk(size=2, patience=60)
        async with clerk.transaction() as one, clerk.transaction() as two:
            await insert(one, 1)
            await insert(two, 2)
        server.kill()
        step = asyncio.create_task(clerk.step(lambda transaction: insert(transaction, 3)))
        await eventually(lambda: any(isinstance(notice, ServerAwaited) for notice in told))
        await asyncio.to_thread(server.start)
        await step
        assert await stored(shelf) == [1, 2, 3]
        server.stop()
        await shelf.close()


# --- the way in ------------------------------------------------------------------------------------------------------


async def test_an_unreachable_server_is_tried_for_as_long_as_patience_lasts(
    engine_kind: str, told: list[Notice]
) -> None:
    port = ReservedPort()
    family = {"postgresql": "postgresql", "mariadb": "mysql"}[engine_kind]
    started = time.monotonic()
    with pytest.raises(ServerUnreachable, match=r"\(tried for \d+ s\)") as failure:
        await open_engine(f"{family}://u:secret@127.0.0.1:{port.number}/d", owner="clerk", names=Names(), patience=1.5)
    port.release()
    assert time.monotonic() - started >= 1.5
    assert f"127.0.0.1:{port.number}" in failure.value.what
    assert f"127.0.0.1:{port.number}" in failure.value.remedy
    assert "secret" not in str(failure.value)
    awaited = [notice for notice in told if isinstance(notice, ServerAwaited)]
    assert len(awaited) >= 3
    assert [notice.waited_seconds for notice in awaited] == sorted(notice.waited_seconds for notice in awaited)
    assert all("secret" not in f"{notice}" for notice in awaited)


async def test_a_server_that_comes_in_time_is_found(shelf: Shelf, proxy: FaultProxy, told: list[Notice]) -> None:
    proxy.refuse_connections(True)
    opening = asyncio.create_task(shelf.clerk(proxy.url(shelf.admin_url), patience=30))
    await eventually(lambda: told, what="the first attempt to fail")
    proxy.refuse_connections(False)
    assert await ask(await opening, "session_id")
    await shelf.close()


async def refused_way_in(url: str, schema: str = "", group: str = "") -> Exception:
    with pytest.raises((LoginRefused, SchemaError, ServerUnreachable, DatabaseUrlInvalid)) as failure:
        await open_engine(url, owner="clerk", names=Names(), schema=schema, group=group)
    assert failure.value.remedy
    assert PASSWORD not in str(failure.value)
    assert "s3cret" not in str(failure.value)
    return failure.value


async def test_a_wrong_password_or_user_is_a_refused_login(engine: Database) -> None:
    for account in ("postgres:s3cret", "root:s3cret", "nobody-here:s3cret", "root", "p%C3%B6st:s3cr%F0%9F%94%91et"):
        url = engine.admin_url.replace(urlsplit(engine.admin_url).netloc.split("@")[0], account)
        assert isinstance(await refused_way_in(url), LoginRefused)


@pytest.mark.one_engine("postgresql")
async def test_an_unknown_database_is_a_refused_login(engine: Database) -> None:
    """On MySQL and MariaDB the database of the URL is not used: it is the schema's."""
    failure = await refused_way_in(engine.admin_url.replace("/postgres", "/nowhere"))
    assert isinstance(failure, LoginRefused)
    assert "nowhere" in failure.what


@pytest.mark.one_engine("postgresql")
async def test_a_database_that_the_login_may_not_enter_is_a_refused_login(engine: Database) -> None:
    """MySQL and MariaDB can't tell a database without rights from one that is not there."""
    await engine.sql("REVOKE CONNECT ON DATABASE postgres FROM PUBLIC", role="admin")
    try:
        assert isinstance(await refused_way_in(engine.url("observer")), LoginRefused)
    finally:
        await engine.sql("GRANT CONNECT ON DATABASE postgres TO PUBLIC", role="admin")


@pytest.mark.one_engine("postgresql")
async def test_an_option_that_can_not_be_used_is_a_wrong_url(engine: Database) -> None:
    """asyncmy gets no options."""
    with pytest.raises(DatabaseUrlInvalid, match="options"):
        await open_engine(f"{engine.admin_url}?sslmode=perhaps", owner="clerk", names=Names(), patience=60)


async def test_a_schema_that_is_not_there_is_said_to_be_missing(engine: Database) -> None:
    failure = await refused_way_in(engine.admin_url, schema="nowhere")
    assert isinstance(failure, SchemaError)
    assert "nowhere" in failure.what
    assert "tidings migrate" in failure.remedy


async def test_a_login_may_only_act_as_a_role_that_it_has(engine: Database) -> None:
    for group in ("event_router", "nobody_here"):
        failure = await refused_way_in(engine.url("observer"), schema=engine.names.schema, group=group)
        assert isinstance(failure, LoginRefused)
        assert group in failure.what
        assert "TIDINGS_DATABASE_URL_<ROLE>" in failure.remedy


async def test_a_common_login_acts_as_the_role_that_it_is_told(engine: Database) -> None:
    if engine.family == "mysql":
        await engine.sql("GRANT observer TO root@'127.0.0.1'", role="admin")
    observer = await open_engine(engine.admin_url, owner="observer", names=engine.names, group="observer")
    (settings,) = await ask(observer, "settings")
    assert settings["acts_as"] == "observer"
    # On MariaDB a role adds to what its login may do.
    if engine.family == "postgresql":
        with pytest.raises(StatementFailed, match="permission denied"):
            await observer.step(lambda transaction: transaction.command("DELETE FROM events"))
    await observer.close()


async def test_a_lost_server_does_not_disturb_the_closing_of_an_engine(shelf: Shelf, proxy: FaultProxy) -> None:
    clerk = await shelf.clerk(proxy.url(shelf.admin_url), size=3)
    async with clerk.transaction(), clerk.transaction(), clerk.transaction():
        pass
    proxy.cut_all()
    await clerk.close()
    await shelf.close()


# --- which servers are fit -------------------------------------------------------------------------------------------

FIT = {
    "PostgreSQL 14.0 on x86_64-pc-linux-gnu, compiled by gcc": "PostgreSQL 14.0",
    "PostgreSQL 17.2 (Debian 17.2-1.pgdg120+1) on x86_64-pc-linux-gnu": "PostgreSQL 17.2",
    "PostgreSQL 18beta1 on aarch64": "PostgreSQL 18.0",
    "10.6.0-MariaDB": "MariaDB 10.6.0",
    "5.5.5-10.11.6-MariaDB-0+deb12u1": "MariaDB 10.11.6",
    "11.4.2-MariaDB-ubu2404-log": "MariaDB 11.4.2",
    "8.0.29": "MySQL 8.0.29",
    "8.4.3-log": "MySQL 8.4.3",
}
UNFIT = {
    "PostgreSQL 13.14 on x86_64-pc-linux-gnu": "PostgreSQL 14 or newer",
    "PostgreSQL 8.0.2 on i686-pc-linux-gnu, Redshift 1.0.48805": "PostgreSQL 14 or newer",
    "PostgreSQL 11.2-YB-2.20.1.0-b0 on x86_64-pc-linux-gnu": "PostgreSQL 14 or newer",
    "PostgreSQL 15.2-YB-2.25.0.0-b0 on x86_64-pc-linux-gnu": "PostgreSQL 14 or newer",
    "CockroachDB CCL v23.1.11 (x86_64-pc-linux-gnu)": "PostgreSQL 14 or newer",
    "10.5.23-MariaDB": "MariaDB 10.6 or newer",
    "5.5.5-10.3.39-MariaDB": "MariaDB 10.6 or newer",
    "8.0.28": "MySQL 8.0.29 or newer",
    "5.7.44-log": "MySQL 8.0.29 or newer",
    "8.0.11-TiDB-v7.5.1": "Use MariaDB 10.6, MySQL 8.0.29",
    "8.0.40-tidb-serverless": "Use MariaDB 10.6, MySQL 8.0.29",
    "something else": "Use MariaDB, MySQL or PostgreSQL",
    "": "Use MariaDB, MySQL or PostgreSQL",
}


def read(said: str) -> str:
    speaks_postgresql = said.startswith(("PostgreSQL", "Cockroach"))
    return str((postgresql.read_version if speaks_postgresql else mysql.read_version)(said))


@pytest.mark.parametrize("said", FIT)
def test_a_server_that_is_fit_is_recognised(said: str) -> None:
    assert read(said) == FIT[said]


@pytest.mark.parametrize("said", UNFIT)
def test_a_server_that_is_too_old_or_only_looks_like_one_of_ours_is_refused(said: str) -> None:
    with pytest.raises(ServerUnsuitable) as refusal:
        read(said)
    assert UNFIT[said] in refusal.value.remedy
    assert said in refusal.value.what or "This server is" in refusal.value.what


@pytest.mark.parametrize("said", ["", "PostgreSQL", "PostgreSQL x", "MySQL 8.0.40"])
def test_whatever_is_not_postgresql_is_refused_by_those_who_speak_its_protocol(said: str) -> None:
    with pytest.raises(ServerUnsuitable):
        postgresql.read_version(said)


async def test_the_server_says_what_it_is(engine: Database) -> None:
    owner = await engine.open("schema_owner")
    assert owner.server.dialect == owner.dialect.name == engine.kind
    assert len(owner.server.version) >= 2
