"""Ports on loopback: which are free, and whether somebody listens there."""

import socket
from contextlib import ExitStack, suppress

LOOPBACK = "127.0.0.1"


def free_port() -> int:
    (port,) = free_ports(1)
    return port


def free_ports(count: int) -> list[int]:
    """No two alike: each is held until the last one is found."""
    with ExitStack() as held:
        probes = [held.enter_context(socket.create_server((LOOPBACK, 0))) for _ in range(count)]
        return [probe.getsockname()[1] for probe in probes]


def listens(port: int) -> bool:
    with suppress(OSError):
        socket.create_connection((LOOPBACK, port), timeout=1).close()
        return True
    return False
