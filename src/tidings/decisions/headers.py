"""Headers that a subscription may add to its requests: those that can't change what the request means or carries."""

import re
from collections.abc import Mapping
from typing import Any

from tidings.errors import SubscriptionRefused

MOST, LONGEST_IN_ALL = 20, 8 * 1024

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[!-~](?:[ -~]*[!-~])?")
_OURS = frozenset(
    {"connection", "content-encoding", "content-length", "content-type", "cookie", "date", "expect", "host"}
    | {"accept-encoding", "http2-settings", "keep-alive", "trailer", "transfer-encoding", "upgrade"}
    | {"te"}  # codespell:ignore te
)
_OUR_PREFIXES = ("webhook-", "tidings-", "proxy-")


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


def _name(name: Any) -> str:
    if not isinstance(name, str) or not _TOKEN.fullmatch(name):
        raise _refused("A header has a name that HTTP does not allow.", "Use letters, digits and -, such as X-Api-Key.")
    key = name.lower()
    if key in _OURS or key.startswith(_OUR_PREFIXES):
        raise _refused(f"The header {key} is set by Tidings itself.", "Leave it out.")
    return key


def _value(key: str, value: Any) -> str:
    if not isinstance(value, str) or not _VALUE.fullmatch(value):
        raise _refused(f"The value of the header {key} is empty or not visible ASCII (spaces may stand inside).")
    return value


def _refused(what: str, remedy: str = "") -> SubscriptionRefused:
    return SubscriptionRefused(what, remedy, field="headers")
