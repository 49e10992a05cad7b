"""Dead letters: what was given up, and its way back: a few that were ticked, or many by a filter, at a rate."""

from typing import Any

from starlette.responses import Response

from tidings.api import requeues
from tidings.console import payloads
from tidings.console.declaring import get, post
from tidings.console.fields import Fields
from tidings.console.page import ROWS, Form, Page
from tidings.errors import InputRefused, NotFound
from tidings.model.dead_letter import MassRequeueStatus, RequeueOutcome
from tidings.model.key import Scope
from tidings.roles.dead_letters.operations import Filter
from tidings.roles.observer.delivery import DeliveryObserver
from tidings.roles.observer.letters import COUNTED_TO, LetterObserver
from tidings.roles.observer.pages import EVER, NEVER, LetterFilter, PageObserver

MOST_TICKED = 100
RATE = 100
# After so long without a sign somebody may resume it.
SECONDS_STALLED = 15.0
_ENOUGH = 286
_DONE = (RequeueOutcome.STARTED, RequeueOutcome.ALREADY_STARTED)


# --- looking ---------------------------------------------------------------------------------------------------------


async def index(page: Page) -> Response:
    chosen, errors = _filter(page, page.query)
    if errors:
        return page.show("dead_letters/index.html", 422, errors=errors, items=[], next_cursor=None, **_nothing())
    found = await page.listed(
        "dead-letters", vars(chosen), PageObserver, lambda observer, place: observer.dead_letters(chosen, ROWS, place)
    )
    return page.show("dead_letters/index.html", errors={}, **found, **await _around(page, found["items"]))


async def show(page: Page) -> Response:
    id, own = page.id, page.own

    async def look(observer: PageObserver) -> dict[str, Any]:
        letter = await observer.dead_letter(id, own)
        return {"letter": letter, "saga": await observer.saga(letter["saga_id"], own)}

    told = await page.read(PageObserver, look)
    raw = page.query["view"] == "raw"
    payload = payloads.shown(told["letter"]["payload_snapshot"], raw=raw)
    around = await _around(page, [told["letter"]])
    return page.show("dead_letters/show.html", **told, **around, payload=payload, raw=raw)


async def _around(page: Page, letters: list[Any]) -> dict[str, Any]:
    types, subscriptions = await page.read(LetterObserver, lambda observer: observer.around(letters))
    return {"types": types, "subscriptions": subscriptions}


def _nothing() -> dict[str, Any]:
    return {"types": {}, "subscriptions": {}}


def _filter(page: Page, form: Form) -> tuple[LetterFilter, dict[str, str]]:
    typed = Fields(form, page.words)
    chosen = LetterFilter(
        page.own,
        typed.whole("subscription"),
        typed.line("error"),
        typed.line("type"),
        typed.moment("since"),
        typed.moment("until"),
    )
    return chosen, typed.errors


# --- a few -----------------------------------------------------------------------------------------------------------


async def requeue(page: Page) -> Response:
    """One; asked twice, it is made once."""
    id, back = page.id, Fields(page.form, page.words).whole("event")
    (done,) = await requeues.requeue(page.api, [id], page.actor)
    if done.outcome is RequeueOutcome.NOT_FOUND:
        raise NotFound(f"There is no dead letter {id}.")
    to, said = f"/events/{back}" if back else f"/dead-letters/{id}", f"dead_letters.outcome.{done.outcome}"
    return page.go(to, said, is_good=done.outcome in _DONE)


async def requeue_ticked(page: Page) -> Response:
    """First the question, with what would be refused; then the deed."""
    ids = _ids(page.form.all("ids"))
    if not ids:
        return page.go("/dead-letters", "dead_letters.none_ticked", is_good=False)
    if page.form["sure"] != "yes":
        items = await page.read(LetterObserver, lambda observer: observer.among(ids))
        return page.show("dead_letters/sure.html", items=items, **await _around(page, items))
    done = await requeues.requeue(page.api, ids, page.actor)
    started = sum(one.outcome is RequeueOutcome.STARTED for one in done)
    already = sum(one.outcome is RequeueOutcome.ALREADY_STARTED for one in done)
    denied = len(done) - started - already
    to = f"/dead-letters/results?ids={','.join(map(str, ids))}"
    return page.go(to, "dead_letters.requeued_few", started=started, already=already, denied=denied)


async def results(page: Page) -> Response:
    """What has become of those that were ticked."""
    return page.show("dead_letters/results.html", **await _results(page))


async def live_results(page: Page) -> Response:
    told = await _results(page)
    is_over = all(item["requeued_status"] in ("Completed", "DeadLettered", None) for item in told["items"])
    return page.show("dead_letters/letters.html", _ENOUGH if is_over else 200, **told)


