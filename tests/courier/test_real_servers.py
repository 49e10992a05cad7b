"""Servers that others have written: nginx, if it is installed, and httpbin."""

import asyncio
import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from bench.courier.sink import Sink, running
from tests.courier.endpoints import LOOPBACK_ALLOWED, request
from tests.support.ports import ReservedPort
from tests.support.waiting import wait_until
from tidings.courier import Courier, Guard, signature_headers, verify

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
HTTPBIN = "import sys; from httpbin import app; app.run(port=int(sys.argv[1]), threaded=True)"


@pytest.fixture(scope="module")
def nginx() -> Iterator[Sink]:
    if not (shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")):
        pytest.skip("nginx is not installed")
    with running("nginx") as sink:
        yield sink


@pytest.fixture(scope="module")
def httpbin() -> Iterator[str]:
    port = ReservedPort()
    command = [sys.executable, "-W", "ignore", "-c", HTTPBIN, str(port.number)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: _answers(port.number), timeout=60, what="httpbin")
        yield f"http://127.0.0.1:{port.number}"
    finally:
        process.terminate()
        process.wait(10)
        port.release()


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_nginx_gets_a_thousand_requests_over_a_few_connections(nginx: Sink, scheme: str) -> None:
    courier = Courier(Guard(**LOOPBACK_ALLOWED), per_host=8, tls=nginx.trusted)
    url = nginx.http if scheme == "http" else nginx.https
    results = await asyncio.gather(*[courier.send(request(url, b"x" * 1000, timeout=30)) for _ in range(1000)])
    assert {(result.status, result.error_code, result.excerpt) for result in results} == {(200, None, b"ok\n")}
    assert courier.open_connections == 8
    await courier.close()


async def test_nginx_refuses_a_body_that_is_too_large(nginx: Sink, courier: Courier) -> None:
    """It answers before it has read everything, and closes."""
    result = await courier.send(request(nginx.http, b"x" * 2_000_000))
    assert (result.status, result.error_code) == (413, "http_413")


async def test_nginx_says_that_http_to_its_https_port_is_wrong(nginx: Sink, courier: Courier) -> None:
    result = await courier.send(request(nginx.https.replace("https", "http")))
    assert result.error_code == "http_400"


@pytest.mark.slow
async def test_httpbin_gets_what_was_sent_and_the_signature_fits(httpbin: str, courier: Courier) -> None:
    body = b'{"b": 1,  "a": [1.0, 1e2]}'
    signature = dict(signature_headers("msg_1", 1_700_000_000, body, [SECRET]))
    sent = request(f"{httpbin}/post", body, timeout=30)
    result = await courier.send(sent._replace(headers=(*sent.headers, *signature.items())))
    echo = json.loads(result.excerpt)
    assert (result.status, echo["data"].encode()) == (200, body)
    verify(echo["headers"], echo["data"], SECRET, now=1_700_000_000)
    assert "Cookie" not in echo["headers"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/status/204", 204, None),
        ("/status/418", 418, "http_418"),
        ("/status/503", 503, "http_503"),
        ("/redirect-to?url=http://169.254.169.254/", 302, "http_302"),
        ("/delay/9", None, "timeout"),
        ("/nowhere", 404, "http_404"),
        ("/get", 405, "http_405"),
    ],
)
async def test_what_httpbin_answers_comes_to_its_status_and_a_code(
    httpbin: str, courier: Courier, path: str, status: int | None, code: str | None
) -> None:
    result = await courier.send(request(httpbin + path, timeout=1 if code == "timeout" else 30))
    assert (result.status, result.error_code) == (status, code)


@pytest.mark.slow
async def test_who_answered_well_can_not_ask_to_wait(httpbin: str, courier: Courier) -> None:
    result = await courier.send(request(f"{httpbin}/response-headers?Retry-After=11", timeout=30))
    assert (result.status, result.retry_after) == (200, None)
