"""Group commit: while one transaction is written, the requests that come meanwhile gather for the next.

Answers come only after COMMIT, each request gets its own, and a bad one never fails its neighbours.
"""

import asyncio
import copy
import random
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass

from tidings.db.engine import Engine
from tidings.errors import (
    EventRefused,
    LockTimedOut,
    OutcomeUnknown,
    StatementFailed,
    TidingsError,
    TransientFailure,
)
from tidings.model.event import NewEvent, Published
from tidings.roles.ingest.apart import Answer, Apart, Lonely, Request
from tidings.roles.ingest.operations import IngestOperations
from tidings.roles.ingest.publishing import payload_size
from tidings.telemetry.bus import tell
from tidings.telemetry.notices import StepRetried

_ATTEMPTS = 6
_FIRST_PAUSE = 0.05

Outcome = list[Published] | TidingsError


@dataclass(frozen=True)
class BatchLimits:
    """What one transaction takes, soft by one request, and how many transactions may be written at once.

    `lock_patience`: how long a transaction waits for another that holds one of its external ids, so that neighbours do
    not wait with it. `apart_patience`: how long a request of its own does, before it is told that nothing was stored.
    """

    events: int = 500
    payload_bytes: int = 4 * 1024 * 1024
    writers: int = 2
    lock_patience: float = 0.25
    apart_patience: float = 10.0


class Ingest:
    """Publishes for any number of concurrent callers. Keeps no task while there is nothing to do.

    `on_published` is called after each commit.
    """

    def __init__(
        self,
        engine: Engine,
        limits: BatchLimits | None = None,
        on_published: Callable[[], None] = lambda: None,
    ) -> None:
        self._engine = engine
        self._on_published = on_published
        self._limits = limits or BatchLimits()
        self._waiting: deque[Request] = deque()
        self._apart = Apart()
        self._writers: set[asyncio.Task[None]] = set()
        self._busy = 0
        self._closed = False

    async def publish(self, events: Sequence[NewEvent]) -> list[Published]:
        """Stores these events, all or none. OutcomeUnknown if the connection was lost while they were committed."""
        if self._closed:
            raise TransientFailure("This process is stopping and takes no more events.", "Publish it elsewhere.")
        if not events:
            return []
        request = Request(tuple(events), asyncio.get_running_loop().create_future())
        if self._apart.holds(request):
            self._set_apart([request])
        else:
            self._waiting.append(request)
        if self._waiting and self._busy < self._limits.writers:
            self._busy += 1
            self._begin(self._write_all())
        return await request.answer

    async def close(self) -> None:
        """Takes nothing new, and ends when each request that waits has its answer."""
        self._closed = True
        while self._writers:
            await asyncio.wait(self._writers)

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        writer = asyncio.create_task(work)
        self._writers.add(writer)
        writer.add_done_callback(self._writers.discard)

    async def _write_all(self) -> None:
        try:
            while batch := self._gathered():
                await self._write(batch)
        except BaseException:
            _cancel(self._waiting)
            raise
        finally:
            # Not when the task is done, which is later: whoever comes in between would be left waiting.
            self._busy -= 1

    async def _write(self, batch: list[Request]) -> None:
        outcomes: Sequence[Outcome | Exception]
        try:
            outcomes = await self._written(batch)
        except LockTimedOut:
            # Whose external id it is nobody says: each tries alone, and the others go on.
            self._waiting.extendleft(reversed([one for one in batch if not one.keys]))
            self._set_apart([one for one in batch if one.keys])
            return
        except Exception as error:
            outcomes = [_of_each(error) for _ in batch]
        except BaseException:
            _cancel(batch)
            raise
        for request, outcome in zip(batch, outcomes, strict=True):
            _answer(request.answer, outcome)

    def _set_apart(self, requests: Iterable[Request]) -> None:
        deadline = time.monotonic() + self._limits.apart_patience
        if self._apart.add(requests, deadline):
            self._begin(self._write_apart())

    async def _write_apart(self) -> None:
        try:
            while one := self._apart.next():
                await self._write_alone(one)
        except BaseException:
            _cancel(one.request for one in self._apart.all())
            raise
        finally:
            self._apart.is_written = False

    async def _write_alone(self, one: Lonely) -> None:
        if one.request.answer.done():
            self._apart.forget(one)
            return
        outcome: Outcome | Exception
        try:
            (outcome,) = await self._written([one.request])
        except LockTimedOut as error:
            if time.monotonic() < one.deadline:
                self._apart.put_back(one)
                return
            outcome = error
        except Exception as error:
            outcome = error
        except BaseException:
            one.request.answer.cancel()
            raise
        self._apart.forget(one)
        _answer(one.request.answer, outcome)

    def _gathered(self) -> list[Request]:
        """As many of those who wait as one transaction may take."""
        batch: list[Request] = []
        count = size = 0
        while self._waiting and count < self._limits.events and size < self._limits.payload_bytes:
            request = self._waiting.popleft()
            if request.answer.done():
                continue  # nobody waits for it any more
            batch.append(request)
            count += len(request.events)
            size += sum(map(payload_size, request.events))
        return batch

    async def _written(self, batch: list[Request]) -> list[Outcome]:
        """All in one transaction, and all of it again after a transient error, but never after a lost COMMIT."""
        with_care, attempt = False, 0
        while True:
            try:
                return await self._in_one_transaction(batch, with_care)
            except LockTimedOut:
                raise
            except TransientFailure as error:
                attempt += 1
                if attempt == _ATTEMPTS:
                    raise
                tell(StepRetried(self._engine.owner, attempt, error.what))
                await asyncio.sleep(random.uniform(0.5, 1) * _FIRST_PAUSE * 2**attempt)
            except (StatementFailed, EventRefused):
                if with_care or len(batch) == 1:
                    raise
                with_care = True

    async def _in_one_transaction(self, batch: list[Request], with_care: bool) -> list[Outcome]:
        outcomes: list[Outcome] = []
        try:
            async with self._engine.transaction() as transaction:
                operations = IngestOperations(transaction, self._engine.dialect)
                if any(request.keys for request in batch):
                    await operations.wait_at_most(self._limits.lock_patience)
                if with_care:
                    outcomes += await _each_for_itself(operations, batch)
                else:
                    outcomes += await _together(operations, batch)
        except OutcomeUnknown as error:
            return [_unknown(outcome, error) for outcome in outcomes]
        self._on_published()
        return outcomes


