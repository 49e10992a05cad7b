"""Headers that a subscription may add to its requests: those that can't change what the request means or carries."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from tidings.errors import SubscriptionRefused

MOST, LONGEST_IN_ALL = 20, 8 * 1024

TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""What HTTP allows as a name."""
_VALUE = re.compile(r"[!-~](?:[ -~]*[!-~])?")
_OF_THE_CLIENT = frozenset(
    {"accept-encoding", "connection", "content-encoding", "content-length", "cookie", "expect", "host"}
    | {"http2-settings", "keep-alive", "trailer", "transfer-encoding", "upgrade", "user-agent"}
    | {"te"}  # codespell:ignore te
)
_OURS = frozenset({"content-type", "date"})
_OUR_PREFIXES = ("webhook-", "tidings-")


def is_of_the_client(key: str) -> bool:
    """Whoever sets these, in small letters, decides what the request means or where it ends; only the client may."""
    return key in _OF_THE_CLIENT or key.startswith("proxy-")


def read_headers(raw: Any) -> dict[str, str]:
    """By their names in small letters; None is none. No message quotes a value: they are secret."""
    if raw is None:
        return {}
    if not isinstance(raw, Mapping):
        raise _refused("headers must be an object of names and values.")
    read: dict[str, str] = {}
    for name, value in raw.items():
        key = _name(name)
        if key in read:
            raise _refused(f"The header {key} is there twice.", "Join its values with a comma.")
        read[key] = _value(key, value)
    size = sum(len(name) + len(value) + 4 for name, value in read.items())
    if len(read) > MOST or size > LONGEST_IN_ALL:
        raise _refused(f"There are more than {MOST} headers, or more than {LONGEST_IN_ALL} bytes of them.")
    return read


def headers_in(lines: Iterable[str]) -> dict[str, str]:
    """Of lines as people type them, `Name: value`; what may be sent of them is not judged yet."""
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or name.strip() in headers:
            raise _refused("A header is there twice, or is not written as 'Name: value'.")
        headers[name.strip()] = value.strip(" ")
    return headers


def _name(name: Any) -> str:
    if not isinstance(name, str) or not TOKEN.fullmatch(name):
        raise _refused("A header has a name that HTTP does not allow.", "Use letters, digits and -, such as X-Api-Key.")
    key = name.lower()
    if is_of_the_client(key) or key in _OURS or key.startswith(_OUR_PREFIXES):
        raise _refused(f"The header {key} is set by Tidings itself.", "Leave it out.")
    return key


def _value(key: str, value: Any) -> str:
    if not isinstance(value, str) or not _VALUE.fullmatch(value):
        raise _refused(f"The value of the header {key} is empty or not visible ASCII (spaces may stand inside).")
    return value


def _refused(what: str, remedy: str = "") -> SubscriptionRefused:
    return SubscriptionRefused(what, remedy, field="headers")
