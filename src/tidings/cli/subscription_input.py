"""What people type about a subscription, as an action takes it."""

import sys
from typing import Any

from tidings.cli.listing import duration
from tidings.decisions.headers import headers_in
from tidings.decisions.subscribing import LIMITS
from tidings.errors import SubscriptionRefused
from tidings.settings.values import BadValue, read_whole_number

_RESET = "default"
_SECONDS = ("base_delay_seconds", "timeout_seconds")


def only_given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def limits(*texts: str | None) -> dict[str, Any]:
    """In the order of LIMITS; `default` resets one."""
    given = {name: text.strip() for name, text in zip(LIMITS, texts, strict=True) if text is not None}
    return {name: None if text == _RESET else _limit(name, text) for name, text in given.items()}


def headers(texts: list[str] | None) -> dict[str, str] | None:
    return None if texts is None else headers_in(texts)


def typed_secret(text: str | None) -> str | None:
    """`-` is for a line of standard input: what stands on a command line others can see."""
    return sys.stdin.readline().strip() if text == "-" else text


def _limit(name: str, text: str) -> float:
    if name in _SECONDS:
        return duration(text, name)
    try:
        return read_whole_number(text)
    except BadValue as bad:
        raise SubscriptionRefused(f"{name}: {bad}.", field=name) from None
