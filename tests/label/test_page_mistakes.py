"""The page shows what the model gets wrong, with the items behind each number."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.datasets import load_digits

from askance.label import ItemSource
from tests.browser import needs_browser
from tests.label.person import Person, page_of
from tests.label.test_page_access import BEYOND, axe

pytestmark = needs_browser


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """200 digits as vectors, 140 of them answered, one in twenty wrongly."""
    folder, bunch = tmp_path_factory.mktemp("mistakes"), load_digits()
    names = [f"digit {row}" for row in range(200)]
    vectors = list(bunch.data[:200].astype(np.float32))
    pq.write_table(pa.table({"name": names, "vector": vectors}), folder / "items.parquet")
    source = ItemSource(folder / "items.parquet", features="vector", id="name")
    training = {"batch": 40, "model": "linear", "worker": "here", "held_out": 0.4, "repeat": 0}
    with page_of(folder / "project", source, **training) as (url, session):
        while len(session.annotations.answers) < 140:
            for question in session.questions("Ada", 1).questions:
                choice = int(bunch.target[names.index(question.item)])
                if question.id % 20 == 0:
                    choice = (choice + 3) % 10
                session.answer(question.id, choice, "Ada", f"token {question.id}")
            session.scheduler.wait(0)
        session.scheduler.catch_up()
        yield url, session


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [(1280, 900), (390, 844)], ids=["desktop", "phone"])
def test_mistakes_are_shown_with_their_items(served, browser, scheme, size):
    url, session = served
    context = browser.new_context(
        color_scheme=scheme, viewport={"width": size[0], "height": size[1]}
    )
    ada = Person(context, url).arrive()
    page = ada.page
    page.click("#mistakes-button")
    ada.until("document.querySelector('#mistakes').open")
    n = int(ada.text("#mistakes-words").split(" on ")[1].split()[0])
    numbers = page.locator("#confusion td a").all_inner_texts()
    assert sum(map(int, numbers)) == n
    assert page.locator("#per-class tbody tr").count() > 2
    assert page.locator("#per-sure tbody tr").count() >= 1
    assert axe(page) == []
    assert page.evaluate(BEYOND) == []
    cell = page.locator("#confusion td.wrong-cell a").first
    expected = int(cell.inner_text())
    cell.click()
    ada.until("!document.querySelector('#mistakes').open")
    ada.until("n => document.querySelectorAll('#browse-items .cell').length === n", arg=expected)
    assert page.input_value("#browse-show") == "held-out"
    page.evaluate("location.hash = ''")
    page.click("#mistakes-button")
    ada.until("document.querySelector('#mistakes').open")
    page.click("#mistakes-doubtful")
    ada.until("document.querySelectorAll('#browse-items .cell').length > 20")
    assert page.input_value("#browse-order") == "doubtful"
    first = page.locator("#browse-items .cell").first.get_attribute("data-item")
    wrong = [
        question.item
        for question in session.annotations.questions.values()
        if question.id % 20 == 0
    ]
    assert first in wrong
    assert ada.seen == []
    context.close()


def test_a_server_that_is_gone_is_said(served, context):
    url, _ = served
    ada = Person(context, url).arrive()
    ada.page.route("**/api/mistakes", lambda route: route.abort())
    ada.page.click("#mistakes-button")
    ada.says("#mistakes-words", "The server does not answer.")
