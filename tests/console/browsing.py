"""A real browser for tests: Debian's Chromium, driven by Playwright."""

import shutil
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, BrowserContext, Page

ROOT = Path(__file__).parents[2]
AXE = ROOT / ".venv" / "assets" / "axe.min.js"
PICTURES = ROOT / "pictures"
NAMES = ("chromium", "chromium-browser", "google-chrome")
SERIOUS = {"serious", "critical"}
# Tests run as root in containers, where the sandbox can't start; pages are our own.
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")


def chromium() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


async def new_context(browser: Browser, url: str, **options: Any) -> BrowserContext:
    """A person with a browser of their own."""
    context = await browser.new_context(base_url=url, **{"locale": "en-GB", **options})
    context.set_default_timeout(15_000)
    return context


class Watched:
    """What a page said that it should not: script errors, broken rules of its policy, dialogs, foreign requests."""

    def __init__(self, page: Page, url: str) -> None:
        self.said: list[str] = []
        page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        page.on("console", lambda message: self._hear(message.type, message.text))
        page.on("request", lambda request: self._asked(request.url, url))
        page.on("dialog", self._dismiss)

    def _hear(self, kind: str, text: str) -> None:
        # A refused form is answered with a status that the browser mentions.
        if kind == "error" and "status of 4" not in text:
            self.said.append(text)

    def _asked(self, asked: str, own: str) -> None:
        if not asked.startswith((own, "data:", "about:", "blob:")):
            self.said.append(f"a request to {asked}")

    async def _dismiss(self, dialog: Any) -> None:
        self.said.append(f"a dialog: {dialog.message}")
        await dialog.dismiss()


async def sign_in(page: Page, key: str) -> None:
    await page.goto("/sign-in")
    await page.get_by_label("API key").fill(key)
    await page.get_by_role("button", name="Sign in").click()
    await page.wait_for_selector("nav.areas")


async def serious_findings(page: Page, *rules: str) -> list[str]:
    """What axe finds, as far as it is serious, by these rules or by all. The driver puts it in, past our policy."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(AXE.read_text("utf-8"))
    result = await page.evaluate("rules => axe.run(rules.length ? {runOnly: rules} : {})", list(rules))
    return [
        f"{found['id']} ({found['impact']}): {node['html'][:200]} {node['any'][:1]}"
        for found in result["violations"]
        if found["impact"] in SERIOUS
        for node in found["nodes"]
    ]


async def is_too_wide(page: Page) -> bool:
    """Whether the page itself scrolls sideways; parts of it may."""
    return bool(await page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"))
