"""What reads are counted by, on a server of which one installation is the test's own."""

from collections.abc import AsyncIterator

import pytest

from tests.plans.counters import Counters, counters_of
from tests.support.database import Database


@pytest.fixture
async def counters(throwaway: Database) -> AsyncIterator[Counters]:
    counters = await counters_of(throwaway)
    yield counters
    await counters.close()