async def _results(page: Page) -> dict[str, Any]:
    ids = _ids(page.query["ids"].split(","))
    items = await page.read(LetterObserver, lambda observer: observer.among(ids))
    return {"items": items, "ids": ",".join(map(str, ids)), **await _around(page, items)}


def _ids(texts: list[str]) -> list[int]:
    """Each once; what is no id is left out."""
    known = [int(text) for text in texts if text.isascii() and text.isdecimal() and len(text) < 19]
    return [*dict.fromkeys(id for id in known if id)][:MOST_TICKED]


# --- many ------------------------------------------------------------------------------------------------------------


async def ask_many(page: Page) -> Response:
    """What a filter finds, as far as is counted, and what of it would be refused."""
    return await _many(page, page.query)


async def begin_many(page: Page) -> Response:
    chosen, errors = _filter(page, page.form)
    if errors:
        return await _many(page, page.form)
    span = chosen.since or EVER, chosen.until or NEVER
    wanted = Filter(*span, chosen.subscription_id, chosen.error_code, chosen.event_type)
    try:
        begun = await requeues.begin(page.api, wanted, Fields(page.form, page.words).whole("rate"), page.actor)
    except InputRefused as refused:
        return await _many(page, page.form, page.errors(refused))
    return page.go(f"/dead-letters/requeues/{begun.id}", "dead_letters.begun")


async def _many(page: Page, form: Form, errors: dict[str, str] | None = None) -> Response:
    chosen, wrong = _filter(page, form)
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


async def list_many(page: Page) -> Response:
    async def look(observer: DeliveryObserver, place: Any) -> Any:
        return await observer.requeue_page(ROWS, place)

    found = await page.listed("requeues", {}, DeliveryObserver, look)
    return page.show("dead_letters/requeues.html", **found)


async def show_many(page: Page) -> Response:
    """How far it has come, and what has become of each."""
    told = await _progress(page)
    mass: Any = told["mass"]
    wanted = Filter.from_json(mass["filter"])
    chosen = LetterFilter("", wanted.subscription_id, wanted.error_code, wanted.event_type, wanted.since, wanted.until)
    begin = [min(mass["position"], mass["last_id"]) + 1]
    found = await page.listed(
        f"requeue:{page.id}",
        {},
        PageObserver,
        lambda observer, place: observer.dead_letters(chosen, ROWS, place or begin),
    )
    return page.show("dead_letters/requeue.html", **told, wanted=wanted, **found, **await _around(page, found["items"]))


async def live_many(page: Page) -> Response:
    """The page is loaded anew when it is over: then its list is whole."""
    told = await _progress(page)
    response = page.show("dead_letters/progress.html", **told)
    if not told["is_running"]:
        response.headers["HX-Refresh"] = "true"
    return response


async def _progress(page: Page) -> dict[str, Any]:
    id = page.id
    mass = await page.read(DeliveryObserver, lambda observer: observer.mass_requeue(id))
    is_running = mass["status"] == MassRequeueStatus.RUNNING
    handled = mass["started_count"] + mass["already_count"] + mass["refused_count"]
    return {
        "mass": mass,
        "handled": handled,
        "is_running": is_running,
        "is_stalled": is_running and page.ago(mass["updated_at"]) > SECONDS_STALLED,
    }


async def cancel_many(page: Page) -> Response:
    await requeues.cancel(page.api, page.id, page.actor)
    return page.go(f"/dead-letters/requeues/{page.id}", "dead_letters.was_cancelled")


async def resume_many(page: Page) -> Response:
    await requeues.resume(page.api, page.id)
    return page.go(f"/dead-letters/requeues/{page.id}", "dead_letters.was_resumed")


routes = [
    get("/dead-letters", index),
    get("/dead-letters/{id:int}", show),
    post("/dead-letters/{id:int}/requeue", requeue, Scope.OPERATOR),
    post("/dead-letters/requeue", requeue_ticked, Scope.OPERATOR),
    get("/dead-letters/results", results, of_all_domains=True),
    get("/dead-letters/results/live", live_results, of_all_domains=True, polled=True),
    get("/dead-letters/many", ask_many, Scope.OPERATOR, of_all_domains=True),
    post("/dead-letters/many", begin_many, Scope.OPERATOR),
    get("/dead-letters/requeues", list_many, of_all_domains=True),
    get("/dead-letters/requeues/{id:int}", show_many, of_all_domains=True),
    get("/dead-letters/requeues/{id:int}/live", live_many, of_all_domains=True, polled=True),
    post("/dead-letters/requeues/{id:int}/cancel", cancel_many, Scope.OPERATOR),
    post("/dead-letters/requeues/{id:int}/resume", resume_many, Scope.OPERATOR),
]
