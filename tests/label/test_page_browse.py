"""The list of all items in a real browser: look, search, change, accept many at once, take back."""

import pytest

from tests.browser import needs_browser
from tests.label.person import Person, page_of, stored, write_digits
from tests.label.test_page_access import BEYOND, SMALL, axe

pytestmark = needs_browser

CELLS = "document.querySelectorAll('#browse-items .cell').length"


@pytest.fixture
def served(tmp_path):
    truth = write_digits(tmp_path / "images", 150)
    training = {"batch": 20, "ahead": 1, "epochs": 4, "worker": "here", "repeat": 0}
    with page_of(tmp_path / "project", tmp_path / "images", **training) as (url, session):
        yield url, truth, session


def begun(context, served, n=4):
    ada = Person(context, served[0]).arrive()
    for _ in range(n):
        ada.answer(served[1][ada.item()])
    ada.all_saved()
    return ada


def listed(ada, n=None):
    """The items that are listed, once there are n."""
    if n is not None:
        ada.until(f"n => {CELLS} === n", n)
    return ada.page.evaluate(
        "[...document.querySelectorAll('#browse-items .cell')].map(one => one.dataset.item)"
    )


def test_search_filter_and_pages(served, context):
    ada = begun(context, served)
    ada.page.keyboard.press("b")
    assert len(listed(ada, 48)) == 48
    assert ada.text("#browse-count") == "1–48 of 150 items"
    ada.page.click("#browse-next")
    ada.says("#browse-count", "49–96 of 150 items")
    ada.page.fill("#browse-search", "0077")
    assert listed(ada, 1) == ["0077.png"]
    ada.page.click("#browse-reset")
    ada.page.select_option("#browse-show", "answered")
    assert set(listed(ada, 4)) == {act[1] for act in ada.acts}
    assert "#items" in ada.page.url
    ada.page.go_back()
    assert ada.page.locator("#stage").is_visible()
    ada.answer("3")
    assert ada.seen == []


def test_an_answer_is_changed_by_click_and_by_key(served, tmp_path, context):
    ada = begun(context, served)
    last = ada.acts[-1][1]
    ada.page.click("#recent button >> nth=0")  # the last answer
    ada.until("item => document.querySelector('[aria-current=true]')?.dataset.item === item", last)
    assert listed(ada)[:4] == [act[1] for act in reversed(ada.acts)]
    ada.page.keyboard.press("9")
    ada.all_saved()
    ada.page.click(f".cell[data-item='{ada.acts[0][1]}']")
    ada.page.click("#classes button:has-text('8')")
    ada.all_saved()
    changed = [("answer", last, "Ada", "9"), ("answer", ada.acts[0][1], "Ada", "8")]
    assert stored(tmp_path / "project") == [*ada.acts, *changed]
    ada.page.keyboard.press("u")
    ada.until("document.querySelector('#live').textContent.startsWith('Undone: 8')")
    ada.page.keyboard.press("Escape")
    before = ada.question()
    ada.page.keyboard.press("u")  # the change before it, not the last question
    ada.until("document.querySelector('#live').textContent.startsWith('Undone: 9')")
    assert ada.question() == before
    ada.all_saved()
    assert served[2].annotations.labels[last] == int(ada.acts[-1][3])
    assert ada.seen == []


def test_many_are_accepted_at_once_without_the_exceptions(served, tmp_path, context):
    ada = begun(context, served, 24)
    served[2].scheduler.wait(1)
    ada.page.keyboard.press("b")
    listed(ada, 48)
    ada.page.click("#browse-accept")
    ada.until("document.querySelectorAll('#browse-items .picked').length > 1")
    items = listed(ada)
    out, *kept = items
    name = ada.page.evaluate("document.querySelector('#browse-guess').selectedOptions[0].text")
    ada.page.click(f".cell[data-item='{out}']")
    assert ada.text("#browse-yes") == f"Accept {len(kept)} item{'s' * (len(kept) > 1)} as {name}"
    ada.page.click("#browse-yes")
    ada.all_saved()
    assert stored(tmp_path / "project")[24:] == [("answer", one, "Ada", name) for one in kept]
    ada.until("left => !document.querySelector(`.cell[data-item='${left}']`)", kept[0])
    ada.page.keyboard.press("u")
    ada.until("item => document.querySelector(`.cell[data-item='${item}']`)", kept[0])
    ada.all_saved()
    assert set(served[2].annotations.answers) == {act[1] for act in ada.acts}
    assert ada.seen == []


def test_look_alikes_are_selected_and_answered_by_key(served, tmp_path, context):
    ada = begun(context, served, 26)
    served[2].scheduler.wait(1)
    ada.until("fetch('api/items?n=1').then(one => one.json()).then(one => one.likeness)")
    ada.page.click("#view-items")
    listed(ada, 48)
    ada.page.click("#browse-alike")
    ada.until("document.querySelector('#browse-count').textContent.includes('most alike')")
    kept = listed(ada, 24)
    ada.page.keyboard.press("ArrowRight")
    ada.page.keyboard.press("Space")  # leaves out the second
    kept.pop(1)
    ada.page.keyboard.press("5")
    ada.all_saved()
    assert stored(tmp_path / "project")[26:] == [("answer", one, "Ada", "5") for one in kept]
    assert ada.seen == []


def test_skipped_items_are_asked_again(served, tmp_path, context):
    ada = begun(context, served, 1)
    ada.skip()
    ada.skip()
    ada.all_saved()
    ada.page.click("#again:has-text('Ask the 2 skipped items again')")
    first = ada.acts[1][1]
    ada.until("item => document.querySelector('#stage').dataset.item === item", first)
    ada.answer("4")
    assert ada.item() == ada.acts[2][1]
    ada.page.wait_for_selector("#again", state="hidden")
    assert ada.seen == []


def test_what_was_answered_in_the_list_is_not_asked(served, tmp_path, context):
    ada = begun(context, served, 1)
    item = ada.item()
    ada.page.click("#view-items")
    ada.page.fill("#browse-search", item)
    assert listed(ada, 1) == [item]
    ada.page.keyboard.press("Escape")  # leaves the search first
    ada.page.click(f".cell[data-item='{item}']")
    ada.page.keyboard.press("7")
    ada.all_saved()
    ada.page.click("#view-questions")
    assert ada.item() != item
    for _ in range(8):
        assert ada.item() != item
        ada.answer("1")
    ada.all_saved()
    assert [act[1] for act in stored(tmp_path / "project")].count(item) == 1
    assert ada.seen == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_axe_finds_nothing_and_nothing_reaches_beyond(served, browser, scheme, width):
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 800})
    ada = begun(context, served, 3)
    ada.page.click("#view-items")
    listed(ada, 48)
    for change in ("#browse-several", "#browse-every", "#browse-list", None):
        if change in ("#browse-several", None):
            assert axe(ada.page) == []
        assert ada.page.evaluate(BEYOND) == []
        assert ada.page.evaluate(SMALL) == []
        if change:
            ada.page.click(change)
    assert ada.seen == []
    context.close()
