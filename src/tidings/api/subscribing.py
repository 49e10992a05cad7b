"""What people do to subscriptions and what follows from it by another role: once, for the API and for the console."""

import datetime
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any

from tidings.api.context import Api
from tidings.db.engine import Engine
from tidings.errors import TidingsError
from tidings.model.subscription import Verification
from tidings.roles.observer.pages import PageObserver
from tidings.roles.observer.subscriptions import SeenSubscription
from tidings.roles.router.backfill import Backfilled, backfill
from tidings.roles.subscriptions import actions
from tidings.roles.verifier.actions import trust
from tidings.roles.verifier.asking import ask_test, ask_verification
from tidings.roles.verifier.operations import VerifierOperations

ADMIN, VERIFIER, ROUTER = "subscription_admin", "subscription_verifier", "event_router"


async def look(api: Api, id: int, own: str = "") -> SeenSubscription:
    """`own` is the only domain that may be seen; '' for all."""
    return await api.observed(PageObserver, lambda observer: observer.subscription(id, own))


async def create(api: Api, given: Mapping[str, Any], actor: str) -> tuple[SeenSubscription, str]:
    """The subscription and its secret, which is told only now: nothing that follows may keep it from its owner."""

    async def work(engine: Engine) -> actions.Created:
        return await actions.create(engine, given, actor=actor, rules=api.rules, vault=api.vault())

    made = await api.as_role(ADMIN, work)
    if made.subscription.verification is Verification.NONE:
        with suppress(TidingsError):
            await _trust(api, made.subscription.id, actor)
    return await look(api, made.subscription.id), made.secret


async def change(
    api: Api, id: int, given: Mapping[str, Any], actor: str, expected_version: int | None
) -> SeenSubscription:
    """Conflict if it has another version by now."""

    async def work(engine: Engine) -> actions.Outcome:
        return await actions.edit(
            engine, id, given, actor=actor, rules=api.rules, vault=api.vault(), expected_version=expected_version
        )

    outcome = await api.as_role(ADMIN, work)
    if outcome.subscription.verification is Verification.NONE:
        await _trust(api, id, actor)
    return await look(api, id)


async def verify(api: Api, id: int, actor: str) -> int | None:
    """The check that will be made; None if there was nothing to do, or if trust was enough."""
    if (await look(api, id)).subscription.verification is Verification.NONE:
        await _trust(api, id, actor)
        return None
    rules = api.rules.destinations
    return await api.as_role(
        VERIFIER, lambda engine: ask_verification(engine, id, actor=actor, rules=rules), wakes="verifier"
    )


async def test(api: Api, id: int, actor: str) -> int:
    rules = api.rules.destinations
    return await api.as_role(VERIFIER, lambda engine: ask_test(engine, id, actor=actor, rules=rules), wakes="verifier")


async def replay(api: Api, id: int, since: datetime.datetime, actor: str) -> Backfilled:
    """The first batch; the rest goes on by itself."""
    batches = backfill(await api.pools.engine(ROUTER), id, since, actor)
    first = await anext(batches)
    api.ring("orchestrator")
    if not first.is_done:
        api.background.begin(f"replay of subscription {id}", _all(api, batches))
    return first


async def _all(api: Api, batches: AsyncIterator[Backfilled]) -> None:
    async for _ in batches:
        api.ring("orchestrator")


async def _trust(api: Api, id: int, actor: str) -> None:
    async def work(operations: VerifierOperations) -> bool:
        return await trust(operations, id, actor=actor, rules=api.rules.destinations)

    await api.as_role(VERIFIER, lambda engine: VerifierOperations.step(engine, work))
