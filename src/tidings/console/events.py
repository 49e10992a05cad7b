"""Events: search, and the story of one, from its acceptance to the last attempt of its last generation."""

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from tidings.api import requeues
from tidings.console import payloads
from tidings.console.declaring import get, post
from tidings.console.fields import Fields
from tidings.console.page import ENOUGH, ROWS, Page
from tidings.console.story import deliveries_of, is_over, steps_of
from tidings.errors import NotFound
from tidings.model.dead_letter import RequeueOutcome
from tidings.model.explanation import Explanation
from tidings.model.key import Scope
from tidings.roles.observer.filters import EventFilter
from tidings.roles.observer.listing import SHOWN_OF_ONE
from tidings.roles.observer.searching import EventSearcher, FateObserver
from tidings.roles.observer.stories import Story, StoryObserver
from tidings.roles.observer.why import why


async def index(page: Page) -> Response:
    """The newest first; or what fits. One thing that was searched for and found is shown at once."""
    typed = Fields(page.query, page.words)
    wanted, domain = typed.line("q"), page.own or typed.line("domain")
    filter = EventFilter(domain, typed.line("type"), since=typed.moment("since"), until=typed.moment("until"))
    if typed.errors:
        return _listed(page, [], errors=typed.errors, status=422)
    if wanted:
        return await _find(page, wanted, domain)
    found = await page.listed(
        "events", vars(filter), EventSearcher, lambda observer, place: observer.page(filter, ROWS, place)
    )
    return _listed(page, found["items"], await _fates(page, found["items"]), next_cursor=found["next_cursor"])


async def _find(page: Page, wanted: str, domain: str) -> Response:
    found = await page.read(EventSearcher, lambda observer: observer.found(wanted, domain))
    if len(found) == 1:
        return page.go(f"/events/{found[0]['id']}")
    if not found and wanted.isascii() and wanted.isdecimal() and len(wanted) < 19 and int(wanted):
        # The page of an event that is not there says why.
        return page.go(f"/events/{int(wanted)}")
    return _listed(page, found, await _fates(page, found))


def _listed(
    page: Page,
    items: list[Any],
    fates: Mapping[int, Any] | None = None,
    *,
    next_cursor: str | None = None,
    errors: Mapping[str, str] | None = None,
    status: int = 200,
) -> Response:
    return page.show(
        "events/index.html", status, items=items, fates=fates or {}, next_cursor=next_cursor, errors=errors or {}
    )


async def _fates(page: Page, items: list[Any]) -> dict[int, dict[str, int]]:
    return await page.read(FateObserver, lambda observer: observer.fates([item["id"] for item in items]))


async def show(page: Page) -> Response:
    explanation = await _why(page)
    try:
        story = await _story(page)
    except NotFound:
        if page.own:
            raise
        return page.show("events/absent.html", 404, id=page.id, why=explanation)
    raw = page.query["view"] == "raw"
    payload = payloads.shown(story.event["payload"], raw=raw)
    return page.show("events/show.html", **_told(page, explanation, story), payload=payload, raw=raw)


async def live(page: Page) -> Response:
    """The part of the page that changes while the event is on its way."""
    told = _told(page, await _why(page), await _story(page))
    return page.show("events/live.html", ENOUGH if told["is_over"] else 200, **told)


def _told(page: Page, explanation: Explanation, story: Story) -> dict[str, Any]:
    """Read one after the other, the two may tell of different moments: the page looks again until both have ended."""
    chosen = Fields(page.query, page.words).whole("subscription")
    return {
        "event": story.event,
        "story": story,
        "why": explanation,
        "is_over": explanation.is_over and is_over(story),
        "steps": steps_of(story, page.now, chosen),
        "deliveries": deliveries_of(story),
        "has_older": len(story.event["sagas"]) >= SHOWN_OF_ONE,
        "chosen": chosen,
    }


async def _story(page: Page) -> Story:
    id, own = page.id, page.own
    return await page.read(StoryObserver, lambda observer: observer.story(id, own))


async def _why(page: Page) -> Explanation:
    """The same answer as `tidings why`."""
    id = page.id
    return await page.api.as_role("observer", lambda engine: why(engine, f"event:{id}", page.api.retry_limit))


async def download(page: Page) -> Response:
    """As a file, whatever is in it: a browser must not take it for a page."""
    id, own = page.id, page.own
    payload = await page.read(StoryObserver, lambda observer: observer.payload(id, own))
    headers = {"Content-Disposition": f'attachment; filename="event-{id}.json"', "X-Content-Type-Options": "nosniff"}
    return Response(payload, headers=headers, media_type="application/json")


async def resend(page: Page) -> Response:
    """One delivery once more; asked twice, it is made once."""
    id, back = page.id, Fields(page.form, page.words).whole("event")
    (done,) = await requeues.resend(page.api, [id], page.actor)
    if done.outcome is RequeueOutcome.NOT_FOUND:
        raise NotFound(f"There is no saga {id}.")
    to, said = f"/events/{back}" if back else "/events", f"dead_letters.outcome.{done.outcome}"
    return page.go(to, said, is_good=done.outcome.is_done)


routes = [
    get("/events", index),
    get("/events/{id:int}", show),
    get("/events/{id:int}/live", live, polled=True),
    get("/events/{id:int}/payload", download),
    post("/sagas/{id:int}/resend", resend, Scope.OPERATOR),
]