async def _together(operations: IngestOperations, batch: Sequence[Request]) -> list[list[Published]]:
    """In the order of external ids, so that concurrent batches meet in the same order instead of in a deadlock."""
    events = [event for request in batch for event in request.events]
    # Stable: of two with the same key the first to come stays the first.
    order = sorted(range(len(events)), key=lambda place: (events[place].event_domain, events[place].external_id or ""))
    published = await operations.publish([events[place] for place in order])
    by_place = dict(zip(order, published, strict=True))
    in_turn = iter(range(len(events)))
    return [[by_place[next(in_turn)] for _ in request.events] for request in batch]


async def _each_for_itself(operations: IngestOperations, batch: Sequence[Request]) -> list[Outcome]:
    """Halved until the request that the database refuses stands alone."""
    try:
        async with operations.savepoint():
            return [*await _together(operations, batch)]
    except (StatementFailed, EventRefused) as error:
        if len(batch) == 1:
            return [error]
    middle = len(batch) // 2
    return [
        *await _each_for_itself(operations, batch[:middle]),
        *await _each_for_itself(operations, batch[middle:]),
    ]


def _unknown(outcome: Outcome, error: OutcomeUnknown) -> Outcome:
    """Of what was refused before the COMMIT, the outcome is known."""
    if isinstance(outcome, TidingsError):
        return outcome
    return OutcomeUnknown(error.what, "Publish it again under the same external id: it is stored once.")


def _of_each(error: Exception) -> Exception:
    """Each request gets an exception of its own: tracebacks grow where they are raised."""
    own = copy.copy(error)
    own.__cause__ = error
    return own


def _answer(answer: Answer, outcome: Outcome | Exception) -> None:
    if answer.done():
        return
    if isinstance(outcome, Exception):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)


def _cancel(requests: Iterable[Request]) -> None:
    for request in requests:
        request.answer.cancel()
