"""The page in a real browser, from file://: no errors, no requests, everything to be seen."""

import pytest

from askance import report
from askance.paper import SUITE
from tests.browser import browser, needs_browser
from tests.report import worlds

__all__ = ["browser"]

pytestmark = needs_browser


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    worlds.store(folder / "one", lifts={"grad": 0.1}, subset="1,000 of 1,797 images")
    other = worlds.spec(name="second-experiment", seeds=3)
    worlds.store(folder / "two", other, seed=1)
    facts = report.read([folder / "one", folder / "two"], SUITE)
    return report.write(facts, folder / "report.html")


@pytest.fixture(params=[375, 1000], ids=["phone", "desktop"])
def opened(request, browser, path):
    """(page, what went wrong or out)."""
    context = browser.new_context(viewport={"width": request.param, "height": 800})
    page, seen = context.new_page(), []
    page.on("console", lambda message: seen.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: seen.append(f"error: {error}"))
    page.on("requestfailed", lambda asked: seen.append(f"failed: {asked.url[:80]}"))
    page.on("request", lambda asked: seen.append(f"request: {asked.url}")
            if not asked.url.startswith(("data:", path.as_uri())) else None)  # fmt: skip
    page.goto(path.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    yield page, seen
    context.close()


def test_opens_without_a_word_to_anyone(opened):
    _, seen = opened
    assert seen == []


def test_every_figure_and_thumbnail_is_seen(opened):
    page, _ = opened
    sizes = page.eval_on_selector_all(
        "img", "all => all.map(one => [one.naturalWidth, one.clientWidth, one.clientHeight])"
    )
    assert len(sizes) > 100
    assert all(min(size) > 0 for size in sizes)
    figures = page.eval_on_selector_all("img.figure", "all => all.map(one => one.clientWidth)")
    assert len(figures) >= 10
    assert min(figures) > 250
    assert all(page.locator("img.figure").nth(i).is_visible() for i in range(len(figures)))


def test_the_page_does_not_scroll_sideways(opened):
    page, _ = opened
    width, inner = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    assert width <= inner
    beyond = page.evaluate(
        """() => [...document.querySelectorAll('body *')]
            .filter(one => !one.closest('.scroll, pre'))
            .filter(one => one.getBoundingClientRect().right > window.innerWidth + 1)
            .map(one => one.tagName + ' ' + one.textContent.slice(0, 40))"""
    )
    assert beyond == []


def test_links_lead_to_their_sections(opened):
    page, _ = opened
    page.click("nav a[href='#provenance']")
    assert page.evaluate("location.hash") == "#provenance"
    assert page.locator("#provenance h2").is_visible()


def test_dark_is_dark(browser, path):
    context = browser.new_context(color_scheme="dark")
    page = context.new_page()
    page.goto(path.as_uri())
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(23, 25, 28)"
    context.close()
