"""What the tests of the page and of its API share: a browser, a project of features."""

import shutil

import pytest

from askance.label.project import open_project
from tests.browser import browser
from tests.label.worlds import CLASSES, features_file, open_features, options

__all__ = ["browser"]


@pytest.fixture
def context(browser):
    opened = browser.new_context(viewport={"width": 1280, "height": 800})
    yield opened
    opened.close()


@pytest.fixture
def session(tmp_path):
    session = open_features(tmp_path)
    yield session
    session.close()


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    open_project(folder / "project", features_file(folder), CLASSES, options())[1].close()
    return folder


@pytest.fixture
def project(made, tmp_path):
    """A project of `open_features` that nobody has open, beside its data."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path / "project"
