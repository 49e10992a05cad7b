"""`/v1/subscriptions`: who gets which events. A secret is answered once, when it is made, and never again."""

import re
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from tidings.api import subscribing
from tidings.api.context import Api, By, Has
from tidings.api.describing import (
    VISIBLE,
    Answer,
    CursorText,
    Domain,
    Given,
    Id,
    IfMatch,
    Limit,
    Moment,
    PageOf,
    Shown,
    about,
    in_utc,
    refusing_a_race,
    shown,
)
from tidings.api.paging import paged
from tidings.api.problems import Refused
from tidings.db.engine import Engine
from tidings.model.key import Scope
from tidings.model.subscription import Verification
from tidings.roles.observer.filters import SubscriptionFilter
from tidings.roles.observer.pages import PageObserver
from tidings.roles.observer.subscriptions import SeenSubscription
from tidings.roles.subscriptions import actions

router = APIRouter(tags=["subscriptions"])
_ETAG = re.compile(r'(?:W/)?"?(\d{1,19})"?')

_TYPE = Field(description="An event type, or a pattern: `order.paid`, `order.*`, `*`.", examples=["order.*"])
_URL = Field(
    description="Where to send: https, unless the host is allowed plain http.", examples=["https://example.com/in"]
)


class Limits(Given):
    """What a subscription says for itself; null is as the settings say."""

    max_retry_limit: int | None = Field(None, strict=True, description="Attempts in all.", examples=[16])
    base_delay_seconds: float | None = Field(None, description="Delay after the first failure.", examples=[5])
    timeout_seconds: float | None = Field(None, description="Deadline of one request.", examples=[15])
    max_in_flight: int | None = Field(None, strict=True, description="Requests at once.", examples=[32])


class NewSubscription(Limits):
    """A subscription to be made."""

    event_type: str = _TYPE
    callback_url: str = _URL
    event_domain: str = Field("default", description="Of which domain; `*` for all.", examples=["default"])
    description: str = Field("", description="A line for people.", examples=["Invoices"])
    verification: Verification = Field(
        Verification.PROOF,
        description="How the endpoint proves that it wants this; `none` only for hosts that the settings allow.",
    )
    headers: dict[str, str] = Field(
        {}, description="Sent with each request; never shown again.", examples=[{"x-key": "a"}]
    )
    secret: str | None = Field(None, description="A `whsec_` secret of your own; one is made when it is left out.")


class SubscriptionChanges(Limits):
    """Only what is given is changed. `verified` can't be: the endpoint has to answer for that."""

    event_type: str | None = Field(None, description=_TYPE.description)
    callback_url: str | None = Field(None, description="Waits until it is verified; until then the one in force stays.")
    event_domain: str | None = Field(None, description="Of which domain; `*` for all.")
    description: str | None = Field(None, description="A line for people.")
    verification: Verification | None = Field(None, description="How the endpoint proves that it wants this.")
    headers: dict[str, str] | None = Field(None, description="Replaced as a whole.")
    active: bool | None = Field(None, strict=True, description="False: events pass it by. Use pause to hold them.")
    paused: bool | None = Field(None, strict=True, description="True: nothing is sent, nothing is lost.")


class Subscription(Shown):
    """A subscription, without what is secret."""

    id: int = Field(description="Its id.", examples=[5])
    event_domain: str = Field(description="Of which domain.")
    event_type: str = Field(description="Which types.")
    callback_url: str = Field(description="Where it sends to, once verified.")
    pending_callback_url: str | None = Field(description="A changed URL that waits to be verified.")
    active: bool = Field(description="Whether it takes part in routing.")
    verified: bool = Field(description="Whether anything may be sent to it.")
    verification: Verification = Field(description="How its endpoint proves that it wants this.")
    state: str = Field(description="All of this in words.", examples=["active · verified"])
    paused: bool = Field(description="Whether it holds.")
    description: str = Field(description="A line for people.")
    max_retry_limit: int | None = Field(description="Attempts in all; null: as the settings say.")
    base_delay_seconds: float | None = Field(description="Delay after the first failure.")
    timeout_seconds: float | None = Field(description="Deadline of one request.")
    max_in_flight: int | None = Field(description="Requests at once.")
    config_version: int = Field(description="Grows with each change; the ETag.")
    created_at: Moment = Field(description="When it was made.")
    updated_at: Moment = Field(description="When it last changed.")


