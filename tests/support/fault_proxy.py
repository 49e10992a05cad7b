"""A TCP proxy between a process and its database that lets network or process fail at a named statement.

Every statement of the product starts with a comment that names it, `/* orchestrator.insert_jobs */ INSERT …`;
the proxy finds that name in the wire protocol, so that no production code has a hook for faults.
"""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

from tests.support.fault_link import FaultLink, Side
from tests.support.faults import CUT, FREEZE, KILL, REWRITE, Fault, FaultPlan, When
from tests.support.ports import LOOPBACK, ReservedPort
from tests.support.waiting import PATIENCE
from tests.support.wire import Conversation
from tests.support.wire_mysql import MySQLConversation
from tests.support.wire_postgres import PostgresConversation

__all__ = ["CUT", "FREEZE", "KILL", "REWRITE", "Fault", "FaultProxy", "When"]

CONVERSATIONS: dict[str, type[Conversation]] = {
    "postgresql": PostgresConversation,
    "mariadb": MySQLConversation,
}

T = TypeVar("T")


class FaultProxy:
    """Runs in a thread of its own, so that blocking tests, async tests and other processes can all use it.

    What it could not understand is raised by `stop()`: a test must not take the proxy's failure for a fault.
    """

    def __init__(self, target_port: int, dialect: str, *faults: Fault) -> None:
        self._target_port = target_port
        self._converse = CONVERSATIONS[dialect]
        self._plan = FaultPlan()
        self._plan.arm(*faults)
        self._links: set[FaultLink] = set()
        self._failures: list[Exception] = []
        self._listener: asyncio.Server | None = None

    def start(self) -> Self:
        self._port = ReservedPort()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fault proxy", daemon=True)
        self._thread.start()
        self.refuse_connections(False)
        return self

    def stop(self) -> None:
        """Cut what is left, and raise what went wrong in the proxy itself."""
        self.refuse_connections(True)
        self.cut_all()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._port.release()
        if self._failures:
            raise ExceptionGroup("the fault proxy failed", self._failures)

    @property
    def port(self) -> int:
        return self._port.number

    def url(self, url: str) -> str:
        """The same URL, by way of the proxy."""
        parts = urlsplit(url)
        account, at, _ = parts.netloc.rpartition("@")
        return parts._replace(netloc=f"{account}{at}{LOOPBACK}:{self.port}").geturl()

    @property
    def seen(self) -> list[str]:
        """The names of the statements that clients executed, in order, with those that a fault held back."""
        return self._plan.seen

    @property
    def fired(self) -> list[Fault]:
        """The faults that have struck, in order."""
        return self._plan.fired

    def arm(self, *faults: Fault) -> None:
        """Let these faults happen from now on; a statement that is prepared already is not rewritten."""
        self._plan.arm(*faults)

    def clear(self) -> None:
        """Forget what was armed, seen and fired; frozen connections stay frozen."""
        self._plan.clear()

    def wait_fired(self, timeout: float = PATIENCE) -> None:
        """Block until every armed fault has struck."""
        if not self._plan.wait_fired(timeout):
            raise AssertionError(f"not all faults struck in {timeout:g} s: {self.fired=} {self.seen=}")

    async def until_fired(self, timeout: float = PATIENCE) -> None:
        """`wait_fired` for async tests."""
        await asyncio.to_thread(self.wait_fired, timeout)

    def thaw(self) -> None:
        """Pass on again what was frozen."""
        self._call(self._thaw())

    def cut_all(self) -> None:
        """Reset all connections."""
        self._call(self._cut_all())

    def refuse_connections(self, refuse: bool) -> None:
        """Close the port for new connections, or open it again; the existing ones go on."""
        self._call(self._close_port() if refuse else self._open_port())

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return self.start()

    async def __aexit__(self, *_: object) -> None:
        self.stop()

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _open_port(self) -> None:
        if self._listener is None:
            self._listener = await asyncio.start_server(self._accept, LOOPBACK, self.port)

    async def _close_port(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    async def _thaw(self) -> None:
        for link in self._links:
            link.thaw()

    async def _cut_all(self) -> None:
        links = asyncio.all_tasks() - {asyncio.current_task()}
        for link in links:
            link.cancel()
        await asyncio.gather(*links, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = Side(reader, writer)
        try:
            server = Side(*await asyncio.open_connection(LOOPBACK, self._target_port))
        except OSError:
            client.reset()
            return
        await self._follow(FaultLink(self._plan, self._converse(), client, server))

    async def _follow(self, link: FaultLink) -> None:
        self._links.add(link)
        try:
            await link.run()
        except asyncio.CancelledError:
            pass  # by _cut_all; what is left of the connection in asyncio cannot bear a cancelled task
        except Exception as failure:
            self._failures.append(failure)
        finally:
            self._links.remove(link)
