"""Submitting tasks: one for each business key that is in the queue, also when many submit at once. Ruling 13."""

import asyncio
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import asyncpg
import pymysql
import pytest

import tidings
from tests.client.callers import parts_of
from tests.support.database import Database
from tests.support.queue import HISTORY, Queue
from tidings.db.engine import Engine
from tidings.decisions.submitting import accept_task
from tidings.errors import StatementFailed, TaskRefused
from tidings.model.event import EventLimits
from tidings.model.submission import AcceptedTask, Submitted
from tidings.model.task import TaskStatus
from tidings.roles.task_producer.operations import TaskProducerOperations

PRODUCER = "task_producer"
ARCHIVE = {
    "postgresql": "SELECT archive_finished_tasks(ARRAY[{0}]::bigint[])",
    "mariadb": "CALL archive_finished_tasks('[{0}]')",
}


def task(key: str, payload: Any = "{}", biz_type: str = "MAIL", **more: Any) -> AcceptedTask:
    return accept_task(biz_type, key, payload, correlation_id="c", limits=EventLimits(), **more)


async def submit(engine: Engine, *tasks: AcceptedTask, replace: bool = False) -> list[Submitted]:
    return await TaskProducerOperations.step(engine, lambda operations: operations.submit(tasks, replace=replace))


@pytest.fixture
async def producer(engine: Database) -> Engine:
    return await engine.open(PRODUCER, size=8)


async def test_more_tasks_than_one_statement_carries(producer: Engine, queue: Queue) -> None:
    """Batches are split by rows and by bytes; nothing is lost in between."""
    big = '"' + "ü" * 100_000 + '"'
    tasks = [task(f"k{n}", big if n % 20 == 0 else str(n)) for n in range(1300)]
    submitted = await submit(producer, *tasks, *tasks[:3])
    assert [one.duplicate for one in submitted] == [False] * 1300 + [True] * 3
    assert [one.id for one in submitted[1300:]] == [one.id for one in submitted[:3]]
    stored = {row["id"]: row for row in await queue.rows()}
    assert len(stored) == 1300
    assert all(stored[one.id]["payload"] == given.payload for one, given in zip(submitted, tasks, strict=False))
    assert all(one.duplicate and not one.payload_differs for one in await submit(producer, *tasks))


async def test_keys_that_look_alike_are_different_keys(producer: Engine) -> None:
    """`abc`, `ABC` and `abc ` are three on every engine."""
    submitted = await submit(producer, *(task(key) for key in ("abc", "ABC", "abc ", "äbc", "a\u0308bc")))
    assert len({one.id for one in submitted}) == 5


async def test_a_task_without_a_payload_differs_from_every_one(producer: Engine, queue: Queue) -> None:
    """Plain SQL may leave it out, as the seed's DDL allows."""
    (id,) = await queue.add(payload="NULL", biz_key="'k'")
    assert await submit(producer, task("k", "null")) == [Submitted(id, duplicate=True, payload_differs=True)]


@pytest.mark.slow
async def test_many_who_submit_the_same_keys_at_once_make_one_task_of_each(producer: Engine, queue: Queue) -> None:
    async def one(number: int) -> list[Submitted]:
        return await submit(producer, *(task(f"k{n}", str(number)) for n in range(100)))

    answers = await asyncio.gather(*(one(number) for number in range(8)))
    for place in range(100):
        assert len({answer[place].id for answer in answers}) == 1
        assert sum(not answer[place].duplicate for answer in answers) == 1
    assert len(await queue.ids()) == 100


@pytest.mark.slow
async def test_many_who_replace_the_same_task_at_once_make_one_new_task(producer: Engine, queue: Queue) -> None:
    """The one that comes second finds the new one, which is not finished, and leaves it alone."""
    ended = await queue.ended(20)
    keys = [row["biz_key"] for row in await queue.rows()]

    async def one(number: int) -> list[Submitted]:
        return await submit(producer, *(task(key, str(number)) for key in keys), replace=True)

    answers = await asyncio.gather(*(one(number) for number in range(6)))
    for place in range(20):
        assert sum(not answer[place].duplicate for answer in answers) == 1
        assert len({answer[place].id for answer in answers}) == 1
    assert await queue.ids(HISTORY) == ended
    assert len(await queue.ids()) == 20
    assert len(await queue.where()) == 40


async def test_replacing_is_told_apart_from_what_is_under_way(producer: Engine, queue: Queue) -> None:
    """On an unfinished one it is an ordinary duplicate."""
    waiting, running, failing = [(await queue.add(status=status))[0] for status in (0, 1, 3)]
    keys = [row["biz_key"] for row in await queue.rows()]
    answers = await submit(producer, *(task(key) for key in keys), replace=True)
    assert [(one.id, one.status) for one in answers] == [
        (waiting, TaskStatus.PENDING),
        (running, TaskStatus.PROCESSING),
        (failing, TaskStatus.FAIL_RETRY),
    ]
    assert all(one.duplicate for one in answers)
    assert await queue.ids(HISTORY) == []


