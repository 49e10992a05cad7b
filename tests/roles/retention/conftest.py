"""A scene for every test of retention; between batches nobody waits."""

from collections.abc import AsyncIterator

import pytest

from tests.roles.retention.scene import Scene
from tests.support.database import Database
from tidings.roles.retention import retention


@pytest.fixture
async def scene(engine: Database, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    monkeypatch.setattr(retention, "PAUSE", 0)
    scene = await Scene.of(engine)
    yield scene
    await scene.close()
