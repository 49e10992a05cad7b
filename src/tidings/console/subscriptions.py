"""Subscriptions: who gets which events and how they fare; made, changed, verified, tried out, held and made up for."""

import datetime
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.responses import Response

from tidings.api import subscribing
from tidings.console import subscription_form as form
from tidings.console.charts import stacked
from tidings.console.declaring import get, post
from tidings.console.fields import Fields
from tidings.console.page import Page
from tidings.db.engine import Engine
from tidings.errors import Conflict, GateClosed, InputRefused, LimitReached
from tidings.model.key import Scope
from tidings.model.subscription import Subscription
from tidings.model.totals import OUTCOMES
from tidings.roles.observer.filters import SubscriptionFilter
from tidings.roles.observer.health import COUNTED_OF_ONE, HealthObserver, Tally
from tidings.roles.observer.missed import missed
from tidings.roles.observer.pages import PageObserver
from tidings.roles.observer.subscriptions import SeenSubscription
from tidings.roles.subscriptions import actions

# Each row asks for a backlog and a health of its own.
ROWS = 25
STATES: Mapping[str, Mapping[str, bool]] = {
    "": {},
    "active": {"active": True, "verified": True, "paused": False},
    "paused": {"paused": True},
    "unverified": {"verified": False},
    "inactive": {"active": False},
}
_HOURS = 24
_WIDTH, _HEIGHT = 480, 64
_MOST_ATTEMPTS, _MOST_DEEDS = 20, 10
_OVERLAPS = (0, 3600, 86_400, 7 * 86_400)
_EXPECTED = (InputRefused, Conflict, LimitReached, GateClosed)


# --- looking ---------------------------------------------------------------------------------------------------------


async def index(page: Page) -> Response:
    typed = Fields(page.query, page.words)
    state = page.query["state"] if page.query["state"] in STATES else ""
    filter = SubscriptionFilter(page.own, typed.line("type"), **STATES[state])
    found = await page.listed(
        "subscriptions", vars(filter), PageObserver, lambda observer, place: observer.subscriptions(filter, ROWS, place)
    )
    ids = [seen.subscription.id for seen in found["items"]]
    health = await page.read(HealthObserver, lambda observer: observer.health(ids))
    is_all = filter == SubscriptionFilter(page.own)
    return page.show(
        "subscriptions/index.html",
        422 if typed.errors else 200,
        health=health,
        states=STATES,
        state=state,
        is_all=is_all,
        errors=typed.errors,
        **found,
    )


async def show(page: Page) -> Response:
    return page.show("subscriptions/show.html", **await _told(page), overlaps=_OVERLAPS)


async def live(page: Page) -> Response:
    """The part that changes by itself: how it fares, and what came of calls that people asked for."""
    return page.show("subscriptions/live.html", **await _told(page))


async def _told(page: Page) -> dict[str, Any]:
    id = page.id
    seen = await subscribing.look(page.api, id, page.own)

    async def look(observer: HealthObserver) -> dict[str, Any]:
        return {
            "health": (await observer.health([id], COUNTED_OF_ONE))[id],
            "chart": _chart(await observer.hours(id), page.now),
            "checks": await observer.checks(id),
            "attempts": await observer.attempts(id, _MOST_ATTEMPTS),
            "deeds": [] if page.own else await observer.deeds(id, _MOST_DEEDS),
        }

    told = await page.read(HealthObserver, look)
    return {"seen": seen, "one": seen.subscription, "attempt_limit": page.api.retry_limit, **told}


def _chart(found: Mapping[datetime.datetime, Tally], now: datetime.datetime) -> Mapping[str, Any]:
    """A column for each of the last hours, also for those in which nothing happened."""
    this = now.replace(minute=0, second=0, microsecond=0)
    hours = [this - datetime.timedelta(hours=back) for back in reversed(range(_HOURS))]
    known = {moment.astimezone(datetime.UTC): tally for moment, tally in found.items()}
    tallies = [known.get(hour, Tally()) for hour in hours]
    bars = stacked([(one.delivered, one.failed, one.dead) for one in tallies], _WIDTH, _HEIGHT)
    return {"bars": dict(zip(OUTCOMES, bars, strict=True)), "width": _WIDTH, "height": _HEIGHT}


# --- making and changing ---------------------------------------------------------------------------------------------


async def ask_new(page: Page) -> Response:
    return page.show("subscriptions/new.html", values=form.FIRST, errors={})


async def create(page: Page) -> Response:
    """Answered at once, with the secret: it is shown only now."""
    try:
        given = form.read_new(page.form, page.api.rules)
        seen, secret = await subscribing.create(page.api, given, page.actor)
    except InputRefused as refused:
        return page.show("subscriptions/new.html", 422, values=page.form, errors=page.errors(refused))
    return page.show("subscriptions/secret.html", 201, one=seen.subscription, secret=secret, is_new=True)


async def ask_changes(page: Page) -> Response:
    seen = await subscribing.look(page.api, page.id, page.own)
    return _edit_form(page, seen, form.values_of(seen.subscription))