class CreatedSubscription(Subscription):
    """A new subscription, with its secret, which is shown only now."""

    secret: str = Field(description="With which its requests are signed.", examples=["whsec_…"])


class NewSecret(Shown):
    """A secret that is shown only now."""

    id: int = Field(description="Of which subscription.")
    secret: str = Field(description="With which its requests are signed from now on.", examples=["whsec_…"])


class Rotation(Given):
    """How to change a secret."""

    overlap_seconds: float = Field(default=86_400, description="How long the older ones stay valid; 0 ends them now.")
    secret: str | None = Field(default=None, description="One of your own; one is made when it is left out.")


class Holding(Given):
    """Why a subscription is held or resumed."""

    reason: str = Field("", max_length=500, description="It is kept with the audit log.", examples=["maintenance"])


class Replay(Given):
    """What to make up for."""

    since: Moment = Field(description="From when on.", examples=["2026-01-31T10:00:00Z"])


class SubscriptionReplay(Shown):
    """A batch of a replay."""

    looked_at: int = Field(description="How many past events were looked at so far.")
    made: int = Field(description="How many deliveries were made of them.")
    refused: int = Field(description="How many could not be made.")
    is_done: bool = Field(description="False: the rest goes on by itself.")


class Asked(Shown):
    """A call to the endpoint that will be made."""

    check_id: int | None = Field(description="Of the call; null if there was nothing to do.")
    state: str = Field(description="How the subscription stands now, in words.")


@router.post(
    "/subscriptions",
    summary="Add a subscription",
    **about(Scope.ADMIN, CreatedSubscription, "outcome_unknown", status=201, of_all_domains=True),
)
async def create(given: NewSubscription, api: Has, caller: By) -> Answer:
    """Unverified, unless its host is on the allow lists and `verification` is `none`. The secret is shown only now."""
    seen, secret = await subscribing.create(api, given.model_dump(mode="json", exclude_unset=True), caller.actor)
    return Answer({**_told(seen), "secret": secret}, status_code=201, headers=_etag(seen))


@router.get("/subscriptions", summary="List subscriptions", **about(Scope.VIEWER, PageOf[Subscription], "bad_cursor"))
async def list_subscriptions(
    api: Has,
    own: Domain,
    event_type: Annotated[str, Query(max_length=100, pattern=VISIBLE, description="Only with exactly this type.")] = "",
    event_domain: Annotated[str, Query(max_length=100, pattern=VISIBLE, description="Only of this domain.")] = "",
    active: Annotated[bool | None, Query(description="Only those that take part in routing, or do not.")] = None,
    verified: Annotated[bool | None, Query(description="Only those that may be sent to, or may not.")] = None,
    paused: Annotated[bool | None, Query(description="Only those that are held, or are not.")] = None,
    limit: Limit = 50,
    cursor: CursorText = None,
) -> Answer:
    """In the order in which they were made."""
    if own and event_domain not in ("", own):
        return Answer({"items": [], "next_cursor": None})
    filter = SubscriptionFilter(own or event_domain, event_type, active, verified, paused)
    return Answer(
        await paged(
            api,
            "subscriptions",
            vars(filter),
            cursor,
            PageObserver,
            lambda observer, place: observer.subscriptions(filter, limit, place),
            _told,
        )
    )


@router.get("/subscriptions/{id}", summary="One subscription", **about(Scope.VIEWER, Subscription, "not_found"))
async def show(id: Id, api: Has, own: Domain) -> Answer:
    """Its `config_version` is also the ETag, for `If-Match`."""
    return _answer(await subscribing.look(api, id, own))


@router.patch(
    "/subscriptions/{id}",
    summary="Change a subscription",
    **about(Scope.ADMIN, Subscription, "not_found", "precondition_failed", of_all_domains=True),
)
async def change(
    id: Id,
    given: SubscriptionChanges,
    api: Has,
    caller: By,
    if_match: IfMatch = None,
) -> Answer:
    """Only what is given. A changed URL waits for its verification while the one in force stays."""
    fields = given.model_dump(mode="json", exclude_unset=True)
    if not fields:
        raise Refused("invalid", "There is nothing to change.")
    with refusing_a_race():
        return _answer(await subscribing.change(api, id, fields, caller.actor, _expected(if_match)))


