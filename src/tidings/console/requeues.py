"""Requeues of many: asked for by a filter, which is counted first, gone on with at a rate, and looked after."""

from typing import Any

from starlette.responses import Response

from tidings.api import requeues
from tidings.console.dead_letters import around, letter_filter
from tidings.console.declaring import get, post
from tidings.console.fields import Fields
from tidings.console.forms import Form
from tidings.console.page import ROWS, Page
from tidings.errors import InputRefused
from tidings.model.dead_letter import MassRequeueStatus
from tidings.model.key import Scope
from tidings.roles.dead_letters.operations import Filter
from tidings.roles.observer.filters import LetterFilter
from tidings.roles.observer.letters import COUNTED_TO, LetterObserver
from tidings.roles.observer.listing import EVER, NEVER
from tidings.roles.observer.pages import PageObserver

RATE = 100
# After so long without a sign somebody may resume it.
SECONDS_STALLED = 15.0


async def ask(page: Page) -> Response:
    """What a filter finds, as far as is counted, and what of it would be refused."""
    return await _asked(page, page.query)


async def begin(page: Page) -> Response:
    chosen, errors = letter_filter(page, page.form)
    if errors:
        return await _asked(page, page.form)
    span = chosen.since or EVER, chosen.until or NEVER
    wanted = Filter(*span, chosen.subscription_id, chosen.error_code, chosen.event_type)
    try:
        begun = await requeues.begin(page.api, wanted, Fields(page.form, page.words).whole("rate"), page.actor)
    except InputRefused as refused:
        return await _asked(page, page.form, page.errors(refused))
    return page.go(f"/dead-letters/requeues/{begun.id}", "dead_letters.begun")


async def _asked(page: Page, form: Form, errors: dict[str, str] | None = None) -> Response:
    chosen, wrong = letter_filter(page, form)
    wrong |= errors or {}
    counted = await page.read(LetterObserver, lambda observer: observer.count(chosen))
    return page.show(
        "dead_letters/many.html",
        422 if wrong else 200,
        values=form,
        errors=wrong,
        counted=counted,
        counted_to=COUNTED_TO,
        rate=form["rate"] or RATE,
        is_all=chosen.is_plain and not chosen.subscription_id,
    )


async def index(page: Page) -> Response:
    found = await page.listed(
        "requeues", {}, LetterObserver, lambda observer, place: observer.mass_requeues(ROWS, place)
    )
    return page.show("dead_letters/requeues.html", **found)


async def show(page: Page) -> Response:
    """How far it has come, and what has become of each."""
    told = await _progress(page)
    mass: Any = told["mass"]
    wanted = Filter.from_json(mass["filter"])
    chosen = LetterFilter("", wanted.subscription_id, wanted.error_code, wanted.event_type, wanted.since, wanted.until)
    first = [min(mass["position"], mass["last_id"]) + 1]
    found = await page.listed(
        f"requeue:{page.id}",
        {},
        PageObserver,
        lambda observer, place: observer.dead_letters(chosen, ROWS, place or first),
    )
    return page.show("dead_letters/requeue.html", **told, wanted=wanted, **found, **await around(page, found["items"]))


async def live(page: Page) -> Response:
    """The page is loaded anew when it is over: then its list is whole."""
    told = await _progress(page)
    response = page.show("dead_letters/progress.html", **told)
    if not told["is_running"]:
        response.headers["HX-Refresh"] = "true"
    return response


async def _progress(page: Page) -> dict[str, Any]:
    id = page.id
    mass = await page.read(LetterObserver, lambda observer: observer.mass_requeue(id))
    is_running = mass["status"] == MassRequeueStatus.RUNNING
    handled = mass["started_count"] + mass["already_count"] + mass["refused_count"]
    return {
        "mass": mass,
        "handled": handled,
        "is_running": is_running,
        "is_stalled": is_running and page.ago(mass["updated_at"]) > SECONDS_STALLED,
    }


async def cancel(page: Page) -> Response:
    await requeues.cancel(page.api, page.id, page.actor)
    return page.go(f"/dead-letters/requeues/{page.id}", "dead_letters.was_cancelled")


async def resume(page: Page) -> Response:
    await requeues.resume(page.api, page.id)
    return page.go(f"/dead-letters/requeues/{page.id}", "dead_letters.was_resumed")


routes = [
    get("/dead-letters/many", ask, Scope.OPERATOR, of_all_domains=True),
    post("/dead-letters/many", begin, Scope.OPERATOR),
    get("/dead-letters/requeues", index, of_all_domains=True),
    get("/dead-letters/requeues/{id:int}", show, of_all_domains=True),
    get("/dead-letters/requeues/{id:int}/live", live, of_all_domains=True, polled=True),
    post("/dead-letters/requeues/{id:int}/cancel", cancel, Scope.OPERATOR),
    post("/dead-letters/requeues/{id:int}/resume", resume, Scope.OPERATOR),
]
