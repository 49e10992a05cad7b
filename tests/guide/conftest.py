"""What a reader of the guide has at hand."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.application import Application, application_beside
from tests.support.database import Database
from tests.support.ports import ReservedPort


@pytest.fixture
async def application(engine: Database) -> AsyncIterator[Application]:
    async with application_beside(engine) as made:
        yield made


@pytest.fixture
def ports() -> Iterator[dict[str, str]]:
    """Those of the guide may be taken."""
    reserved = {"8420": ReservedPort(), "8421": ReservedPort()}
    yield {name: str(port.number) for name, port in reserved.items()}
    for port in reserved.values():
        port.release()
