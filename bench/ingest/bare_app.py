"""The least that an HTTP service for events must do: `python -m bench.ingest.bare_app PORT URL SCHEMA`.

A bare ASGI callable that parses the body and inserts what has gathered while the last two transactions were under way,
into our own table. It looks at no key, checks nothing, and answers with the number of the event.
"""

import asyncio
import sys
import uuid
from typing import Any

import msgspec
import uvicorn
import uvloop

from tidings.db.engine import Engine, open_engine
from tidings.db.names import Names
from tidings.db.statements import load_statements

TRANSACTIONS = 2
MOST = 500


class Event(msgspec.Struct):
    event_type: str
    payload: msgspec.Raw


_decode = msgspec.json.Decoder(Event).decode


class Inserting:
    """What came meanwhile is one statement."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._statement = load_statements(__package__, engine.dialect)["insert"]
        self._waiting: list[tuple[tuple[str, str, str], asyncio.Future[int]]] = []
        self._under_way = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def insert(self, event: Event) -> int:
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        row = (event.event_type, bytes(event.payload).decode(), uuid.uuid4().hex)
        self._waiting.append((row, done))
        if self._under_way < TRANSACTIONS:
            self._under_way += 1
            task = asyncio.create_task(self._work_off())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await done

    async def _work_off(self) -> None:
        # Whoever is served in the same round of the loop comes along.
        await asyncio.sleep(0)
        while batch := self._waiting[:MOST]:
            del self._waiting[: len(batch)]
            async with self._engine.transaction() as transaction:
                rows = await transaction.rows(self._statement, events=[row for row, _ in batch])
            for row, (_, done) in zip(rows, batch, strict=True):
                done.set_result(row["id"])
        self._under_way -= 1


class App:
    def __init__(self, engine: Engine) -> None:
        self._inserting = Inserting(engine)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        answer = b'{"id":%d}' % await self._inserting.insert(_decode(body))
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(answer)).encode())]
        await send({"type": "http.response.start", "status": 202, "headers": headers})
        await send({"type": "http.response.body", "body": answer})


async def serve(port: int, url: str, schema: str) -> None:
    engine = await open_engine(url, owner="event_ingest_writer", names=Names(schema=schema), size=TRANSACTIONS)
    config = uvicorn.Config(
        App(engine),
        port=port,
        http="httptools",
        ws="none",
        lifespan="off",
        access_log=False,
        log_level="error",
    )
    await uvicorn.Server(config).serve()


if __name__ == "__main__":
    port, url, schema = sys.argv[1:]
    uvloop.run(serve(int(port), url, schema))
