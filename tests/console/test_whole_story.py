"""The whole story in a real browser, with real processes: from signing in to a dead letter that arrives after all."""

import asyncio
import re
from collections.abc import Callable

import pytest
from playwright.async_api import Browser, Page, expect

from tests.api.conftest import TAKES_REQUESTS
from tests.console.browsing import Watched, new_context, sign_in
from tests.support.database import Database
from tests.support.processes import Process, hurried
from tests.support.receiver import Answer, Received, Receiver
from tests.support.waiting import eventually
from tidings.decisions.verifying import answer_challenge

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

KEY = "an-admin-key-that-somebody-chose"
PATIENCE = 30_000


class Running:
    """Everything that `tidings up` runs, on an installation whose gates are open."""

    def __init__(self, database: Database, start: Callable[[Process], Process]) -> None:
        self._database = database
        self._start = start
        self.url = ""

    async def begin(self) -> None:
        for gate in ("routing", "router:default"):
            await self._database.sql(f"INSERT INTO gates (name, is_open) VALUES ('{gate}', true)")
        await self._database.sql("INSERT INTO routes (event_type, target) VALUES ('*', 'webhook')")
        process = self._start(hurried("run", "all", **self._environment()))
        self.url = (await asyncio.to_thread(process.wait_for_line, TAKES_REQUESTS, 60))[1]

    def _environment(self) -> dict[str, str]:
        return {
            **self._database.environment(),
            "TIDINGS_ADMIN_KEY": KEY,
            "TIDINGS_SECRET_KEYS": "the-key-of-the-console",
            "TIDINGS_PORT": "0",
            "TIDINGS_ALLOW_HTTP_HOSTS": "127.0.0.1",
            "TIDINGS_ALLOW_NETWORKS": "127.0.0.0/8",
            "TIDINGS_BASE_DELAY_SECONDS": "100ms",
            "TIDINGS_MAX_DELAY_SECONDS": "200ms",
            "TIDINGS_MAX_RETRY_LIMIT": "2",
        }


@pytest.fixture
async def running(engine: Database, start: Callable[[Process], Process]) -> Running:
    made = Running(engine, start)
    await made.begin()
    return made


async def press(page: Page, name: str) -> None:
    await page.locator("main").get_by_role("button", name=name, exact=True).first.click()


async def published(page: Page, url: str) -> int:
    """By the API, as an application would."""
    response = await page.request.post(
        f"{url}/v1/events",
        headers={"Authorization": f"Bearer {KEY}"},
        data={"event_type": "order.paid", "payload": {"order": 7}},
    )
    assert response.status == 202, await response.text()
    return int((await response.json())["id"])


async def test_from_signing_in_to_a_dead_letter_that_is_delivered_after_all(running: Running, browser: Browser) -> None:
    async with Receiver() as receiver:
        context = await new_context(browser, running.url)
        context.set_default_timeout(PATIENCE)
        expect.set_options(timeout=PATIENCE)
        page = await context.new_page()
        watched = Watched(page, running.url)
        await sign_in(page, KEY)

        secret = await _subscribe(page, receiver.url("/orders"))

        # The endpoint signs the challenge.
        def answered(request: Received) -> Answer:
            return Answer(200, (answer_challenge(request.body, secret) or "ok").encode())

        receiver.answer("/orders", answered)
        await press(page, "Verify now")
        await expect(page.get_by_role("row", name=re.compile("Verification .*Passed"))).to_be_visible()
        await page.reload()
        await expect(page.locator(".badge", has_text="Verified").first).to_be_visible()
        assert secret not in await page.content()

        # A test is sent, and arrives while one looks.
        await press(page, "Send a test")
        await expect(page.get_by_role("row", name=re.compile("Test .*Passed"))).to_be_visible()
        await eventually(lambda: len(receiver.at("/orders")) == 2, what="the test event")

        # The endpoint dies; what is published is given up, with a dead letter.
        receiver.answer("/orders", Answer(503, b"down <script>alert(1)</script>"))
        id = await published(page, running.url)
        await page.goto(f"/events/{id}")
        await expect(page.locator("#story li", has_text="Given up")).to_be_visible()
        await page.get_by_role("link", name="Dead letters", exact=True).click()
        await expect(page.get_by_role("cell", name="http_503")).to_be_visible()
        await page.goto("/")
        await expect(page.locator("svg.flow.wide a", has_text="Dead letters")).to_contain_text("1")

        # It is mended; the dead letter is requeued, and delivered before one's eyes.
        receiver.answer("/orders", Answer(200))
        await page.goto(f"/events/{id}")
        await press(page, "Requeue")
        await expect(page.locator("#story .badge", has_text="Delivered").first).to_be_visible()
        last = receiver.at("/orders")[-1]
        last.verify(secret)
        assert last.answered == 200
        assert watched.said == []


async def _subscribe(page: Page, url: str) -> str:
    """A subscription is made by its form; its secret is shown once."""
    await page.get_by_role("link", name="Subscriptions", exact=True).click()
    await page.get_by_role("link", name="Add a subscription").first.click()
    await page.get_by_label("Event types").fill("order.*")
    await page.get_by_label("URL", exact=True).fill(url)
    await page.get_by_label("Description").fill("Orders")
    await press(page, "Create")
    secret = await page.locator("#secret code").inner_text()
    assert secret.startswith("whsec_")
    return secret
