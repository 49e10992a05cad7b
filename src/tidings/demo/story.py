"""The story: subscribe, publish, deliver with failures, give up, come back, requeue, and settle the accounts."""

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tidings.decisions.accepting import accept
from tidings.decisions.subscribing import SubscriptionRules
from tidings.demo.receivers import CANCELLED, Receiver, four_receivers
from tidings.demo.scoreboard import HEARD, Scoreboard
from tidings.ids import new_correlation_id
from tidings.model.event import EventLimits, NewEvent
from tidings.model.ledger import Difference, Ledger
from tidings.processes import API, activities, everything, seconds_to_stop
from tidings.roles.dead_letters import requeueing
from tidings.roles.dead_letters.operations import Filter
from tidings.roles.ingest.service import Ingest
from tidings.roles.observer.listing import EVER, NEVER
from tidings.roles.observer.reconciling import reconcile
from tidings.roles.subscriptions import actions
from tidings.roles.verifier.actions import trust
from tidings.roles.verifier.operations import VerifierOperations
from tidings.runtime.supervisor import supervise
from tidings.telemetry.bus import listening
from tidings.wiring import Installation

ACTOR = "demo"
AT_ONCE = 100
# A machine that is slower than this is too slow for a demonstration.
LONGEST = 50.0
BETWEEN_LOOKS = 0.1
# Every tenth is for the receiver that is down.
TYPES = (
    CANCELLED,
    *(f"order.{step}" for step in ("placed", "paid", "packed", "sent", "seen", "kept", "rated", "asked", "closed")),
)


@dataclass
class Story:
    """`show` is called again and again with what is being done."""

    found: Installation
    rules: SubscriptionRules
    events: int
    show: Callable[["Story", str], None]
    board: Scoreboard = field(default_factory=Scoreboard)
    receivers: list[tuple[int, Receiver]] = field(default_factory=list)

    async def tell(self, certificate: Path) -> Ledger:
        """From the first subscription to the settled accounts."""
        stopping = asyncio.Event()
        async with AsyncExitStack() as stack:
            stack.enter_context(listening(self.board.hear, *HEARD))
            for receiver in four_receivers():
                server = await receiver.serve(certificate)
                stack.callback(server.close)
                self.receivers.append((await subscribe(self.found, self.rules, receiver), receiver))
            settings = self.found.settings
            # Its port may be taken by an installation that is no demonstration.
            names = [name for name in everything(settings) if name != API]
            going = asyncio.create_task(supervise(activities(self.found, names), stopping, seconds_to_stop(settings)))
            try:
                await self._play()
            finally:
                stopping.set()
                await going
        return await self._settle()

    async def _play(self) -> None:
        started = time.monotonic()
        publishing = asyncio.create_task(self._publish())
        await self._until(
            lambda: self._is_over("dead"), f"delivering {self.events:,} events to four receivers", started
        )
        await publishing
        _, dead = self.receivers[-1]
        dead.answers = lambda *_: 200
        await self._requeue()
        await self._until(
            lambda: self._is_over("delivered"), "the dead one is back; its dead letters go again", started
        )

    async def _until(self, is_so: Callable[[], bool], doing: str, started: float) -> None:
        while not is_so() and time.monotonic() - started < LONGEST:
            self.show(self, doing)
            await asyncio.sleep(BETWEEN_LOOKS)
        self.show(self, doing)

    def _is_over(self, last_ends: str) -> bool:
        """Everything is delivered; at the last receiver it has come to what is said."""
        *alive, (last, _) = self.receivers
        delivered = all(self.board.of(id, "delivered") == self.wanted(receiver) for id, receiver in alive)
        return delivered and self.board.of(last, last_ends) == self.wanted(self.receivers[-1][1])

    def wanted(self, receiver: Receiver) -> int:
        """How many events it subscribes to."""
        return self.events if receiver.event_type == "*" else self.events // len(TYPES)

    async def _publish(self) -> None:
        async with self.found.engine("event_ingest_writer", size=2) as engine:
            ingest = Ingest(engine)
            numbers = range(1, self.events + 1)
            for first in range(0, self.events, AT_ONCE):
                await ingest.publish([order(number) for number in numbers[first : first + AT_ONCE]])
            await ingest.close()

    async def _requeue(self) -> None:
        subscription, _ = self.receivers[-1]
        async with self.found.engine("dead_letter_operator", size=1) as engine:
            mass = await requeueing.begin(engine, Filter(EVER, NEVER, subscription), 10_000, ACTOR)
            self.board.requeued()
            await requeueing.run(engine, mass, lambda _: self.show(self, "requeueing its dead letters"))

    async def _settle(self) -> Ledger:
        """What the database says, and what the receivers say."""
        async with self.found.engine("observer") as engine:
            *_, ledger = [one async for one in reconcile(engine)]
        for id, receiver in self.receivers:
            subject = f"subscription:{id}"
            if len(receiver.taken) != self.wanted(receiver):
                text = f"{receiver.name} says it has taken {len(receiver.taken)} of {self.wanted(receiver)} events"
                ledger.differences.append(Difference(subject, None, text))
            if receiver.unsigned:
                text = f"{receiver.name} got {receiver.unsigned} requests without a valid signature"
                ledger.differences.append(Difference(subject, None, text))
        return ledger

    @property
    def duplicates(self) -> int:
        return sum(count - 1 for _, receiver in self.receivers for count in receiver.taken.values())


async def subscribe(found: Installation, rules: SubscriptionRules, receiver: Receiver) -> int:
    """The subscription of a receiver that we trust, as it is ours."""
    given = {"event_type": receiver.event_type, "callback_url": receiver.url, "verification": "none"}
    async with found.engine("subscription_admin", size=1) as engine:
        made = await actions.create(engine, given, actor=ACTOR, rules=rules, vault=found.vault())
    receiver.secret = made.secret
    id = made.subscription.id
    async with found.engine("subscription_verifier", size=1) as engine:
        await VerifierOperations.step(
            engine, lambda operations: trust(operations, id, actor=ACTOR, rules=rules.destinations)
        )
    return id


def order(number: int) -> NewEvent:
    payload = f'{{"order": {number}, "amount": "{number % 90 + 10}.50", "currency": "EUR"}}'.encode()
    return accept(TYPES[number % len(TYPES)], payload, correlation_id=new_correlation_id(), limits=EventLimits(1024, 5))
