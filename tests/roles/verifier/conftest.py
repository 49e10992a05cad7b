"""A scene for every test of the verifier."""

from collections.abc import AsyncIterator

import pytest

from tests.roles.verifier.scene import Scene
from tests.support.database import Database
from tests.support.receiver import Receiver


@pytest.fixture
async def scene(engine: Database) -> AsyncIterator[Scene]:
    async with Receiver() as receiver:
        scene = Scene(engine, receiver)
        yield scene
        await scene.close()
