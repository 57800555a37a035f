"""The page when the way to the server is bad: nothing is lost, doubled, or called saved."""

import pytest

from tests.browser import needs_browser
from tests.label.person import Person, page_of, stored

pytestmark = needs_browser


@pytest.fixture
def served(tmp_path, digits):
    with page_of(tmp_path / "project", digits[0]) as (url, _):
        yield url, tmp_path / "project"


def test_unsent_answers_outlive_a_reload(served, context, digits):
    url, folder = served
    ada = Person(context, url).arrive()
    ada.answer(digits[1][ada.item()])
    ada.all_saved()
    ada.page.route("**/api/answers", lambda route: route.abort())
    for _ in range(3):
        ada.answer(digits[1][ada.item()])
    ada.until("document.querySelector('#saving').textContent === '3 not saved yet'")
    assert ada.page.locator("#recent li.saved").count() == 1
    assert ada.page.locator("#recent li.waiting").count() == 3
    assert len(stored(folder)) == 1
    ada.page.reload()
    unsent = {item for _, item, _, _ in ada.acts[1:]}
    assert ada.item() not in unsent  # it is not asked again what it was told
    assert "3 not saved yet" in ada.text("#saving") or "saving" in ada.text("#saving")
    ada.page.unroute("**/api/answers")
    ada.all_saved()
    ada.answer(digits[1][ada.item()])
    ada.all_saved()
    assert stored(folder) == ada.acts


def test_a_lost_reply_does_not_double_an_answer(served, context, digits):
    url, folder = served
    ada, lost = Person(context, url).arrive(), []

    def swallow(route):
        if len(lost) < 3:
            lost.append(route.fetch().status)  # the server has it, the page is not told
            route.abort()
        else:
            route.continue_()

    ada.page.route("**/api/answers", swallow)
    for _ in range(4):
        ada.answer(digits[1][ada.item()])
    ada.page.route("**/api/undo", lambda route: (route.fetch(), route.abort()), times=1)
    ada.undo()
    ada.answer(digits[1][ada.item()])
    ada.all_saved()
    assert lost == [200] * 3
    assert stored(folder) == ada.acts


def test_a_full_disk_is_said_and_the_answer_goes_in_later(served, context, digits):
    url, folder = served
    ada = Person(context, url).arrive()
    full = {"error": {"code": "unavailable", "message": "The disk is full."}}
    ada.page.route("**/api/answers", lambda route: route.fulfill(status=503, json=full))
    ada.answer(digits[1][ada.item()])
    ada.page.wait_for_selector("#trouble:has-text('The disk is full.')")
    ada.page.wait_for_timeout(2500)  # a look at the state in between changes nothing
    assert ada.page.locator("#trouble").is_visible()
    assert ada.text("#saving") == "1 not saved yet"
    ada.page.unroute("**/api/answers")
    ada.page.click("#try-now")
    ada.all_saved()
    ada.page.wait_for_selector("#trouble", state="hidden")
    assert stored(folder) == ada.acts


def test_two_tabs_share_the_work(served, context, digits):
    url, folder = served
    one = Person(context, url).arrive()
    other = Person(context, url).arrive()
    assert one.item() == other.item()
    for _ in range(5):
        for tab in (one, other):
            item = tab.item()
            tab.answer(digits[1][item])
            for each in (one, other):  # what one tab answered, the other no longer asks
                each.until("was => document.querySelector('#stage').dataset.item !== was", arg=item)
    for tab in (one, other):
        tab.all_saved()
        assert tab.seen == []
    assert sorted(stored(folder)) == sorted(one.acts + other.acts)
    assert len({item for _, item, _, _ in stored(folder)}) == 10


def test_two_tabs_that_contradict_each_other_are_told(served, context):
    url, folder = served
    one = Person(context, url).arrive()
    other = Person(context, url).arrive()
    for tab in (one, other):  # neither hears of the other
        tab.page.evaluate(
            "window.addEventListener('storage', e => e.stopImmediatePropagation(), true)"
        )
    other.page.route("**/api/answers", lambda route: route.abort())
    item = one.item()
    other.answer("3")
    one.page.reload()
    if one.item() == item:
        one.answer("4")
        one.all_saved()
    other.page.unroute("**/api/answers")
    other.until("document.querySelector('#saving').textContent === 'all saved'")
    assert len([act for act in stored(folder) if act[1] == item]) == 1


def test_another_project_at_the_same_address_gets_nothing(tmp_path, context, digits):
    with page_of(tmp_path / "first", digits[0]) as (url, _):
        ada = Person(context, url).arrive()
        ada.answer(digits[1][ada.item()])
        ada.all_saved()
    for _ in range(2):
        ada.answer(digits[1][ada.item()])
    port = int(url.rstrip("/").rsplit(":", 1)[1])
    with page_of(tmp_path / "second", digits[0], port=port):
        ada.page.wait_for_selector("#trouble:has-text('Another project')")
        assert ada.text("#saving") == "2 not saved yet"
    assert stored(tmp_path / "second") == []
    with page_of(tmp_path / "first", digits[0], port=port):
        ada.all_saved()
    assert stored(tmp_path / "first") == ada.acts
