"""Installations for routing: one on the shared server, and one on a server that may be killed."""

from collections.abc import AsyncIterator

import pytest

from tests.scenarios.routing.free_running import DOMAIN_ROUTER
from tests.scenarios.routing.scene import Scene
from tests.scenarios.routing.stage import set_up
from tests.support.database import SERVERS, Database
from tidings.model.route import DEFAULT_ROUTER


@pytest.fixture
async def private(own_kind: str) -> AsyncIterator[Database]:
    """An installation on a server of its own, which may be killed."""
    with SERVERS[own_kind]() as server:
        database = Database(server)
        await database.migrate()
        await set_up(database, DEFAULT_ROUTER, DOMAIN_ROUTER)
        yield database
        await database.close()


@pytest.fixture
async def scene(engine: Database) -> AsyncIterator[Scene]:
    await set_up(engine, DEFAULT_ROUTER, DOMAIN_ROUTER)
    async with Scene(engine) as scene:
        yield scene


@pytest.fixture
async def private_scene(private: Database) -> AsyncIterator[Scene]:
    async with Scene(private) as scene:
        yield scene
