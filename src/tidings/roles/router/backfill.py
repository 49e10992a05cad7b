"""Makes up for what a subscription missed: sagas for past events that match it, in batches, none twice."""

import asyncio
import datetime
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from functools import partial

from tidings.db.engine import Engine
from tidings.decisions.routing import Configuration, Planned, Subscriber
from tidings.errors import NotFound, SubscriptionRefused
from tidings.model.event import LoggedEvent
from tidings.model.route import ROUTING_GATE
from tidings.roles.router.gates import refuse_if_closed
from tidings.roles.router.operations import RouterOperations
from tidings.roles.router.writing import write_carefully
from tidings.telemetry.bus import tell
from tidings.telemetry.notices import EventNotRouted

BATCH = 1_000
# Longer than an idle router pauses: between two batches each of them has its turn.
PAUSE = 0.1


@dataclass(frozen=True)
class Backfilled:
    """After one batch: how many past events were looked at, how many sagas were made or refused so far."""

    looked_at: int
    made: int
    refused: int
    is_done: bool


@dataclass(frozen=True)
class Place:
    """Where the next batch goes on."""

    created_at: datetime.datetime
    event_id: int


@dataclass(frozen=True)
class Filled:
    """One batch; `place` is None after the last one."""

    place: Place | None
    looked_at: int
    made: int
    refused: tuple[EventNotRouted, ...]


async def backfill(
    engine: Engine, subscription_id: int, since: datetime.datetime, actor: str, batch: int = BATCH
) -> AsyncIterator[Backfilled]:
    """Yields after each batch, which is one transaction; to begin anew at any time doubles nothing."""
    until = await RouterOperations.step(
        engine, partial(_begin, subscription_id=subscription_id, since=since, actor=actor)
    )
    place: Place | None = Place(since, 0)
    looked_at = made = refused = 0
    while place is not None:
        filled = await RouterOperations.step(
            engine, partial(_fill, subscription_id=subscription_id, place=place, until=until, batch=batch)
        )
        for refusal in filled.refused:
            tell(refusal)
        looked_at, made, refused = looked_at + filled.looked_at, made + filled.made, refused + len(filled.refused)
        place = filled.place
        yield Backfilled(looked_at, made, refused, is_done=place is None)
        if place is not None:
            await asyncio.sleep(PAUSE)


async def _begin(
    operations: RouterOperations, subscription_id: int, since: datetime.datetime, actor: str
) -> datetime.datetime:
    await refuse_if_closed(operations, ROUTING_GATE)
    await _subscriber(operations, subscription_id)
    detail = {"since": since.isoformat()}
    await operations.audit(actor, "subscription.replayed", f"subscription:{subscription_id}", detail)
    return await operations.clock()


async def _fill(
    operations: RouterOperations, subscription_id: int, place: Place, until: datetime.datetime, batch: int
) -> Filled:
    # No pass is under way meanwhile, so what is missing now is still missing when it is written.
    await operations.wait_for_cursors()
    await refuse_if_closed(operations, ROUTING_GATE)
    subscriber = await _subscriber(operations, subscription_id)
    past = await operations.past_events(place.created_at, place.event_id, until, batch)
    events = [event for event, _ in past]
    ids = [event.id for event in events]
    # What no router has decided about yet, or has set aside, will come to this subscription by itself.
    ready = await operations.decided_among(ids) - await operations.unresolved_among(ids)
    configuration = Configuration(0, await operations.routes(), [subscriber])
    wanted = [event for event in events if event.id in ready and _is_for(configuration, event)]
    there = await operations.existing([event.id for event in wanted], ())
    missing = [event for event in wanted if not there[event.id].subscriptions & {subscription_id}]
    name = f"replay:{subscription_id}"
    refused = await write_carefully(operations, name, [_planned(configuration, event) for event in missing])
    return Filled(
        Place(past[-1][1], events[-1].id) if len(past) == batch else None,
        len(past),
        len(missing) - len(refused),
        tuple(EventNotRouted(name, one.event.id, one.event.correlation_id, error) for one, error in refused),
    )


async def _subscriber(operations: RouterOperations, subscription_id: int) -> Subscriber:
    found = next((one for one in await operations.subscribers() if one.id == subscription_id), None)
    if found is None:
        raise NotFound(f"There is no subscription {subscription_id}.", "`tidings subscriptions list` shows them.")
    if not found.may_be_sent_to:
        state = "not verified" if found.active else "not active"
        raise SubscriptionRefused(
            f"Subscription {subscription_id} is {state}, so nothing would be sent to it.",
            f"Activate it with `tidings subscriptions activate {subscription_id}`, or verify it, then replay.",
            field="id",
        )
    return found


def _is_for(configuration: Configuration, event: LoggedEvent) -> bool:
    return any(decision.subscriptions for decision in configuration.decide(event))


def _planned(configuration: Configuration, event: LoggedEvent) -> Planned:
    sent = next(decision for decision in configuration.decide(event) if decision.subscriptions)
    return Planned(event, (replace(sent, reason="replay"),))
