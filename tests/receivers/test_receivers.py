"""The receivers of examples/receivers, run as they stand there, verified and delivered to by the real product."""

import asyncio
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.roles.verifier.scene import OTHER_SECRET, RULES
from tests.support.database import Database
from tests.support.ports import LOOPBACK, ReservedPort
from tests.support.processes import Process, tidings
from tests.support.waiting import eventually
from tidings.courier.signing import signature_headers
from tidings.roles.subscriptions import actions
from tidings.roles.verifier.asking import ask_verification
from tidings.vault import Vault

FOLDER = Path(__file__).parents[2] / "examples" / "receivers"
KEY = "the-key-of-these-tests"
SETTINGS = {
    "TIDINGS_SECRET_KEYS": KEY,
    "TIDINGS_PORT": "0",
    "TIDINGS_ALLOW_HTTP_HOSTS": LOOPBACK,
    "TIDINGS_ALLOW_NETWORKS": "127.0.0.0/8",
}
STARTED = {
    "fastapi": ["-m", "uvicorn", "with_fastapi:app", "--port", "{port}"],
    "flask": ["-m", "flask", "--app", "with_flask", "run", "--port", "{port}"],
    "django": ["with_django.py", "runserver", f"{LOOPBACK}:{{port}}", "--noreload"],
}


@dataclass
class Trial:
    """One of the receivers, as a process, and the subscription that leads there."""

    framework: str
    port: int
    secret: str
    subscription: int
    process: Process

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}/in"

    async def is_up(self) -> bool:
        try:
            async with httpx.AsyncClient() as client:
                await client.get(self.url)
        except httpx.TransportError:
            return False
        return True

    async def posted(self, secret: str, message: str = "msg_forged", at: float = 0, body: bytes = b"{}") -> int:
        headers = dict(signature_headers(message, int(at or time.time()), body, [secret]))
        async with httpx.AsyncClient() as client:
            answer = await client.post(self.url, content=body, headers={**headers, "tidings-event-type": "x"})
        return answer.status_code


@pytest.fixture
def ports() -> Iterator[Callable[[], int]]:
    reserved: list[ReservedPort] = []

    def port() -> int:
        reserved.append(ReservedPort())
        return reserved[-1].number

    yield port
    for one in reserved:
        one.release()


async def begun(framework: str, port: int, engine: Database, start: Callable[[Process], Process]) -> Trial:
    url = f"http://{LOOPBACK}:{port}/in"
    given = {"event_type": "order.*", "callback_url": url}
    admin = await engine.open("subscription_admin")
    made = await actions.create(admin, given, actor="test", rules=RULES, vault=Vault([KEY]))
    command = [sys.executable, *(word.format(port=port) for word in STARTED[framework])]
    process = Process(command, {"WEBHOOK_SECRET": made.secret, "PYTHONUNBUFFERED": "1"}, cwd=FOLDER)
    return Trial(framework, port, made.secret, made.subscription.id, start(process))


@pytest.mark.slow
@pytest.mark.one_engine("postgresql", reason="what a receiver gets is the same, whichever engine it comes from")
async def test_the_receivers_of_the_guide_are_verified_and_take_deliveries_once(
    engine: Database, ports: Callable[[], int], start: Callable[[Process], Process]
) -> None:
    trials = [await begun(name, ports(), engine, start) for name in STARTED]
    await engine.sql("INSERT INTO routes (event_type, target) VALUES ('*', 'webhook')")
    await engine.sql("INSERT INTO gates (name, is_open) VALUES ('routing', true), ('router:default', true)")
    start(tidings("run", "router", "orchestrator", "worker", "verifier", **engine.environment(), **SETTINGS))
    verifier = await engine.open("subscription_verifier")
    for trial in trials:
        await eventually(trial.is_up, 60, f"the receiver of {trial.framework}")
        await ask_verification(verifier, trial.subscription, actor="test", rules=RULES.destinations)

    async def there_is_one_for_each(rows: str) -> bool:
        return int(await engine.value(f"SELECT count(*) FROM {rows}")) == len(trials)

    await eventually(lambda: there_is_one_for_each("subscriptions WHERE verified"), 60, "proofs")
    await engine.sql("""INSERT INTO events (event_type, payload) VALUES ('order.paid', '{"order": "Zürich 7"}')""")
    done = "webhook_delivery_sagas WHERE status = 'Completed'"
    await eventually(lambda: there_is_one_for_each(done), 60, "three deliveries")
    for trial in trials:
        told = re.escape('new: order.paid {"order": "Zürich 7"}')
        await asyncio.to_thread(trial.process.wait_for_line, told, 30)
        assert await trial.posted(OTHER_SECRET) == 401, trial.framework
        assert await trial.posted(trial.secret, at=time.time() - 3600) == 401, trial.framework
        assert [await trial.posted(trial.secret, "msg_twice") for _ in range(2)] == [204, 204], trial.framework
        await asyncio.to_thread(trial.process.wait_for_line, "new: x", 30)
        assert trial.process.output.count("new: x") == 1, trial.framework
