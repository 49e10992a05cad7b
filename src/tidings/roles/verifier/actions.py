"""Trust without a call: for endpoints that whoever writes the settings has named."""

from tidings.decisions.destinations import DestinationRules, is_on_allow_lists, read_destination
from tidings.errors import SubscriptionRefused
from tidings.model.subscription import Verification
from tidings.roles.verifier.operations import VerifierOperations


async def trust(operations: VerifierOperations, id: int, *, actor: str, rules: DestinationRules) -> bool:
    """Puts the latest URL of a subscription with the verification `none` in force; False if it is already.

    It asks the allow lists itself: who may write subscriptions must not be able to decide what is trusted.
    """
    subscription = await operations.subscription_to_judge(id)
    if subscription.verification is not Verification.NONE:
        raise SubscriptionRefused(f"Subscription {id} is to be verified by a call, not by trust.", field="verification")
    if subscription.verified and subscription.pending_callback_url is None:
        return False
    _refuse_unlisted(subscription.latest_url, rules)
    put = await operations.put_in_force(id, subscription.latest_url)
    if put:
        detail = {"callback_url": subscription.latest_url}
        await operations.audit(actor, "subscription.trusted", f"subscription:{id}", detail)
    return put


def _refuse_unlisted(url: str, rules: DestinationRules) -> None:
    destination = read_destination(url, rules)
    if not is_on_allow_lists(destination, rules):
        raise SubscriptionRefused(
            f"{destination.host} is on no allow list any more.",
            "Add the host to TIDINGS_ALLOW_HTTP_HOSTS or its address to TIDINGS_ALLOW_NETWORKS, or edit the URL.",
            field="callback_url",
        )
