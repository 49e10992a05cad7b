"""The bare client as a process: first ready, then let go."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.payload import ADMIN_KEY

CONNECTIONS = 64


@contextmanager
def bare_client(
    kind: str, url: str, count: int, *, connections: int = CONNECTIONS, warm_up: int = 0, authority: Path | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Ready to send; `finish` lets it. `authority` is the certificate that it trusts."""
    environment = {**os.environ, "TIDINGS_ADMIN_KEY": ADMIN_KEY}
    if authority is not None:
        environment["SSL_CERT_FILE"] = str(authority)
    command = [sys.executable, "-m", "bench.bare_client", kind, url, str(count), str(connections), str(warm_up)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, text=True, env=environment, stdin=pipe, stdout=pipe) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == "ready\n"
        yield client


def finish(client: subprocess.Popen[str]) -> float:
    """All of its requests; how many seconds they took."""
    assert client.stdin is not None
    assert client.stdout is not None
    client.stdin.write("go\n")
    client.stdin.flush()
    return float(client.stdout.readline())
