"""A scene for every test of retention; between batches nobody waits."""

import pytest

from tests.roles.retention.scene import Scene
from tests.support.database import Database
from tidings.roles.retention import retention


@pytest.fixture
async def scene(engine: Database, monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setattr(retention, "PAUSE", 0)
    return await Scene.of(engine)
