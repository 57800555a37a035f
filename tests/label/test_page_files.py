"""Real files in a real browser: what is shown beside an item, the zoom, and images that are broken."""

import pytest
from PIL import Image

from askance.label import ItemSource
from tests.browser import needs_browser
from tests.label.person import Person, page_of, stored
from tests.label.test_page_access import axe
from tests.label.test_real_files import damaged, heic, photo

pytestmark = needs_browser


@pytest.fixture
def photos(tmp_path):
    root = tmp_path / "photos"
    root.mkdir()
    photo(root / "trip.jpg", sideways=True, size=(2400, 1600))
    for number in range(3):
        photo(root / f"small {number}.png")
    damaged(root, "cut.jpg")
    heic(root, "phone.heic")
    with page_of(tmp_path / "project", root, ["a", "b"], held_out=0.0) as (url, _):
        yield url


def test_the_name_is_shown_and_what_is_left_out_is_told(photos, tmp_path, context):
    ada = Person(context, photos).arrive()
    for _ in range(4):
        assert ada.item() in ada.text("#item-facts")
        ada.answer("a", key="1") if ada.page.locator("#stage img").count() else None
        ada.page.wait_for_timeout(50)
    ada.page.wait_for_selector("#stage .empty:has-text('Nothing left')")
    assert len(stored(tmp_path / "project")) == 4
    assert not any(act[1] == "cut.jpg" for act in stored(tmp_path / "project"))
    ada.until("document.querySelector('#data-news-words').textContent.includes('1 .heic')")
    ada.until("document.querySelector('#data-news-words').textContent.includes('cut.jpg')")
    assert ada.seen == []


def test_click_z_and_pinch_show_the_file_at_its_full_resolution(photos, tmp_path, browser):
    context = browser.new_context(viewport={"width": 1000, "height": 800}, has_touch=True)
    ada = Person(context, photos).arrive()
    page = ada.page
    while ada.item() != "trip.jpg":
        ada.skip()
    width = page.evaluate("document.querySelector('#stage img').naturalWidth")
    assert width == 1600
    page.click("#stage img")
    ada.until("() => document.querySelector('#zoom-image').naturalWidth === 2400")
    assert axe(page) == []
    page.keyboard.press("+")
    page.keyboard.press("ArrowLeft")
    page.mouse.wheel(0, -100)
    page.click("#zoom-one")
    ada.says("#zoom-words", "100% of 2400 × 1600")
    page.keyboard.press("z")
    assert not page.locator("#zoom").is_visible()
    page.keyboard.press("z")
    ada.until("() => document.querySelector('#zoom').open")
    before = ada.item()
    page.keyboard.press("u")  # what is no key of the zoom does nothing while it is open
    page.keyboard.press("Escape")
    assert ada.item() == before
    box = page.locator("#stage img").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    touch = context.new_cdp_session(page)

    def fingers(kind, *points):
        places = [{"x": x + dx, "y": y, "id": place} for place, dx in enumerate(points)]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": places})

    fingers("touchStart", -20, 20)
    ada.until("() => document.querySelector('#zoom').open")
    small = page.locator("#zoom-image").bounding_box()["width"]
    for spread in (40, 80, 120):
        fingers("touchMove", -spread, spread)
    fingers("touchEnd")
    ada.until("least => document.querySelector('#zoom-image').offsetWidth > least", 1.5 * small)
    page.keyboard.press("1")  # answers the question under it
    ada.all_saved()
    # It was the last one, so what was skipped comes back after it.
    (given,) = [act for act in stored(tmp_path / "project") if act[0] == "answer"]
    assert given[1] == "trip.jpg"
    assert not page.locator("#zoom").is_visible()
    assert ada.seen == []
    context.close()


def test_a_picture_that_breaks_meanwhile_can_only_be_skipped(photos, tmp_path, context):
    ada = Person(context, photos).arrive()
    refusal = {"error": {"code": "unreadable", "message": "x.png: cut short."}}
    ada.page.route("**/media/**", lambda route: route.fulfill(status=422, json=refusal))
    ada.page.reload()
    ada.page.wait_for_selector("#stage .empty:has-text('This image cannot be shown.')")
    assert "cut short" in ada.text("#stage")
    question = ada.question()
    ada.page.keyboard.press("1")
    assert ada.page.locator("#classes button[aria-disabled=true]").count() == 2
    ada.page.wait_for_timeout(200)
    assert ada.question() == question
    ada.skip()
    ada.all_saved()
    assert [act[0] for act in stored(tmp_path / "project")] == ["skip"]


def test_a_picture_is_fetched_again_when_the_server_is_back(photos, tmp_path, context):
    ada = Person(context, photos).arrive()
    ada.page.route("**/media/**", lambda route: route.abort())
    ada.page.reload()
    ada.page.wait_for_selector("#trouble:not([hidden])")
    ada.page.unroute("**/media/**")
    ada.answer("a", key="1")
    ada.all_saved()
    assert len(stored(tmp_path / "project")) == 1


@pytest.mark.parametrize("size", [(1280, 800), (2560, 1440)])
def test_a_large_screen_is_used(tmp_path, browser, size):
    root = tmp_path / "photos"
    root.mkdir()
    for number in range(3):
        Image.new("RGB", (1200, 900), "teal").save(root / f"{number}.jpg")
    width, height = size
    context = browser.new_context(viewport={"width": width, "height": height})
    with page_of(tmp_path / "project", root, ["a", "b"]) as (url, _):
        ada = Person(context, url).arrive()
        box = ada.page.locator("#stage img").bounding_box()
        assert box["height"] > 0.45 * height
        box = ada.page.locator("#classes").bounding_box()
        assert box["y"] + box["height"] < height
    context.close()


def test_other_columns_are_beside_a_text(tmp_path, context):
    table = tmp_path / "t.csv"
    table.write_text("said,stars,who\nhello,4,<b>Bo</b>\nbye,4,<b>Bo</b>\n")
    source = ItemSource(table, text="said")
    with page_of(tmp_path / "project", source, ["a", "b"]) as (url, _):
        ada = Person(context, url).arrive()
        assert ada.text("#item-facts").split("\n") == ["stars", "4", "who", "<b>Bo</b>"]
        assert not ada.page.locator("#zoom-button").is_visible()
        assert ada.seen == []
