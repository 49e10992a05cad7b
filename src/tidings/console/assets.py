"""The console's own files: style, script, picture, and htmx, which is fetched when the project is set up or built."""

import hashlib
from functools import cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from tidings.api.problems import Refused

FOLDER = Path(__file__).parent / "assets"
KINDS = {
    "console.css": "text/css",
    "console.js": "text/javascript",
    "htmx.min.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
_SECONDS_KEPT = 365 * 86_400


@cache
def _content(name: str) -> bytes:
    return (FOLDER / name).read_bytes()


@cache
def address(name: str) -> str:
    """With a mark of its content: a browser keeps it as long as it is the same."""
    mark = hashlib.sha256(_content(name)).hexdigest()[:12] if is_there(name) else "missing"
    return f"/assets/{name}?{mark}"


def is_there(name: str) -> bool:
    return (FOLDER / name).is_file()


async def serve(request: Request) -> Response:
    name = str(request.path_params["name"])
    if name not in KINDS or not is_there(name):
        raise Refused("not_found", "There is no such file.")
    kept = {"Cache-Control": f"public, max-age={_SECONDS_KEPT}, immutable"}
    return Response(_content(name), headers=kept, media_type=KINDS[name])
