"""An application with handlers, and the processes that run them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.scenarios.tasks.stage import TaskStage
from tests.support.database import Database
from tests.support.processes import Process


@pytest.fixture
def stage(engine: Database, tmp_path: Path, start: Callable[[Process], Process]) -> TaskStage:
    return TaskStage(engine, tmp_path, start)
