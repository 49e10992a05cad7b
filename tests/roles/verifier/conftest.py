"""A scene for every test of the verifier, and what was told meanwhile."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.roles.verifier.scene import Scene
from tests.support.database import Database
from tests.support.receiver import Receiver
from tidings.telemetry.bus import listening
from tidings.telemetry.notices import Notice


@pytest.fixture
async def scene(engine: Database) -> AsyncIterator[Scene]:
    async with Receiver() as receiver:
        scene = Scene(engine, receiver)
        yield scene
        await scene.close()


@pytest.fixture
def told() -> Iterator[list[Notice]]:
    heard: list[Notice] = []
    with listening(heard.append):
        yield heard
