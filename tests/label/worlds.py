"""Small things to label, and people who answer."""

import itertools
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from fastapi.testclient import TestClient
from PIL import Image

from askance.label import ItemSource, LabelingOptions, open_session
from askance.label.app import create_app

PORT = 8123
BASE = f"http://127.0.0.1:{PORT}"
CLASSES = ["left", "right"]

_numbers = itertools.count()


def token():
    return f"token-{next(_numbers):08d}"


def truth(row, count=2):
    """The class of a row of `features_file`."""
    return row % count


def features_file(folder, n=60, classes=2, width=6, seed=0):
    """Rows whose class is their number modulo `classes`, easy to tell apart."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(n, width)).astype(np.float32)
    vectors[np.arange(n), np.arange(n) % classes] += 4
    path = folder / "items.parquet"
    pq.write_table(
        pa.table({"name": [f"item {i}" for i in range(n)], "vector": list(vectors)}), path
    )
    return ItemSource(path, features="vector", id="name")


def images_folder(folder, n=12):
    root = folder / "images"
    (root / "deeper").mkdir(parents=True)
    for i in range(n):
        colour = (255, 0, 0) if i % 2 == 0 else (0, 0, 255)
        place = root / "deeper" if i % 3 == 0 else root
        Image.new("RGB", (40, 30), colour).save(place / f"{i:03d}.png")
    return root


def options(**more):
    return LabelingOptions(
        **{
            "batch": 5,
            "pause": 0,
            "epochs": 3,
            "worker": "here",
            "held_out": 0.2,
            "annotator": "ann",
            "encoder": "none",
            **more,
        }
    )


def open_features(folder, n=60, classes=CLASSES, **more):
    source = features_file(folder, n) if not (folder / "items.parquet").exists() else None
    source = source or ItemSource(folder / "items.parquet", features="vector", id="name")
    return open_session(folder / "project", source, classes, options(**more))


@dataclass
class Person:
    """Somebody who knows the class of an item by its name."""

    client: TestClient
    name: str = "ann"
    classes: int = 2

    def ask(self, n=1):
        reply = self.client.get("/api/questions", params={"annotator": self.name, "n": n})
        assert reply.status_code == 200, reply.text
        return reply.json()

    def choice(self, question):
        return truth(int(question["item"].split()[1]), self.classes)

    def answer(self, question, choice=None, key=None):
        body = {
            "question": question["id"],
            "class": self.choice(question) if choice is None else choice,
            "annotator": self.name,
            "token": key or token(),
        }
        return self.client.post("/api/answers", json=body)

    def skip(self, question):
        body = {"question": question["id"], "annotator": self.name, "token": token()}
        return self.client.post("/api/skip", json=body)

    def undo(self, key=None):
        body = {"annotator": self.name, "token": key or token()}
        return self.client.post("/api/undo", json=body)

    def state(self):
        return self.client.get("/api/state", params={"annotator": self.name}).json()

    def work(self, n, session, at_once=1):
        """Answer n questions, fetched so many at once; wait for the model wherever one is due."""
        given = []
        while len(given) < n:
            batch = self.ask(at_once)
            if not batch["questions"]:
                if batch["finished"]:
                    break
                session.scheduler.wait(0)
                continue
            question = batch["questions"][0]
            reply = self.answer(question)
            assert reply.status_code == 200, reply.text
            given.append(question)
            session.scheduler.wait(0)
        return given


def client_of(session, **more):
    return TestClient(create_app(session, port=PORT, **more), base_url=BASE)
