"""Files of every kind that is read, changed at random: read, or refused in words.

No other error, no hang, nothing run, nothing written outside the folder.
"""

import csv
import gzip
import io
import json
import random
import shutil
import warnings
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

from askance import models
from askance.data.table import from_table
from askance.embedding import Embedding, texts
from askance.errors import AskanceError
from askance.experiments import export, packing, spec
from askance.experiments.store import ResultStore
from askance.images import open_image
from askance.label import ItemSource, load
from askance.label import items as label_items
from askance.label.bundle import Bundle, encoder_for
from askance.label.files import read_answers
from askance.label.project import open_project
from askance.label.store import FILE, ProjectStore
from askance.pools import Naming, open_source
from askance.pools.model import _state
from askance.seeding import Draws
from tests.experiments import worlds as results_worlds
from tests.fuzz import changed, test_the_watch_sees, watched
from tests.label.worlds import CLASSES, features_file, options
from tests.pools import worlds

__all__ = ["test_the_watch_sees"]

RNG = np.random.default_rng(0)
PICTURE = Image.fromarray(RNG.integers(0, 256, (24, 20, 3), dtype=np.uint8))
VECTORS = RNG.normal(size=(20, 4)).astype(np.float32)


def image(form, **more):
    content = io.BytesIO()
    PICTURE.save(content, form, **more)
    return content.getvalue()


def table():
    return pa.table(
        {
            "id": [f"n{i}" for i in range(20)],
            "label": ["a", "b"] * 10,
            "said": [f"word {i}" for i in range(20)],
            "x": list(VECTORS),
            "z": list(VECTORS[:, :3]),
        }
    )


def parquet(**more):
    content = io.BytesIO()
    pq.write_table(table(), content, **more)
    return content.getvalue()


def comma_separated():
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["id", "label", "said"])
    writer.writerows([f"n{i}", "ab"[i % 2], f"word {i}, and more"] for i in range(20))
    return text.getvalue().encode()


def array():
    content = io.BytesIO()
    np.save(content, VECTORS)
    return content.getvalue()


def tar(folder):
    samples = [(f"k{i}", {"png": image("PNG"), "cls": b"%d" % (i % 2)}) for i in range(3)]
    worlds.tar(folder / "sound.tar", samples)
    return (folder / "sound.tar").read_bytes()


def bundle(folder):
    model = models.build("mlp", (4,), 2, Draws())
    path = folder / "sound.safetensors"
    Bundle(model, "mlp", ("a", "b"), encoder_for("features", VECTORS)).save(path)
    return path.read_bytes()


def weights():
    content = io.BytesIO()
    torch.save(torch.nn.Linear(4, 3).state_dict(), content)
    return content.getvalue()


def results(folder):
    with ResultStore.open(folder / "results", results_worlds.spec()) as store:
        results_worlds.fill(store)
    return (folder / "results" / packing.FILE).read_bytes()


def project(folder):
    open_project(folder / "project", features_file(folder), CLASSES, options())[1].close()
    return (folder / "project" / FILE).read_bytes()


# What reads a file, to its end.


def read_pool(path, **how):
    source = open_source(str(path), Naming(**how))
    for shard in source.shards:
        for rows in source.read(shard, 8, frozenset(source.holds - {"labels"})):
            if isinstance(rows, Embedding):
                texts(rows.ids)


def read_results(path):
    with ResultStore.read(path) as store:
        store.rounds(), store.results(), store.machines(), store.info
    export.table(path)


def read_project(path):
    folder = path.parent / "opened"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shutil.copy(path, folder / FILE)
    with ProjectStore.open(folder) as store:
        store.project(), store.encoders(), store.items(), store.versions(), store.picks()
        list(store.held_out_guesses()), store.annotations(), store.answers()


def read_items(path, **columns):
    found = label_items.read(ItemSource(path, **columns))
    return [found.text(item) for item in found.ids]


READERS = {
    **{
        f"{form} image": (f"a.{form.lower()}", lambda _, f=form: image(f), lambda p: open_image(p, "a"))
        for form in ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "PPM")
    },
    "LZW TIFF": (
        "a.tif", lambda _: image("TIFF", compression="tiff_lzw"), lambda p: open_image(p, "a"),
    ),
    "table": ("a.csv", lambda _: comma_separated(), lambda p: from_table(p, text="said")),
    "table of Parquet": ("a.parquet", lambda _: parquet(), lambda p: from_table(p, text="said")),
    "items": ("a.csv", lambda _: comma_separated(), lambda p: read_items(p, text="said", id="id")),
    "items of Parquet": ("a.parquet", lambda _: parquet(), lambda p: read_items(p, features="x")),
    "pool": ("a.parquet", lambda _: parquet(), lambda p: read_pool(p, features=("x",), logits=("z",))),
    "packed pool": (
        "a.parquet",
        lambda _: parquet(compression="zstd", use_dictionary=False),
        lambda p: read_pool(p, features=("x",), logits=("z",), id="id"),
    ),
    "pool of texts": ("a.csv", lambda _: comma_separated(), lambda p: read_pool(p, text="said")),
    "pool of an array": ("a.npy", lambda _: array(), read_pool),
    "pool of a tar": ("a.tar", tar, read_pool),
    "answers": ("a.csv", lambda _: comma_separated(), lambda p: read_answers(p, "ann")),
    "answers, Parquet": ("a.parquet", lambda _: parquet(), lambda p: read_answers(p, "ann")),
    "answers, JSON": (
        "a.json",
        lambda _: json.dumps([{"id": f"n{i}", "label": "a"} for i in range(9)]).encode(),
        lambda p: read_answers(p, "ann"),
    ),
    "answers, JSONL": (
        "a.jsonl",
        lambda _: b'{"id": "n1", "label": "a"}\n' * 9,
        lambda p: read_answers(p, "ann"),
    ),
    "model": ("a.safetensors", bundle, load),
    "weights": ("a.pt", lambda _: weights(), lambda p: _state(str(p))),
    "spec": ("a.toml", lambda _: spec_text(), spec.load),
    "results": ("store.sqlite", results, read_results),
    "packed results": ("store.sqlite.gz", lambda f: gzip.compress(results(f)), read_results),
    "project": ("a.sqlite", project, read_project),
}  # fmt: skip


def spec_text():
    from importlib.resources import files

    return (files("askance.experiments.shipped") / "digits.toml").read_bytes()


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize(
    "tries",
    [40, pytest.param(10_000, marks=[pytest.mark.slow, pytest.mark.timeout(7200)])],
    ids=["some", "many"],
)
def test_a_file_is_read_or_refused_in_words(tmp_path, kind, tries):
    name, make, read = READERS[kind]
    inside = tmp_path / "inside"
    inside.mkdir()
    content = make(tmp_path)
    count, path = SimpleNamespace(read=0, refused=0), inside / name
    path.write_bytes(content)
    read(path)
    rng = random.Random(kind)
    for number in range(tries):
        bad = changed(rng, content)
        path.write_bytes(bad)
        try:
            with warnings.catch_warnings(), watched(inside):
                warnings.simplefilter("ignore")
                read(path)
            count.read += 1
        except AskanceError as error:
            count.refused += len(str(error)) > 0
        except BaseException as error:
            (tmp_path / "bad").write_bytes(bad)
            raise AssertionError(
                f"{kind}, try {number}: {type(error).__name__}: {error}; see {tmp_path / 'bad'}"
            ) from error
    assert count.read + count.refused == tries
    assert count.refused
