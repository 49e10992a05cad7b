"""A scene for every test of the task worker."""

import pytest

from tests.roles.task_worker.scene import Scene
from tests.support.database import Database


@pytest.fixture
def scene(engine: Database) -> Scene:
    return Scene(engine)
