"""The audit log: who did what to which thing, and what it changed."""

from starlette.responses import Response

from tidings.console.declaring import get
from tidings.console.differences import differences
from tidings.console.fields import Fields
from tidings.console.page import ROWS, Page
from tidings.roles.observer.audit import AuditFilter, AuditObserver

# Of which kinds of thing there is a page, and where.
PLACES = {
    "task": "/tasks/{id}",
    "route": "/routing/routes/{id}",
    "router": "/routing/routers/{id}",
    "gate": "/routing",
    "route_dead_letter": "/routing/dead-letters/{id}",
    "subscription": "/subscriptions/{id}",
    "dead_letters": "/dead-letters",
    "mass_requeue": "/dead-letters/requeues/{id}",
    "key": "/keys",
}
# What is written there today; any other may be typed.
ACTIONS = (
    *("subscription.created", "subscription.edited", "subscription.paused", "subscription.resumed"),
    *("subscription.activated", "subscription.deactivated", "subscription.secret_rotated", "subscription.replayed"),
    *("route.created", "route.changed", "route.removed", "gate.opened", "gate.closed"),
    *("router.added", "router.skipped", "router.rewound", "router.confirmed", "route_dead_letter.replayed"),
    *("dead_letters.requeued", "mass_requeue.begun", "mass_requeue.cancelled", "sagas.resent"),
    *("task.retried", "task.cancelled", "key.created", "key.revoked", "console.signed_in", "console.signed_out"),
    *("subscription.trusted", "subscription.verified", "request.denied", "address.throttled"),
)


async def index(page: Page) -> Response:
    fields = Fields(page.query, page.words)
    filter = AuditFilter(
        fields.line("actor", 200),
        fields.visible("action"),
        fields.line("target", 300),
        fields.moment("since"),
        fields.moment("until"),
    )
    found = await page.listed(
        "audit", vars(filter), AuditObserver, lambda observer, place: observer.audits(filter, ROWS, place)
    )
    found["items"] = [
        {**one, "differences": differences(one["detail"]), "place": place_of(one["subject"])} for one in found["items"]
    ]
    asks = any(vars(filter).values())
    return page.show(
        "audit/index.html", 422 if fields.errors else 200, errors=fields.errors, actions=ACTIONS, asks=asks, **found
    )


def place_of(subject: str) -> str:
    """The page of what somebody acted on; '' if there is none. Never more than an id of a known form goes into it."""
    kind, _, id = subject.partition(":")
    place = PLACES.get(kind, "")
    if "{id}" not in place:
        return place
    is_plain = id.isascii() and id.replace("-", "").replace("_", "").isalnum()
    return place.format(id=id) if is_plain and (id.isdecimal() or kind == "router") else ""


routes = [get("/audit", index, of_all_domains=True)]
