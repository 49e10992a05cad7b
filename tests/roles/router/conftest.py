"""A scene for every test of the router."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.roles.router.scene import Scene
from tests.support.database import Database
from tests.support.fault_proxy import FaultProxy
from tests.support.servers import MariaDBServer, PostgresServer
from tidings.roles.router.router import Router


@pytest.fixture
async def bare(engine: Database) -> AsyncIterator[Scene]:
    """Gates closed, no route."""
    scene = Scene(engine, Router(await engine.open("event_router"), batch=1_000))
    yield scene
    await scene.close()


@pytest.fixture
async def scene(bare: Scene) -> Scene:
    """Gates open, a catch-all webhook route."""
    await bare.open_gates()
    await bare.route()
    return bare


@pytest.fixture
async def breakable(throwaway: Database) -> AsyncIterator[Scene]:
    """The same in an installation that may be damaged."""
    throwaway.keep_sessions()
    scene = Scene(throwaway, Router(await throwaway.open("event_router"), batch=1_000))
    await scene.open_gates()
    await scene.route()
    yield scene
    await scene.close()


@pytest.fixture
def proxy(server: PostgresServer | MariaDBServer) -> Iterator[FaultProxy]:
    """Tells which statements were run. Ask for it before the scene, so that it outlives the sessions that use it."""
    with FaultProxy(server.port, server.engine) as proxy:
        yield proxy
