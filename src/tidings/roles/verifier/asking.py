"""Asks for a call to one endpoint: the challenge, the task that carries it and the audit row are one transaction."""

import secrets

from tidings.db.engine import Engine
from tidings.decisions.destinations import DestinationRules, read_destination
from tidings.decisions.verifying import SECONDS_VALID, WINDOW, refuse_if_too_often
from tidings.errors import SubscriptionRefused
from tidings.model.endpoint_check import TASK_OF, CheckKind
from tidings.model.subscription import Subscription, Verification
from tidings.roles.verifier.operations import VerifierOperations

# For a process that dies on the way; a call that was made is not made again.
MAX_RETRIES = 1
_REMEMBERED = 24 * WINDOW


async def ask_verification(engine: Engine, id: int, *, actor: str, rules: DestinationRules) -> int | None:
    """The check that was asked for; None if the latest URL is in force already. Older challenges become void."""

    async def work(operations: VerifierOperations) -> int | None:
        subscription = await operations.subscription_to_judge(id)
        if subscription.verification is Verification.NONE:
            what = f"Subscription {id} is to be trusted, not verified by a call."
            raise SubscriptionRefused(what, field="verification")
        if subscription.verified and subscription.pending_callback_url is None:
            return None
        await operations.outdate_challenges(id)
        return await _ask(operations, subscription, CheckKind.VERIFICATION, subscription.latest_url, actor, rules)

    return await VerifierOperations.step(engine, work)


async def ask_test(engine: Engine, id: int, *, actor: str, rules: DestinationRules) -> int:
    """The check that was asked for. Nothing but a challenge is sent to what is not active and verified."""

    async def work(operations: VerifierOperations) -> int:
        subscription = await operations.subscription_to_judge(id)
        if not (subscription.active and subscription.verified):
            raise SubscriptionRefused(
                f"Subscription {id} is {subscription.state}, so nothing is sent to it.",
                f"`tidings subscriptions {'verify' if subscription.active else 'activate'} {id}`, then try again.",
                field="id",
            )
        return await _ask(operations, subscription, CheckKind.TEST, subscription.callback_url, actor, rules)

    return await VerifierOperations.step(engine, work)


async def _ask(
    operations: VerifierOperations,
    subscription: Subscription,
    kind: CheckKind,
    url: str,
    actor: str,
    rules: DestinationRules,
) -> int:
    host = read_destination(url, rules).host
    counted = await operations.checks_lately(subscription.id, host, kind, WINDOW)
    refuse_if_too_often(kind, *counted, host)
    await operations.forget_checks(subscription.id, _REMEMBERED)
    challenge = secrets.token_urlsafe(32)
    made = await operations.insert_check(subscription.id, kind, url, host, challenge, SECONDS_VALID)
    await operations.submit_task(TASK_OF[kind], f"{subscription.id}:{challenge}", {"check": made}, MAX_RETRIES)
    await operations.audit(actor, f"subscription.{kind}_asked", f"subscription:{subscription.id}", {"url": url})
    return made
