"""Runs one step after the other until it is told to stop; pauses when there is nothing to do or something is wrong.

For a while after work it looks often. Then seldom, by a question that costs less than a step, until it finds something
or a bell is rung. A bell is a hint: whatever it could tell is found without it, a pause later.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from tidings.errors import TidingsError
from tidings.runtime.bell import Bell
from tidings.telemetry.bus import tell
from tidings.telemetry.notices import StepFailed, StopOverdue

Step = Callable[[], Awaitable[int]]
"""Returns how much it did; a bool will do."""

IDLE_PAUSE = 0.05
LONGEST_PAUSE = 5.0
# A step is a short transaction; one that takes longer waits for a server that is away.
SECONDS_TO_FINISH = 5.0
# Work seldom comes alone.
SECONDS_ALERT = 2.0
# However often a bell is rung, so long is between two steps of which the first found nothing.
SECONDS_GATHERING = 0.02
# A step of so many rows is worth waiting for: statements for twice as many cost little more. With the same in the
# outbox a delivery takes a tenth less of all processors, and the first one in an idle system waits for nobody.
MANY, SECONDS_GATHERING_MANY = 50, 0.04
# With the signs of life of its process, an idle role asks twice a second.
SECONDS_BETWEEN_LOOKS = 0.53
# A look that takes long, since the server keeps dead rows for somebody, is made so seldom that it takes this part.
_LONG_LOOK, _PART_FOR_LOOKS = 0.1, 0.1
# So that many of a kind do not ask in the same millisecond.
_SPREAD = 0.02


@dataclass(frozen=True)
class Pace:
    """How often an idle role looks, and at which moments: those of the clock, which all processes have in common.

    So who comes `phase` seconds after another finds at once what that one has made, not half a pause later.
    """

    between_looks: float = SECONDS_BETWEEN_LOOKS
    phase: float = 0.0

    def until_next(self, now: float) -> float:
        """Seconds from `now` until the next look; a timer that fires a little early does not make two of one."""
        left = self.between_looks - (now - self.phase) % self.between_looks
        return left if left >= self.between_looks / 2 else left + self.between_looks


@dataclass(frozen=True)
class Work:
    """`step` says how much there was to do, `look` whether a step would find something.

    A role that is `gathering` waits as long after a step with work: what comes meanwhile is one batch, and in a process
    of several roles the next one in line has its turn.
    """

    step: Step
    look: Callable[[], Awaitable[bool]] | None = None
    pace: Pace = Pace()
    gathering: bool = False


async def keep_going(role: str, work: Work | Step, stopping: asyncio.Event, bell: Bell | None = None) -> None:
    """A step that was begun is finished before the end; one that does not finish is broken off, which undoes it."""
    bell = bell or Bell()
    what = work if isinstance(work, Work) else Work(work)
    going = asyncio.create_task(_go_on(role, what, stopping, bell), name=role)
    told = asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait({going, told}, return_when=asyncio.FIRST_COMPLETED)
        bell.ring()  # it may be in a pause
        _, late = await asyncio.wait({going}, timeout=SECONDS_TO_FINISH)
        if late:
            tell(StopOverdue(role, SECONDS_TO_FINISH))
        else:
            going.result()
    finally:
        await _cancelled(told)
        await _cancelled(going)


async def _go_on(role: str, work: Work, stopping: asyncio.Event, bell: Bell) -> None:
    failures, is_rung, spread = 0, True, random.uniform(0, _SPREAD)
    worked_at, next_step_at = time.monotonic(), float("-inf")
    while not stopping.is_set():
        began = time.monotonic()
        is_alert = began - worked_at < SECONDS_ALERT
        try:
            busy = 0
            if is_rung or is_alert or work.look is None or await work.look():
                await asyncio.sleep(max(0.0, next_step_at - time.monotonic()))
                stepped_at = time.monotonic()
                busy = await work.step()
                next_step_at = stepped_at + _until_next_step(busy, work.gathering)
            failures = 0
        except TidingsError as error:
            failures += 1
            seconds = min(IDLE_PAUSE * 2 ** min(failures, 10), LONGEST_PAUSE) * random.uniform(0.5, 1)
            tell(StepFailed(role, error.what, round(seconds, 2)))
            await pause(stopping, seconds)
            continue
        if busy:
            worked_at = time.monotonic()
            continue
        took = time.monotonic() - began
        seconds = IDLE_PAUSE if is_alert else _seldom(took, work.pace.until_next(time.time() - spread))
        is_rung = await bell.heard(seconds)


def _until_next_step(busy: int, gathering: bool) -> float:
    """From the beginning of the last one, which did so much."""
    if busy and not gathering:
        return 0.0
    return SECONDS_GATHERING_MANY if busy >= MANY else SECONDS_GATHERING


def _seldom(took: float, seconds: float) -> float:
    return seconds if took < _LONG_LOOK else max(seconds, min(took / _PART_FOR_LOOKS, LONGEST_PAUSE))


async def pause(stopping: asyncio.Event, seconds: float) -> None:
    """So long, or until all must stop."""
    with suppress(TimeoutError):
        await asyncio.wait_for(stopping.wait(), seconds)


async def _cancelled(task: asyncio.Task[object]) -> None:
    task.cancel()
    await asyncio.wait({task})
