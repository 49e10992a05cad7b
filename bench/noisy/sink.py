"""All endpoints of a run: `python -m bench.noisy.sink` prints its port, then obeys words on its standard input.

Under `/good` it answers at once, under `/bad` never, until it is told `up`. `report` prints what has come since the
last one: requests in all, latencies of those that say when they were made, and requests at a time under `/bad`.
"""

import asyncio
import json
import sys
import time
from collections import Counter
from typing import Any, cast

import uvloop

from bench.sink import ANSWER, END, LENGTH

TENTHS = 10
"""Of a second, in each of which requests are counted."""


class Tally:
    def __init__(self) -> None:
        self.is_up = False
        self.bad_at_once = 0
        self.begin()

    def begin(self) -> None:
        self.began = time.time()
        self.good = self.bad = 0
        self.most_bad_at_once = self.bad_at_once
        self.latencies: list[float] = []
        self.timeline: Counter[int] = Counter()

    def report(self) -> dict[str, Any]:
        found = {
            "seconds": time.time() - self.began,
            "good": self.good,
            "bad": self.bad,
            "most_bad_at_once": self.most_bad_at_once,
            "latencies": self.latencies,
            "timeline": sorted(self.timeline.items()),
        }
        self.begin()
        return found


class Endpoint(asyncio.Protocol):
    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._waiting = b""
        self._hanging = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, _: Exception | None) -> None:
        self._tally.bad_at_once -= self._hanging

    def data_received(self, data: bytes) -> None:
        self._waiting += data
        while (end := self._waiting.find(END)) >= 0:
            start = self._waiting.lower().index(LENGTH, 0, end) + len(LENGTH)
            body = end + len(END)
            whole = body + int(self._waiting[start : self._waiting.index(b"\r", start)])
            if len(self._waiting) < whole:
                return
            self._answer(b"/bad" in self._waiting[:20], self._waiting[body:whole])
            self._waiting = self._waiting[whole:]

    def _answer(self, is_bad: bool, body: bytes) -> None:
        tally = self._tally
        if is_bad:
            tally.bad += 1
            tally.timeline[int((time.time() - tally.began) * TENTHS)] += 1
            if not tally.is_up:
                self._hanging += 1
                tally.bad_at_once += 1
                tally.most_bad_at_once = max(tally.most_bad_at_once, tally.bad_at_once)
                return
        else:
            tally.good += 1
            if b'"at"' in body:
                tally.latencies.append(time.time() - json.loads(body)["at"])
        self._transport.write(ANSWER)


async def serve() -> None:
    tally, loop = Tally(), asyncio.get_running_loop()
    server = await loop.create_server(lambda: Endpoint(tally), "0.0.0.0", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    words = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(words), sys.stdin)
    while word := (await words.readline()).strip():
        if word == b"report":
            print(json.dumps(tally.report()), flush=True)
        else:
            tally.is_up = word == b"up"


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve())
