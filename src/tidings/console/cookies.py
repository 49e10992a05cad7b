"""The console's cookies. Over https they are bound to this host by their name; scripts see none of them."""

import base64
import json
import secrets
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

SESSION, VISIT, LANGUAGE, FLASH = "session", "visit", "language", "flash"
_SECONDS_OF = {LANGUAGE: 365 * 86_400, FLASH: 60}
_LONGEST_FLASH = 600


@dataclass(frozen=True)
class Flash:
    """A sentence that the next page shows once."""

    text: str
    is_good: bool = True


def is_https(request: Request) -> bool:
    """What a proxy says is believed here: whoever lies only loses their own cookie."""
    return "https" in (request.url.scheme, request.headers.get("x-forwarded-proto", "").partition(",")[0].strip())


def cookie(request: Request, name: str) -> str:
    return request.cookies.get(_named(request, name), "")


def keep(request: Request, response: Response, name: str, value: str) -> None:
    response.set_cookie(
        _named(request, name),
        value,
        max_age=_SECONDS_OF.get(name),
        path="/",
        secure=is_https(request),
        httponly=True,
        samesite="lax",
    )


def drop(request: Request, response: Response, name: str) -> None:
    response.delete_cookie(_named(request, name), path="/", secure=is_https(request), httponly=True, samesite="lax")


def new_visit() -> str:
    """For the forms of somebody who is not signed in yet."""
    return secrets.token_urlsafe(24)


def flash_text(flash: Flash) -> str:
    said = json.dumps([flash.text[:_LONGEST_FLASH], flash.is_good])
    return base64.urlsafe_b64encode(said.encode()).decode()


def read_flash(text: str) -> Flash | None:
    """What was kept, or nothing if somebody else put something there."""
    try:
        said, is_good = json.loads(base64.urlsafe_b64decode(text))
    except (ValueError, TypeError, RecursionError):
        return None
    return Flash(str(said), is_good is True) if said else None


def _named(request: Request, name: str) -> str:
    return f"__Host-tidings-{name}" if is_https(request) else f"tidings_{name}"
