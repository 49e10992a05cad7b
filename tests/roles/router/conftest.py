"""A scene for every test of the router."""

from collections.abc import AsyncIterator

import pytest

from tests.roles.router.scene import Scene
from tests.support.database import Database
from tidings.roles.router.router import Router


@pytest.fixture
async def bare(engine: Database) -> AsyncIterator[Scene]:
    """Gates closed, no route."""
    router = Router(await engine.open("event_router"), batch=1_000)
    yield Scene(engine, router)
    await router.close()


@pytest.fixture
async def scene(bare: Scene) -> Scene:
    """Gates open, a catch-all webhook route."""
    await bare.open_gates()
    await bare.route()
    return bare
