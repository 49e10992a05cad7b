"""API keys: making them, which shows each once, and revoking them."""

from starlette.responses import Response

from tidings.console.declaring import get, post
from tidings.console.page import ROWS, Page
from tidings.decisions.keys import check_new_key
from tidings.errors import InputRefused, NotFound
from tidings.model.key import Scope
from tidings.roles.keys import actions
from tidings.roles.keys.operations import KeyOperations, StoredKey

ROLE = "key_admin"
# In days; '' is for ever.
LIFETIMES = ("30", "90", "365", "")
_DAY = 86_400.0
_LONGEST_ID = 40
_LIST = "console:keys"


async def index(page: Page, status: int = 200, errors: dict[str, str] | None = None) -> Response:
    """As the role of keys: of all lists only this one is not the observer's."""
    cursors, cursor = await page.api.cursors(), page.query["cursor"]
    (after,) = cursors.read(_LIST, cursor) if cursor else (0,)
    found = await page.api.as_role(ROLE, lambda engine: actions.listed(engine, ROWS, after))
    return page.show(
        "keys/index.html",
        status,
        errors=errors or {},
        scopes=[*Scope],
        lifetimes=LIFETIMES,
        state_of=state_of,
        items=found,
        next_cursor=cursors.written(_LIST, [found[-1].id]) if len(found) == ROWS else None,
    )


async def add(page: Page) -> Response:
    """The key is in this answer, and nowhere else: no page to come can show it."""
    try:
        new = check_new_key(
            page.form.text("name"),
            page.form.all("scopes"),
            page.form.text("domain") or None,
            _lifetime(page.form["days"]),
        )
    except InputRefused as refused:
        return await index(page, 422, page.errors(refused))
    made = await page.api.as_role(ROLE, lambda engine: actions.add(engine, new, page.actor))
    return page.show("keys/made.html", 201, made=made)


async def ask_to_revoke(page: Page) -> Response:
    return page.show("keys/revoke.html", key=await _key(page))


async def revoke(page: Page) -> Response:
    public_id = (await _key(page)).public_id
    key, was_valid = await page.api.as_role(ROLE, lambda engine: actions.revoke(engine, public_id, page.actor))
    return page.go("/keys", "keys.revoked" if was_valid else "keys.was_revoked", name=key.name)


async def _key(page: Page) -> StoredKey:
    public_id = str(page.request.path_params["public_id"])
    found = None
    if public_id.isascii() and public_id.isprintable() and len(public_id) <= _LONGEST_ID:
        found = await page.api.as_role(
            ROLE, lambda engine: KeyOperations.step(engine, lambda operations: operations.key(public_id))
        )
    if found is None:
        raise NotFound("There is no such key.")
    return found


def state_of(key: StoredKey) -> str:
    if key.revoked_at is not None:
        return "revoked"
    return "active" if key.is_valid else "expired"


def _lifetime(days: str) -> float | None:
    if days not in LIFETIMES:
        raise InputRefused("For so long no key is valid.", "Choose one of those offered.", field="days")
    return float(days) * _DAY if days else None


routes = [
    get("/keys", index, Scope.ADMIN, of_all_domains=True),
    post("/keys", add, Scope.ADMIN),
    get("/keys/{public_id}/revoke", ask_to_revoke, Scope.ADMIN, of_all_domains=True),
    post("/keys/{public_id}/revoke", revoke, Scope.ADMIN),
]
