"""A browser for the page's tests, opened once a module."""

import pytest

from tests.label.person import CHROMIUM


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api", reason="NO PLAYWRIGHT: pip install playwright")
    with api.sync_playwright() as play:
        opened = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def context(browser):
    opened = browser.new_context(viewport={"width": 1280, "height": 800})
    yield opened
    opened.close()
