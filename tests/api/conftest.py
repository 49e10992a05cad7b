"""The API on a real socket, in the loop of the test, on both engines, with a key for each scope."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from tests.roles.dead_letters.scene import Scene
from tests.support.database import Database
from tidings.api.server import serve
from tidings.db.accounts import ALL_ROLES
from tidings.db.engine import Engine
from tidings.decisions.keys import check_new_key
from tidings.model.key import Scope
from tidings.roles.keys import actions as keys
from tidings.settings import load_settings
from tidings.telemetry.bus import listening
from tidings.telemetry.notices import ApiListening, Notice
from tidings.wiring import Installation

SECRET_KEY = secrets.token_hex(32)
# What a process of the API says when it listens, and where.
TAKES_REQUESTS = r"(http://[\d.]+:\d+).*takes requests"


async def no_metrics() -> bytes:
    return b""


class Served:
    """A running API. `as_` is a client with the key of a scope; without one it has none."""

    def __init__(self, database: Database, url: str) -> None:
        self.database = database
        self.url = url
        self.keys: dict[str, str] = {}
        self._clients: list[httpx.AsyncClient] = []
        self._key_admin: Engine | None = None

    def client(self, key: str = "", **options: Any) -> httpx.AsyncClient:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        made = httpx.AsyncClient(base_url=self.url, headers=headers, timeout=20, **options)
        self._clients.append(made)
        return made

    def as_(self, scope: Scope | str) -> httpx.AsyncClient:
        return self.client(self.keys[str(scope)])

    async def key(self, *scopes: Scope | str, domain: str | None = None) -> str:
        if self._key_admin is None:
            self._key_admin = await self.database.open("key_admin")
        made = await keys.add(self._key_admin, check_new_key("test", [str(scope) for scope in scopes], domain), "test")
        return made.key

    async def close(self) -> None:
        for client in self._clients:
            await client.aclose()


def settings_of(database: Database, **more: str) -> dict[str, str]:
    return {
        **database.environment(),
        "TIDINGS_HOST": "127.0.0.1",
        "TIDINGS_PORT": "0",
        "TIDINGS_SECRET_KEYS": SECRET_KEY,
        "TIDINGS_ALLOW_HTTP_HOSTS": "127.0.0.1",
        "TIDINGS_ALLOW_NETWORKS": "127.0.0.0/8",
        **more,
    }


@asynccontextmanager
async def serving(
    database: Database, ring: Callable[[str], None] = lambda process: None, **more: str
) -> AsyncIterator[Served]:
    """`ring` hears which processes would be woken."""
    found = Installation(load_settings(environ=settings_of(database, **more), roles=ALL_ROLES), None)
    stopping, started = asyncio.Event(), asyncio.get_running_loop().create_future()

    def hear(notice: Notice) -> None:
        if isinstance(notice, ApiListening) and not started.done():
            started.set_result(notice.url)

    with listening(hear, ApiListening):
        running = asyncio.create_task(serve(found, no_metrics, ring, stopping))
        await asyncio.wait({running, started}, return_when=asyncio.FIRST_COMPLETED)
    if running.done():
        running.result()
    served = Served(database, await started)
    try:
        for scope in Scope:
            served.keys[scope] = await served.key(scope)
        yield served
    finally:
        await served.close()
        stopping.set()
        await running


@pytest.fixture
async def served(engine: Database) -> AsyncIterator[Served]:
    async with serving(engine) as served:
        yield served


@pytest.fixture
async def scene(engine: Database) -> Scene:
    return Scene(engine, await engine.open("dead_letter_operator"))


@pytest.fixture
def admin(served: Served) -> httpx.AsyncClient:
    return served.as_(Scope.ADMIN)


def problem(response: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """What every error is, whoever made it."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    said: dict[str, Any] = response.json()
    assert set(said) == {"type", "title", "status", "detail", "instance", "code", "request_id", "errors"}
    assert (said["status"], said["code"], said["type"]) == (status, code, f"urn:tidings:problem:{code}")
    assert said["request_id"] == response.headers["x-request-id"]
    assert "Traceback" not in response.text
    return said
