"""How every page looks and behaves in a real browser: inert, accessible, by keyboard, on a phone."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from playwright.async_api import Browser, Page, ViewportSize

from tests.api.conftest import Served
from tests.console.browsing import PICTURES, Watched, is_too_wide, new_context, serious_findings, sign_in
from tests.console.furnished import HOSTILE, Furnished
from tests.console.pages import page_paths, pages

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(240),
    # A browser sees no engine, and every page is read on both by tests without one.
    pytest.mark.quick_on("postgresql"),
]
ALL_PICTURES = bool(os.environ.get("TIDINGS_ALL_PICTURES"))
PHONE: ViewportSize = {"width": 390, "height": 844}
DESK: ViewportSize = {"width": 1280, "height": 900}


@asynccontextmanager
async def looking(browser: Browser, served: Served, **options: Any) -> AsyncIterator[Page]:
    context = await new_context(browser, served.url, **options)
    page = await context.new_page()
    await sign_in(page, served.keys["admin"])
    yield page
    await context.close()


def picture_of(path: str) -> str:
    name = path.replace("{id:int}", "one").strip("/").replace("/", "-")
    return "".join(sign for sign in name if sign.isalnum() or sign == "-") or "overview"


async def test_every_page_is_accessible_in_both_themes_and_fits_on_a_phone(served: Served, browser: Browser) -> None:
    """First without any row, where pages say what to do next; then with a past."""
    found: dict[str, list[str]] = {}
    async with looking(browser, served, viewport=DESK) as page:
        watched = Watched(page, served.url)
        for path in [path for path in page_paths() if "{" not in path]:
            await page.goto(path)
            found[f"{path}, empty"] = await serious_findings(page)
        await Furnished(served.database).ordinary()
        for path, address in (await pages(served.database)).items():
            response = await page.goto(address)
            assert response is not None
            assert response.status == 200, address
            found[path] = await _looked_at(page, picture_of(path))
    assert {path: said for path, said in found.items() if said} == {}
    assert watched.said == []


async def _looked_at(page: Page, name: str) -> list[str]:
    """At a desk by day and by night, then on a phone; with a picture, or if wanted with one of each."""
    await page.screenshot(path=PICTURES / f"{name}.png", full_page=True)
    found = await serious_findings(page)
    await page.emulate_media(color_scheme="dark")
    found += await serious_findings(page, "color-contrast", "link-in-text-block")
    if ALL_PICTURES:
        await page.screenshot(path=PICTURES / f"{name}-dark.png", full_page=True)
    await page.emulate_media(color_scheme="light")
    await page.set_viewport_size(PHONE)
    if ALL_PICTURES:
        await page.screenshot(path=PICTURES / f"{name}-phone.png", full_page=True)
    if await is_too_wide(page):
        found.append("it is wider than a phone")
    await page.set_viewport_size(DESK)
    return found


async def test_nothing_that_others_wrote_comes_alive(served: Served, browser: Browser) -> None:
    """Types, payloads, answers, URLs, names, errors: in each column that somebody else fills stands the worst."""
    await Furnished(served.database).hostile()
    async with looking(browser, served, viewport=DESK) as page:
        watched = Watched(page, served.url)
        shown = 0
        for path, address in (await pages(served.database)).items():
            response = await page.goto(address)
            assert response is not None
            assert response.status < 500, address
            assert await page.evaluate(ALIVE) == [], path
            text = await page.locator("body").inner_text()
            shown += sum(one in text for one in HOSTILE)
        assert shown > 30
        assert watched.said == []


# Elements and attributes that none of our pages has; htmx's only where we put them.
ALIVE = """() => {
  const found = [];
  for (const one of document.querySelectorAll("*")) {
    for (const {name} of one.attributes) if (name.startsWith("on")) found.push(one.outerHTML.slice(0, 200));
    if (one.hasAttribute("hx-get") && !one.hasAttribute("data-live")) found.push(one.outerHTML.slice(0, 200));
    if (one.hasAttribute("style")) found.push("style: " + one.outerHTML.slice(0, 200));
  }
  for (const one of document.querySelectorAll("script, img")) {
    if (!one.src.startsWith(location.origin)) found.push(one.outerHTML);
  }
  for (const one of document.querySelectorAll("a[href], form[action], area, base, iframe, object, embed")) {
    const address = one.getAttribute("href") || one.getAttribute("action") || "//nowhere.example";
    const url = new URL(address, document.baseURI);
    if (url.origin !== location.origin) found.push(one.outerHTML.slice(0, 200));
  }
  return found;
}"""


async def test_everything_can_be_reached_by_keyboard(served: Served, browser: Browser) -> None:
    """From the top of a page by Tab alone; the first stop leads past the areas."""
    await Furnished(served.database).ordinary()
    async with looking(browser, served, viewport=DESK) as page:
        for address in ("/", "/dead-letters", "/subscriptions/1"):
            await page.goto(address)
            left = set(map(str, range(1, 1 + await page.evaluate(REACHABLE))))
            # A field for a moment has several stops.
            for _ in range(len(left) + 40):
                await page.keyboard.press("Tab")
                left.discard(await page.evaluate(HERE))
                if not left:
                    break
            assert not left, address
        await page.goto("/")
        await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        assert await page.evaluate("document.activeElement.id") == "content"


REACHABLE = """() => {
  const kinds = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']";
  const all = document.querySelectorAll(kinds);
  let number = 0;
  for (const one of all) if (one.checkVisibility({checkVisibilityCSS: true})) one.dataset.number = ++number;
  return number;
}"""
HERE = "() => document.activeElement.dataset.number || null"


async def test_pages_ask_before_they_act_and_the_overview_is_live(served: Served, browser: Browser) -> None:
    await Furnished(served.database).ordinary()
    async with looking(browser, served, viewport=DESK) as page:
        await page.goto("/subscriptions/1")
        await page.get_by_text("Pause", exact=True).first.click()
        assert await page.locator("details.confirm[open]").count() == 1
        await page.keyboard.press("Escape")
        assert await page.locator("details.confirm[open]").count() == 0
        await page.goto("/")
        await served.database.sql("UPDATE gates SET is_open = false WHERE name = 'routing'")
        await page.locator(".badge", has_text="Closed").wait_for()
        # While nobody looks, what would ask is held back before it does.
        assert await page.evaluate(HIDDEN) is True


HIDDEN = """() => {
  Object.defineProperty(document, "hidden", {value: true, configurable: true});
  const event = new CustomEvent("htmx:beforeRequest", {bubbles: true, cancelable: true});
  return !document.querySelector("[data-live]").dispatchEvent(event);
}"""
