"""Group commit: while one transaction is written, the requests that come meanwhile gather for the next.

Answers come only after COMMIT, each request gets its own, and a bad one never fails its neighbours.
"""

import asyncio
import copy
import random
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tidings.db.engine import Engine
from tidings.errors import EventRefused, OutcomeUnknown, StatementFailed, TidingsError, TransientFailure
from tidings.model.event import NewEvent, Published
from tidings.roles.ingest.operations import IngestOperations
from tidings.roles.ingest.publishing import payload_size
from tidings.telemetry.bus import tell
from tidings.telemetry.notices import StepRetried

_ATTEMPTS = 6
_FIRST_PAUSE = 0.05

Outcome = list[Published] | TidingsError
Answer = asyncio.Future[list[Published]]


@dataclass(frozen=True)
class BatchLimits:
    """What one transaction takes, soft by one request, and how many transactions may be written at once."""

    events: int = 500
    payload_bytes: int = 4 * 1024 * 1024
    writers: int = 2


@dataclass(eq=False, frozen=True)
class Request:
    events: Sequence[NewEvent]
    answer: Answer


class Ingest:
    """Publishes for any number of concurrent callers. Keeps no task while there is nothing to do."""

    def __init__(self, engine: Engine, limits: BatchLimits | None = None) -> None:
        self._engine = engine
        self._limits = limits or BatchLimits()
        self._waiting: deque[Request] = deque()
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
        self._waiting.append(request)
        if self._busy < self._limits.writers:
            self._busy += 1
            writer = asyncio.create_task(self._write_all())
            self._writers.add(writer)
            writer.add_done_callback(self._writers.discard)
        return await request.answer

    async def close(self) -> None:
        """Takes nothing new, and ends when everybody who waits has his answer."""
        self._closed = True
        while self._writers:
            await asyncio.wait(self._writers)

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
        except Exception as error:
            outcomes = [_of_each(error) for _ in batch]
        except BaseException:
            _cancel(batch)
            raise
        for request, outcome in zip(batch, outcomes, strict=True):
            _answer(request.answer, outcome)

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
        with_care = False
        attempt = 0
        while True:
            outcomes: list[Outcome] = []
            try:
                async with self._engine.transaction() as transaction:
                    operations = IngestOperations(transaction, self._engine.dialect)
                    if with_care:
                        outcomes += await _each_for_itself(operations, batch)
                    else:
                        outcomes += await _together(operations, batch)
                return outcomes
            except OutcomeUnknown as error:
                return [_unknown(outcome, error) for outcome in outcomes]
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
    """Everybody gets an exception of his own: tracebacks grow where they are raised."""
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
