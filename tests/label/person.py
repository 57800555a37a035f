"""A person at the page, for tests: a server to kill, and a hand on the keys that keeps count."""

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager, suppress
from pathlib import Path

from PIL import Image
from sklearn.datasets import load_digits

from askance.label import LabelingOptions, open_session
from askance.label.server import serving

DIGITS = [str(digit) for digit in range(10)]
CALM = 15_000  # ms a question may take to come, a training among them


def write_digits(folder, n=300):
    """The first n digits as PNGs; item → the right answer."""
    folder.mkdir(parents=True)
    bunch, truth = load_digits(), {}
    for row in range(n):
        name = f"{row:04}.png"
        Image.fromarray((bunch.images[row] * 15.9).astype("uint8")).save(folder / name)
        truth[name] = str(bunch.target[row])
    return truth


@contextmanager
def page_of(folder, data, classes=DIGITS, *, port=0, **more):
    """The address of a project's page, and its session, until the block ends."""
    session = open_session(
        folder,
        data,
        classes,
        LabelingOptions(**{"batch": 500, "pause": 0, "encoder": "none", **more}),
    )
    try:
        with serving(session, port=port) as url:
            yield url, session
    finally:
        session.close()


class Server:
    """`askance label` in a process of its own, at one port over all its lives."""

    def __init__(self, project, *options):
        self.project = Path(project)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/"
        self.command = [
            *(sys.executable, "-m", "askance", "label", str(project), "--no-browser"),
            *("--port", str(self.port), *options),
        ]
        self.child = None

    def start(self):
        self.child = subprocess.Popen(self.command, stdout=subprocess.PIPE, start_new_session=True)
        said = self.child.stdout.readline().decode().strip()
        assert said == self.url, f"the server said {said!r} and ended with {self.child.poll()}"
        return self

    def kill(self):
        with suppress(ProcessLookupError):
            os.killpg(self.child.pid, signal.SIGKILL)  # its worker too
        self.child.wait()
        self.child.stdout.close()

    def state(self, **query):
        with urllib.request.urlopen(f"{self.url}api/state?annotator=Ada") as reply:
            return json.load(reply)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.kill()


def stored(project):
    """What a project's file holds: [(kind, item, annotator, class name or None)] in order."""
    with sqlite3.connect(Path(project) / "answers.sqlite") as db:
        return db.execute(
            "SELECT event.kind, question.item, event.annotator, class.name FROM event "
            "JOIN question ON question.id = event.question "
            "LEFT JOIN class ON class.id = event.class ORDER BY event.id"
        ).fetchall()


class Person:
    """Someone who looks, presses a key, and remembers everything they did."""

    def __init__(self, context, url, name="Ada"):
        self.name, self.url, self.acts, self.seen = name, url, [], []
        self.page = context.new_page()
        self.page.set_default_timeout(CALM)
        self.page.on("console", lambda said: self.seen.append(f"console: {said.text}"))
        self.page.on("pageerror", lambda error: self.seen.append(f"error: {error}"))
        self.page.on("request", self._watch)

    def _watch(self, asked):
        if not asked.url.startswith(self.url):
            self.seen.append(f"request: {asked.url}")

    def until(self, expression, arg=None):
        """Wait for it to be true. Playwright's own needs `eval`, which the page's policy forbids."""
        wait_for(lambda: self.page.evaluate(expression, arg), pause=self.page.wait_for_timeout)

    def arrive(self):
        """Open the page and give a name where it is asked for."""
        self.page.goto(self.url)
        self.until(
            "document.querySelector('#who').open || document.querySelector('#stage').dataset.item"
        )
        if self.page.locator("#who").is_visible():
            self.page.keyboard.press("ControlOrMeta+a")
            self.page.keyboard.type(self.name)
            self.page.keyboard.press("Enter")
        return self.item() and self

    def item(self):
        """The item that is asked now, once it can be seen."""
        self.until(
            "() => { const s = document.querySelector('#stage');"
            " return s.dataset.item && !s.hasAttribute('aria-busy') }"
        )
        return self.page.evaluate("document.querySelector('#stage').dataset.item")

    def question(self):
        return self.page.evaluate("document.querySelector('#stage').dataset.question")

    def press(self, key, kind, what=None):
        """Press a key on the item that is asked, and wait for another question."""
        item, before = self.item(), self.question()
        self.page.keyboard.press(key)
        self.acts.append((kind, item, self.name, what))
        self.until("was => document.querySelector('#stage').dataset.question !== was", arg=before)

    def answer(self, name, key=None):
        self.press(key or name, "answer", name)

    def skip(self):
        self.press("s", "skip")

    def undo(self):
        """Take back the last act that stands; the page shows it again."""
        standing = []
        for act in self.acts:
            standing = standing[:-1] if act[0] == "undo" else [*standing, act]
        item = standing[-1][1]
        self.page.keyboard.press("u")
        self.acts.append(("undo", item, self.name, None))
        self.until("item => document.querySelector('#stage').dataset.item === item", arg=item)

    def says(self, selector, text):
        """Wait for an element's very text."""
        self.until(
            "([at, text]) => document.querySelector(at).textContent === text", [selector, text]
        )

    def all_saved(self):
        self.says("#saving", "all saved")

    def text(self, selector):
        return self.page.locator(selector).inner_text()


def wait_for(condition, seconds=90.0, pause=lambda ms: time.sleep(ms / 1000)):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        pause(15)
