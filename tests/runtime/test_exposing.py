"""What a process shows of itself: its own counts, depths that are read when they are wanted, and that it lives."""

import asyncio
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress

import pytest

from tests.support.database import Database
from tests.support.ports import LOOPBACK, ReservedPort
from tests.support.processes import Process, tidings
from tests.support.waiting import eventually
from tidings.errors import TidingsError
from tidings.runtime.exposing import Exposition
from tidings.telemetry import bus
from tidings.telemetry.bus import tell
from tidings.telemetry.metrics import Metrics
from tidings.telemetry.notices import SagasRequeued


@pytest.fixture(autouse=True)
def silence() -> Iterator[None]:
    """Who listens for ever listens no longer than the test."""
    before = [*bus._listeners]
    yield
    bus._listeners[:] = before
    bus._hearers.clear()


@pytest.fixture
def port() -> Iterator[int]:
    reserved = ReservedPort()
    yield reserved.number
    reserved.release()


@pytest.fixture
def reads() -> list[str]:
    return []


@pytest.fixture
async def shown(port: int, reads: list[str]) -> AsyncIterator[Exposition]:
    async def read(metrics: Metrics) -> None:
        reads.append("once")
        if len(reads) > 1:
            raise TidingsError("The server is away.")
        metrics.depth.labels("jobs_pending").set(7)

    exposition, stopping = Exposition(read), asyncio.Event()
    serving = asyncio.create_task(exposition.serve(LOOPBACK, port, stopping))
    yield exposition
    stopping.set()
    await asyncio.wait_for(serving, 5)


async def get(port: int, path: str) -> tuple[int, str]:
    def ask() -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://{LOOPBACK}:{port}{path}", timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    return await asyncio.to_thread(ask)


async def until_served(port: int) -> None:
    async def is_served() -> bool:
        try:
            return (await get(port, "/healthz")) == (200, "ok\n")
        except OSError:
            return False

    await eventually(is_served, 30, "the endpoint")


async def test_what_was_told_is_counted_and_shown(shown: Exposition, port: int) -> None:
    await until_served(port)
    tell(SagasRequeued((1, 2, 3)))
    status, text = await get(port, "/metrics")
    assert status == 200
    assert "tidings_requeued_total 3.0" in text
    assert 'tidings_depth{stage="jobs_pending"} 7.0' in text
    assert "process_resident_memory_bytes" in text


async def test_depths_are_read_once_in_a_while_however_often_somebody_asks(
    shown: Exposition, port: int, reads: list[str]
) -> None:
    await until_served(port)
    await asyncio.gather(*(get(port, "/metrics") for _ in range(5)))
    assert len(reads) == 1


async def test_depths_that_cannot_be_read_are_not_shown_and_the_rest_is(
    shown: Exposition, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidings.runtime.exposing.SECONDS_FRESH", 0.0)
    await until_served(port)
    await get(port, "/metrics")
    status, text = await get(port, "/metrics")
    assert status == 200
    assert "tidings_depth{" not in text
    assert "tidings_requeued_total" in text


@pytest.mark.parametrize("said", [b"GET /else HTTP/1.1\r\n\r\n", b"POST /metrics HTTP/1.1\r\n\r\n"])
async def test_any_other_path_or_method_is_not_found(shown: Exposition, port: int, said: bytes) -> None:
    await until_served(port)
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    writer.write(said)
    assert (await reader.read()).startswith(b"HTTP/1.1 404 ")
    writer.close()


@pytest.mark.parametrize("said", [b"\r\n\r\n", b"x" * 40_000, b"GET /metrics"])
async def test_what_is_no_request_does_no_harm(
    shown: Exposition, port: int, said: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidings.runtime.exposing.SECONDS_TO_ASK", 0.2)
    await until_served(port)
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    writer.write(said)
    with suppress(ConnectionError):
        assert b"200" not in await reader.read()
    writer.close()
    assert (await get(port, "/healthz"))[0] == 200


async def test_a_port_that_is_taken_is_said_so(shown: Exposition, port: int) -> None:
    await until_served(port)
    with pytest.raises(TidingsError, match=f"{LOOPBACK}:{port}"):
        await shown.serve(LOOPBACK, port, asyncio.Event())


@pytest.mark.slow
async def test_a_process_shows_its_own_counts_and_what_waits_in_the_database(
    engine: Database, start: Callable[[Process], Process], port: int
) -> None:
    for gate in ("routing", "router:default"):
        await engine.sql(f"INSERT INTO gates (name, is_open) VALUES ('{gate}', true)")
    await engine.sql("INSERT INTO routes (event_type, target) VALUES ('*', 'webhook')")
    await engine.sql(
        "INSERT INTO subscriptions (event_type, callback_url, active, verified)"
        " VALUES ('*', 'https://example.com/', true, true)"
    )
    await engine.sql("INSERT INTO events (event_type, payload) VALUES ('order.paid', '{}')")
    start(tidings("run", "router", "--metrics-port", str(port), **engine.environment()))
    await until_served(port)

    async def is_shown() -> bool:
        _, text = await get(port, "/metrics")
        return (
            'tidings_events_routed_total{status="sent"} 1.0' in text
            and 'tidings_depth{stage="sagas_pending"} 1.0' in text
            and 'tidings_processes{process="router"} 1.0' in text
        )

    await eventually(is_shown, 20, "the counts and the depths")
