"""Which handler runs which type of task, and on which terms; `task` puts a function on the list of this process."""

import datetime
import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from tidings.decisions.retrying import Backoff
from tidings.errors import HandlerInvalid
from tidings.model.task import LONGEST_TYPE
from tidings.tasks.payloads import PayloadReader, payload_reader

F = TypeVar("F", bound=Callable[..., Any])
Seconds = float | datetime.timedelta
# So a slow handler is never taken for a dead one.
LEAST_VISIBILITY = 3


@dataclass(frozen=True)
class Terms:
    """How many run at once in one worker, for how long each, after which silence they are rescued, when retried."""

    concurrency: int
    timeout: float
    visibility_timeout: float
    backoff: Backoff


@dataclass(frozen=True)
class Handler:
    """What is None is as the settings say."""

    biz_type: str
    function: Callable[..., Any]
    read_payload: PayloadReader
    takes_context: bool
    is_async: bool
    concurrency: int | None = None
    timeout: float | None = None
    visibility_timeout: float | None = None
    base_delay: float | None = None
    max_delay: float | None = None

    def terms(self, defaults: Terms) -> Terms:
        """HandlerInvalid where they do not go together."""
        found = Terms(
            self.concurrency or defaults.concurrency,
            self.timeout or defaults.timeout,
            self.visibility_timeout or defaults.visibility_timeout,
            Backoff(
                defaults.backoff.base if self.base_delay is None else self.base_delay,
                defaults.backoff.longest if self.max_delay is None else self.max_delay,
                defaults.backoff.jitter,
            ),
        )
        least = LEAST_VISIBILITY * found.timeout
        if found.visibility_timeout < least:
            raise HandlerInvalid(
                f"{self.biz_type} has a visibility timeout of {found.visibility_timeout:g} s, less than"
                f" {LEAST_VISIBILITY} × its handler timeout of {found.timeout:g} s.",
                f"Give it visibility_timeout={least:g} or more, or a shorter timeout.",
            )
        return found


class Handlers:
    """One handler for each type of task."""

    def __init__(self) -> None:
        self._by_type: dict[str, Handler] = {}

    def task(
        self,
        biz_type: str,
        *,
        concurrency: int | None = None,
        timeout: Seconds | None = None,
        visibility_timeout: Seconds | None = None,
        base_delay: Seconds | None = None,
        max_delay: Seconds | None = None,
    ) -> Callable[[F], F]:
        """Decorates the handler of one type: `async def` or `def`, with the payload and, if it likes, a context.

        `concurrency` counts in one worker. Times are seconds: `timeout` of one run, `visibility_timeout` of silence
        until a task is rescued, `base_delay` before the first retry, doubled each time up to `max_delay`.
        """
        times = {
            "timeout": timeout,
            "visibility_timeout": visibility_timeout,
            "base_delay": base_delay,
            "max_delay": max_delay,
        }

        def register(function: F) -> F:
            self.add(_handler(biz_type, function, concurrency, times))
            return function

        return register

    def add(self, handler: Handler) -> None:
        if not 0 < len(handler.biz_type) <= LONGEST_TYPE or not handler.biz_type.isprintable():
            raise HandlerInvalid(
                f"{handler.biz_type!r} is no type of task.", f"Use 1 to {LONGEST_TYPE} characters that can be printed."
            )
        if handler.biz_type in self._by_type:
            raise HandlerInvalid(
                f"{handler.biz_type} has two handlers: {_named(self._by_type[handler.biz_type].function)}"
                f" and {_named(handler.function)}.",
                "Each type of task has one; remove one of them, or give it another type.",
            )
        if handler.timeout is not None and handler.visibility_timeout is not None:
            handler.terms(Terms(1, handler.timeout, handler.visibility_timeout, Backoff(0.0, 0.0, 0.0)))
        self._by_type[handler.biz_type] = handler

    def __getitem__(self, biz_type: str) -> Handler:
        return self._by_type[biz_type]

    def __iter__(self) -> Iterator[Handler]:
        return iter(self._by_type.values())

    def __len__(self) -> int:
        return len(self._by_type)


registered = Handlers()
task = registered.task


def _handler(
    biz_type: str, function: Callable[..., Any], concurrency: int | None, times: Mapping[str, Seconds | None]
) -> Handler:
    if concurrency is not None and concurrency < 1:
        raise HandlerInvalid(f"{biz_type} has concurrency={concurrency!r}.", "It must be at least 1.")
    payload, *context = _parameters(biz_type, function)
    return Handler(
        biz_type,
        function,
        payload_reader(biz_type, function, payload),
        bool(context),
        inspect.iscoroutinefunction(function),
        concurrency,
        **{name: _seconds(biz_type, name, value) for name, value in times.items()},
    )


def _parameters(biz_type: str, function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The payload's, and the context's if there is one."""
    wanted = inspect.signature(function).parameters.values()
    named = [one for one in wanted if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
    positional = [one for one in named if one.kind is not one.KEYWORD_ONLY]
    needed = [one for one in named if one.default is one.empty]
    given = positional[:1] + [one for one in positional[1:2] if one in needed]
    if not given or [one for one in needed if one not in given]:
        raise HandlerInvalid(
            f"{_named(function)}, the handler of {biz_type}, takes ({', '.join(map(str, wanted))}).",
            "A handler takes the payload and, if it likes, a context: `def handle(payload, context)`.",
        )
    return given


def _seconds(biz_type: str, name: str, value: Seconds | None) -> float | None:
    if value is None:
        return None
    seconds = value.total_seconds() if isinstance(value, datetime.timedelta) else float(value)
    if not (math.isfinite(seconds) and seconds > 0):
        raise HandlerInvalid(f"{biz_type} has {name}={value!r}.", "It must be more than 0 seconds.")
    return seconds


def _named(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{getattr(function, '__qualname__', function)}"
