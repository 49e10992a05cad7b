"""Each driver meets its own engine only."""

from collections.abc import AsyncIterator

import pytest

from tests.client.callers import ENGINE_OF, Caller, calling
from tests.support.database import Database


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def belongs_together(item: pytest.Item) -> bool:
        chosen = getattr(item, "callspec", None)
        params = chosen.params if chosen else {}
        return "driver" not in params or ENGINE_OF[params["driver"]] == params["engine_kind"]

    items[:] = filter(belongs_together, items)


@pytest.fixture
async def caller(driver: str, engine: Database) -> AsyncIterator[Caller]:
    """An application that may publish and nothing else."""
    async with calling(driver, engine.url("event_ingest_writer")) as caller:
        yield caller
