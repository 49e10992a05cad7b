"""Which addresses may be called, by a table of our own. Asked when a URL is written, and again when it is called."""

from collections.abc import Collection
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
Allowed = Network | tuple[Network, int]  # at any port, or at one


def _networks(*texts: str) -> list[Network]:
    return [ip_network(text) for text in texts]


# Where clouds keep credentials, and what is no address of one machine: no allow list opens these.
_NEVER = (
    *_networks("169.254.0.0/16", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32"),
    *_networks("fe80::/10", "fd00:ec2::/32", "fd20:ce::254/128"),
    *_networks("0.0.0.0/8", "224.0.0.0/4", "255.255.255.255/32", "::/128", "ff00::/8"),
)
_NOT_PUBLIC = (
    *_networks("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
    *_networks("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15"),
    *_networks("198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
    *_networks("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"),
)
_PUBLIC_IPV6 = ip_network("2000::/3")
_NAT64 = ip_network("64:ff9b::/96")
_CARRIERS = (_NAT64, *_networks("::ffff:0:0/96", "::/96"))


def is_public(address: Address) -> bool:
    """By a table of our own: `ipaddress` calls several kinds of address global that lead inside."""
    if isinstance(address, IPv6Address) and address not in _PUBLIC_IPV6:
        carried = _carried(address)
        return address in _NAT64 and carried is not None and is_public(carried)
    return not is_inside(address, _NOT_PUBLIC) and not is_never_called(address)


def is_never_called(address: Address) -> bool:
    """Metadata and link-local addresses, and what is no address of one machine. No setting allows them."""
    return is_inside(address, _NEVER) or is_inside(arrives_at(address), _NEVER)


def is_allowed(address: Address, port: int, allowed: Collection[Allowed]) -> bool:
    """Whether an allow list names the address, at this port or at any."""
    networks = [entry[0] if isinstance(entry, tuple) else entry for entry in allowed if _fits(entry, port)]
    return is_inside(address, networks)


def _fits(entry: Allowed, port: int) -> bool:
    return not isinstance(entry, tuple) or entry[1] == port


def arrives_at(address: Address) -> Address:
    """Where packets to this address end: inside of some IPv6 addresses is an IPv4 address."""
    return _carried(address) or address


def _carried(address: Address) -> IPv4Address | None:
    """The IPv4 address at which an IPv6 address of a transition mechanism arrives."""
    if isinstance(address, IPv4Address) or address.is_loopback:
        return None
    if is_inside(address, _CARRIERS):
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.sixtofour


def is_inside(address: Address, networks: Collection[Network]) -> bool:
    return any(address in network for network in networks if network.version == address.version)
