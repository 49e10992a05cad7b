"""Everything about sending is tried on both event loops: that of the standard library, and uvloop, which we use."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable

import pytest
import trustme
import uvloop

from tests.courier.endpoints import LOOPBACK_ALLOWED
from tidings.courier import Courier, Guard
from tidings.courier.dialing import new_tls_context

NewLoop = Callable[[], asyncio.AbstractEventLoop]


def pytest_asyncio_loop_factories(config: pytest.Config, item: pytest.Item) -> dict[str, NewLoop]:
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="session")
def trusting(authority: trustme.CA) -> ssl.SSLContext:
    """Trusts the authority of the tests, and is otherwise what the courier uses."""
    context = new_tls_context()
    authority.configure_trust(context)
    return context


@pytest.fixture
async def courier(trusting: ssl.SSLContext) -> AsyncIterator[Courier]:
    """May call loopback. Whatever a test did, no connection is open at the end."""
    courier = Courier(Guard(**LOOPBACK_ALLOWED), tls=trusting, max_response=16 * 1024)
    yield courier
    await courier.close()
    assert courier.open_connections == 0
