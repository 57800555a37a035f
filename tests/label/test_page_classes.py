"""The classes on the page: renamed, described, moved, given a key, deleted and restored."""

import pytest

from tests.browser import needs_browser
from tests.label.person import Person, page_of, stored
from tests.label.test_page_access import BEYOND, axe

pytestmark = needs_browser

ROWS = "[...document.querySelectorAll('#classes-rows li')].map(one => one.querySelector('input').value)"


def test_classes_are_edited_on_the_page(tmp_path, context, digits):
    names = ["cat", "dog", "brid", "extra"]
    with page_of(tmp_path / "project", digits[0], names) as (url, session):
        ada = Person(context, url).arrive()
        page = ada.page
        ada.answer("brid", key="3")
        example = ada.item()
        page.keyboard.press("e")
        page.fill("[aria-label='Name of brid']", "bird")
        page.keyboard.press("Tab")
        page.keyboard.type("w")  # while the name is on its way
        ada.until(f"{ROWS}.join() === 'cat,dog,bird,extra'")
        page.keyboard.type("ings")
        assert page.input_value("[aria-label='Guidance for bird']") == "wings"
        page.fill("[aria-label='Guidance for bird']", "has <b>feathers</b>")
        page.keyboard.press("Tab")
        ada.until("document.querySelector('[aria-label=\"Guidance for bird\"]').value !== ''")
        page.click("[aria-label='Use this item as the example of bird']")
        page.click("[aria-label='bird further up']")
        ada.until(f"{ROWS}.join() === 'cat,bird,dog,extra'")
        page.click("[aria-label='bird further up']")
        ada.until(f"{ROWS}.join() === 'bird,cat,dog,extra'")
        page.select_option("[aria-label='Key of bird']", "x")
        page.click("[aria-label='Delete extra']")
        page.wait_for_selector("#classes-gone button:has-text('Restore extra')")
        page.click("[aria-label='Delete bird']")
        page.wait_for_selector("#classes-wrong:has-text('are or were answered')")
        assert axe(page) == []
        page.click("#classes-dialog .buttons button")
        ada.says("#classes", "xbird1cat2dog")
        page.click("#guidance-title")
        assert "has <b>feathers</b>" in ada.text("#guidance-list")
        assert page.locator("#guidance-list img").count() == 1
        assert axe(page) == []
        assert ada.item() == example
        ada.answer("bird", key="x")
        ada.all_saved()
        assert set(session.annotations.labels.values()) == {2}
        page.reload()
        ada.item()
        ada.says("#classes", "xbird1cat2dog")
        page.click("#edit-classes")
        page.click("#classes-gone button")
        ada.until(f"{ROWS}.join() === 'bird,cat,dog,extra'")
        assert all("409" in said for said in ada.seen), ada.seen
    assert [act[3] for act in stored(tmp_path / "project")] == ["brid", "brid"]  # as it was made


def test_a_hundred_classes_fit(tmp_path, browser, digits):
    names = [f"class number {number}" for number in range(100)]
    context = browser.new_context(viewport={"width": 390, "height": 800})
    with page_of(tmp_path / "project", digits[0], names) as (url, _):
        ada = Person(context, url).arrive()
        assert ada.page.evaluate(BEYOND) == []
        ada.page.click("#edit-classes")
        assert ada.page.locator("#classes-rows li").count() == 100
        wide = ada.page.evaluate(
            "[document.querySelector('#classes-dialog').scrollWidth,"
            " document.querySelector('#classes-dialog').clientWidth]"
        )
        assert wide[0] <= wide[1]
        assert axe(ada.page) == []
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_the_dialog(tmp_path, browser, digits, scheme):
    context = browser.new_context(color_scheme=scheme, viewport={"width": 1280, "height": 800})
    with page_of(tmp_path / "project", digits[0], ["cat", "dog", "bird"]) as (url, _):
        ada = Person(context, url).arrive()
        ada.page.keyboard.press("e")
        ada.page.wait_for_selector("#classes-dialog[open]")
        assert axe(ada.page) == []
    context.close()
