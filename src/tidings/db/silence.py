"""Notices a server that is gone without a word: a host that lost its power closes no connection, and answers nobody."""

import socket
from typing import Any

# About 20 s in all. A server that is only busy still answers these by itself, however long a statement takes.
_SECONDS_IDLE, _SECONDS_BETWEEN, _TIMES = 5, 5, 3
# By their names, as not every system has all of them.
_OPTIONS = {
    "TCP_KEEPIDLE": _SECONDS_IDLE,
    "TCP_KEEPINTVL": _SECONDS_BETWEEN,
    "TCP_KEEPCNT": _TIMES,
    # Milliseconds, for what was sent and is not acknowledged: while that is so, nobody asks whether the other is there.
    "TCP_USER_TIMEOUT": (_SECONDS_IDLE + _SECONDS_BETWEEN * _TIMES) * 1000,
}


def notice_silence(transport: Any) -> None:
    """From now on a peer that is gone without a word is a lost connection."""
    connected = transport.get_extra_info("socket")
    if connected is None or connected.family not in (socket.AF_INET, socket.AF_INET6):
        return
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _OPTIONS.items():
        if (option := getattr(socket, name, None)) is not None:
            connected.setsockopt(socket.IPPROTO_TCP, option, value)
