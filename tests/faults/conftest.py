"""What every story of a killed role needs: an engine that is struck at, and steps that are not run again."""

from collections.abc import AsyncIterator

import pytest

from tests.support.database import Database
from tests.support.fault_proxy import FaultProxy
from tidings.db import engine as engine_module
from tidings.db.engine import Engine


@pytest.fixture
async def attacked(engine: Database, proxy: FaultProxy, request: pytest.FixtureRequest) -> AsyncIterator[Engine]:
    """The way to its database of the role that the module names, by way of the proxy."""
    opened = await engine.open(request.module.ROLE, through=proxy)
    yield opened
    await opened.close()


@pytest.fixture
def mortal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lost connection ends the step, as the end of its process would."""
    monkeypatch.setattr(engine_module, "_ATTEMPTS", 1)
