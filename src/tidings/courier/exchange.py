"""What goes out and what comes back, and the bytes of a request: plain values and plain functions."""

from functools import lru_cache
from typing import NamedTuple

from tidings.courier.error_codes import INVALID_REQUEST, Failed
from tidings.decisions.destinations import Destination, authority
from tidings.decisions.headers import TOKEN, is_of_the_client


class Request(NamedTuple):
    """One attempt. `timeout` is in seconds and for all of it, from the look-up of the name to the end of the body."""

    url: str
    body: bytes
    headers: tuple[tuple[str, str], ...]
    timeout: float


class Result(NamedTuple):
    """What came of an attempt. `error_code` is None exactly for success; `excerpt` is how the body begins."""

    status: int | None
    error_code: str | None
    excerpt: bytes
    retry_after: int | None
    duration_ms: int


def opening(destination: Destination, user_agent: str) -> str:
    """The part of a request that is the same for each one to this URL."""
    return (
        f"POST {destination.target} HTTP/1.1\r\n"
        f"host: {authority(destination.scheme, destination.host, destination.port)}\r\n"
        f"user-agent: {user_agent}\r\n"
        "accept-encoding: identity\r\n"
        "content-length: "
    )


def request_bytes(opening: str, headers: tuple[tuple[str, str], ...], body: bytes) -> bytes:
    """The whole request in one piece; the body goes out as it is."""
    lines = [opening, str(len(body)), "\r\n"]
    for name, value in headers:
        # For ASCII, printable means from space to tilde: no line can end, no header can begin inside a value.
        if not (_may_be_set(name) and value.isascii() and value.isprintable()):
            raise Failed(INVALID_REQUEST)
        lines += (name, ": ", value, "\r\n")
    lines.append("\r\n")
    return "".join(lines).encode("ascii") + body


@lru_cache(maxsize=4096)
def _may_be_set(name: str) -> bool:
    return bool(TOKEN.fullmatch(name)) and not is_of_the_client(name.lower())
