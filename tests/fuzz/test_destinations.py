"""Whatever is written as a callback URL: refused with words, or a URL that a second reader understands the same way."""

import random
import socket
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import urlsplit

import pytest

from tests.fuzz.mutating import mutated_texts
from tidings.courier import Guard
from tidings.courier.error_codes import Failed
from tidings.decisions.destinations import Destination, DestinationRules, read_destination
from tidings.errors import SubscriptionRefused

COUNTS = [4_000, pytest.param(1_000_000, marks=[pytest.mark.full, pytest.mark.timeout(1800)])]
CORPUS = [
    "https://example.com/hook?a=1&b[]=2",
    "https://user:pass@example.com:443/",
    "https://127.0.0.1/",
    "https://0x7f.1/",
    "https://2130706433/",
    "https://017700000001/",
    "https://[::1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[64:ff9b::10.0.0.1]/",
    "https://[2002:7f00:1::]/",
    "https://169.254.169.254/latest/meta-data/",
    "https://metadata.google.internal/",
    "https://localhost/",
    "https://xn--bcher-kva.example/",
    "https://8.8.8.8/",
    "https://[2606:4700::1111]:443/x",
]
WORDS = [
    *("@", ":", "/", "\\", "#", "?", "%", "[", "]", ".", "..", "//", "\t", "\r\n", " ", "\0", "\u3002", "\uff0e", "ⓛ"),
    *("127.0.0.1", "0x7f", "0177", "::1", "::ffff:", "%00", "%2e", "%40", "localhost", ".local", ":443", ":80", "http"),
]


def wrong_with(raw: str, found: Destination) -> str:
    """By the standard library, which is not what has read it."""
    parts = urlsplit(found.url)
    if parts.scheme != "https" or parts.hostname != found.host or (parts.port or 443) != found.port:
        return "another reader sees another place"
    if parts.username or parts.password or parts.fragment or not found.url.isascii() or not found.url.isprintable():
        return "it has parts that it may not have"
    if found.port != 443:
        return "its port is not allowed"
    try:
        address: IPv4Address | IPv6Address | None = ip_address(found.host)
    except ValueError:
        address = None
    if address is not None:
        return "" if address.is_global else f"{address} leads inside"
    try:
        # What C reads as an address, in whatever base, is no name.
        return f"{found.host} is {socket.inet_aton(found.host)!r} to others"
    except OSError:
        return ""


def taken_or_none(raw: str, rules: DestinationRules) -> Destination | None:
    """Anything but a destination or a refusal goes up as it is."""
    try:
        return read_destination(raw, rules)
    except SubscriptionRefused:
        return None


@pytest.mark.parametrize("count", COUNTS)
def test_every_url_is_refused_or_means_the_same_to_everybody(count: int) -> None:
    rules, taken = DestinationRules(), 0
    for raw in mutated_texts(CORPUS, WORDS, count):
        found = taken_or_none(raw, rules)
        if found is None:
            continue
        taken += 1
        assert not wrong_with(raw, found), f"{raw!r} was taken as {found.url!r}: {wrong_with(raw, found)}"
        assert read_destination(found.url, rules) == found, f"{raw!r} is not stored as it is read"
    assert taken > count // 100, "nothing was taken: the inputs are too wild"


@pytest.mark.parametrize(
    ("host", "port", "url"),
    [
        ("example.com", 443, "https://user@example.com/"),
        ("example.com", 443, "https://other.example/"),
        ("example.com", 8443, "https://example.com:8443/"),
        ("0x7f.1", 443, "https://0x7f.1/"),
        ("10.0.0.1", 443, "https://10.0.0.1/"),
    ],
)
def test_a_wrong_destination_would_be_noticed(host: str, port: int, url: str) -> None:
    assert wrong_with(url, Destination("https", host, port, "/", url))


def addresses(count: int) -> list[IPv4Address | IPv6Address]:
    chance = random.Random(1)
    inside = [*range(0, 0x1000000, 0x0FFFF1), 0x7F000001, 0x0A000001, 0xA9FEA9FE, 0xC0A80001, 0x08080808, 0x64646464]
    found: list[IPv4Address | IPv6Address] = [IPv4Address(chance.getrandbits(32)) for _ in range(count)]
    for prefix in (0xFFFF, 0x64FF9B << 88, 0x2002 << 112, 0x20010000 << 96, 0):
        for number in (*inside, *(chance.getrandbits(32) for _ in range(count // 10))):
            shift = 80 if prefix == 0x2002 << 112 else 0
            found.append(IPv6Address((prefix << 32 if prefix == 0xFFFF else prefix) | number << shift))
    return found + [IPv6Address(chance.getrandbits(128)) for _ in range(count)]


def test_no_address_is_called_that_the_standard_library_knows_to_lead_inside() -> None:
    """Ours is the stricter table: whoever it calls public is public to others, also inside of IPv6."""
    guard, allowed = Guard(), 0
    for address in addresses(2_000):
        try:
            guard.judge(address, 443)
        except Failed:
            continue
        allowed += 1
        carried = getattr(address, "ipv4_mapped", None) or getattr(address, "sixtofour", None)
        assert address.is_global or carried, address
        assert carried is None or carried.is_global, address
    assert allowed > 500
