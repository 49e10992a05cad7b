"""What the tests of several roles start from."""

import pytest

from tests.support.database import Database
from tests.support.queue import Queue


@pytest.fixture
def queue(engine: Database) -> Queue:
    return Queue(engine)
