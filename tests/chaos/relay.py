"""TCP relays in one process: pass bytes on, until they are told to cut connections or to stand still.

`python -m tests.chaos.relay NAME=PORT …` prints `NAME PORT` of each relay, then obeys lines of its input:
`cut NAME`, `freeze NAME SECONDS`, `cut-commit NAME` (the next COMMIT arrives, and its answer does not),
`aim NAME PORT` (who connects from now on comes there).
"""

import asyncio
import sys
from contextlib import suppress
from functools import partial

COMMIT = b"COMMIT"


class Relay:
    """All connections to one target."""

    def __init__(self, name: str, port: int) -> None:
        self.name, self.target = name, port
        self.links: set[Link] = set()
        self.cuts_commit = 0
        self.is_open = asyncio.Event()
        self.is_open.set()
        self._freezes = 0

    def cut(self) -> int:
        links = [*self.links]
        for link in links:
            link.cut()
        return len(links)

    def freeze(self, seconds: float) -> int:
        """Nothing passes, and who connects meanwhile waits; two freezes at once end with the later one."""
        self._freezes += 1
        self.is_open.clear()
        for link in self.links:
            link.hold(True)
        asyncio.get_running_loop().call_later(seconds, self._thaw)
        return len(self.links)

    def _thaw(self) -> None:
        self._freezes -= 1
        if self._freezes:
            return
        self.is_open.set()
        for link in self.links:
            link.hold(False)


class Link:
    """Both halves of one connection."""

    def __init__(self, relay: Relay) -> None:
        self.relay = relay
        self.near, self.far = Half(self), Half(self)
        self.is_deaf = False

    def cut(self) -> None:
        self.relay.links.discard(self)
        for half in (self.near, self.far):
            if half.transport is not None:
                half.transport.abort()

    def hold(self, still: bool) -> None:
        for half in (self.near, self.far):
            if half.transport is not None:
                with suppress(RuntimeError):
                    half.transport.pause_reading() if still else half.transport.resume_reading()


class Half(asyncio.Protocol):
    transport: asyncio.Transport | None = None

    def __init__(self, link: Link) -> None:
        self.link = link
        self.waiting: list[bytes] = []

    @property
    def other(self) -> "Half":
        return self.link.far if self is self.link.near else self.link.near

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        if self is self.link.near:
            self.link.relay.links.add(self.link)
            dialing = asyncio.get_running_loop().create_task(self._dial())
            dialing.add_done_callback(lambda done: done.cancelled() or done.exception())
        else:
            for data in self.link.near.waiting:
                transport.write(data)
            self.link.near.waiting.clear()

    async def _dial(self) -> None:
        await self.link.relay.is_open.wait()
        if self.transport is None:
            return  # it did not wait for us
        try:
            loop = asyncio.get_running_loop()
            await loop.create_connection(lambda: self.link.far, "127.0.0.1", self.link.relay.target)
        except OSError:
            self.link.cut()

    def data_received(self, data: bytes) -> None:
        if self.other.transport is None:
            self.waiting.append(data)
            return
        if self is self.link.far and self.link.is_deaf:
            # The server has answered to the COMMIT, and nobody will hear it.
            self.link.cut()
            return
        # At the end: drivers also speak of AUTOCOMMIT.
        if self is self.link.near and self.link.relay.cuts_commit and data.rstrip(b"\0").endswith(COMMIT):
            self.link.relay.cuts_commit -= 1
            self.link.is_deaf = True
            say(f"commit cut {self.link.relay.name}")
        self.other.transport.write(data)

    def eof_received(self) -> None:
        return None

    def connection_lost(self, error: Exception | None) -> None:
        self.transport = None
        self.link.cut()


def near_end_of(relay: Relay) -> Half:
    return Link(relay).near


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def serve(targets: dict[str, int]) -> None:
    loop = asyncio.get_running_loop()
    relays = {name: Relay(name, port) for name, port in targets.items()}
    for name, relay in relays.items():
        server = await loop.create_server(partial(near_end_of, relay), "127.0.0.1", 0, backlog=1000)
        say(f"{name} {server.sockets[0].getsockname()[1]}")
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        match line.decode().split():
            case ["cut", name]:
                say(f"cut {name} {relays[name].cut()}")
            case ["freeze", name, seconds]:
                say(f"frozen {name} {relays[name].freeze(float(seconds))}")
            case ["cut-commit", name]:
                relays[name].cuts_commit += 1
            case ["aim", name, port]:
                relays[name].target = int(port)


if __name__ == "__main__":
    asyncio.run(serve({name: int(port) for name, _, port in (word.partition("=") for word in sys.argv[1:])}))
