"""What every story of a killed role needs: a proxy to strike at its statements, and steps that are not run again."""

from collections.abc import Iterator

import pytest

from tests.support.database import Database
from tests.support.fault_proxy import FaultProxy
from tidings.db import engine as engine_module


@pytest.fixture
def proxy(engine: Database) -> Iterator[FaultProxy]:
    with FaultProxy(engine.server.port, engine.kind) as proxy:
        yield proxy


@pytest.fixture
def mortal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lost connection ends the step, as the end of its process would."""
    monkeypatch.setattr(engine_module, "_ATTEMPTS", 1)
