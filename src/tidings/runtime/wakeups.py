"""Wake-ups: a role that did something for the next one tells it so, after its commit. A hint and nothing more.

In the same process a bell is rung. To other processes it goes by NOTIFY, where the server has that: gathered, in a
transaction of its own, without content. Whatever is lost on the way costs the pause of whoever was to be woken.
"""

import asyncio
import random
from collections.abc import Iterable
from contextlib import suppress

from tidings.db.engine import Engine
from tidings.errors import TidingsError
from tidings.runtime.bell import Bell
from tidings.telemetry.bus import tell
from tidings.telemetry.notices import StepFailed, WakeupsUnheard

# Each is a commit that all listeners of the server must look at; closer together they are of no more use.
SECONDS_BETWEEN_NOTIFICATIONS = 0.015
SECONDS_UNTIL_LISTENING_AGAIN = 1.0
SECONDS_BETWEEN_CHECKS = 30.0
# A pooler in transaction mode takes a LISTEN and never passes anything on.
SECONDS_TO_BE_HEARD = 2.0
SECONDS_UNHEARD = 60.0
_HELLO = "hello"


def channel(schema: str, stage: str) -> str:
    """Notifications are for a whole database, in which there may be several installations."""
    return f"tidings:{schema}:{stage}"


async def notify(engine: Engine, schema: str, stage: str) -> None:
    """From a caller without a process of its own, after its commit; that it fails is no failure of what was done."""
    with suppress(TidingsError):
        await engine.notify([channel(schema, stage)])


class Wakeups:
    """The bells of the stages that this process runs, and the way to all others."""

    def __init__(self, here: Iterable[str]) -> None:
        self._bells = {stage: Bell() for stage in here}
        self._outgoing: set[str] = set()
        self._news = asyncio.Event()
        self._hears = asyncio.Event()
        self._has_told = False

    def bell(self, stage: str) -> Bell:
        return self._bells[stage]

    def ring(self, stage: str) -> None:
        """Costs next to nothing. A stage that is here too needs no other process."""
        if stage in self._bells:
            self._bells[stage].ring()
        else:
            self._outgoing.add(stage)
            self._news.set()

    async def run(self, engine: Engine, schema: str, stopping: asyncio.Event) -> None:
        """Tells other processes and listens to them until all must stop; `engine` has room for one session."""
        running: set[asyncio.Task[object]] = {
            asyncio.create_task(self._tell_others(engine, schema)),
            asyncio.create_task(self._listen_to_others(engine, schema)),
            asyncio.create_task(stopping.wait()),
        }
        try:
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in running:
                task.cancel()
            await asyncio.wait(running)

    async def _tell_others(self, engine: Engine, schema: str) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            stages, self._outgoing = self._outgoing, set()
            with suppress(TidingsError):
                await engine.notify(channel(schema, stage) for stage in sorted(stages))
            await asyncio.sleep(SECONDS_BETWEEN_NOTIFICATIONS)

    async def _listen_to_others(self, engine: Engine, schema: str) -> None:
        while True:
            try:
                await self._listen(engine, schema)
            except TidingsError as error:
                tell(StepFailed("wake-ups", error.what, SECONDS_UNTIL_LISTENING_AGAIN))
            await asyncio.sleep(SECONDS_UNTIL_LISTENING_AGAIN * random.uniform(0.5, 1))

    async def _listen(self, engine: Engine, schema: str) -> None:
        """As long as it goes."""
        session = await engine.own_session()
        lost = asyncio.Event()
        try:
            channels = [channel(schema, stage) for stage in (*self._bells, _HELLO)]
            await session.listen(channels, self._heard, lost.set)
            if not await self._is_heard(engine, schema):
                return
            for bell in self._bells.values():
                bell.ring()  # who knows what was told while nobody listened
            while not await _is_set(lost, SECONDS_BETWEEN_CHECKS):
                await session.command(f"/* {engine.owner}.listening */ SELECT 1")
        finally:
            session.abandon()

    async def _is_heard(self, engine: Engine, schema: str) -> bool:
        """Tries it, by way of another session, as others will."""
        self._hears.clear()
        await engine.notify([channel(schema, _HELLO)])
        if await _is_set(self._hears, SECONDS_TO_BE_HEARD):
            return True
        if not self._has_told:
            self._has_told = True
            tell(WakeupsUnheard(SECONDS_UNHEARD))
        await asyncio.sleep(SECONDS_UNHEARD)
        return False

    def _heard(self, heard: str) -> None:
        self._hears.set()
        stage = heard.rpartition(":")[2]
        if stage in self._bells:
            self._bells[stage].ring()


async def _is_set(event: asyncio.Event, seconds: float) -> bool:
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)
    return event.is_set()
