"""A scene for every test of the dead-letter operator."""

import pytest

from tests.roles.dead_letters.scene import Scene
from tests.support.database import Database


@pytest.fixture
async def scene(engine: Database) -> Scene:
    return Scene(engine, await engine.open("dead_letter_operator"))
