"""A stage for each scenario."""

from collections.abc import AsyncIterator, Callable

import pytest

from tests.scenarios.delivery.stage import Stage
from tests.support.database import Database
from tests.support.processes import Process
from tests.support.receiver import Receiver


@pytest.fixture
async def stage(engine: Database, start: Callable[[Process], Process]) -> AsyncIterator[Stage]:
    async with Receiver() as receiver:
        made = Stage(engine, receiver, start)
        await made.set()
        try:
            yield made
        finally:
            await made.clear()
