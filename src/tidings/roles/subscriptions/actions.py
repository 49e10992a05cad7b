"""What can be done to subscriptions. Each is one transaction together with its row in the audit log."""

import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from tidings.db.engine import Engine
from tidings.decisions.secret_keys import secret_text
from tidings.decisions.subscribing import (
    SubscriptionRules,
    changed_columns,
    check_changes,
    check_new,
    check_overlap,
    check_reason,
    check_secret,
)
from tidings.errors import Conflict, NotFound
from tidings.model.id import is_id
from tidings.model.subscription import NewSubscription, Subscription
from tidings.roles.subscriptions.operations import SubscriptionOperations
from tidings.vault import Vault, seal_headers, seal_secret

DAY = 86_400


@dataclass(frozen=True, repr=False)
class Created:
    """The secret is never shown again."""

    subscription: Subscription
    secret: str


@dataclass(frozen=True)
class Outcome:
    """The subscription as it is now, and whether anything had to be written for it."""

    subscription: Subscription
    changed: bool


async def create(
    engine: Engine, given: Mapping[str, Any], *, actor: str, rules: SubscriptionRules, vault: Vault
) -> Created:
    """Stores a new subscription, unverified. A `given` that can't be taken is refused and leaves no trace."""
    new = check_new(given, rules)
    secret = new.secret or _new_secret()
    # Not run again by itself: after a connection lost in COMMIT that might make a second one.
    async with engine.transaction() as transaction:
        operations = SubscriptionOperations(transaction, engine.dialect)
        id = await operations.insert(new)
        await _add_secret(operations, vault, id, secret, overlap=0)
        if new.headers:
            await operations.replace_headers(id, seal_headers(vault, id, new.headers))
        await operations.audit(actor, "subscription.created", f"subscription:{id}", _told(new))
        return Created(await _found(operations.subscription, id), secret)


async def edit(
    engine: Engine,
    id: int,
    given: Mapping[str, Any],
    *,
    actor: str,
    rules: SubscriptionRules,
    vault: Vault,
    expected_version: int | None = None,
) -> Outcome:
    """Changes only what is given. With `expected_version` nothing is changed if somebody else was faster."""
    wanted = check_changes(given, rules)

    async def work(operations: SubscriptionOperations) -> Outcome:
        current = await _found(operations.subscription_to_change, id)
        _refuse_another(current, expected_version)
        changed = changed_columns(current, wanted, rules)
        told: dict[str, Any] = {n: {"from": getattr(current, n), "to": value} for n, value in changed.items()}
        if changed:
            await operations.change(replace(current, **changed))
        if "headers" in wanted:
            headers = wanted["headers"]
            await operations.replace_headers(id, seal_headers(vault, id, headers) if headers else None)
            told["headers"] = "replaced" if headers else "removed"
        if not told:
            return Outcome(current, False)
        await operations.audit(actor, "subscription.edited", f"subscription:{id}", told)
        return Outcome(await _found(operations.subscription, id), True)

    return await SubscriptionOperations.step(engine, work)


async def pause(engine: Engine, id: int, *, actor: str, reason: str = "") -> Outcome:
    """Holds: sagas are still made, nothing is sent, nothing is lost."""
    return await _switch(engine, id, actor, "subscription.paused", lambda it: replace(it, paused=True), reason)


async def resume(engine: Engine, id: int, *, actor: str, reason: str = "") -> Outcome:
    return await _switch(engine, id, actor, "subscription.resumed", lambda it: replace(it, paused=False), reason)


async def activate(engine: Engine, id: int, *, actor: str) -> Outcome:
    return await _switch(engine, id, actor, "subscription.activated", lambda it: replace(it, active=True))


async def deactivate(engine: Engine, id: int, *, actor: str) -> Outcome:
    """Events routed from now on pass it by (ruling 11). It is never deleted."""
    return await _switch(engine, id, actor, "subscription.deactivated", lambda it: replace(it, active=False))


async def rotate_secret(
    engine: Engine, id: int, *, actor: str, vault: Vault, overlap_seconds: float = DAY, secret: str | None = None
) -> str:
    """The new secret, which is never shown again. The older ones stay valid for the overlap; 0 ends them now."""
    overlap = check_overlap(overlap_seconds)
    chosen = _new_secret() if secret is None else check_secret(secret)

    async def work(operations: SubscriptionOperations) -> str:
        await _add_secret(operations, vault, id, chosen, overlap)
        detail = {"overlap_seconds": overlap}
        await operations.audit(actor, "subscription.secret_rotated", f"subscription:{id}", detail)
        return chosen

    return await SubscriptionOperations.step(engine, work)


async def _switch(
    engine: Engine,
    id: int,
    actor: str,
    action: str,
    switched: Callable[[Subscription], Subscription],
    reason: str = "",
) -> Outcome:
    detail = {"reason": why} if (why := check_reason(reason)) else {}

    async def work(operations: SubscriptionOperations) -> Outcome:
        current = await _found(operations.subscription_to_change, id)
        wanted = switched(current)
        if wanted == current:
            return Outcome(current, False)
        await operations.change(wanted)
        await operations.audit(actor, action, f"subscription:{id}", detail)
        return Outcome(await _found(operations.subscription, id), True)

    return await SubscriptionOperations.step(engine, work)


async def _add_secret(operations: SubscriptionOperations, vault: Vault, id: int, secret: str, overlap: int) -> None:
    if not is_id(id):
        raise _unknown(id)
    sealed = seal_secret(vault, id, secret, created_at=await operations.microseconds(), overlap=overlap)
    if not await operations.add_secret(id, sealed):
        raise _unknown(id)


async def _found(look: Callable[[int], Awaitable[Subscription | None]], id: int) -> Subscription:
    found = await look(id) if is_id(id) else None
    if found is None:
        raise _unknown(id)
    return found


def _refuse_another(current: Subscription, expected_version: int | None) -> None:
    if expected_version not in (None, current.config_version):
        raise Conflict(
            f"Subscription {current.id} is at version {current.config_version}, not {expected_version}.",
            "Somebody has changed it meanwhile: look at it again, then edit it with the version it has now.",
        )


def _unknown(id: int) -> NotFound:
    return NotFound(f"There is no subscription {id}.", "`tidings subscriptions list` shows those there are.")


def _told(new: NewSubscription) -> dict[str, Any]:
    """What the audit log may know: no secret, and of the headers only that there are some."""
    limits = {name: value for name, value in asdict(new.limits).items() if value is not None}
    return {
        "event_domain": new.event_domain,
        "event_type": new.event_type,
        "callback_url": new.callback_url,
        "verification": new.verification,
        "description": new.description,
        **limits,
        "headers": "given" if new.headers else "none",
    }


def _new_secret() -> str:
    return secret_text(secrets.token_bytes(32))
