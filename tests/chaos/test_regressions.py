"""What runs under fire have found in the product, as small as it can be; the seed that found it stands in each."""

import asyncio
import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest
import uvloop

from tests.roles.orchestrator.scene import JOBS, LIMITS, POLICY, Scene
from tests.support.database import Database
from tests.support.fault_proxy import FREEZE, Fault, FaultProxy
from tests.support.ports import LOOPBACK
from tidings.db.address import read_address
from tidings.db.dialect import LONGEST_IDLE
from tidings.db.engine import open_engine
from tidings.db.mysql import connect
from tidings.db.statements import Statement
from tidings.errors import ServerUnreachable, TransientFailure
from tidings.roles.orchestrator.orchestrator import Orchestrator
from tidings.roles.subscriptions import actions

RESET_ON_CLOSE = struct.pack("ii", 1, 0)


@pytest.fixture
def resetting_port() -> Iterator[int]:
    """Accepts and resets, at once: as a relay that is cut, or a server that is just going down."""
    listener = socket.create_server((LOOPBACK, 0))

    def serve() -> None:
        while True:
            try:
                accepted, _ = listener.accept()
            except OSError:
                return
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
            accepted.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join(5)


def test_a_connection_that_is_reset_while_it_is_made_is_a_server_out_of_reach(resetting_port: int) -> None:
    """`--engine mariadb --tier commit --seed 1`: asyncmy's RuntimeError ended the activity, which was begun again."""
    address = read_address(f"mysql://a:b@{LOOPBACK}:{resetting_port}/x")

    async def be_busy() -> None:
        # With other work in between, the reset is there before the driver has asked for the socket.
        while True:
            threading.Event().wait(0.003)
            await asyncio.sleep(0)

    async def dial() -> None:
        busy = asyncio.create_task(be_busy())
        for _ in range(5):
            with pytest.raises(ServerUnreachable):
                await connect(address, application="test", schema="", group="")
        busy.cancel()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(dial())


LOCK = Statement("test.lock", "SELECT version FROM config_version FOR UPDATE", ())


async def fall_silent(engine: Database, waited: list[float]) -> None:
    """Holds a row, says nothing until another one has it, and goes on then; `waited`: for how long the other had to."""
    silent, other = await engine.open("schema_owner", size=1), await engine.open("schema_owner", size=1)
    limit = {"postgresql": "idle_in_transaction_session_timeout = '1s'", "mysql": "idle_transaction_timeout = 1"}
    async with silent.transaction() as transaction:
        await transaction.command(f"SET {limit[engine.family]}")
        began = time.monotonic()
        await transaction.rows(LOCK)
        async with other.transaction() as waiting:
            await waiting.rows(LOCK)
        waited.append(time.monotonic() - began)
        await transaction.rows(LOCK)


@pytest.mark.slow
async def test_a_process_that_freezes_in_a_transaction_does_not_hold_up_the_others(engine: Database) -> None:
    """`--engine mariadb --tier commit --seed 4`: reports of a worker that was well waited for one that was frozen."""
    waited: list[float] = []
    with pytest.raises(TransientFailure):
        await fall_silent(engine, waited)
    assert 0.5 < waited[0] < 8


async def test_every_transaction_of_ours_has_that_limit(engine: Database) -> None:
    asking = {
        "postgresql": "SELECT current_setting('idle_in_transaction_session_timeout') AS found",
        "mysql": "SELECT CONCAT(@@SESSION.idle_transaction_timeout, 's') AS found",
    }
    for role in ("job_worker", "event_router"):
        opened = await engine.open(role)
        async with opened.transaction() as transaction:
            (row,) = await transaction.rows(Statement("test.limit", asking[engine.family], ()))
        assert row["found"] == f"{LONGEST_IDLE}s"


@pytest.mark.slow
async def test_a_pause_holds_also_for_a_step_that_stood_still_between_its_transactions(engine: Database) -> None:
    """`--engine mariadb --tier commit --seed 4`: jobs were made up to 2.5 s into a pause.

    What may be sent to was read when results were taken in; the transaction that starts jobs came later, by as long as
    a connection was frozen, or locks and retries lay between the two.
    """
    scene = await Scene.of(engine)
    subscription = await scene.subscription()
    await scene.sagas(subscription, 3)
    with FaultProxy(engine.server.port, engine.kind) as proxy:
        url = proxy.url(engine.url("saga_orchestrator"))
        slow = await open_engine(url, owner="saga_orchestrator", names=engine.names)
        proxy.arm(Fault("saga_orchestrator.begin", FREEZE, "before", nth=2))
        stepping = asyncio.create_task(Orchestrator(slow, POLICY, LIMITS).step())
        await proxy.until_fired()
        await actions.pause(await engine.open("subscription_admin"), subscription, actor="test")
        proxy.thaw()
        await stepping
        await slow.close()
    assert await scene.count(JOBS) == 0
