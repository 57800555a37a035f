"""What the tests of the page and of its API share: a browser, a project of features."""

import pytest

from tests.browser import browser
from tests.label.worlds import open_features

__all__ = ["browser"]


@pytest.fixture
def context(browser):
    opened = browser.new_context(viewport={"width": 1280, "height": 800})
    yield opened
    opened.close()


@pytest.fixture
def desk(tmp_path):
    desk = open_features(tmp_path)
    yield desk
    desk.close()
