"""An endpoint that answers 200 to every request and costs next to nothing."""

import asyncio
from typing import cast

ANSWER = b"HTTP/1.1 200 OK\r\nserver: sink\r\ncontent-type: text/plain\r\ncontent-length: 3\r\n\r\nok\n"
END = b"\r\n\r\n"
LENGTH = b"content-length:"


class Answering(asyncio.Protocol):
    """Counts bodies by their length and answers each; reads nothing else of a request."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._waiting = b""

    def data_received(self, data: bytes) -> None:
        self._waiting += data
        while (end := self._waiting.find(END)) >= 0:
            start = self._waiting.lower().index(LENGTH, 0, end) + len(LENGTH)
            whole = end + len(END) + int(self._waiting[start : self._waiting.index(b"\r", start)])
            if len(self._waiting) < whole:
                return
            self._waiting = self._waiting[whole:]
            self._transport.write(ANSWER)
