"""A scene for every test of the task worker, and what was told meanwhile."""

from collections.abc import Iterator

import pytest

from tests.roles.task_worker.scene import Scene
from tests.support.database import Database
from tidings.telemetry.bus import listening
from tidings.telemetry.notices import Notice


@pytest.fixture
def scene(engine: Database) -> Scene:
    return Scene(engine)


@pytest.fixture
def told() -> Iterator[list[Notice]]:
    heard: list[Notice] = []
    with listening(heard.append):
        yield heard
