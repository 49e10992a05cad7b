"""One connection through the fault proxy: passes messages on, and does what the plan has for a statement."""

import asyncio
import os
import socket
import struct
from contextlib import suppress
from dataclasses import dataclass

import psutil

from tests.support import families
from tests.support.faults import KILL, ArmedFault, FaultPlan, Freeze
from tests.support.waiting import eventually
from tests.support.wire import Conversation, Request

CHUNK = 2**18
RESET_ON_CLOSE = struct.pack("ii", 1, 0)


@dataclass(frozen=True)
class Side:
    """One of the two sockets."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def reset(self) -> None:
        with suppress(OSError):  # closed already
            self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        self.writer.transport.abort()


class FaultLink:
    """Lives until a side closes or a fault cuts it. A frozen link passes on nothing, not even a close."""

    def __init__(self, plan: FaultPlan, conversation: Conversation, client: Side, server: Side) -> None:
        self._plan = plan
        self._conversation = conversation
        self._client = client
        self._server = server
        self._thawed = asyncio.Event()
        self._thawed.set()

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as directions:
                directions.create_task(self._pass_requests())
                directions.create_task(self._pass_answers())
        except* OSError:
            pass  # a side was reset, and the other one is told the same way
        finally:
            self.cut()

    def cut(self) -> None:
        self._client.reset()
        self._server.reset()

    def thaw(self) -> None:
        self._thawed.set()

    async def _pass_requests(self) -> None:
        while received := await self._client.reader.read(CHUNK):
            for request in self._conversation.requests(received):
                await self._thawed.wait()
                data = request.data
                if request.text_of is not None:
                    data = self._plan.rewrite(request.text_of, data)
                if request.executes:
                    await self._meet(request)
                await self._send(self._server, data)
        await self._close(self._server)

    async def _meet(self, request: Request) -> None:
        for armed in self._plan.meet(request.executes):
            if armed.fault.when == "before":
                await self._strike(armed)
            elif request.exchange is not None:
                request.exchange.aftermath.append(armed)

    async def _pass_answers(self) -> None:
        held = bytearray()
        while received := await self._server.reader.read(CHUNK):
            passing = bytearray()
            for answer in self._conversation.answers(received):
                if not (answer.exchange and answer.exchange.aftermath):
                    passing += answer.data
                    continue
                held += answer.data
                if answer.ends:
                    await self._send(self._client, passing)
                    for armed in answer.exchange.aftermath:
                        await self._strike(armed)
                    passing, held = held, bytearray()
            await self._send(self._client, passing)
        await self._send(self._client, held)
        await self._close(self._client)

    async def _send(self, side: Side, data: bytes | bytearray) -> None:
        await self._thawed.wait()
        side.writer.write(data)
        await side.writer.drain()

    async def _close(self, side: Side) -> None:
        await self._thawed.wait()
        side.writer.close()
        await side.writer.wait_closed()

    async def _strike(self, armed: ArmedFault) -> None:
        action = armed.fault.action
        if isinstance(action, Freeze):
            self._thawed.clear()
            self._plan.mark_fired(armed)
            await self._thawed.wait()
            return
        if isinstance(action, KILL):
            await self._kill(action)
        self.cut()
        self._plan.mark_fired(armed)
        raise ConnectionAbortedError(armed.fault)

    async def _kill(self, action: KILL) -> None:
        target = action.target() if callable(action.target) else action.target
        victim = psutil.Process(self._client_pid() if target is None else target)
        if victim.pid == os.getpid():
            raise RuntimeError("KILL would end the tests themselves: the client is not a process of its own")
        victim.kill()
        await eventually(lambda: not families.is_alive(victim), what=f"process {victim.pid} to die")

    def _client_pid(self) -> int:
        # Both ends: other processes may have the same port for a way to somebody else.
        ends = [self._client.writer.get_extra_info(name)[:2] for name in ("peername", "sockname")]
        owners: list[int] = [c.pid for c in psutil.net_connections("tcp") if [c.laddr, c.raddr] == ends and c.pid]
        return owners[0]
