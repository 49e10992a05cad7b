"""Every example does what it says; receivers and tasks are the very files that the guide shows."""

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.guide.pages import blocks
from tests.support.application import Application, application_beside
from tests.support.database import Database
from tests.support.ports import LOOPBACK, ReservedPort
from tests.support.processes import Process, tidings
from tests.support.waiting import eventually
from tidings.db.embedded.binaries import find_binaries

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
EXAMPLES, GUIDE = ROOT / "examples", ROOT / "docs" / "guide"
SQLALCHEMY = {"postgresql": "postgresql+psycopg", "mysql": "mariadb+pymysql"}
DJANGO = {"postgresql": "postgresql", "mysql": "mariadb"}


@pytest.fixture
async def application(engine: Database) -> AsyncIterator[Application]:
    """With the rights that the guide gives it."""
    async with application_beside(engine) as made:
        for block in blocks(GUIDE / "publish.md"):
            if "first" in block.words and block.is_for(engine.kind):
                await made.sql(block.text, engine.admin_url)
        yield made


@pytest.fixture
def port() -> Iterator[int]:
    reserved = ReservedPort()
    yield reserved.number
    reserved.release()


def program(*words: str, folder: Path, url: str) -> Process:
    return Process([sys.executable, *words], {"DATABASE_URL": url, "PYTHONUNBUFFERED": "1"}, cwd=folder)


async def answers(port: int) -> bool:
    try:
        async with httpx.AsyncClient() as client:
            await client.get(f"http://{LOOPBACK}:{port}/")
    except httpx.TransportError:
        return False
    return True


async def sells_and_publishes(engine: Database, port: int) -> None:
    """One order that is paid, one whose payment is declined."""
    await eventually(lambda: answers(port), 60, "the shop")
    async with httpx.AsyncClient(base_url=f"http://{LOOPBACK}:{port}", timeout=30) as shop:
        for total in ("19.90", "5000.00"):
            placed = await shop.post("/orders", json={"email": "a@example.com", "total": total})
            assert placed.status_code == 201, placed.text
        assert (await shop.post("/orders/1/payment")).status_code == 200
        assert (await shop.post("/orders/2/payment")).status_code == 402
    events = await engine.sql("SELECT event_type, external_id FROM events ORDER BY id")
    assert [(row["event_type"], row["external_id"]) for row in events] == [
        ("order.placed", "order-1-placed"),
        ("order.placed", "order-2-placed"),
        ("order.paid", "order-1-paid"),
    ]
    tasks = await engine.sql("SELECT biz_type, biz_key FROM sys_pending_tasks ORDER BY id")
    assert [(row["biz_type"], row["biz_key"]) for row in tasks] == [
        ("EMAIL_SEND", "order-1"),
        ("EMAIL_SEND", "order-2"),
    ]


async def test_the_shop_on_fastapi_publishes_in_its_transaction(
    engine: Database, application: Application, port: int, start: Callable[[Process], Process]
) -> None:
    url = urlsplit(application.url)._replace(scheme=SQLALCHEMY[engine.family]).geturl()
    words = ("-m", "uvicorn", "shop:app", "--port", str(port))
    start(program(*words, folder=EXAMPLES / "shop_fastapi", url=url))
    await sells_and_publishes(engine, port)


async def test_the_shop_on_django_publishes_in_its_transaction(
    engine: Database, application: Application, port: int, start: Callable[[Process], Process]
) -> None:
    url = urlsplit(application.url)._replace(scheme=DJANGO[engine.family]).geturl()
    folder = EXAMPLES / "shop_django"
    migrating = start(program("manage.py", "migrate", "shop", folder=folder, url=url))
    assert await asyncio.to_thread(migrating.wait, 60) == 0, migrating.output
    start(program("manage.py", "runserver", f"{LOOPBACK}:{port}", "--noreload", folder=folder, url=url))
    await sells_and_publishes(engine, port)


async def test_the_migration_of_the_shop_on_django_is_complete(
    engine: Database, application: Application, start: Callable[[Process], Process]
) -> None:
    url = urlsplit(application.url)._replace(scheme=DJANGO[engine.family]).geturl()
    words = ("manage.py", "makemigrations", "--check", "--dry-run")
    looking = start(program(*words, folder=EXAMPLES / "shop_django", url=url))
    assert await asyncio.to_thread(looking.wait, 60) == 0, looking.output


async def test_sql_alone_publishes(
    engine: Database, application: Application, start: Callable[[Process], Process]
) -> None:
    file = EXAMPLES / "plain_sql" / f"{engine.kind}.sql"
    if engine.family == "postgresql":
        # Statement by statement, as the client of the server does it: all at once would be one transaction.
        command = [
            str(find_binaries().folder / "psql"),
            "-v",
            "ON_ERROR_STOP=1",
            "-q",
            "-f",
            str(file),
            application.url,
        ]
        psql = start(Process(command, cwd=EXAMPLES))
        assert await asyncio.to_thread(psql.wait, 30) == 0, psql.output
    else:
        await application.sql(file.read_text("utf-8"), application.url)
    events = await engine.sql("SELECT event_type, external_id, payload FROM events ORDER BY id")
    assert [(row["event_type"], row["external_id"]) for row in events] == [
        ("order.placed", "order-21-placed"),
        ("order.paid", "order-21-paid"),
    ]


async def test_the_tasks_of_the_shops_are_done_by_the_handler(
    engine: Database, start: Callable[[Process], Process]
) -> None:
    await engine.sql(
        "INSERT INTO sys_pending_tasks (biz_type, biz_key, payload) VALUES"
        " ('EMAIL_SEND', 'order-1', '{\"to\": \"a@example.com\", \"order\": 1}'),"
        " ('EMAIL_SEND', 'order-2', '{\"to\": \"\", \"order\": 2}')"
    )
    worker = tidings("run", "task-worker", "--app", "tasks", **engine.environment())
    worker.cwd = EXAMPLES / "tasks"
    start(worker)
    await asyncio.to_thread(worker.wait_for_line, "mail to a@example.com about order 1", 60)

    async def ended() -> bool:
        rows = await engine.sql("SELECT status FROM sys_pending_tasks ORDER BY id")
        return [row["status"] for row in rows] == [2, 4]

    await eventually(ended, 30, "one success and one failure")


@pytest.mark.parametrize(
    ("page", "language", "word", "file"),
    [
        ("receivers.md", "python", "fastapi", "receivers/with_fastapi.py"),
        ("receivers.md", "python", "flask", "receivers/with_flask.py"),
        ("receivers.md", "python", "django", "receivers/with_django.py"),
        ("tasks.md", "python", "tasks.py", "tasks/tasks.py"),
    ],
)
def test_the_guide_shows_the_very_files(page: str, language: str, word: str, file: str) -> None:
    (shown,) = (one.text for one in blocks(GUIDE / page) if one.language == language and word in one.words)
    assert shown == (EXAMPLES / file).read_text("utf-8")


def test_every_example_stands_in_the_list() -> None:
    listed = (EXAMPLES / "README.md").read_text("utf-8")
    folders = {path.name for path in EXAMPLES.iterdir() if path.is_dir() and not path.name.startswith("_")}
    assert folders == set(re.findall(r"^\| \[(\w+)\]", listed, re.MULTILINE))
