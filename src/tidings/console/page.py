"""One page that somebody asked for: who they are, what they may, their language, and how it is shown.

How an area is added, say `events`:

1. `console/events.py` has the handlers and a list `routes` of `get(…)` and `post(…)` from `console/declaring.py`, and
   `app.py` knows the module. A handler is `async def show(page: Page) -> Response`. Before it is called, the person is
   signed in and has the scope of the route, and of a POST the origin and the CSRF token were checked. Keys bound to a
   domain meet only routes with `of_all_domains=False`, and see no more than `page.own` ('' for everything).
2. It reads with `await page.read(PageObserver, lambda observer: …)` and lists with `await page.listed(…)`; it acts with
   `await page.api.as_role(role, lambda engine: action(engine, …, actor=page.actor))`, by the very functions that the
   HTTP API calls.
3. It answers with `page.show("events/index.html", items=…)`, after a POST with `page.go("/events/7", "events.title")`,
   which shows those words once, as bad news with `is_good=False`; `page.go("/events/7", refused=error)` says why not.
   A refused form is shown again: `page.show("….html", status=422, errors=page.errors(error), values=page.form)`. What
   is secret and shown once is answered at once, never through `go`, whose sentence is a cookie. Errors that a handler
   lets pass become a page of their own. Parts that htmx polls are `get(…, polled=True)`.
4. `templates/events/*.html` extend `layout.html` (blocks `title`, `actions`, `content`) and import what `parts.html`
   lists at its top. In templates there are `t("events.title", count=3)`, `may("operator")`, `page`, and the filters of
   `showing.py`. Everything foreign is text: never `|safe`, never a foreign `href`; no inline script or style.
5. `words/en/events.toml` and `words/zh-Hant/events.toml` have the same names. A test compares them, and looks that
   every `t("…")` has its words. What the product says itself, answers of `why` and errors, goes through `saying.py`.
"""

import datetime
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from tidings.api.context import Api
from tidings.api.describing import BIGGEST_ID
from tidings.api.paging import paged
from tidings.api.problems import Refused
from tidings.console import cookies
from tidings.console.cookies import Flash
from tidings.console.forgery import token_of
from tidings.console.languages import Words, chosen, words_of
from tidings.console.saying import why_not, wrong_fields
from tidings.console.showing import environment
from tidings.db.operations import Operations
from tidings.errors import InputRefused, NotFound, TidingsError
from tidings.model.key import Caller, Scope
from tidings.roles.observer.pages import Page as Found
from tidings.roles.observer.pages import Place

T = TypeVar("T")
Observer = TypeVar("Observer", bound=Operations)

ROWS = 50
"""How many rows a list shows at once."""
_MOST_FIELDS = 2_000


