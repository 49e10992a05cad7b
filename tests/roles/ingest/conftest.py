"""The ingest as a role of its own, on both engines."""

from collections.abc import AsyncIterator

import pytest

from tests.support.database import Database
from tests.support.fault_proxy import FaultProxy
from tidings.db.engine import Engine
from tidings.roles.ingest import service
from tidings.roles.ingest.service import Ingest

WRITER = "event_ingest_writer"


@pytest.fixture
async def ingest(engine: Database) -> AsyncIterator[Ingest]:
    ingest = Ingest(await engine.open(WRITER))
    yield ingest
    await ingest.close()


@pytest.fixture
async def through_proxy(engine: Database, proxy: FaultProxy) -> AsyncIterator[Engine]:
    """The writer's engine, by way of the proxy."""
    writer = await engine.open(WRITER, through=proxy)
    yield writer
    await writer.close()


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that fails on purpose need not wait before it is run again."""
    monkeypatch.setattr(service, "_FIRST_PAUSE", 0.001)
