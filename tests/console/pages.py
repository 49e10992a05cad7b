"""Every page of the console, found by its routes, so that no new one is left out."""

import re
from collections.abc import Iterator

from tests.support.database import Database
from tidings.console.app import AREAS

PARAMETER = re.compile(r"\{(\w+)(?::\w+)?\}")
# What stands in the place of a parameter, by how the path begins.
ROWS = {
    "/events": "SELECT MAX(id) FROM events",
    "/subscriptions": "SELECT MIN(id) FROM subscriptions",
    "/dead-letters/requeues": "SELECT MAX(id) FROM mass_requeues",
    "/dead-letters": "SELECT MAX(id) FROM dead_letters",
    "/tasks": "SELECT MAX(id) FROM sys_pending_tasks",
    "/routing/routes": "SELECT MAX(id) FROM routes",
    "/routing/routers": "SELECT MIN(worker_name) FROM route_worker_cursors",
    "/routing/dead-letters": "SELECT MAX(id) FROM route_dead_letters",
    "/keys": "SELECT MIN(public_id) FROM api_keys",
}
# Files that are downloaded, and not pages.
NO_PAGES = ("/payload",)


def page_paths() -> Iterator[str]:
    for area in AREAS:
        for route in area.routes:
            is_page = "GET" in (route.methods or ()) and not route.declared.polled
            if is_page and not route.path.endswith(NO_PAGES):
                yield route.path


async def pages(database: Database) -> dict[str, str]:
    """Of each path an address that leads to something; what there is no row for is left out."""
    found: dict[str, str] = {"/sign-in": "/sign-in"}
    for path in page_paths():
        if "{" not in path:
            found[path] = path
            continue
        begin = max((begin for begin in ROWS if path.startswith(f"{begin}/")), key=len)
        value = await database.value(ROWS[begin])
        if value is not None:
            found[path] = PARAMETER.sub(str(value), path)
    return found
