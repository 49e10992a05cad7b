"""Decides where requests may go, by the real address, at the moment of connecting. What is not allowed is refused."""

import socket
from collections.abc import Collection
from ipaddress import IPv6Address, ip_address

from tidings.courier.error_codes import BLOCKED_ADDRESS, Failed
from tidings.courier.resolver import Resolver
from tidings.decisions.addresses import Address, Allowed, arrives_at, is_allowed, is_never_called, is_public
from tidings.decisions.destinations import Destination, DestinationRules, read_destination
from tidings.errors import SubscriptionRefused


class Guard:
    """`forbidden` are hosts and ports that no allow list opens: the databases, and where Tidings itself listens."""

    def __init__(
        self,
        *,
        allow_networks: Collection[Allowed] = (),
        allow_http_hosts: Collection[str] = (),
        allow_ports: Collection[int] = (443,),
        forbidden: Collection[tuple[str, int]] = (),
        resolver: Resolver | None = None,
    ) -> None:
        self._rules = DestinationRules(allow_http_hosts, allow_networks, allow_ports)
        self._forbidden = [*forbidden]
        self._resolver = resolver or Resolver()

    def destination(self, url: str) -> Destination:
        """The parts of a URL. It was checked when it was stored, but rules may have changed, and rows too."""
        try:
            return read_destination(url, self._rules)
        except SubscriptionRefused:
            raise Failed(BLOCKED_ADDRESS) from None

    async def addresses(self, destination: Destination, deadline: float) -> list[Address]:
        """Where the destination leads to. One refused address among them refuses it all: honest names don't mix."""
        found = await self._look_up(destination.host, deadline)
        for address in found:
            self.judge(address, destination.port)
        await self._judge_forbidden(found, destination.port, deadline)
        return found

    def judge(self, address: Address, port: int) -> None:
        """Asked once more for the very address that is connected to."""
        if is_never_called(address) or not (is_public(address) or is_allowed(address, port, self._rules.networks)):
            raise Failed(BLOCKED_ADDRESS)

    async def close(self) -> None:
        await self._resolver.close()

    async def _judge_forbidden(self, found: list[Address], port: int, deadline: float) -> None:
        """Names are looked up now, as databases move. If one can't be, it is not known what is forbidden: refused."""
        for host in [host for host, forbidden_port in self._forbidden if forbidden_port == port]:
            try:
                theirs = await self._look_up(host, deadline)
            except Failed:
                raise Failed(BLOCKED_ADDRESS) from None
            if any(_is_same_machine(arrives_at(address), arrives_at(other)) for address in found for other in theirs):
                raise Failed(BLOCKED_ADDRESS)

    async def _look_up(self, host: str, deadline: float) -> list[Address]:
        try:
            return [ip_address(host)]
        except ValueError:
            return await self._resolver.addresses(host, deadline)


def _is_same_machine(address: Address, other: Address) -> bool:
    """Whether both lead to the same place: also two addresses of this machine do, and `0.0.0.0` is all of them."""
    return address == other or (_is_local(address) and (other.is_unspecified or _is_local(other)))


def _is_local(address: Address) -> bool:
    """Only addresses of this machine can be bound."""
    family = socket.AF_INET6 if isinstance(address, IPv6Address) else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((str(address), 0))
        except OSError:
            return False
    return True
