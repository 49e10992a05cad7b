"""`tidings listen`: a receiver for one's own trials."""

import asyncio
import datetime
import json
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from http.client import HTTPConnection
from ipaddress import ip_network
from pathlib import Path

import pytest
from standardwebhooks import Webhook

from tests.support.commands import run
from tests.support.processes import Process, tidings
from tidings.courier import Courier, Guard, Request, Result, signature_headers
from tidings.decisions.verifying import challenge_body, is_right_answer
from tidings.listener import MAX_BODY, Heard, Listener
from tidings.model.subscription import Verification

SECRET = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
OTHER = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
CHALLENGE = "abcdefghijklmnopqrstuvwxyz0123456789-_ABCDE"


class Trial:
    """A listener and somebody who sends to it by the product's own courier."""

    def __init__(self, secrets: tuple[str, ...], answer: int) -> None:
        self.heard: list[Heard] = []
        self.listener = Listener(self.heard.append, secrets, answer)
        guard = Guard(allow_networks=[ip_network("127.0.0.0/8")], allow_http_hosts=["127.0.0.1"])
        self.courier = Courier(guard, excerpt_size=4096)

    async def send(self, body: bytes, *, secret: str = SECRET, message: str = "msg_1") -> Result:
        signed = signature_headers(message, int(time.time()), body, [secret])
        url = f"http://127.0.0.1:{self.listener.port}/hook"
        return await self.courier.send(Request(url, body, signed, 20))


Trials = Callable[..., Awaitable[Trial]]


@pytest.fixture
async def trials() -> AsyncIterator[Trials]:
    begun: list[Trial] = []

    async def begin(secrets: tuple[str, ...] = (SECRET,), answer: int = 200) -> Trial:
        begun.append(Trial(secrets, answer))
        await begun[-1].listener.listen("127.0.0.1", 0)
        return begun[-1]

    yield begin
    for trial in begun:
        await trial.courier.close()
        await trial.listener.close()


async def test_a_signed_delivery_is_taken_and_one_of_somebody_else_is_not(trials: Trials) -> None:
    trial = await trials()
    assert (await trial.send(b'{"id": 1}')).status == 200
    assert (await trial.send(b'{"id": 1}', secret=OTHER, message="msg_2")).status == 401
    good, bad = trial.heard
    assert (good.is_signed, good.body, good.problem) == (True, b'{"id": 1}', "")
    assert bad.is_signed is False
    assert "signature" in bad.problem


async def test_several_secrets_may_be_known_or_none(trials: Trials) -> None:
    both, none = await trials((OTHER, SECRET)), await trials(())
    assert (await both.send(b"{}")).status == 200
    assert (await none.send(b"{}")).status == 200
    assert [both.heard[0].is_signed, none.heard[0].is_signed] == [True, None]


async def test_challenges_of_both_modes_are_answered(trials: Trials) -> None:
    trial = await trials((SECRET,), 500)
    result = await trial.send(challenge_body(1, CHALLENGE, 0))
    assert result.status == 200
    for mode in (Verification.PROOF, Verification.ECHO):
        assert is_right_answer(mode, CHALLENGE, [SECRET], result.excerpt)
    assert trial.heard[0].kind == "challenge"


async def test_a_challenge_that_is_not_signed_is_not_answered(trials: Trials) -> None:
    trial = await trials()
    result = await trial.send(challenge_body(1, CHALLENGE, 0), secret=OTHER)
    assert (result.status, result.excerpt) == (401, b"")


async def test_events_are_answered_as_one_wishes_and_known_again(trials: Trials) -> None:
    trial = await trials((SECRET,), 503)
    assert [(await trial.send(b"{}")).status for _ in range(2)] == [503, 503]
    assert [heard.is_repeated for heard in trial.heard] == [False, True]


async def test_what_is_too_long_or_no_delivery_is_refused(trials: Trials) -> None:
    trial = await trials()
    assert (await trial.send(b"x" * (MAX_BODY + 1))).status == 413
    asking = HTTPConnection("127.0.0.1", trial.listener.port, timeout=20)

    def get() -> int:
        asking.request("GET", "/")
        return asking.getresponse().status

    assert await asyncio.to_thread(get) == 405
    asking.close()
    assert trial.heard == []


def listening(start: Callable[[Process], Process], *words: str) -> tuple[Process, int]:
    """The command, at some port."""
    process = start(tidings("listen", "--port", "0", *words))
    return process, int(process.wait_for_line(r"Listening at http://127\.0\.0\.1:(\d+)/", 20)[1])


def post(port: int, body: str) -> int:
    now = datetime.datetime.now(datetime.UTC)
    signature = Webhook(SECRET).sign("msg_7", now, body)
    connection = HTTPConnection("127.0.0.1", port, timeout=20)
    headers = {
        "webhook-id": "msg_7",
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": signature,
        "tidings-event-type": "order.paid",
        "tidings-attempt": "2",
    }
    connection.request("POST", "/hook", body, headers)
    status = connection.getresponse().status
    connection.close()
    return status


@pytest.mark.slow
def test_each_delivery_is_one_line_that_can_do_nothing_to_a_terminal(start: Callable[[Process], Process]) -> None:
    process, port = listening(start, "--secret", SECRET, "--answer", "202")
    assert post(port, '{"text": "\x1b[31mred\n and more"}') == 202
    line = process.wait_for_line("order.paid").string
    assert all(word in line for word in ("✓", "msg_7", "attempt 2", "→ 202", "red  and more"))
    assert "\x1b" not in line
    process.terminate()
    assert process.wait() == 0


@pytest.mark.slow
def test_for_machines_each_delivery_is_one_line_of_json(start: Callable[[Process], Process]) -> None:
    process, port = listening(start, "--json")
    process.wait_for_line("not checked")
    assert post(port, '{"id": 1}') == 200
    told = json.loads(process.wait_for_line(r"^\{").string)
    assert (told["webhook_id"], told["event_type"], told["attempt"]) == ("msg_7", "order.paid", "2")
    assert (told["signed"], told["answered"], told["body"]) == (None, 200, '{"id": 1}')
    os.kill(process.pid, signal.SIGINT)
    assert process.wait() == 0


@pytest.mark.slow
def test_a_secret_that_is_none_and_a_port_that_is_taken_are_said(
    tmp_path: Path, start: Callable[[Process], Process]
) -> None:
    assert "secret" in run("listen", "--secret", "whsec_!", cwd=tmp_path, exit=2).stderr
    _, port = listening(start)
    assert "--port" in run("listen", "--port", str(port), cwd=tmp_path, exit=1).stderr
