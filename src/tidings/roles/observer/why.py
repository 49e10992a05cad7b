"""Reads what `why` needs to know about one thing, and lets the answer be made of it."""

from collections.abc import Awaitable, Callable

from tidings.db.engine import Engine
from tidings.db.session import Row
from tidings.decisions.explaining import (
    EventFacts,
    RoutingFacts,
    SagaFacts,
    TaskFacts,
    explain_absent_event,
    explain_event,
    explain_saga,
    explain_task,
)
from tidings.errors import InputRefused, NotFound
from tidings.model.explanation import Explanation
from tidings.model.id import is_id
from tidings.roles.observer.listing import END, MOST_ROUTERS
from tidings.roles.observer.operations import ObserverOperations

_MOST_SAGAS, _MOST_JOBS = 50, 1000
_MOST_DEEDS = 20


class WhyObserver(ObserverOperations):
    """`retry_limit` holds for subscriptions that have none of their own."""

    async def event(self, id: int, retry_limit: int) -> Explanation:
        event = await self._row("event", id=id)
        routing = await self._routing(id)
        if event is None:
            writers = await self._rows("open_writers") if routing.holes else ()
            return explain_absent_event(id, routing, writers)
        attempts = await self._rows("attempts_of_event", event_id=id, limit=_MOST_SAGAS)
        dead_letters = await self._rows("route_dead_letters_of_event", event_id=id)
        facts = await self._sagas(id, retry_limit)
        return explain_event(EventFacts(event, attempts, dead_letters, routing, facts))

    async def saga(self, id: int, retry_limit: int) -> Explanation:
        return explain_saga(await self._saga(id, retry_limit))

    async def task(self, id: int, retry_limit: int) -> Explanation:
        # In this order: between the two questions a task may go from the queue to the history, never back.
        task = await self._row("task", id=id) or await self._row("archived_task", id=id)
        if task is None:
            raise NotFound(f"There is no task {id}.", "`tidings tasks list` shows the newest ones, also --archived.")
        return explain_task(TaskFacts(task, await self.server_clock(), await self.alive()))

    async def _saga(self, id: int, retry_limit: int) -> SagaFacts:
        saga = await self._row("saga", id=id)
        if saga is None:
            raise NotFound(f"There is no saga {id}.", "`tidings sagas list` shows the newest ones.")
        subscription = await self._row("subscription", id=saga["subscription_id"])
        next_one = await self._row("next_generation", id=id)
        return SagaFacts(
            saga,
            await self._rows("jobs_of_saga", saga_id=id, limit=1),
            subscription,
            _own_limit(subscription) or retry_limit,
            await self.server_clock(),
            await self.alive(),
            lane=await self._row("lane", subscription_id=saga["subscription_id"]),
            held_by=await self._paused_by(saga["subscription_id"]) if subscription and subscription["paused"] else None,
            requeued_as=next_one["id"] if next_one else None,
        )

    async def _sagas(self, event_id: int, retry_limit: int) -> list[SagaFacts]:
        """Of all deliveries of an event at once, however many there are."""
        sagas = await self._rows("sagas_of_event", event_id=event_id, before=END, limit=_MOST_SAGAS)
        if not sagas:
            return []
        ids = sorted({saga["subscription_id"] for saga in sagas})
        jobs = await self._rows("jobs_of_event", event_id=event_id, limit=_MOST_JOBS)
        letters = await self._rows("dead_letters_of_event", event_id=event_id, limit=_MOST_JOBS)
        subscriptions = {row["id"]: row for row in await self._rows("subscriptions_among", ids=ids)}
        lanes = {row["subscription_id"]: row for row in await self._rows("lanes_among", ids=ids)}
        holders = {id: await self._paused_by(id) for id, row in subscriptions.items() if row["paused"]}
        generations = {(saga["subscription_id"], saga["generation"]): saga["id"] for saga in sagas}
        letter_of = {letter["saga_id"]: letter["id"] for letter in letters}
        now, alive = await self.server_clock(), await self.alive()
        return [
            SagaFacts(
                {**saga, "dead_letter_id": letter_of.get(saga["id"])},
                [job for job in jobs if job["saga_id"] == saga["id"]],
                subscriptions.get(saga["subscription_id"]),
                _own_limit(subscriptions.get(saga["subscription_id"])) or retry_limit,
                now,
                alive,
                lane=lanes.get(saga["subscription_id"]),
                held_by=holders.get(saga["subscription_id"]),
                requeued_as=generations.get((saga["subscription_id"], saga["generation"] + 1)),
            )
            for saga in sagas
        ]

    async def _routing(self, id: int) -> RoutingFacts:
        routers = await self._rows("routers_after", after="", limit=MOST_ROUTERS, only="")
        gates = await self._rows("gates_after", after="", limit=MOST_ROUTERS)
        holes = await self._rows("holes_with", id=id)
        return RoutingFacts(routers, {gate["name"]: gate for gate in gates}, holes, await self.alive())

    async def _paused_by(self, subscription_id: int) -> Row | None:
        subject = f"subscription:{subscription_id}"
        deeds = await self._rows("last_done_to", subject=subject, limit=_MOST_DEEDS)
        return next((deed for deed in deeds if deed["action"] == "subscription.paused"), None)


def _own_limit(subscription: Row | None) -> int | None:
    limit: int | None = subscription["max_retry_limit"] if subscription else None
    return limit


ASKED: dict[str, Callable[[WhyObserver, int, int], Awaitable[Explanation]]] = {
    "event": WhyObserver.event,
    "saga": WhyObserver.saga,
    "task": WhyObserver.task,
}


async def why(engine: Engine, subject: str, retry_limit: int) -> Explanation:
    """`subject` is `event:ID`, `saga:ID` or `task:ID`."""
    kind, id = read_subject(subject)
    return await WhyObserver.step(engine, lambda observer: ASKED[kind](observer, id, retry_limit))


def read_subject(subject: str) -> tuple[str, int]:
    kind, _, number = subject.partition(":")
    if kind not in ASKED or not number.isdecimal() or len(number) > 19 or not is_id(int(number)):
        raise InputRefused(
            f"{subject!r} is nothing that can be asked about.", "Write event:12, saga:34 or task:56.", field="subject"
        )
    return kind, int(number)
