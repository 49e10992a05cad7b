"""The console on a real socket, on both engines; visitors without a browser, and pages in a real one."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest
from playwright.async_api import Browser, async_playwright

from tests.api.conftest import Served, serving
from tests.console.browsing import ARGUMENTS, chromium
from tests.console.visitor import Visitor
from tests.support.database import Database
from tidings.model.key import Scope

SignIn = Callable[..., Awaitable[Visitor]]


@pytest.fixture
async def served(engine: Database) -> AsyncIterator[Served]:
    async with serving(engine) as served:
        yield served


@pytest.fixture
async def sign_in(served: Served) -> AsyncIterator[SignIn]:
    """`await sign_in("viewer")`, or with `domain=`, or with `key=`: somebody who is signed in."""
    async with AsyncExitStack() as visitors:

        async def sign_in(scope: Scope | str = Scope.ADMIN, domain: str | None = None, key: str = "") -> Visitor:
            visitor = await visitors.enter_async_context(Visitor(served.url))
            response = await visitor.sign_in(key or await served.key(scope, domain=domain))
            assert response.status_code == 303, response.text
            return visitor

        yield sign_in


@pytest.fixture
async def visitor(served: Served) -> AsyncIterator[Visitor]:
    """Somebody who is not signed in."""
    async with Visitor(served.url) as visitor:
        yield visitor


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    path = chromium()
    if path is None:
        pytest.skip("there is no Chromium; `make servers` installs one")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        await browser.close()
