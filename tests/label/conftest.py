"""What the tests of the page and of its API share: a browser, a project of features."""

import shutil
import threading
from contextlib import ExitStack

import pytest

from askance.label import open_session
from askance.label.learner import Learner
from askance.label.project import open_project
from tests.browser import browser
from tests.label.changing import photos
from tests.label.person import write_digits
from tests.label.worlds import CLASSES, features_file, open_features, options

__all__ = ["browser"]


@pytest.fixture
def context(browser):
    opened = browser.new_context(viewport={"width": 1280, "height": 800})
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def digits(tmp_path_factory):
    """A folder of digits, and the right answer for each."""
    folder = tmp_path_factory.mktemp("digits") / "images"
    return folder, write_digits(folder, 120)


@pytest.fixture
def start(tmp_path):
    """Open a project of features, or of another source; what was opened is closed in the end."""
    with ExitStack() as sessions:

        def started(source=None, classes=CLASSES, *, n=60, **more):
            if source is None:
                session = open_features(tmp_path, n, classes, **more)
            else:
                session = open_session(tmp_path / "project", source, classes, options(**more))
            sessions.callback(session.close)
            return session

        yield started


@pytest.fixture
def session(start):
    return start()


@pytest.fixture
def root(tmp_path):
    """A folder of images that a test changes."""
    return photos(tmp_path)


@pytest.fixture
def pause(monkeypatch):
    """Make a function wait at its beginning: (it has begun, it may go on) as events."""
    with ExitStack() as waiting:

        def paused(owner, name):
            began, go_on = threading.Event(), threading.Event()
            function = getattr(owner, name)

            def slow(*args):
                began.set()
                assert go_on.wait(30)
                return function(*args)

            monkeypatch.setattr(owner, name, slow)
            waiting.callback(go_on.set)
            return began, go_on

        yield paused


@pytest.fixture
def held(pause):
    """Trainings that begin and do not end before they may."""
    return pause(Learner, "learn")


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
