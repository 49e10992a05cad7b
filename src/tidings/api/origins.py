"""From where a request came: the other end of the connection, or what a proxy that we trust says of it."""

import ipaddress
from collections.abc import Collection, Iterable

from tidings.decisions.addresses import Network

_FORWARDED = b"x-forwarded-for"
_MOST_PROXIES = 20


def origin(peer: str, headers: Iterable[tuple[bytes, bytes]], proxies: Collection[Network]) -> str:
    """The last address that is none of our proxies: what stands before it anybody may have written.

    Several lines of the header are one list; a proxy may add a line of its own.
    """
    address = peer
    lines = [value for name, value in headers if name == _FORWARDED]
    told = b",".join(lines).decode("latin-1").split(",")[-_MOST_PROXIES:]
    while told and _is_one_of(address, proxies):
        said = told.pop().strip()
        if not _is_address(said):
            break
        address = said
    return address


def _is_one_of(address: str, proxies: Collection[Network]) -> bool:
    return bool(proxies) and _is_address(address) and any(ipaddress.ip_address(address) in one for one in proxies)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
