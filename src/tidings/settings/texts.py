"""Reads texts with a form of their own: names, hosts, paths, keys, URLs. No message quotes a secret one."""

import re
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path

from tidings.settings.secret import DatabaseUrl, Secret
from tidings.settings.values import BadValue, shown

Network = IPv4Network | IPv6Network
Allowed = Network | tuple[Network, int]

_ENGINE = re.compile(r"(postgresql|postgres|mysql|mariadb)(\+\w+)?://", re.ASCII | re.IGNORECASE)
_IDENTIFIER = re.compile(r"[a-z][a-z0-9_]{0,29}")
_HOST_NAME = re.compile(r"[a-z0-9_]([a-z0-9_.-]{0,252}[a-z0-9_])?")
_AT_PORT = re.compile(r"([^/]+/[0-9]{1,3}):([0-9]{1,5})", re.ASCII)
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_VISIBLE_ASCII = re.compile(r"[!-~]*")


def read_word(raw: object) -> str:
    if not isinstance(raw, str):
        raise BadValue(f"{shown(raw)} is no text; write it in quotes")
    return raw.strip()


def read_identifier(raw: object) -> str:
    name = read_word(raw)
    if not _IDENTIFIER.fullmatch(name) or name.startswith("pg_"):
        rule = "a small letter, then small letters, digits or _, at most 30 in all, and not pg_ at its start"
        raise BadValue(f"{shown(raw)} is no plain name; write {rule}")
    return name


def read_path(raw: object) -> Path:
    text = read_word(raw)
    if not text or "\0" in text:
        raise BadValue(f"{shown(raw)} is no path; write one like ./tidings-data")
    try:
        return Path(text).expanduser()
    except (RuntimeError, UnicodeError):
        raise BadValue(f"{shown(raw)} begins with a home directory that is not known here") from None


def read_module(raw: object) -> str:
    """Empty, or the dotted name of a Python module."""
    name = read_word(raw)
    if name and not _MODULE.fullmatch(name):
        raise BadValue(f"{shown(raw)} is no Python module; write one like myapp.tasks, without .py")
    return name


def read_host(raw: object) -> str:
    host = read_word(raw).lower()
    if not _HOST_NAME.fullmatch(host) and not _is_address(host):
        raise BadValue(f"{shown(raw)} is no host; write a name or an address, without http:// and port")
    return host


def read_allowed_network(raw: object) -> Allowed:
    """A network, or one at a single port: `10.1.0.0/16:8080`."""
    found = _AT_PORT.fullmatch(read_word(raw))
    if found is None:
        return read_network(raw)
    if not 1 <= int(found[2]) <= 65_535:
        raise BadValue(f"{shown(raw)} has a port that does not exist; write one from 1 to 65535")
    return read_network(found[1]), int(found[2])


def read_network(raw: object) -> Network:
    text = read_word(raw)
    try:
        network = ip_network(text, strict=False)
    except ValueError:
        raise BadValue(f"{shown(raw)} is no network; write one like 10.1.0.0/16 or fd00::/8") from None
    # Refused, because 10.1.2.3/8 often means something narrower than 10.0.0.0/8.
    if network.network_address != ip_address(text.partition("/")[0]):
        raise BadValue(f"{shown(raw)} is an address inside a network; write {network} if you mean all of it")
    return network


def read_key(raw: object) -> Secret:
    """Empty, or what fits in an HTTP header and an environment variable."""
    if not isinstance(raw, str) or not _VISIBLE_ASCII.fullmatch(raw.strip()):
        raise BadValue("a key must be visible ASCII text without spaces; write it in quotes")
    return Secret(raw.strip())


def read_database_url(raw: object) -> DatabaseUrl:
    """Empty, or a URL of an engine we know; its details are for `db` to judge."""
    if not isinstance(raw, str) or (raw.strip() and not _ENGINE.match(raw.strip())):
        raise BadValue("this is no URL of a known engine; write postgresql://…, mysql://… or mariadb://…")
    return DatabaseUrl(raw.strip())


def _is_address(host: str) -> bool:
    try:
        return bool(ip_address(host))
    except ValueError:
        return False
