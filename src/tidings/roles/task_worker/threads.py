"""Threads for handlers that are plain functions: a bounded number, and none that could keep the process from ending."""

import asyncio
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

T = TypeVar("T")


class Threads(Generic[T]):
    """At most `most`, made when needed. Those of concurrent.futures would be waited for at the end, however long."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._made = 0
        self._busy = 0
        self._works: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()

    @property
    def free(self) -> int:
        return self._most - self._busy

    def run(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        """`work` must not raise. The thread is taken until it returns, whether or not somebody still waits for it."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._busy += 1

        def ended(result: T) -> None:
            self._busy -= 1
            if not future.done():
                future.set_result(result)

        def run() -> None:
            result = work()
            with suppress(RuntimeError):  # the loop was closed meanwhile; nobody waits any more
                loop.call_soon_threadsafe(ended, result)

        if self._made < self._busy:
            self._made += 1
            threading.Thread(target=self._go_on, name=f"task-{self._made}", daemon=True).start()
        self._works.put(run)
        return future

    def _go_on(self) -> None:
        while True:
            self._works.get()()