async def change(page: Page) -> Response:
    """Nothing is changed if somebody else was faster: what they changed is shown beside what was typed here."""
    version = Fields(page.form, page.words).whole("version")
    try:
        given = form.read_changes(page.form, page.api.rules)
        await subscribing.change(page.api, page.id, given, page.actor, version)
    except InputRefused as refused:
        seen = await subscribing.look(page.api, page.id)
        return _edit_form(page, seen, page.form, 422, errors=page.errors(refused), version=version)
    except Conflict:
        seen = await subscribing.look(page.api, page.id)
        theirs = _different(seen.subscription, page.form)
        return _edit_form(page, seen, page.form, 409, theirs=theirs, is_outdated=True)
    return page.go(f"/subscriptions/{page.id}", "subscriptions.changed")


def _edit_form(
    page: Page, seen: SeenSubscription, values: Mapping[str, str], status: int = 200, **more: Any
) -> Response:
    first = {"errors": {}, "theirs": {}, "is_outdated": False, "version": seen.subscription.config_version}
    return page.show("subscriptions/edit.html", status, one=seen.subscription, values=values, **(first | more))


def _different(current: Subscription, typed: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in form.values_of(current).items() if value != typed[name].strip()}


async def rotate(page: Page) -> Response:
    overlap = next((one for one in _OVERLAPS if str(one) == page.form["overlap"]), actions.DAY)

    async def work(engine: Engine) -> str:
        return await actions.rotate_secret(
            engine, page.id, actor=page.actor, vault=page.api.vault(), overlap_seconds=overlap
        )

    secret = await page.api.as_role(subscribing.ADMIN, work)
    seen = await subscribing.look(page.api, page.id)
    return page.show("subscriptions/secret.html", one=seen.subscription, secret=secret, is_new=False)


# --- acting ----------------------------------------------------------------------------------------------------------


async def verify(page: Page) -> Response:
    async def deed() -> str:
        check = await subscribing.verify(page.api, page.id, page.actor)
        return "subscriptions.verifying" if check else "subscriptions.in_force"

    return await _done(page, deed)


async def test(page: Page) -> Response:
    async def deed() -> str:
        await subscribing.test(page.api, page.id, page.actor)
        return "subscriptions.testing"

    return await _done(page, deed)


def _switch(
    action: Callable[..., Awaitable[Any]], said: str, *, with_reason: bool = False
) -> Callable[[Page], Awaitable[Response]]:
    async def handle(page: Page) -> Response:
        more = {"reason": page.form.text("reason")} if with_reason else {}

        async def deed() -> str:
            await page.api.as_role(subscribing.ADMIN, lambda engine: action(engine, page.id, actor=page.actor, **more))
            return said

        return await _done(page, deed)

    return handle


async def _done(page: Page, deed: Callable[[], Awaitable[str]]) -> Response:
    """To the subscription, with what was done or why not."""
    to = f"/subscriptions/{page.id}"
    try:
        return page.go(to, await deed())
    except _EXPECTED as error:
        return page.go(to, refused=error)


async def ask_replay(page: Page) -> Response:
    """With a moment, also what a replay would make up for."""
    one = (await subscribing.look(page.api, page.id, page.own)).subscription
    typed = Fields(page.query, page.words)
    since, seen = typed.moment("since"), None
    if since is not None:
        chosen = since
        seen = await page.api.as_role("observer", lambda engine: missed(engine, one, chosen))
    status = 422 if typed.errors else 200
    return page.show("subscriptions/replay.html", status, one=one, seen=seen, since=since, errors=typed.errors)


async def replay(page: Page) -> Response:
    typed = Fields(page.form, page.words)
    since = typed.moment("since")
    if since is None:
        return page.go(f"/subscriptions/{page.id}/replay")
    try:
        done = await subscribing.replay(page.api, page.id, since, page.actor)
    except _EXPECTED as error:
        return page.go(f"/subscriptions/{page.id}", refused=error)
    said = "subscriptions.replayed" if done.is_done else "subscriptions.replaying"
    return page.go(f"/subscriptions/{page.id}", said, looked_at=done.looked_at, made=done.made)


activate = _switch(actions.activate, "subscriptions.activated")
deactivate = _switch(actions.deactivate, "subscriptions.deactivated")
pause = _switch(actions.pause, "subscriptions.was_paused", with_reason=True)
resume = _switch(actions.resume, "subscriptions.resumed", with_reason=True)

routes = [
    get("/subscriptions", index),
    get("/subscriptions/new", ask_new, Scope.ADMIN, of_all_domains=True),
    post("/subscriptions", create, Scope.ADMIN),
    get("/subscriptions/{id:int}", show),
    get("/subscriptions/{id:int}/live", live, polled=True),
    get("/subscriptions/{id:int}/edit", ask_changes, Scope.ADMIN, of_all_domains=True),
    post("/subscriptions/{id:int}/edit", change, Scope.ADMIN),
    post("/subscriptions/{id:int}/rotate-secret", rotate, Scope.ADMIN),
    post("/subscriptions/{id:int}/activate", activate, Scope.ADMIN),
    post("/subscriptions/{id:int}/deactivate", deactivate, Scope.ADMIN),
    post("/subscriptions/{id:int}/pause", pause, Scope.OPERATOR),
    post("/subscriptions/{id:int}/resume", resume, Scope.OPERATOR),
    post("/subscriptions/{id:int}/verify", verify, Scope.OPERATOR),
    post("/subscriptions/{id:int}/test", test, Scope.OPERATOR),
    get("/subscriptions/{id:int}/replay", ask_replay, Scope.OPERATOR, of_all_domains=True),
    post("/subscriptions/{id:int}/replay", replay, Scope.OPERATOR),
]
