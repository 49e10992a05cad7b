"""An endpoint that answers 200 to everything as fast as it can: `python -m bench.deliver.sink` prints its port."""

import asyncio
from typing import cast

import uvloop

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
END = b"\r\n\r\n"
LENGTH = b"content-length: "


class Sink(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.waiting = b""

    def data_received(self, data: bytes) -> None:
        self.waiting += data
        while (end := self.waiting.find(END)) >= 0:
            start = self.waiting.index(LENGTH) + len(LENGTH)
            whole = end + len(END) + int(self.waiting[start : self.waiting.index(b"\r", start)])
            if len(self.waiting) < whole:
                return
            self.waiting = self.waiting[whole:]
            self.transport.write(OK)


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(Sink, "127.0.0.1", 0, backlog=1000)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve())
