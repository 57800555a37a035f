"""What the page shows of the model: its guess on demand, how good it is, and what to take home."""

import pytest

from askance.label.learner import Learner
from tests.browser import needs_browser
from tests.label.person import Person, page_of, stored, wait_for, write_digits
from tests.label.small_encoders import COLOURS

pytestmark = needs_browser


@pytest.fixture
def served(tmp_path):
    truth = write_digits(tmp_path / "images", 150)
    folder = tmp_path / "project"
    training = {"batch": 12, "ahead": 1, "epochs": 2, "worker": "here"}
    with page_of(folder, tmp_path / "images", held_out=0.3, repeat=1.0, **training) as (url, _):
        yield url, truth, folder


def test_guess_estimate_curve_and_exports(served, context):
    url, truth, _ = served
    ada = Person(context, url).arrive()
    page = ada.page
    assert "not yet known" in ada.text("#accuracy")
    withheld = shown = 0
    for _ in range(42):
        ada.answer(truth[ada.item()])
    ada.until("Number(document.querySelector('#version').textContent.split(' ')[1]) >= 2")
    for _ in range(14):
        hidden = ada.text("#guess")
        page.keyboard.press("h")
        words = ada.text("#guess")
        page.keyboard.press("h")
        assert hidden == ada.text("#guess") == ""  # hidden until it is asked for
        withheld += "withheld" in words
        shown += "The model’s guess" in words
        if "held out" in ada.text("#kind"):
            assert "withheld" in words
        ada.answer(truth[ada.item()])
    assert shown > 2
    assert withheld > 0
    ada.all_saved()
    ada.until("document.querySelector('#accuracy').textContent.endsWith('%')")
    assert "95% interval" in ada.text("#interval")
    assert "drawn at random" in ada.text("#unbiased")
    assert page.locator("#curve .band").count() == 1
    assert page.locator("#curve .dot").count() >= 2
    assert "answers given" in page.locator("#curve").text_content()
    assert page.locator("#counts li").count() == 10
    assert ada.text("#advice")
    with page.expect_download() as download:
        page.click("#exports a[aria-label='Answers as csv']")
    lines = download.value.path().read_text().splitlines()
    assert len(lines) == 57
    assert page.locator("#exports a[aria-label^='The model']").count() >= 1
    assert ada.seen == []


def test_people_who_disagree_are_shown_the_item_again(served, browser):
    url, truth, folder = served
    contexts = [browser.new_context(), browser.new_context()]
    ada = Person(contexts[1], url, "Ada").arrive()
    for _ in range(8):
        ada.answer(truth[ada.item()])
    ada.all_saved()
    bo = Person(contexts[0], url, "Bo").arrive()
    asked = {act[1] for act in stored(folder)}
    for _ in range(40):  # some of what Ada answered is asked of Bo too
        item = bo.item()
        if item in asked:
            break
        bo.answer(truth[item])
    assert item in asked
    bo.answer("7" if truth[item] != "7" else "8")
    bo.all_saved()
    for _ in range(40):
        if ada.page.locator("#conflict").is_visible():
            break
        ada.answer(truth[ada.item()])
    words = ada.text("#conflict")
    assert "Bo said" in words
    assert "Ada said" in words
    again = ada.item()
    ada.answer(truth[again])
    ada.all_saved()
    assert len([act for act in stored(folder) if act[1] == again]) >= 3  # all are kept
    wait_for(lambda: ada.text("#data-words") != "")
    for opened in contexts:
        opened.close()


def test_it_says_how_many_items_are_prepared_and_shows_pictures(
    tmp_path, context, pause, monkeypatch
):
    monkeypatch.setenv("ASKANCE_CACHE", str(tmp_path / "cache"))
    began, go_on = pause(Learner, "prepare")
    truth = write_digits(tmp_path / "images", 40)
    options = {"batch": 5, "held_out": 0, "worker": "here", "encoder": COLOURS}
    with page_of(tmp_path / "project", tmp_path / "images", **options) as (url, _):
        assert began.wait(30)
        ada = Person(context, url).arrive()
        ada.says("#model-state", "preparing 0 of 40… go on answering")
        for _ in range(5):
            assert ada.page.locator("#stage img").count() == 1
            ada.answer(truth[ada.item()])
        go_on.set()
        ada.until("document.querySelector('#version').textContent === 'version 1'")
        assert f"linear on {COLOURS}" in ada.text("#model-words")
        assert ada.seen == []
