"""One page that somebody asked for: who they are, what they may, their language, and how it is shown."""

import datetime
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from tidings.api.context import Api, Observer
from tidings.api.paging import paged
from tidings.api.problems import Refused
from tidings.console import cookies
from tidings.console.cookies import Flash
from tidings.console.forgery import token_of
from tidings.console.forms import Form, read_form
from tidings.console.languages import Words, chosen, words_of
from tidings.console.saying import why_not, wrong_fields
from tidings.console.showing import environment
from tidings.errors import InputRefused, NotFound, TidingsError
from tidings.model.id import is_id
from tidings.model.key import Caller, Scope
from tidings.roles.observer.listing import Page as Found
from tidings.roles.observer.listing import Place

T = TypeVar("T")

ROWS = 50
"""How many rows a list shows at once."""
ENOUGH = 286
"""The status that htmx takes as: no need to ask again."""


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
        if not is_id(id):
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
        return await self.api.observed(observer, look)

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
        query = {**self.query, **changed}
        kept = {name: str(value) for name, value in query.items() if value not in (None, "")}
        return f"{quote(self.path)}?{urlencode(kept)}" if kept else quote(self.path)

    def ago(self, moment: datetime.datetime) -> float:
        return (self.now - moment).total_seconds()

    def errors(self, error: InputRefused | Refused) -> dict[str, str]:
        """What is wrong with a form, by field; '' is all of it."""
        return wrong_fields(self.words, error)

    def show(self, template: str, status: int = 200, **values: Any) -> Response:
        flash = None if self.is_partial else cookies.read_flash(cookies.cookie(self.request, cookies.FLASH))
        made = environment().get_template(template)
        text = made.render(page=self, t=self.words, may=self.may, flash=flash, **values)
        response = Response(text, status, media_type="text/html; charset=utf-8")
        if flash:
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
