"""A caller's session may be at home elsewhere, escape otherwise, isolate more, or share the event with fifty others."""

import asyncio
from contextlib import closing
from typing import Any

import asyncpg
import psycopg
import pymysql
import pytest

import tidings
from tests.client.callers import calling, libpq, parts_of
from tests.client.test_publish import ODD, stored
from tests.support.database import Database
from tests.support.locks import somebody_waits
from tests.support.sessions import connect

pytestmark = pytest.mark.slow

FASTEST = {"postgresql": "asyncpg", "mariadb": "asyncmy"}
WRITER = "event_ingest_writer"


async def test_event_and_business_row_live_and_die_together(engine: Database) -> None:
    await engine.sql("CREATE SCHEMA IF NOT EXISTS app", "admin")
    await engine.sql("CREATE TABLE IF NOT EXISTS app.orders (id bigint PRIMARY KEY)", "admin")
    async with calling(FASTEST[engine.kind], engine.admin_url) as caller:
        await caller.run("INSERT INTO app.orders VALUES (1)")
        await caller.do(lambda c: tidings.publish(c, "order.paid", {"order": 1}))
        await caller.rollback()
        await caller.run("INSERT INTO app.orders VALUES (2)")
        await caller.do(lambda c: tidings.publish(c, "order.paid", {"order": 2}))
        await caller.commit()
    assert [event["payload"] for event in await stored(engine)] == ['{"order":2}']
    assert [dict(row) for row in await engine.sql("SELECT id FROM app.orders", "admin")] == [{"id": 2}]
    await engine.sql("DROP TABLE app.orders", "admin")
    await engine.sql("DROP SCHEMA app", "admin")


async def test_another_schema_is_another_installation(engine: Database, throwaway: Database) -> None:
    async with calling(FASTEST[engine.kind], throwaway.url(WRITER)) as caller:
        await caller.do(lambda c: tidings.publish(c, "a", {}, schema=throwaway.names.schema))
        await caller.commit()
    assert await stored(engine) == []
    assert len(await stored(throwaway)) == 1


@pytest.mark.parametrize("schema", ["", "Tidings", 'a"; DROP', "a`b", "1a", "a.b", "a%b", None])
async def test_a_schema_that_could_not_be_ours_is_refused(engine: Database, schema: Any) -> None:
    async with calling(FASTEST[engine.kind], engine.url(WRITER)) as caller:
        with pytest.raises(tidings.TidingsError, match="is no name of a schema"):
            await caller.do(lambda c: tidings.publish(c, "a", {}, schema=schema))


async def test_in_autocommit_the_event_is_there_at_once(engine: Database) -> None:
    session = await connect(engine.url(WRITER))
    await tidings.publish(session.connection, "a", ODD, external_id="1")
    assert [event["payload"] for event in await stored(engine)] == [ODD]
    await session.close()


async def test_fifty_transactions_with_the_same_external_id_make_one_event(engine: Database) -> None:
    all_are_here = asyncio.Barrier(50)

    async def publish(number: int) -> tidings.Published:
        async with calling(FASTEST[engine.kind], engine.url(WRITER)) as caller:
            await all_are_here.wait()
            published: tidings.Published = await caller.do(
                lambda c: tidings.publish(c, "a", number % 2, external_id="once")
            )
            await caller.commit()
            return published

    published = await asyncio.gather(*map(publish, range(50)))
    (event,) = await stored(engine)
    assert {one.id for one in published} == {event["id"]}
    assert sum(one.duplicate for one in published) == 49
    assert [one.payload_differs for one in published] == [str(n % 2) != event["payload"] for n in range(50)]


async def test_a_known_duplicate_draws_no_id(engine: Database) -> None:
    async with calling(FASTEST[engine.kind], engine.url(WRITER)) as caller:
        first = await caller.do(lambda c: tidings.publish(c, "a", {}, external_id="x"))
        await caller.commit()
        for _ in range(5):
            await caller.do(lambda c: tidings.publish_many(c, [tidings.Event("a", {}, external_id="x")] * 3))
            await caller.commit()
        after = await caller.do(lambda c: tidings.publish(c, "a", {}))
        await caller.commit()
    assert after.id == first.id + 1


