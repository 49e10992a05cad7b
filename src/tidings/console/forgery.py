"""Whether a form was sent by a page of ours: by a token that only our pages know, and by what the browser says."""

import hmac
from urllib.parse import urlsplit

from starlette.requests import Request

from tidings.api.problems import Refused

FIELD, HEADER = "csrf", "x-csrf-token"


def token_of(secret: str) -> str:
    """`secret` is a cookie that scripts can't read: a session's id, or that of a visit before signing in."""
    return hmac.digest(secret.encode(), b"tidings csrf", "sha256").hex()


def refuse_foreign(request: Request, secret: str, given: str) -> None:
    if not _is_from_here(request):
        raise Refused("forbidden", "This request did not come from a page of this console.")
    if not secret or not hmac.compare_digest(given.encode(), token_of(secret).encode()):
        raise Refused("forbidden", "This form is outdated. Go back, load the page again, and send it once more.")


def _is_from_here(request: Request) -> bool:
    """Each of both that is there must say so, and one of them must be there."""
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
    if origin is None and site is None:
        return False
    if site not in (None, "same-origin", "none"):
        return False
    return origin is None or urlsplit(origin).netloc.lower() == request.headers.get("host", "").lower()
