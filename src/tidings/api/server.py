"""Serves the API: uvicorn inside our loop, without its own signals and its own log."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache, partial
from typing import Any, cast

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from tidings.api.app import application, build
from tidings.api.background import Background
from tidings.api.context import Api
from tidings.api.exchange import ASGIScope
from tidings.api.pools import Pools
from tidings.api.problems import CONTENT_TYPE, Refused, document
from tidings.db.migrations.migrator import Migrator
from tidings.errors import TidingsError
from tidings.ids import new_request_id
from tidings.model.event import EventLimits
from tidings.roles.ingest.service import Ingest
from tidings.roles.key_checker.checking import KeyChecker
from tidings.roles.keys import actions as keys
from tidings.settings import Settings
from tidings.telemetry.bus import tell
from tidings.telemetry.notices import ApiListening
from tidings.wiring import Installation, rules_of

ACTOR = "TIDINGS_ADMIN_KEY"
_SECONDS_TO_DRAIN = 20
Metrics = Callable[[], Awaitable[bytes]]


class _Protocol(HttpToolsProtocol):
    """What is no HTTP at all is refused in the same form as everything else; whole answers can be said at once."""

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        cast(ASGIScope, cycle.scope)["tidings.at_once"] = partial(_say_at_once, cycle)
        super()._start_asgi_task(cycle, app)

    def send_400_response(self, msg: str) -> None:
        status, body = document(Refused("malformed", "This is no HTTP request."), "", new_request_id())
        head = f"HTTP/1.1 {status} Bad Request\r\ncontent-type: {CONTENT_TYPE}\r\ncontent-length: {len(body)}\r\n"
        self.transport.write(f"{head}connection: close\r\n\r\n".encode() + body)
        self.transport.close()


def _say_at_once(cycle: RequestResponseCycle, head: bytes, body: bytes) -> bool:
    """Head and body in one write, if nothing speaks against it: two took an eighth of what an event costs."""
    if cycle.response_started or cycle.disconnected or cycle.flow.write_paused or not cycle.keep_alive:
        return False
    own = b"".join(b"%b: %b\r\n" % header for header in cycle.default_headers)
    cycle.transport.write(b"%b%b\r\n%b" % (head, own, body))
    cycle.response_started = cycle.response_complete = True
    cycle.message_event.set()
    cycle.on_response()
    return True


class _Server(uvicorn.Server):
    """Signals are the supervisor's."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listening in sockets or ():
            host, port = listening.getsockname()[:2]
            tell(ApiListening(f"http://{f'[{host}]' if ':' in host else host}:{port}"))

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def prepare() -> None:
    """What takes long and blocks: done before a loop has others to serve."""
    application()


async def serve(found: Installation, metrics: Metrics, ring: Callable[[str], None], stopping: asyncio.Event) -> None:
    """Until all must stop; requests that were begun are answered first. `ring` wakes a process, by its name."""
    if found.settings.server.admin_key:
        async with found.engine("key_admin", size=1) as engine:
            await keys.ensure(engine, found.settings.server.admin_key, ACTOR)
    with _listening(found.settings) as listening:
        async with open_api(found, metrics, ring) as api:
            await _serve(api, listening, stopping)


@asynccontextmanager
async def open_api(
    found: Installation, metrics: Metrics, ring: Callable[[str], None] = lambda process: None
) -> AsyncIterator[Api]:
    """All that handlers need. At its end everybody who waits has an answer, and every connection is closed."""
    pools, background = Pools(found), Background()
    opened: list[Ingest] = []

    async def ingest() -> Ingest:
        if not opened:
            engine = await pools.engine("event_ingest_writer")
            opened.append(Ingest(engine, on_published=lambda: ring("router")))
        return opened[0]

    async def missing_steps() -> int:
        return len(await Migrator(await pools.engine("observer"), found.names).missing_steps())

    settings = found.settings
    try:
        yield Api(
            pools=pools,
            checker=KeyChecker(lambda: pools.engine("key_checker")),
            ingest=ingest,
            limits=EventLimits(settings.ingest.max_payload, settings.ingest.max_nesting),
            rules=rules_of(settings),
            vault=cache(found.vault),
            retry_limit=settings.retries.max_retry_limit,
            missing_steps=missing_steps,
            metrics=metrics,
            background=background,
            ring=ring,
            proxies=settings.server.trusted_proxies,
        )
    finally:
        await background.stop()
        for one in opened:
            await one.close()
        await pools.close()


async def _serve(api: Api, listening: socket.socket, stopping: asyncio.Event) -> None:
    logging.getLogger("uvicorn").addHandler(logging.NullHandler())
    logging.getLogger("uvicorn").propagate = False
    config = uvicorn.Config(
        build(api),
        http=_Protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=_SECONDS_TO_DRAIN,
    )
    server = _Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    told = asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait({serving, told}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        server.should_exit = True
        told.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await serving


@contextmanager
def _listening(settings: Settings) -> Iterator[socket.socket]:
    """Bound before anything else: where the port is taken, that is said at once."""
    host, port = settings.server.host, settings.server.port
    try:
        listening = socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=2048
        )
    except OSError as error:
        raise TidingsError(
            f"The API can't listen at {host}:{port}: {error.strerror or error}.",
            "Set TIDINGS_HOST and TIDINGS_PORT to an address that is free; port 0 takes a free one.",
        ) from error
    with listening:
        yield listening