async def test_a_plain_insert_is_an_event_too(engine: Database) -> None:
    """What is left out has its default; afterwards the external id is taken for everybody."""
    await engine.sql("INSERT INTO events (event_type, payload, external_id) VALUES ('a', '{\"n\": 1}', 'x')", WRITER)
    (event,) = await stored(engine)
    assert (event["event_domain"], event["event_stream"], event["payload"]) == ("default", "", '{"n": 1}')
    assert event["correlation_id"]
    async with calling(FASTEST[engine.kind], engine.url(WRITER)) as caller:
        again = await caller.do(lambda c: tidings.publish(c, "a", '{"n": 1}', external_id="x"))
    assert again == tidings.Published(event["id"], duplicate=True)


@pytest.mark.parametrize("driver", ["pymysql", "aiomysql", "asyncmy", "sqlalchemy_pymysql", "django_mariadb"])
@pytest.mark.parametrize("mode", ["NO_BACKSLASH_ESCAPES", "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES,ANSI", ""])
@pytest.mark.one_engine("mariadb", reason="PostgreSQL has no sql_mode")
async def test_no_mode_of_the_session_changes_the_text(engine: Database, driver: str, mode: str) -> None:
    async with calling(driver, engine.url(WRITER)) as caller:
        await caller.run(f"SET SESSION sql_mode = '{mode}'")
        await caller.do(lambda c: tidings.publish(c, "a", ODD, external_id="\\'\"`😀"))
        await caller.commit()
    (event,) = await stored(engine)
    assert (event["payload"], event["external_id"]) == (ODD, "\\'\"`😀")


@pytest.mark.parametrize("charset", ["latin1", "utf8mb3", "utf8mb4"])
@pytest.mark.one_engine("mariadb", reason="PostgreSQL drivers refuse what their encoding can't say")
async def test_no_charset_of_the_session_changes_the_text(engine: Database, charset: str) -> None:
    with closing(pymysql.connect(**parts_of(engine.url(WRITER)), charset=charset)) as connection:
        for _ in range(2):
            published = tidings.publish(connection, "a", ODD, external_id="ü😀")
            assert not published.payload_differs
            connection.commit()
    (event,) = await stored(engine)
    assert (event["payload"], event["external_id"]) == (ODD, "ü😀")


@pytest.mark.one_engine("mariadb", reason="there the default level hides what others commit meanwhile")
async def test_who_lost_the_race_in_repeatable_read_is_told_of_the_winner(engine: Database) -> None:
    with closing(pymysql.connect(**parts_of(engine.url(WRITER)))) as late:
        assert seen(late) == ("REPEATABLE-READ", 0)
        with closing(pymysql.connect(**parts_of(engine.url(WRITER)))) as early:
            first = tidings.publish(early, "a", "1", external_id="x")
            early.commit()
        assert seen(late) == ("REPEATABLE-READ", 0)
        assert tidings.publish(late, "a", "1", external_id="x") == tidings.Published(first.id, duplicate=True)
        assert tidings.publish_many(late, [{"event_type": "a", "payload": "2", "external_id": "x"}]) == [
            tidings.Published(first.id, duplicate=True, payload_differs=True)
        ]
        late.commit()
    assert len(await stored(engine)) == 1


def seen(connection: Any) -> Any:
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@tx_isolation, COUNT(*) FROM tidings.events")
        return cursor.fetchone()


@pytest.mark.one_engine("postgresql", reason="MariaDB has no such error")
async def test_who_lost_the_race_in_repeatable_read_hears_it_from_the_server(engine: Database) -> None:
    """The caller's own retry logic knows what to do: it is the driver's own error."""
    with closing(psycopg.connect(**libpq(engine.url(WRITER)))) as late:
        late.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        late.execute("SELECT count(*) FROM tidings.events")
        early = await asyncpg.connect(engine.url(WRITER))
        await tidings.publish(early, "a", "1", external_id="x")
        await early.close()
        with pytest.raises(psycopg.errors.SerializationFailure):
            tidings.publish(late, "a", "1", external_id="x")
        late.rollback()
        assert tidings.publish(late, "a", "1", external_id="x").duplicate


async def test_who_waits_for_an_open_transaction_gets_the_id_if_that_rolls_back(engine: Database) -> None:
    driver, url = FASTEST[engine.kind], engine.url(WRITER)
    async with calling(driver, url) as first, calling(driver, url) as second:
        await first.do(lambda c: tidings.publish(c, "a", "1", external_id="x"))
        waiting = asyncio.create_task(second.do(lambda c: tidings.publish(c, "a", "2", external_id="x")))
        await somebody_waits(engine)
        await first.rollback()
        published = await waiting
        await second.commit()
    assert not published.duplicate
    assert [(event["id"], event["payload"]) for event in await stored(engine)] == [(published.id, "2")]