@router.post(
    "/subscriptions/{id}/pause",
    summary="Hold a subscription",
    **about(Scope.OPERATOR, Subscription, "not_found", of_all_domains=True),
)
async def pause(id: Id, api: Has, caller: By, given: Holding | None = None) -> Answer:
    """Deliveries are still made, nothing is sent, nothing is lost."""
    reason = given.reason if given else ""
    await api.as_role(subscribing.ADMIN, lambda engine: actions.pause(engine, id, actor=caller.actor, reason=reason))
    return _answer(await subscribing.look(api, id))


@router.post(
    "/subscriptions/{id}/resume",
    summary="End a pause",
    **about(Scope.OPERATOR, Subscription, "not_found", of_all_domains=True),
)
async def resume(id: Id, api: Has, caller: By, given: Holding | None = None) -> Answer:
    """What waited is sent, at the pace of the window."""
    reason = given.reason if given else ""
    await api.as_role(subscribing.ADMIN, lambda engine: actions.resume(engine, id, actor=caller.actor, reason=reason))
    return _answer(await subscribing.look(api, id))


@router.post(
    "/subscriptions/{id}/rotate-secret",
    summary="Make a new secret",
    **about(Scope.ADMIN, NewSecret, "not_found", of_all_domains=True),
)
async def rotate_secret(id: Id, api: Has, caller: By, given: Rotation | None = None) -> Answer:
    """Answered only now. For the time of the overlap requests are signed with the older ones too."""
    wanted = given or Rotation()

    async def work(engine: Engine) -> str:
        return await actions.rotate_secret(
            engine,
            id,
            actor=caller.actor,
            vault=api.vault(),
            overlap_seconds=wanted.overlap_seconds,
            secret=wanted.secret,
        )

    return Answer({"id": id, "secret": await api.as_role(subscribing.ADMIN, work)})


@router.post(
    "/subscriptions/{id}/verify",
    summary="Let the endpoint prove that it wants this",
    **about(Scope.OPERATOR, Asked, "not_found", "limit_reached", status=202, of_all_domains=True),
)
async def verify(id: Id, api: Has, caller: By) -> Answer:
    """A signed challenge is sent to the latest URL by the verifier; look at the subscription for how it ended. With the
    verification `none` the URL is put in force at once, if its host is on the allow lists."""
    return await _asked(api, id, await subscribing.verify(api, id, caller.actor))


@router.post(
    "/subscriptions/{id}/test",
    summary="Send a test event to this subscription alone",
    **about(Scope.OPERATOR, Asked, "not_found", "limit_reached", status=202, of_all_domains=True),
)
async def test(id: Id, api: Has, caller: By) -> Answer:
    """Signed as a delivery would be; only to what is active and verified."""
    return await _asked(api, id, await subscribing.test(api, id, caller.actor))


@router.post(
    "/subscriptions/{id}/replay",
    summary="Make up for what it missed",
    **about(Scope.OPERATOR, SubscriptionReplay, "not_found", "gate_closed", status=202, of_all_domains=True),
)
async def replay(id: Id, given: Replay, api: Has, caller: By) -> Answer:
    """Deliveries for past events that its routes would send to it now and that it never got. Answered after the first
    thousand events; the rest goes on by itself. Begun again at any time, nothing is sent twice."""
    since = in_utc(given.since)
    assert since is not None
    return Answer(vars(await subscribing.replay(api, id, since, caller.actor)), status_code=202)


async def _asked(api: Api, id: int, check_id: int | None) -> Answer:
    state = (await subscribing.look(api, id)).subscription.state
    return Answer({"check_id": check_id, "state": state}, status_code=202)


def _told(seen: SeenSubscription) -> dict[str, Any]:
    one = seen.subscription
    return shown(Subscription, vars(one), state=one.state, created_at=seen.created_at, updated_at=seen.updated_at)


def _answer(seen: SeenSubscription) -> Answer:
    return Answer(_told(seen), headers=_etag(seen))


def _etag(seen: SeenSubscription) -> dict[str, str]:
    return {"ETag": f'"{seen.subscription.config_version}"'}


def _expected(if_match: str | None) -> int | None:
    if if_match is None or if_match.strip() == "*":
        return None
    found = _ETAG.fullmatch(if_match.strip())
    if found is None:
        raise Refused("precondition_failed", "If-Match is no ETag of a subscription.")
    return int(found[1])
