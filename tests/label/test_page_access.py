"""The page for everybody: by keyboard alone, by ear, on a phone, in the dark, at twice the size."""

import pytest

from tests.browser import needs_browser
from tests.label.person import DIGITS, Person, page_of, stored

pytestmark = needs_browser


@pytest.fixture(scope="module")
def served(tmp_path_factory, digits):
    folder = tmp_path_factory.mktemp("access") / "project"
    with page_of(folder, digits[0]) as (url, _):
        yield url, digits[1], folder


BEYOND = """() => [...document.querySelectorAll('body *')]
    .filter(one => !one.closest('#recent, .unseen, .leap, dialog'))
    .filter(one => one.getBoundingClientRect().right > innerWidth + 1)
    .map(one => one.tagName + ' ' + one.textContent.slice(0, 40))"""

SMALL = """() => [...document.querySelectorAll('button')].filter(one => one.checkVisibility())
    .filter(one => one.getBoundingClientRect().height < 44).map(one => one.textContent)"""

FOCUSED = """() => { const at = document.activeElement, style = getComputedStyle(at);
    return [at.id || at.textContent.trim(), style.outlineStyle, parseFloat(style.outlineWidth)] }"""


def axe(page):
    """What the axe rules find wrong."""
    tool = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="NO AXE: pip install axe-playwright-python"
    )
    violations = tool.Axe().run(page).response["violations"]
    return [(one["id"], [node["html"][:120] for node in one["nodes"]]) for one in violations]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(served, browser, scheme):
    url, truth, _ = served
    context = browser.new_context(color_scheme=scheme, viewport={"width": 1280, "height": 800})
    ada = Person(context, url, scheme)
    ada.page.goto(url)
    ada.page.wait_for_selector("#who[open]")
    assert axe(ada.page) == []
    ada.arrive()
    for _ in range(3):
        ada.answer(truth[ada.item()])
    ada.all_saved()
    ada.page.keyboard.press("h")
    assert axe(ada.page) == []
    ada.page.keyboard.press("g")
    ada.page.wait_for_selector(".cell")
    ada.answer(truth[ada.item()])
    ada.page.keyboard.press("a")
    assert axe(ada.page) == []
    ada.page.keyboard.press("Escape")
    ada.page.keyboard.press("?")
    ada.page.wait_for_selector("#help[open]")
    assert axe(ada.page) == []
    ada.page.keyboard.press("Escape")
    ada.page.route("**/api/**", lambda route: route.abort())
    ada.page.wait_for_selector("#trouble:not([hidden])")
    assert axe(ada.page) == []
    context.close()


@pytest.mark.parametrize("grid", [False, True], ids=["one", "grid"])
def test_nothing_reaches_beyond_the_side(served, browser, grid):
    context = browser.new_context(viewport={"width": 375, "height": 740}, has_touch=True)
    ada = Person(context, served[0], "phone").arrive()
    if grid:
        ada.page.click("#grid")
        ada.page.wait_for_selector(".cell")
    for width in (320, 360, 390, 640, 768, 1280):  # 640: a page of 1280 at twice the size
        ada.page.set_viewport_size({"width": width, "height": 740})
        total, inner = ada.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert total <= inner
        assert ada.page.evaluate(BEYOND) == []
        assert ada.page.evaluate(SMALL) == []
    context.close()


def test_item_and_answers_are_on_one_phone_screen(served, browser):
    context = browser.new_context(viewport={"width": 375, "height": 720}, has_touch=True)
    ada = Person(context, served[0], "phone").arrive()
    box = ada.page.locator("#classes").bounding_box()
    assert box["y"] + box["height"] <= 720
    before = ada.question()
    ada.page.tap("#classes button:has-text('4')")
    ada.until("was => document.querySelector('#stage').dataset.question !== was", arg=before)
    context.close()


def test_keyboard_alone_reaches_everything_and_sees_where_it_is(served, browser):
    url, _, folder = served
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    ada = Person(context, url, "tab").arrive()
    page, reached = ada.page, []
    for _ in range(60):
        page.keyboard.press("Tab")
        here = page.evaluate(FOCUSED)
        if page.evaluate("document.activeElement === document.body"):  # all the way round
            break
        reached.append(here)
    names = [name for name, *_ in reached]
    assert names[0] == "To the question"
    for wanted in ["who-button", "help-button", "undo", "skip", "grid", "guessing", "add"]:
        assert wanted in names
    assert sum(name[0] == name[-1] and name[0] in DIGITS for name in names) == 10  # key and name
    assert all(style != "none" and width >= 2 for _, style, width in reached)
    before, item = ada.question(), ada.item()
    page.locator("#classes button:has-text('6')").focus()
    page.keyboard.press("Enter")
    ada.until("was => document.querySelector('#stage').dataset.question !== was", arg=before)
    assert page.evaluate("document.activeElement.textContent").endswith("6")  # the focus stays
    ada.all_saved()
    assert ("answer", item, "tab", "6") in stored(folder)
    context.close()


def test_what_happens_is_said(served, browser):
    context = browser.new_context()
    ada = Person(context, served[0], "ear").arrive()
    ada.answer("5")
    ada.until("document.querySelector('#live').textContent.startsWith('Saved: 5. Next: image')")
    ada.undo()
    ada.until("document.querySelector('#live').textContent.startsWith('Undone: 5')")
    assert ada.page.get_attribute("#live", "aria-live") == "polite"
    ada.page.route("**/api/**", lambda route: route.abort())
    ada.page.wait_for_selector("[role=alert]:has-text('does not answer')")
    context.close()


def test_the_keys_can_be_turned_off(served, browser):
    context = browser.new_context()
    ada = Person(context, served[0], "off").arrive()
    ada.page.keyboard.press("?")
    ada.page.uncheck("#shortcuts")
    ada.page.keyboard.press("Escape")
    before = ada.question()
    for key in "4sug":
        ada.page.keyboard.press(key)
    ada.page.wait_for_timeout(200)
    assert ada.question() == before
    context.close()
