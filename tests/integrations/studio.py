"""A real Label Studio on a free port, people who answer in it, and projects to ask about."""

import csv
import os
import re
import signal
import socket
import subprocess
import time
from contextlib import contextmanager

import pytest
from PIL import Image, ImageDraw

from askance.integrations.label_studio_server import plain
from askance.label import ItemSource, LabelingOptions, open_session

# An executable: `python -m venv DIR && DIR/bin/pip install label-studio`, then DIR/bin/label-studio.
EXECUTABLE = os.environ.get("ASKANCE_LABEL_STUDIO")
TOKEN = "0123456789abcdef0123456789abcdef01234567"
ANN, BOB, PASSWORD = "ann@example.org", "bob@example.org", "correct-horse-1"

needs_studio = pytest.mark.skipif(
    not EXECUTABLE,
    reason="*** NO LABEL STUDIO: name its executable in ASKANCE_LABEL_STUDIO; no round trip was run",
)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def serving(folder):
    """The address of a server with one user, Ann, and nothing in it."""
    httpx = pytest.importorskip("httpx")
    folder.mkdir()
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    settings = {
        "LABEL_STUDIO_USERNAME": ANN,
        "LABEL_STUDIO_PASSWORD": PASSWORD,
        "LABEL_STUDIO_USER_TOKEN": TOKEN,
        "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
        "LABEL_STUDIO_BASE_DATA_DIR": str(folder),
        "COLLECT_ANALYTICS": "false",
        "LATEST_VERSION_CHECK": "false",
    }
    # Ours would shadow the packages of its own environment.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | settings
    command = [EXECUTABLE, "start", "--no-browser", "--port", str(port), "--data-dir", str(folder)]
    with (folder / "log.txt").open("w") as log:
        process = subprocess.Popen(
            command, env=environment, stdout=log, stderr=log, start_new_session=True
        )
        try:
            end = time.monotonic() + 240
            while True:
                try:
                    if httpx.get(f"{url}/health", timeout=5).status_code == 200:
                        break
                except httpx.HTTPError:
                    pass
                assert process.poll() is None, (folder / "log.txt").read_text()[-3000:]
                assert time.monotonic() < end, (folder / "log.txt").read_text()[-3000:]
                time.sleep(0.5)
            yield url
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


class World:
    """A labelling project whose items say by their number what they are."""

    def __init__(self, folder, kind, name, classes=("good", "bad"), n=80, **more):
        self.folder, self.kind, self.classes = folder / name, kind, list(classes)
        if kind == "image":
            self.source, self.words = ItemSource(pictures(folder / f"{name} photos", n)), []
        else:
            self.source = ItemSource(texts(folder / f"{name}.csv", n), text="review", id="key")
            self.words = ["--text", "review", "--id", "key"]
        self.words += ["--batch", "4", "--epochs", "3"]
        self.options = LabelingOptions(
            worker="here", encoder="none", batch=4, epochs=3, held_out=0.25, **more
        )
        self.open().close()

    def open(self):
        return open_session(self.folder, self.source, self.classes, self.options)

    def truth(self, item):
        digits = "".join(sign for sign in item.rpartition("/")[2] if sign.isdigit())
        return self.classes[int(digits) % 2]

    @property
    def held_out(self):
        session = self.open()
        try:
            return set(session.split.held_out)
        finally:
            session.close()

    def answers(self):
        """{(item, annotator): class} that stand, and the number of models."""
        session = self.open()
        try:
            names = [each.name for each in session.annotations.classes]
            current = {
                (item, who): names[choice]
                for item in session.annotations.answers
                for who, choice in session.annotations.current(item).items()
            }
            return current, len(session.versions)
        finally:
            session.close()


def texts(path, n):
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["key", "review"])
        for i in range(n):
            word = "splendid <b>&amp; warm</b>" if i % 2 == 0 else 'cold, "stale" $why ünï🙂'
            rows.writerow([f"row {i}", f"{word} number{i}\nhttp://127.0.0.1:1/x.png"])
    return path


def pictures(folder, n):
    (folder / "deeper").mkdir(parents=True)
    for i in range(n):
        image = Image.new("RGB", (320, 240), (250, 250, 245))
        draw = ImageDraw.Draw(image)
        form = draw.ellipse if i % 2 == 0 else draw.rectangle
        form((60, 40, 260, 200), fill=(40 + 2 * i, 90, 150))
        image.save(folder / ("deeper" if i % 3 == 0 else "") / f"ünï {i:03d}.png")
    return folder


class Person:
    """Somebody who labels in Label Studio, through the requests its own page makes."""

    def __init__(self, api, world, email=ANN):
        self.api, self.world = api, world
        self.number = next(each.id for each in api.users.list() if each.email == email)
        self.field = "image" if world.kind == "image" else "text"

    def next(self, project):
        """The task that the label stream shows next."""
        reply = self.api._client_wrapper.httpx_client.request(
            "api/dm/actions",
            method="POST",
            params={"id": "next_task", "project": project},
            json={"project": project},
        )
        assert reply.status_code == 200, reply.text
        return reply.json()

    def result(self, choice):
        return [
            {
                "from_name": "label",
                "to_name": self.field,
                "type": "choices",
                "value": {"choices": [choice]},
            }
        ]

    def answer(self, task, choice):
        return self.api.annotations.create(
            id=task, result=self.result(choice), completed_by=self.number
        )

    def skip(self, task):
        return self.api.annotations.create(
            id=task, result=[], was_cancelled=True, completed_by=self.number
        )

    def work(self, project, n):
        """Answer n tasks as the label stream brings them; their ids."""
        done = []
        for _ in range(n):
            task = self.next(project)
            self.answer(task["id"], self.world.truth(task["data"]["item"]))
            done.append(task["id"])
        return done


# Fixtures; `conftest.py` takes them in


@pytest.fixture(scope="session")
def url(tmp_path_factory):
    """The address of one server for all tests."""
    with serving(tmp_path_factory.mktemp("studio") / "data") as address:
        yield address


@pytest.fixture(scope="session")
def api(url):
    """Its SDK in Ann's name; there is Bob too."""
    import httpx
    import label_studio_sdk

    with httpx.Client(timeout=60) as client:
        api = label_studio_sdk.LabelStudio(base_url=url, api_key=TOKEN, httpx_client=client)
        api.users.create(email=BOB, username="bob")
        yield api


@pytest.fixture
def command(askance, url, monkeypatch):
    """`askance label-studio …` against the server; the token is never told."""
    monkeypatch.setenv("LABEL_STUDIO_URL", url)
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", TOKEN)

    def call(*words, code=0):
        got, out, err = askance("label-studio", *words)
        assert got == code, out + err
        assert TOKEN not in out + err
        assert "Traceback" not in err
        return out + err

    return call


def number_of(told):
    return int(re.search(r"/projects/(\d+)", told)[1])


def tasks_of(api, project, **more):
    tasks = api.tasks.list(project=project, fields="all", page_size=100, **more)
    return [plain(each) for each in tasks]


def waiting(api, project):
    return [task for task in tasks_of(api, project) if not task["annotations"]]
