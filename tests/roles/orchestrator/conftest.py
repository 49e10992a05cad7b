"""A scene for every test of the orchestrator."""

import pytest

from tests.roles.orchestrator.scene import Scene
from tests.support.database import Database


@pytest.fixture
async def scene(engine: Database) -> Scene:
    return await Scene.of(engine)


@pytest.fixture
async def damaged(throwaway: Database) -> Scene:
    """An installation of one's own, into which a trigger may be planted."""
    return await Scene.of(throwaway)