async def test_the_routine_moves_only_what_has_ended(queue: Queue, engine: Database) -> None:
    """It is all that a producer can do to tasks that are there."""
    tasks = [(await queue.add(status=status))[0] for status in range(5)]
    text = ARCHIVE[engine.kind].format(", ".join(map(str, [*tasks, tasks[2], 999])))
    await engine.sql(text, PRODUCER)
    places = await queue.where()
    assert [places[id] for id in tasks] == ["queue", "queue", "history", "queue", "history"]
    await engine.sql(text, PRODUCER)
    assert await queue.where() == places


async def test_a_task_that_can_not_go_to_the_history_stays_where_it_is(queue: Queue, engine: Database) -> None:
    """Only a database that was tampered with has its id there already; nothing of the batch is half moved."""
    one, other = await queue.ended(2)
    await engine.sql(f"INSERT INTO {HISTORY} (id, biz_type, biz_key) VALUES ({other}, 'X', 'y')")
    with pytest.raises(StatementFailed):
        await engine.sql(ARCHIVE[engine.kind].format(f"{one}, {other}"), PRODUCER)
    assert (await queue.ids(), await queue.ids(HISTORY)) == ([one, other], [other])


@pytest.mark.one_engine("mariadb", reason="a routine of PostgreSQL is one statement")
async def test_on_a_connection_in_autocommit_a_replacement_moves_the_task_whole(queue: Queue, engine: Database) -> None:
    one, other = await queue.ended(2)
    keys = [row["biz_key"] for row in await queue.rows()]
    with closing(pymysql.connect(**parts_of(engine.url(PRODUCER)), autocommit=True)) as connection:
        submitted = tidings.submit_task(connection, "MAIL", keys[0], "1", replace=True)
        assert await queue.where() == {one: "history", other: "queue", submitted.id: "queue"}
        await engine.sql(f"INSERT INTO {HISTORY} (id, biz_type, biz_key) VALUES ({other}, 'X', 'y')")
        with pytest.raises(connection.IntegrityError):
            tidings.submit_task(connection, "MAIL", keys[1], "1", replace=True)
        assert in_transaction(connection) == 0
    assert await queue.ids() == [other, submitted.id]


@pytest.mark.one_engine("mariadb", reason="PostgreSQL has no autocommit that is switched off")
async def test_a_transaction_that_the_replacement_begins_is_left_to_the_caller(queue: Queue, engine: Database) -> None:
    (one,) = await queue.ended()
    (key,) = [row["biz_key"] for row in await queue.rows()]
    with closing(pymysql.connect(**parts_of(engine.url(PRODUCER)), autocommit=False)) as connection:
        tidings.submit_task(connection, "MAIL", key, "1", replace=True)
        connection.rollback()
    assert await queue.where() == {one: "queue"}


def in_transaction(connection: Any) -> Any:
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@in_transaction")
        return cursor.fetchone()[0]


@pytest.mark.one_engine("mariadb", reason="there the default level hides what others commit meanwhile")
async def test_who_lost_the_race_in_repeatable_read_is_told_of_the_winner(queue: Queue, engine: Database) -> None:
    (old,) = await queue.ended()
    (key,) = [row["biz_key"] for row in await queue.rows()]
    with closing(pymysql.connect(**parts_of(engine.url(PRODUCER)))) as late:
        assert tidings.submit_task(late, "MAIL", key, "1").id == old
        with closing(pymysql.connect(**parts_of(engine.url(PRODUCER)))) as early:
            first = tidings.submit_task(early, "MAIL", "other", "1")
            new = tidings.submit_task(early, "MAIL", key, "1", replace=True)
            early.commit()
        assert tidings.submit_task(late, "MAIL", "other", "1") == Submitted(first.id, duplicate=True)
        assert tidings.submit_task(late, "MAIL", key, "1", replace=True) == Submitted(new.id, duplicate=True)
        late.commit()
    assert await queue.where() == {old: "history", first.id: "queue", new.id: "queue"}


async def test_what_the_database_leaves_out_is_said_by_name(throwaway: Database) -> None:
    """A constraint of somebody else: MariaDB passes over such a row without a word, PostgreSQL refuses it."""
    await throwaway.sql("ALTER TABLE sys_pending_tasks ADD CONSTRAINT poison CHECK (biz_key <> 'bad')", "admin")
    producer = await throwaway.open(PRODUCER)
    with pytest.raises((TaskRefused, StatementFailed)) as refused:
        await submit(producer, task("good"), task("bad"))
    assert "bad" in str(refused.value) or "poison" in str(refused.value)
    assert await Queue(throwaway).ids() == []


@pytest.mark.one_engine("postgresql", reason="MariaDB takes values as text")
async def test_a_connection_of_asyncpg_submits_in_autocommit(queue: Queue, engine: Database) -> None:
    connection = await asyncpg.connect(engine.url(PRODUCER))
    answers: Sequence[Submitted] = await tidings.submit_tasks(connection, [tidings.NewTask("A", "1", 1)])
    await connection.close()
    assert [one.id for one in answers] == await queue.ids()
