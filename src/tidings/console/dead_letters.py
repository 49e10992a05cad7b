"""Dead letters: what was given up, and its way back: one, or a few that were ticked."""

from typing import Any

from starlette.responses import Response

from tidings.api import requeues
from tidings.console import payloads
from tidings.console.declaring import get, post
from tidings.console.fields import Fields, ids_in
from tidings.console.forms import Form
from tidings.console.page import ENOUGH, ROWS, Page
from tidings.errors import NotFound
from tidings.model.dead_letter import RequeueOutcome
from tidings.model.key import Scope
from tidings.model.saga import SAGA_MOVES, SagaStatus
from tidings.roles.observer.filters import LetterFilter
from tidings.roles.observer.letters import LetterObserver
from tidings.roles.observer.pages import PageObserver

MOST_TICKED = 100


async def index(page: Page) -> Response:
    chosen, errors = letter_filter(page, page.query)
    if errors:
        return page.show(
            "dead_letters/index.html", 422, errors=errors, items=[], next_cursor=None, types={}, subscriptions={}
        )
    found = await page.listed(
        "dead-letters", vars(chosen), PageObserver, lambda observer, place: observer.dead_letters(chosen, ROWS, place)
    )
    return page.show("dead_letters/index.html", errors={}, **found, **await around(page, found["items"]))


async def show(page: Page) -> Response:
    id, own = page.id, page.own

    async def look(observer: PageObserver) -> dict[str, Any]:
        letter = await observer.dead_letter(id, own)
        return {"letter": letter, "saga": await observer.saga(letter["saga_id"], own)}

    told = await page.read(PageObserver, look)
    raw = page.query["view"] == "raw"
    payload = payloads.shown(told["letter"]["payload_snapshot"], raw=raw)
    return page.show("dead_letters/show.html", **told, **await around(page, [told["letter"]]), payload=payload, raw=raw)


async def around(page: Page, letters: list[Any]) -> dict[str, Any]:
    """Of which type their events are, and whose they are."""
    types, subscriptions = await page.read(LetterObserver, lambda observer: observer.around(letters))
    return {"types": types, "subscriptions": subscriptions}


def letter_filter(page: Page, form: Form) -> tuple[LetterFilter, dict[str, str]]:
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


async def requeue(page: Page) -> Response:
    """One; asked twice, it is made once."""
    id, back = page.id, Fields(page.form, page.words).whole("event")
    (done,) = await requeues.requeue(page.api, [id], page.actor)
    if done.outcome is RequeueOutcome.NOT_FOUND:
        raise NotFound(f"There is no dead letter {id}.")
    to, said = f"/events/{back}" if back else f"/dead-letters/{id}", f"dead_letters.outcome.{done.outcome}"
    return page.go(to, said, is_good=done.outcome.is_done)


async def requeue_ticked(page: Page) -> Response:
    """First the question, with what would be refused; then the deed."""
    ids = ids_in(page.form.all("ids"))[:MOST_TICKED]
    if not ids:
        return page.go("/dead-letters", "dead_letters.none_ticked", is_good=False)
    if page.form["sure"] != "yes":
        items = await page.read(LetterObserver, lambda observer: observer.among(ids))
        return page.show("dead_letters/sure.html", items=items, **await around(page, items))
    done = await requeues.requeue(page.api, ids, page.actor)
    started = sum(one.outcome is RequeueOutcome.STARTED for one in done)
    already = sum(one.outcome is RequeueOutcome.ALREADY_STARTED for one in done)
    denied = len(done) - started - already
    to, is_good = f"/dead-letters/results?ids={','.join(map(str, ids))}", denied < len(done)
    return page.go(to, "dead_letters.requeued_few", is_good=is_good, started=started, already=already, denied=denied)


async def results(page: Page) -> Response:
    """What has become of those that were ticked."""
    return page.show("dead_letters/results.html", **await _results(page))


async def live_results(page: Page) -> Response:
    told = await _results(page)
    is_over = not any(SAGA_MOVES[SagaStatus(status)] for item in told["items"] if (status := item["requeued_status"]))
    return page.show("dead_letters/letters.html", ENOUGH if is_over else 200, **told)


async def _results(page: Page) -> dict[str, Any]:
    ids = ids_in(page.query["ids"].split(","))[:MOST_TICKED]
    items = await page.read(LetterObserver, lambda observer: observer.among(ids))
    return {"items": items, "ids": ",".join(map(str, ids)), **await around(page, items)}


routes = [
    get("/dead-letters", index),
    get("/dead-letters/{id:int}", show),
    post("/dead-letters/{id:int}/requeue", requeue, Scope.OPERATOR),
    post("/dead-letters/requeue", requeue_ticked, Scope.OPERATOR),
    get("/dead-letters/results", results, of_all_domains=True),
    get("/dead-letters/results/live", live_results, of_all_domains=True, polled=True),
]
