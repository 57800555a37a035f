"""The page says how far the goal is, trains when it is asked to, and exports every answer."""

import pytest

from askance.label import accuracy
from tests.browser import needs_browser
from tests.label.person import Person, page_of
from tests.label.test_page_access import BEYOND, SMALL, axe

pytestmark = needs_browser

TRAINING = {"batch": 12, "ahead": 1, "epochs": 2, "worker": "here", "held_out": 0.2}


@pytest.fixture
def served(tmp_path, digits):
    with page_of(tmp_path / "project", digits[0], **TRAINING) as (url, session):
        yield url, digits[1], session


def answer(ada, truth, session, untrained):
    """Answer until so many answers are not trained on."""
    while session.scheduler.n_untrained != untrained:
        ada.answer(truth[ada.item()])
        ada.all_saved()


def test_a_goal_is_set_and_reached(served, context):
    url, truth, session = served
    ada = Person(context, url).arrive()
    page = ada.page
    assert not page.locator("#goal").is_visible()
    page.click("#goal-change")
    assert page.evaluate("document.activeElement.id") == "goal-value"
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("5")  # a class has this key; it does not answer
    page.keyboard.press("Enter")
    ada.says("#goal-name", "Goal: 5 answers")
    assert "0 of 5 answers." in ada.text("#goal-words")
    for _ in range(5):
        ada.answer(truth[ada.item()])
    ada.says("#goal-name", "Goal reached: 5 answers")
    assert "You can stop, or go on." in ada.text("#goal-words")
    assert page.evaluate("document.querySelector('#goal-bar').value") == 1
    page.click("#goal-change")
    page.select_option("#goal-kind", "accuracy")
    assert page.input_value("#goal-value") == "90"
    page.fill("#goal-value", "97.5")
    page.click("#goal-form button[type=submit]")
    ada.says("#goal-name", "Goal: 97.5% accuracy")
    assert session.goal.value == 0.975
    page.click("#goal-change")
    page.click("#goal-none")
    ada.until("document.querySelector('#goal').hidden")
    assert session.goal is None
    assert page.evaluate("document.activeElement.id") == "goal-change"
    assert len(ada.acts) == sum(map(len, session.annotations.answers.values()))
    assert ada.seen == []


def test_a_goal_that_cannot_be_kept_says_so(served, context):
    url, _, session = served
    ada = Person(context, url).arrive()
    ada.page.click("#goal-change")
    ada.page.fill("#goal-value", "12")
    ada.page.route("**/api/goal", lambda route: route.abort())
    ada.page.click("#goal-form button[type=submit]")
    ada.says("#goal-wrong", "The server does not answer.")
    assert ada.page.locator("#goal-form").is_visible()  # nothing that was typed is lost
    assert session.goal is None


def test_the_last_answers_are_trained_on_at_a_press(served, context):
    url, truth, session = served
    ada = Person(context, url).arrive()
    assert not ada.page.locator("#train-now").is_visible()
    answer(ada, truth, session, 2)
    ada.says("#train-now", "Train now on 2 new answers")
    ada.page.click("#train-now")
    ada.says("#version", "version 1")
    ada.until("document.querySelector('#train-now').hidden")
    assert session.versions[-1].trained_on == 2
    assert "from 2 answers" in ada.text("#model-state")
    assert ada.seen == []


def test_a_model_is_exported_with_the_last_answers(served, context):
    url, truth, session = served
    ada = Person(context, url).arrive()
    answer(ada, truth, session, 2)
    ada.page.click("#train-now")
    ada.says("#version", "version 1")
    answer(ada, truth, session, 3)
    with ada.page.expect_download() as download:
        ada.page.click("#exports a[aria-label='The model as safetensors']")
    assert download.value.suggested_filename == "model.safetensors"
    assert session.versions[-1].trained_on == 5
    assert download.value.path().read_bytes() == session.scheduler.model_file.read_bytes()
    ada.says("#export-note", "model.safetensors is in your downloads.")
    ada.page.route("**/api/export/**", lambda route: route.abort())
    ada.page.click("#exports a[aria-label='The model as json']")
    ada.says("#export-note", "Nothing was downloaded. The server does not answer.")


def test_the_large_number_is_what_is_known(served, context):
    """Not 100% of a few answers: the lower end of the interval."""
    url, truth, session = served
    ada = Person(context, url).arrive()
    ada.page.click("#goal-change")
    ada.page.click("#goal-cancel")
    while session.scheduler.n_untrained < 6 or len(session.annotations.asked_held) < 2:
        ada.answer(truth[ada.item()])
        ada.all_saved()
    if not session.versions:
        ada.page.click("#train-now")
    ada.until("document.querySelector('#accuracy').textContent.startsWith('at least')")
    results = accuracy.held_out_results(session.view(), session.training)
    estimate = results.of(-1)
    assert ada.text("#accuracy") == f"at least {int(100 * estimate.low + 1e-9)}%"
    right = round(estimate.accuracy * estimate.n)
    assert f"right on {right} of {estimate.n} held-out answer" in ada.text("#interval")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [(1280, 900), (390, 844)], ids=["desktop", "phone"])
def test_it_is_for_everybody(served, browser, scheme, size):
    url, truth, session = served
    context = browser.new_context(
        color_scheme=scheme, viewport={"width": size[0], "height": size[1]}
    )
    ada = Person(context, url, "Ada").arrive()
    answer(ada, truth, session, 1)
    ada.page.click("#goal-change")
    assert axe(ada.page) == []
    assert ada.page.evaluate(BEYOND) == []
    assert ada.page.evaluate(SMALL) == []
    ada.page.fill("#goal-value", "1")
    ada.page.click("#goal-form button[type=submit]")
    ada.says("#goal-name", "Goal reached: 1 answer")
    assert axe(ada.page) == []
    assert ada.page.evaluate(BEYOND) == []
    context.close()
