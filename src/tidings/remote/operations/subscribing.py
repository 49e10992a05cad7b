"""Who gets which events."""

import datetime
from typing import Any

import msgspec

from tidings.remote import answers as a
from tidings.remote.calling import PAGE_SIZE, Call, get, post

Moment = datetime.datetime


def subscriptions(
    *,
    event_type: str = "",
    event_domain: str = "",
    active: bool | None = None,
    verified: bool | None = None,
    paused: bool | None = None,
    page_size: int = PAGE_SIZE,
) -> Call[a.Page[a.Subscription]]:
    """All subscriptions that fit, in the order in which they were made."""
    return get(
        "/v1/subscriptions",
        a.Page[a.Subscription],
        event_type=event_type,
        event_domain=event_domain,
        active=active,
        verified=verified,
        paused=paused,
        limit=page_size,
    )


def subscription(id: int) -> Call[a.Subscription]:
    """One subscription, without what is secret."""
    return get(f"/v1/subscriptions/{id}", a.Subscription)


def add_subscription(event_type: str, callback_url: str, **fields: Any) -> Call[a.CreatedSubscription]:
    """Add a subscription; its secret is answered only now. Other fields as the API has them."""
    given = {"event_type": event_type, "callback_url": callback_url, **fields}
    return post("/v1/subscriptions", a.CreatedSubscription, given, is_repeatable=False)


def change_subscription(id: int, *, if_version: int | None = None, **fields: Any) -> Call[a.Subscription]:
    """Change only what is given; not at all if its `config_version` is not `if_version` any more."""
    headers = {} if if_version is None else {"If-Match": f'"{if_version}"'}
    return Call(
        "PATCH",
        f"/v1/subscriptions/{id}",
        a.Subscription,
        # None is sent too: a limit of its own is taken away by it.
        body=msgspec.json.encode(fields),
        headers=headers,
        is_repeatable=if_version is None,
    )


def pause_subscription(id: int, *, reason: str = "") -> Call[a.Subscription]:
    """Hold it: deliveries are still made, nothing is sent, nothing is lost."""
    return post(f"/v1/subscriptions/{id}/pause", a.Subscription, {"reason": reason})


def resume_subscription(id: int, *, reason: str = "") -> Call[a.Subscription]:
    """End a pause."""
    return post(f"/v1/subscriptions/{id}/resume", a.Subscription, {"reason": reason})


def verify_subscription(id: int) -> Call[a.Asked]:
    """Let the endpoint prove that it wants this; look at the subscription for how it ended."""
    return post(f"/v1/subscriptions/{id}/verify", a.Asked, is_repeatable=False)


def test_subscription(id: int) -> Call[a.Asked]:
    """Send a test event to this subscription alone."""
    return post(f"/v1/subscriptions/{id}/test", a.Asked, is_repeatable=False)


def rotate_secret(id: int, *, overlap_seconds: float = 86_400, secret: str | None = None) -> Call[a.NewSecret]:
    """Make a new secret, which is answered only now; for the overlap the older ones sign too."""
    given = {"overlap_seconds": overlap_seconds, "secret": secret}
    return post(f"/v1/subscriptions/{id}/rotate-secret", a.NewSecret, given, is_repeatable=False)


def replay_subscription(id: int, since: Moment) -> Call[a.SubscriptionReplay]:
    """Make up for what a subscription missed; begun again, nothing is sent twice."""
    return post(f"/v1/subscriptions/{id}/replay", a.SubscriptionReplay, {"since": since.isoformat()})
