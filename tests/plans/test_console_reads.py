"""No page of the console reads more of a long past than of a short one: what it looks at is bounded, by any filter."""

import httpx
import pytest

from bench.console.filling import Filling
from bench.console.pages import pages_of
from tests.api.conftest import no_metrics, settings_of
from tests.console.visitor import Visitor
from tests.plans.counters import Counters, Reads
from tests.support.database import Database
from tidings.api.app import build
from tidings.api.front import Front
from tidings.api.server import open_api
from tidings.db.accounts import ALL_ROLES
from tidings.decisions.keys import check_new_key
from tidings.roles.keys import actions as keys
from tidings.settings import load_settings
from tidings.wiring import Installation

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

URL = "http://console.test"
# The same for every size, and less than the sagas of the smallest. A filter that no index serves looks at 2,000 rows.
BOUND = Reads(rows=14_500, pages=40_000)
# MariaDB counts a row of a window ten times where it sorts it; a day is 1,440 minutes of each orchestrator.
DEAR = {"/tasks/history?status=failed&type=NOBODY", "/?range=day", "/?range=three_days"}
BOUND_OF_DEAR = Reads(rows=24_000, pages=40_000)
GOOD = {200, 286, 303}


class Console:
    """In this process; of each page that is asked for the sessions have ended before anything is counted."""

    def __init__(self, database: Database, counters: Counters) -> None:
        self._found = Installation(load_settings(environ=settings_of(database), roles=ALL_ROLES), None)
        self._counters = counters
        self._cookies = httpx.Cookies()

    async def sign_in(self, key: str) -> None:
        async with open_api(self._found, no_metrics) as api, Visitor(URL) as visitor:
            await visitor.client.aclose()
            visitor.client = self._client(build(api))
            assert (await visitor.sign_in(key)).status_code == 303
            self._cookies = visitor.client.cookies

    async def reads_of(self, page: str) -> Reads:
        await self._counters.start()
        async with open_api(self._found, no_metrics) as api, self._client(build(api)) as client:
            response = await client.get(page)
        assert response.status_code in GOOD, f"{page}: {response.status_code}"
        return await self._counters.read("observer")

    def _client(self, app: Front) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            transport=httpx.ASGITransport(app),
            base_url=URL,
            headers={"Accept": "text/html"},
            cookies=self._cookies,
            timeout=60,
        )


@pytest.mark.parametrize("events", [5_000, pytest.param(100_000, marks=[pytest.mark.full, pytest.mark.timeout(1_800)])])
async def test_a_page_reads_as_much_of_a_long_past_as_of_a_short_one(
    throwaway: Database, counters: Counters, events: int
) -> None:
    await Filling.of(throwaway, events, say=lambda line: None)
    made = await keys.add(await throwaway.open("key_admin"), check_new_key("test", ["admin"]), "test")
    console = Console(throwaway, counters)
    await console.sign_in(made.key)
    found = {page: await console.reads_of(page) for page in [*await pages_of(throwaway), "/?range=three_days"]}
    bounds = {page: BOUND_OF_DEAR if page in DEAR else BOUND for page in found}
    wrong = [f"{page}: {reads}" for page, reads in found.items() if reads.is_beyond(bounds[page])]
    assert not wrong, "\n".join(wrong)
