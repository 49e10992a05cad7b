"""How fast it is here: the same events published, then routed, then delivered, each stage alone and by the clock."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from tidings.decisions.subscribing import SubscriptionRules
from tidings.demo.receivers import Receiver
from tidings.demo.story import AT_ONCE, order, subscribe
from tidings.errors import TidingsError
from tidings.processes import activities, seconds_to_stop
from tidings.roles.ingest.service import Ingest
from tidings.runtime.supervisor import supervise
from tidings.telemetry.bus import listening
from tidings.telemetry.notices import EventsRouted
from tidings.wiring import Installation

PUBLISHERS = 4
BETWEEN_LOOKS = 0.02
LONGEST = 120.0
"""Of one stage, in seconds."""


@dataclass(frozen=True)
class Stage:
    name: str
    events: int
    seconds: float

    @property
    def per_second(self) -> float:
        return self.events / max(self.seconds, 1e-9)


@dataclass
class Measure:
    """`show` is told the stage, how many events are through, and of how many."""

    found: Installation
    rules: SubscriptionRules
    events: int
    show: Callable[[str, int, int], None]
    through: int = 0

    async def take(self, certificate: Path) -> list[Stage]:
        receiver = Receiver("receiver", "takes everything at once", lambda *_: 200)
        async with AsyncExitStack() as stack:
            stack.callback((await receiver.serve(certificate)).close)
            await subscribe(self.found, self.rules, receiver)
            return [
                await self._timed("published", self._publish()),
                await self._timed("routed", self._route()),
                await self._timed("delivered", self._deliver(receiver)),
            ]

    async def _timed(self, name: str, work: Awaitable[float]) -> Stage:
        """`work` tells at what moment the last event was through."""
        self.through = 0
        watching = asyncio.create_task(self._watch(name))
        began = time.monotonic()
        try:
            async with asyncio.timeout(LONGEST):
                return Stage(name, self.events, await work - began)
        except TimeoutError:
            what = f"Within {LONGEST:.0f} seconds only {self.through:,} of {self.events:,} events were {name}."
            raise TidingsError(what, "Measure with fewer events: --events 500.") from None
        finally:
            watching.cancel()

    async def _watch(self, name: str) -> None:
        while True:
            self.show(name, self.through, self.events)
            await asyncio.sleep(0.1)

    async def _publish(self) -> float:
        batches = iter([range(first, min(first + AT_ONCE, self.events)) for first in range(0, self.events, AT_ONCE)])
        async with self.found.engine("event_ingest_writer", size=3) as engine:
            ingest = Ingest(engine)

            async def publisher() -> None:
                for batch in batches:
                    await ingest.publish([order(number) for number in batch])
                    self.through += len(batch)

            await asyncio.gather(*(publisher() for _ in range(PUBLISHERS)))
            ended = time.monotonic()
            await ingest.close()
        return ended

    async def _route(self) -> float:
        routed: list[int] = []
        with listening(lambda notice: routed.append(getattr(notice, "events", 0)), EventsRouted):
            return await self._run_until_through(lambda: sum(routed), "router")

    async def _deliver(self, receiver: Receiver) -> float:
        return await self._run_until_through(lambda: len(receiver.taken), "orchestrator", "worker")

    async def _run_until_through(self, count: Callable[[], int], *names: str) -> float:
        stopping, seconds = asyncio.Event(), seconds_to_stop(self.found.settings)
        running = asyncio.create_task(supervise(activities(self.found, [*names]), stopping, seconds))
        try:
            while (through := count()) < self.events:
                self.through = through
                await asyncio.sleep(BETWEEN_LOOKS)
            return time.monotonic()
        finally:
            stopping.set()
            await running
