"""Where webhooks may go: reads a callback URL once, strictly, into the form that is stored and called.

No name is looked up here. What a name leads to is judged by the same rules for addresses when it is connected to.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address

from tidings.decisions.addresses import Address, Allowed, is_allowed, is_never_called, is_public
from tidings.errors import SubscriptionRefused

LONGEST_URL, LONGEST_HOST = 2048, 253
PORTS = {"https": 443, "http": 80}
LOCAL_SUFFIXES = (".localhost", ".local", ".internal", ".home.arpa", ".onion", ".test", ".invalid")

_WHOLE = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?]*)(.*)")
_AUTHORITY = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*)(?::([0-9]{1,5}))?")
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_TARGET = re.compile(r"(?:[A-Za-z0-9._~:/?\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*")

_NEVER_NAMES = frozenset(
    ("metadata.google.internal", "metadata.goog", "metadata", "instance-data", "metadata.tencentyun.com")
)


@dataclass(frozen=True)
class Destination:
    """A URL that may be called, in parts. `host` is a name in small letters or an address without brackets."""

    scheme: str
    host: str
    port: int
    target: str
    url: str


@dataclass(frozen=True)
class DestinationRules:
    """What the settings allow beyond public names by https."""

    http_hosts: Collection[str] = ()
    networks: Collection[Allowed] = ()
    ports: Collection[int] = (443,)


def read_destination(raw: object, rules: DestinationRules) -> Destination:
    """The destination, or SubscriptionRefused with what is wrong and what would be right."""
    scheme, host, port, target = _parts(_checked_text(raw))
    name = host.removesuffix(".").lower()
    address = _address(name)
    host = str(address) if address else _checked_name(name)
    port = port or PORTS[scheme]
    found = Destination(scheme, host, port, target, f"{scheme}://{authority(scheme, host, port)}{target}")
    if len(found.url) > LONGEST_URL:
        raise _refused(f"The URL is longer than {LONGEST_URL} characters.")
    _judge(found, address, rules)
    return found


def authority(scheme: str, host: str, port: int) -> str:
    """Host and port as URLs and requests write them: without the port that the scheme has anyway."""
    written = f"[{host}]" if ":" in host else host
    return written if port == PORTS[scheme] else f"{written}:{port}"


def is_on_allow_lists(destination: Destination, rules: DestinationRules) -> bool:
    """Whether somebody who writes the settings named this host or its address."""
    address = _address(destination.host)
    return _is_listed(destination.host, rules) or (
        address is not None and is_allowed(address, destination.port, rules.networks)
    )


def _checked_text(raw: object) -> str:
    if not isinstance(raw, str) or not raw:
        raise _refused("There is no URL.", "Give one such as https://example.com/hook.")
    if len(raw) > LONGEST_URL:
        raise _refused(f"The URL is longer than {LONGEST_URL} characters.")
    if not raw.isascii():
        raise _refused(
            "The URL has signs outside ASCII.", "Write the host in punycode (xn--…) and percent-encode the rest."
        )
    # Before anything is parsed: programs disagree about what these mean.
    if any(sign <= " " or sign in "\\\x7f" for sign in raw):
        raise _refused(
            "The URL has a space, a control character or a backslash.", "Percent-encode it, or leave it out."
        )
    return raw


def _parts(text: str) -> tuple[str, str, int | None, str]:
    if "#" in text:
        raise _refused("The URL has a fragment (#…), which is never sent.", "Leave it out.")
    whole = _WHOLE.fullmatch(text)
    if whole is None or whole[1].lower() not in PORTS:
        raise _refused("The URL does not begin with https://.", "Give one such as https://example.com/hook.")
    if "@" in whole[2]:
        raise _refused("The URL has a user or a password.", "Leave it out, and give a header instead.")
    if "%" in whole[2]:
        raise _refused("The host has a % in it.", "Write the host plainly; zone ids are not allowed.")
    authority = _AUTHORITY.fullmatch(whole[2])
    if authority is None:
        raise _refused(f"The host and port {whole[2]!r} can't be understood.", "Write host or host:port.")
    return whole[1].lower(), authority[1], _port(authority[2]), _checked_target(whole[3])


def _port(digits: str | None) -> int | None:
    if digits is not None and not 1 <= int(digits) <= 65_535:
        raise _refused(f"There is no port {digits}.", "Write one from 1 to 65535.")
    return int(digits) if digits else None


def _checked_target(text: str) -> str:
    if not _TARGET.fullmatch(text):
        raise _refused("The path or query has a sign that a URL can't have.", "Percent-encode it, such as %7C for |.")
    return text if text.startswith("/") else f"/{text}"


def _address(name: str) -> Address | None:
    """The address, if it is one. Addresses in disguise are refused: programs read them differently."""
    if name.startswith("["):
        return _ipv6(name[1:-1])
    if ":" in name:  # a host that was read before, and has lost its brackets
        return _ipv6(name)
    if not _NUMBER.fullmatch(name.rpartition(".")[2]):
        return None
    try:
        return IPv4Address(name)
    except ValueError:
        raise _refused(
            f"The host {name!r} ends in a number but is no address.", "Write an address as four numbers: 192.0.2.1."
        ) from None


def _ipv6(text: str) -> IPv6Address:
    try:
        address = IPv6Address(text)
    except ValueError:
        raise _refused(f"[{text}] is no IPv6 address.") from None
    if address.ipv4_mapped is not None:
        raise _refused(f"[{text}] is an IPv4 address in disguise.", f"Write {address.ipv4_mapped}.")
    return address


def _checked_name(name: str) -> str:
    if not name:
        raise _refused("The URL has no host.", "Give one such as https://example.com/hook.")
    if len(name) > LONGEST_HOST:
        raise _refused(f"The host is longer than {LONGEST_HOST} characters.")
    for label in name.split("."):
        if not _LABEL.fullmatch(label):
            raise _refused(
                f"The host {name!r} is no host name.",
                "Between dots stand 1 to 63 letters, digits, - or _, with no - at an end.",
            )
    return name


def _judge(found: Destination, address: Address | None, rules: DestinationRules) -> None:
    if found.host in _NEVER_NAMES or (address is not None and is_never_called(address)):
        raise _refused(f"{found.host} is never called: it leads to the machine's own metadata or network.")
    listed = _is_listed(found.host, rules)
    if found.scheme == "http" and not listed:
        raise _refused("The URL does not begin with https://.", _list_host(found.host))
    if address is not None:
        _judge_address(address, found.port, listed, rules)
    elif not listed and ("." not in found.host or found.host.endswith(LOCAL_SUFFIXES)):
        raise _refused(f"{found.host} is a name of a local network.", _list_host(found.host))
    if found.port not in rules.ports and not is_on_allow_lists(found, rules):
        allowed = ", ".join(map(str, sorted(rules.ports))) or "none"
        raise _refused(
            f"The port {found.port} is not among the allowed ones ({allowed}).",
            "Use one of them, or add it to TIDINGS_ALLOW_PORTS.",
        )


def _judge_address(address: Address, port: int, listed: bool, rules: DestinationRules) -> None:
    if is_allowed(address, port, rules.networks) or (listed and is_public(address)):
        return
    what = "an address" if is_public(address) else "an address that is not public"
    raise _refused(
        f"The host {address} is {what}.",
        f"Use a host name, or add {address}/{address.max_prefixlen} to TIDINGS_ALLOW_NETWORKS.",
    )


def _is_listed(host: str, rules: DestinationRules) -> bool:
    return host in {_comparable(listed) for listed in rules.http_hosts}


@lru_cache(maxsize=4096)  # asked for each connection, of the whole list
def _comparable(host: str) -> str:
    try:
        return str(ip_address(host))
    except ValueError:
        return host.lower().removesuffix(".")


def _list_host(host: str) -> str:
    return f"Use https and a public name, or add {host} to TIDINGS_ALLOW_HTTP_HOSTS."


def _refused(what: str, remedy: str = "") -> SubscriptionRefused:
    return SubscriptionRefused(what, remedy, field="callback_url")