class Form(Mapping[str, str]):
    """What a form, or a query, brought. A field that is missing is '', so that every page can ask for its own."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self._pairs = pairs
        self._last = dict(pairs)

    def __getitem__(self, name: str) -> str:
        return self._last.get(name, "")

    def __iter__(self) -> Iterator[str]:
        return iter(self._last)

    def __len__(self) -> int:
        return len(self._last)

    def __contains__(self, name: object) -> bool:
        return name in self._last

    def all(self, name: str) -> list[str]:
        """Of a field that may be there many times, such as the rows that were ticked."""
        return [value for one, value in self._pairs if one == name]

    def text(self, name: str) -> str:
        return self[name].strip()


def read_form(body: bytes) -> Form:
    try:
        return Form(parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except ValueError:
        raise Refused("malformed", "This form can't be read.") from None


@dataclass
class Page:
    """`caller` and `key_name` are of whom the session is; `secret` is what the CSRF token is made from."""

    request: Request
    caller: Caller | None = None
    key_name: str = ""
    secret: str = ""
    form: Form = field(default_factory=lambda: Form([]))

    @cached_property
    def api(self) -> Api:
        api: Api = self.request.scope["tidings.api"]
        return api

    @cached_property
    def words(self) -> Words:
        accepted = self.request.headers.get("accept-language", "")
        return words_of(chosen(cookies.cookie(self.request, cookies.LANGUAGE), accepted))

    @cached_property
    def query(self) -> Form:
        return read_form(self.request.scope["query_string"])

    @cached_property
    def now(self) -> datetime.datetime:
        return datetime.datetime.now(datetime.UTC)

    @property
    def path(self) -> str:
        return str(self.request.scope["path"])

    @property
    def csrf(self) -> str:
        return token_of(self.secret) if self.secret else ""

    @property
    def id(self) -> int:
        """The `{id:int}` of the path."""
        id = int(self.request.path_params["id"])
        if not 0 < id <= BIGGEST_ID:
            raise NotFound("There is no such thing.")
        return id

    @property
    def who(self) -> Caller:
        """The person of a route that needs one."""
        assert self.caller is not None
        return self.caller

    @property
    def actor(self) -> str:
        return self.who.actor

    @property
    def own(self) -> str:
        """The only domain that this person may see; '' for all."""
        return (self.caller.event_domain or "") if self.caller else ""

    @property
    def is_partial(self) -> bool:
        """htmx asks, and wants a part of a page."""
        return self.request.headers.get("hx-request") == "true"

    def may(self, scope: Scope | str) -> bool:
        return self.caller is not None and self.caller.may(Scope(scope))

    async def read(self, observer: type[Observer], look: Callable[[Observer], Awaitable[T]]) -> T:
        """What the observer sees, in one transaction."""
        return await self.api.as_role("observer", lambda engine: observer.step(engine, look))

    async def listed(
        self,
        name: str,
        filters: Mapping[str, Any],
        observer: type[Observer],
        look: Callable[[Observer, Place | None], Awaitable[Found]],
    ) -> dict[str, Any]:
        """`items` and `next_cursor` of what `?cursor=` asks for; `name` and `filters` are what a cursor is good for."""
        cursor = self.query["cursor"] or None
        return await paged(self.api, f"console:{name}", filters, cursor, observer, look, lambda item: item)

    def address(self, **changed: Any) -> str:
        """This page with another query; None and '' leave a parameter out."""
        query = {name: changed.get(name, value) for name, value in self.query.items()} | changed
        kept = {name: str(value) for name, value in query.items() if value not in (None, "")}
        return f"{quote(self.path)}?{urlencode(kept)}" if kept else quote(self.path)

    def ago(self, moment: datetime.datetime) -> float:
        return (self.now - moment).total_seconds()

    def errors(self, error: InputRefused | Refused) -> dict[str, str]:
        """What is wrong with a form, by field; '' is all of it."""
        return wrong_fields(self.words, error)

    def show(self, template: str, status: int = 200, **values: Any) -> Response:
        flash = cookies.read_flash(kept) if (kept := cookies.cookie(self.request, cookies.FLASH)) else None
        text = (
            environment()
            .get_template(template)
            .render(page=self, t=self.words, may=self.may, flash=None if self.is_partial else flash, **values)
        )
        response = Response(text, status, media_type="text/html; charset=utf-8")
        if flash and not self.is_partial:
            cookies.drop(self.request, response, cookies.FLASH)
        return response

    def go(
        self,
        to: str,
        done: str = "",
        refused: TidingsError | Refused | None = None,
        *,
        is_good: bool = True,
        **values: Any,
    ) -> Response:
        """To another page, which says once what was done, by the name of the words, or why it was not."""
        response = RedirectResponse(to, 303) if not self.is_partial else Response(headers={"HX-Redirect": to})
        flash = Flash(why_not(self.words, refused), False) if refused else Flash(self.words(done, **values), is_good)
        if flash.text:
            cookies.keep(self.request, response, cookies.FLASH, cookies.flash_text(flash))
        return response
