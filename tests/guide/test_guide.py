"""Every command, program and statement of the guide is done as it stands there."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.guide.pages import ROOT, blocks
from tests.guide.terminal import Reader, guide_urls
from tests.support.application import Application
from tests.support.database import SERVERS, Database
from tests.support.processes import Process

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
GUIDE, OPERATING = ROOT / "docs" / "guide", ROOT / "docs" / "operating"
HERE = {
    "TIDINGS_ALLOW_HTTP_HOSTS": "127.0.0.1",
    "TIDINGS_ALLOW_NETWORKS": "127.0.0.0/8",
    "TIDINGS_SECRET_KEYS": "the-key-of-these-tests",
}
FLOWING = (
    "INSERT INTO routes (event_type, target) VALUES ('*', 'webhook')",
    "INSERT INTO gates (name, is_open) VALUES ('routing', true), ('router:default', true)",
)


def reader(
    engine: Database, folder: Path, start: Callable[[Process], Process], ports: dict[str, str], **replaced: str
) -> Reader:
    environment = {**engine.environment(), **HERE, "TIDINGS_PORT": ports["8420"]}
    return Reader(folder, environment, start, **ports, **replaced)


def test_from_nothing_to_a_delivered_event(
    tmp_path: Path, start: Callable[[Process], Process], ports: dict[str, str]
) -> None:
    for folder in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        folder.chmod(folder.stat().st_mode | 0o011)  # the embedded server runs as somebody else, who must get in
    newcomer = Reader(tmp_path, {"TIDINGS_PORT": ports["8420"]}, start, **ports)
    newcomer.follow(GUIDE / "start.md", "postgresql")
    assert any("delivered" in said.lower() for said in newcomer.said.values()), newcomer.said


@pytest.mark.parametrize("page", ["subscriptions.md", "retries.md", "tasks.md"])
@pytest.mark.quick_on("postgresql")
async def test_a_page_on_running_roles_is_true(
    engine: Database, tmp_path: Path, start: Callable[[Process], Process], ports: dict[str, str], page: str
) -> None:
    for text in FLOWING:
        await engine.sql(text)
    await asyncio.to_thread(reader(engine, tmp_path, start, ports).follow, GUIDE / page, engine.kind)


@pytest.mark.quick_on("postgresql")
async def test_routing_is_as_the_page_says(
    engine: Database, tmp_path: Path, start: Callable[[Process], Process], ports: dict[str, str]
) -> None:
    await asyncio.to_thread(reader(engine, tmp_path, start, ports).follow, GUIDE / "routing.md", engine.kind)
    decided = await engine.sql("SELECT event_id, status FROM route_attempts ORDER BY id")
    assert [(row["event_id"], row["status"]) for row in decided] == [
        (1, "skipped"),  # no subscription
        (1, "sent"),
        (2, "dry_run"),
        (2, "skipped"),
    ]


async def test_publishing_is_as_the_page_says(
    engine: Database,
    application: Application,
    tmp_path: Path,
    start: Callable[[Process], Process],
    ports: dict[str, str],
) -> None:
    loop = asyncio.get_running_loop()

    def sql(text: str, who: str) -> None:
        url = engine.admin_url if who == "admin" else application.url
        asyncio.run_coroutine_threadsafe(application.sql(text, url), loop).result(30)

    publisher = reader(engine, tmp_path, start, ports, **guide_urls(engine.admin_url, application.url))
    await asyncio.to_thread(partial(publisher.follow, GUIDE / "publish.md", engine.kind, sql))
    events = await engine.sql("SELECT external_id FROM events ORDER BY id")
    assert [row["external_id"] for row in events] == ["order-7-paid", None, "order-9-paid"]


def test_wrong_settings_are_told_as_the_page_says(
    tmp_path: Path, start: Callable[[Process], Process], ports: dict[str, str]
) -> None:
    careless = Reader(tmp_path, {}, start, **ports)
    careless.follow(GUIDE / "settings.md", "postgresql")
    (said,) = careless.said.values()
    assert "TIDINGS_LEASE_SECONDS" in said
    assert "--port" in said


@pytest.mark.parametrize("kind", ["postgresql", pytest.param("mariadb", marks=pytest.mark.full)])
def test_an_installation_is_made_and_upgraded_as_the_pages_say(
    kind: str, tmp_path: Path, start: Callable[[Process], Process], ports: dict[str, str]
) -> None:
    if not (availability := SERVERS[kind].available()):
        pytest.skip(availability.reason)
    with SERVERS[kind](durable=True) as server:
        urls = guide_urls(server.admin_url, server.admin_url)
        operator = Reader(tmp_path, {}, start, **ports, **urls)
        operator.follow(OPERATING / f"install-{kind}.md", kind)
        operator.follow(OPERATING / "upgrade.md", kind)
        operator.follow(OPERATING / "monitoring.md", kind)
        operator.follow(OPERATING / "rights.md", kind)


def test_whatever_is_marked_is_on_a_page_that_is_read_here() -> None:
    """A block that nobody runs must not look as if somebody did."""
    read = {"start", "publish", "subscriptions", "retries", "tasks", "routing", "settings"}
    read |= {"install-postgresql", "install-mariadb", "upgrade", "monitoring", "rights", "backup"}
    marked = {"run", "beside", "first", "until"}
    pages = [*GUIDE.glob("*.md"), *OPERATING.glob("*.md")]
    assert {page.stem for page in pages if any(block.words & marked for block in blocks(page))} == read
