"""Waits for a fact with a deadline. The only place of the tests where sleeping is allowed."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar, overload

T = TypeVar("T")

# Generous, as it costs nothing when all is well; but less than the 30 s after which the product looks a second time.
PATIENCE = 25.0
FIRST_PAUSE = 0.005
LONGEST_PAUSE = 0.1


def wait_until(predicate: Callable[[], T | None], timeout: float = PATIENCE, what: str = "a fact") -> T:
    """Ask again and again until the answer is true, and return that answer."""
    deadline = time.monotonic() + timeout
    for pause in _pauses():
        if answer := predicate():
            return answer
        if time.monotonic() > deadline:
            raise _too_late(what, timeout, answer)
        time.sleep(pause)
    raise AssertionError("unreachable")


@overload
async def eventually(predicate: Callable[[], Awaitable[T | None]], timeout: float = ..., what: str = ...) -> T: ...
@overload
async def eventually(predicate: Callable[[], T | None], timeout: float = ..., what: str = ...) -> T: ...
async def eventually(predicate: Callable[[], Any], timeout: float = PATIENCE, what: str = "a fact") -> Any:
    """The same for async tests; the predicate may be a coroutine function."""
    deadline = time.monotonic() + timeout
    for pause in _pauses():
        answer = predicate()
        if inspect.isawaitable(answer):
            answer = await answer
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise _too_late(what, timeout, answer)
        await asyncio.sleep(pause)
    raise AssertionError("unreachable")


async def pause(seconds: float) -> None:
    """The pace of somebody whom a test plays, such as a producer between two statements; no wait for a fact."""
    await asyncio.sleep(seconds)


def _pauses() -> Iterator[float]:
    pause = FIRST_PAUSE
    while True:
        yield pause
        pause = min(pause * 1.5, LONGEST_PAUSE)


def _too_late(what: str, timeout: float, answer: object) -> AssertionError:
    return AssertionError(f"waited {timeout:g} s for {what}; the last answer was {answer!r}")
