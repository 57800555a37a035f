"""The page in a real browser: what each key does, what it shows, and what it never does."""

import csv

import pytest
from PIL import Image

from askance.label import ItemSource
from tests.browser import needs_browser
from tests.label.person import Person, page_of, stored

pytestmark = needs_browser

HOSTILE = "<script>window.caught = 1</script><img src=x onerror='window.caught = 2'> & <b>bold</b>"


@pytest.fixture
def image_session(tmp_path, digits):
    with page_of(tmp_path / "project", digits[0]) as (url, _):
        yield url


def texts_of(tmp_path, rows):
    path = tmp_path / "texts.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["text"], *[[row] for row in rows]])
    return ItemSource(path, text="text")


def test_keys_answer_undo_skip_and_everything_is_kept(image_session, tmp_path, context, digits):
    ada = Person(context, image_session).arrive()
    for _ in range(6):
        ada.answer(digits[1][ada.item()])
    ada.skip()
    ada.undo()
    ada.undo()
    ada.answer(digits[1][ada.item()])
    ada.all_saved()
    assert stored(tmp_path / "project") == ada.acts
    ada.says("#answered", "6 of 120")
    assert ada.seen == []


def test_a_held_key_answers_once(image_session, tmp_path, context):
    ada = Person(context, image_session).arrive()
    before = ada.question()
    for _ in range(5):  # playwright repeats a key that is down
        ada.page.keyboard.down("4")
    ada.page.keyboard.up("4")
    ada.until("was => document.querySelector('#stage').dataset.question !== was",
                               arg=before)  # fmt: skip
    ada.all_saved()
    assert len(stored(tmp_path / "project")) == 1


def test_the_grid_answers_cell_by_cell(image_session, tmp_path, context, digits):
    ada = Person(context, image_session).arrive()
    ada.page.keyboard.press("g")
    ada.page.wait_for_selector(".cell")
    assert ada.page.locator(".cell").count() == 12
    for _ in range(3):
        ada.answer(digits[1][ada.item()])
    ada.undo()
    ada.answer(digits[1][ada.item()])
    ada.page.keyboard.press("ArrowDown")
    ada.answer(digits[1][ada.item()])
    assert ada.page.locator(".cell.done").count() == 4
    ada.all_saved()
    assert stored(tmp_path / "project") == ada.acts
    ada.page.keyboard.press("g")
    ada.page.wait_for_selector("#stage > img")
    ada.answer(digits[1][ada.item()])
    ada.all_saved()
    assert stored(tmp_path / "project") == ada.acts


def test_every_key_has_a_button(image_session, tmp_path, context):
    ada = Person(context, image_session).arrive()
    page, item = ada.page, ada.item()
    page.click("#classes button:has-text('7')")
    ada.until("was => document.querySelector('#stage').dataset.item !== was", arg=item)
    page.wait_for_timeout(150)
    page.click("#undo")
    ada.until("was => document.querySelector('#stage').dataset.item === was", arg=item)
    page.wait_for_timeout(150)
    page.click("#skip")
    ada.all_saved()
    assert [act[0] for act in stored(tmp_path / "project")] == ["answer", "undo", "skip"]
    page.click("#help-button")
    assert page.locator("#help").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#help").is_visible()


def test_a_class_is_added_on_the_way(image_session, tmp_path, context):
    ada = Person(context, image_session).arrive()
    page = ada.page
    page.keyboard.press("a")
    page.keyboard.type("3")  # there already
    page.keyboard.press("Enter")
    page.wait_for_selector("#adding-wrong:not([hidden])")
    page.keyboard.type(" <i>smudge</i>")
    page.keyboard.press("Enter")
    page.wait_for_selector("#classes button:has-text('smudge')")
    ada.answer("3 <i>smudge</i>", key="c")  # the eleventh class: letters follow the digits
    page.keyboard.press("/")
    item = ada.item()
    page.keyboard.type("smud")
    page.keyboard.press("Enter")
    ada.until("was => document.querySelector('#stage').dataset.item !== was", arg=item)
    ada.all_saved()
    assert [act[3] for act in stored(tmp_path / "project")] == ["3 <i>smudge</i>"] * 2
    assert all("422" in said or "409" in said for said in ada.seen), ada.seen


def test_texts_are_shown_as_text(tmp_path, context):
    rows = [HOSTILE, "שלום עולם, זה טקסט ארוך מימין לשמאל", "word " * 3000, "x" * 5000, "short"]
    texts = texts_of(tmp_path, rows)
    with page_of(tmp_path / "project", texts, ["good", "bad"]) as (url, _):
        ada = Person(context, url).arrive()
        ada.page.set_viewport_size({"width": 375, "height": 700})
        shown = []
        for _ in rows:
            ada.item()
            shown.append(ada.page.locator("#stage .text").evaluate("one => one.textContent"))
            direction = ada.page.locator("#stage .text").evaluate(
                "o => getComputedStyle(o).direction"
            )
            assert direction == ("rtl" if "שלום" in shown[-1] else "ltr")
            wide = ada.page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
            assert wide[0] <= wide[1]
            ada.answer("good", key="1") if len(shown) < len(rows) else ada.page.keyboard.press("1")
        ada.page.wait_for_selector("#stage .empty:has-text('Nothing left')")
        assert sorted(shown) == sorted(rows)
        assert ada.page.evaluate("window.caught") is None
        assert ada.seen == []


def test_an_empty_text_says_so(tmp_path, context):
    texts = texts_of(tmp_path, ["", "  ", ""])
    with page_of(tmp_path / "project", texts, ["good", "bad"]) as (url, _):
        ada = Person(context, url).arrive()
        ada.item()
        ada.says("#stage .empty", "This text is empty. Skip it to go on.")
        ada.skip()
        ada.item()
        assert "(an empty text)" in ada.page.locator("#recent").inner_text()
        assert ada.seen == []


def test_images_of_every_size_fit(tmp_path, context):
    folder = tmp_path / "images"
    folder.mkdir()
    for name, size in {
        "dot": (1, 1),
        "wide": (3000, 20),
        "tall": (20, 3000),
        "big": (4000, 3000),
    }.items():
        Image.new("RGB", size, "teal").save(folder / f"{name}.png")
    (folder / "broken.png").write_bytes(b"no image at all")
    with page_of(tmp_path / "project", folder, ["a", "b"]) as (url, _):
        ada = Person(context, url).arrive()
        ada.page.set_viewport_size({"width": 375, "height": 700})
        for left in range(4, -1, -1):  # what is broken is not asked
            ada.page.wait_for_selector("#stage > img" if left else "#stage .empty:has-text('left')")
            box = ada.page.locator("#stage > *").bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= 375
            assert box["height"] < 500
            if left:
                ada.answer("a", key="1")


def test_the_name_is_asked_once_and_kept_with_every_answer(image_session, tmp_path, context):
    Person(context, image_session, "Zoë <b>").arrive().answer("1")
    again = Person(context, image_session, "nobody")
    again.page.goto(image_session)
    again.item()
    assert not again.page.locator("#who").is_visible()
    assert again.text("#who-button") == "Zoë <b>"
    again.all_saved()
    assert [act[2] for act in stored(tmp_path / "project")] == ["Zoë <b>"]
