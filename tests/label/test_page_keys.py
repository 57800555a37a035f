"""Keys and fingers: long texts, no answer by accident, and a phone."""

import pytest

from tests.browser import needs_browser
from tests.label.person import Person, page_of, stored, write_digits
from tests.label.test_page import texts_of

pytestmark = needs_browser

TOP = "document.querySelector('#stage .text').scrollTop"
GOES_ON = "document.querySelector('#stage .text').classList.contains('goes-on')"


def test_a_long_text_scrolls_by_key_and_shows_that_it_goes_on(tmp_path, context):
    texts = texts_of(tmp_path, ["word " * 3000] * 6)
    with page_of(tmp_path / "project", texts, ["good", "bad"]) as (url, _):
        ada = Person(context, url).arrive()
        page = ada.page
        assert page.evaluate(GOES_ON)
        assert page.locator("#goes-on").is_visible()
        tops = [page.evaluate(TOP)]
        for key in ("ArrowDown", "Space", "PageDown"):
            page.keyboard.press(key)
            tops.append(page.evaluate(TOP))
        assert tops == sorted(set(tops))
        page.keyboard.press("Shift+Space")
        assert page.evaluate(TOP) < tops[-1]
        page.keyboard.press("End")
        ada.until(f"!{GOES_ON}")
        assert not page.locator("#goes-on").is_visible()
        page.keyboard.press("Home")
        assert page.evaluate(TOP) == 0
        ada.answer("good", key="1")
        assert page.evaluate(TOP) == 0
        ada.all_saved()
        assert len(stored(tmp_path / "project")) == 1
        assert ada.seen == []


def test_space_and_enter_answer_nothing_after_a_click(tmp_path, context, digits):
    with page_of(tmp_path / "project", digits[0]) as (url, _):
        ada = Person(context, url).arrive()
        before = ada.question()
        for button in ("#classes button:has-text('7')", "#skip"):
            ada.page.click(button)
            ada.until("was => document.querySelector('#stage').dataset.question !== was", before)
            before = ada.question()
            for key in ("Space", "Enter", "Space"):
                ada.page.keyboard.press(key)
            ada.page.wait_for_timeout(200)
            assert ada.question() == before
        ada.all_saved()
        assert [act[0] for act in stored(tmp_path / "project")] == ["answer", "skip"]


def test_every_key_that_is_shown_answers_with_its_class(tmp_path, context):
    names = ["7", "cat", "c", *(f"class {number}" for number in range(20))]
    root = tmp_path / "images"
    write_digits(root, 40)
    with page_of(tmp_path / "project", root, names) as (url, _):
        ada = Person(context, url).arrive()
        buttons = ada.page.locator("#classes button")
        shown = [buttons.nth(place).inner_text().split("\n") for place in range(len(names))]
        assert [name for _, name in shown] == names
        assert len({key for key, _ in shown}) == len(names)
        for key, name in shown:
            ada.answer(name, key=key)
        ada.all_saved()
        assert stored(tmp_path / "project") == ada.acts


@pytest.mark.parametrize("width", [320, 390])
def test_a_phone_breaks_no_name_and_shows_no_keys(tmp_path, browser, digits, width):
    names = ["neither", "hippopotamus", "a cat", "dog"]
    context = browser.new_context(
        viewport={"width": width, "height": 780}, has_touch=True, is_mobile=True
    )
    training = {"batch": 10, "epochs": 1, "worker": "here", "held_out": 0.5}
    with page_of(tmp_path / "project", digits[0], names, **training) as (url, session):
        ada = Person(context, url).arrive()
        lines = ada.page.evaluate(
            "[...document.querySelectorAll('#classes button span')]"
            ".map(one => one.scrollWidth <= one.clientWidth && one.clientHeight < 30)"
        )
        assert lines == [True] * 4
        assert ada.page.locator("#classes kbd >> visible=true").count() == 0
        assert ada.page.locator(".more kbd >> visible=true").count() == 0
        for _ in range(24):
            ada.answer("neither", key="1")
        session.scheduler.wait(1)
        ada.page.wait_for_selector("#accuracy-short:has-text('%')")
        box = ada.page.locator("#accuracy-short").bounding_box()
        assert box["y"] + box["height"] < 400
        box = ada.page.locator("#classes").bounding_box()
        assert box["y"] + box["height"] <= 780
        assert ada.seen == []
    context.close()
