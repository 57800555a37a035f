"""Pools of texts and images behind an encoder: the picks of `select`, each item encoded once."""

import os
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import askance
from askance.errors import DataError, InputError, LabelError, ShardError, StoreError
from askance.pools import LocalEngine, Naming, ParquetSource, open_source, select_from
from tests.encoders.toys import Counting, image_encoder, make, text_encoder
from tests.pools import worlds
from tests.rules import ONE_MODEL

RNG = np.random.default_rng(0)
WORDS = ["cat", "dog", "rate", "bank", "tree", "leaf", "a", "of"]
POOL = [" ".join(RNG.choice(WORDS, size=RNG.integers(2, 9))) for _ in range(60)]
SEEN = [" ".join(RNG.choice(WORDS, size=6)) for _ in range(12)]
LABELS = [text.count("cat") % 3 for text in SEEN]
PICTURES = [worlds.png(image) for image in worlds.pictures(40, side=9) // 2]
SEEN_PICTURES = [worlds.png(image) for image in worlds.pictures(9, seed=1, side=9)]
PICTURE_LABELS = [0, 0, 0, 1, 1, 1, 2, 2, 2]
TEXT = Naming(text="words")


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path_factory):
    monkeypatch.setenv("ASKANCE_CACHE", str(tmp_path_factory.mktemp("cache")))


def written(path, group=1000, **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path, row_group_size=group)
    return str(path)


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """The labelled texts as a source."""
    where = tmp_path_factory.mktemp("seen") / "seen.parquet"
    return open_source(written(where, words=SEEN, y=LABELS), replace(TEXT, label="y"), labeled=True)


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    """The pool of texts as a source of several shards."""
    address = written(tmp_path_factory.mktemp("pool") / "pool.parquet", 10, words=POOL)
    return ParquetSource.open(address, TEXT.columns, shard_rows=20)


@given(
    rule=st.sampled_from(ONE_MODEL),
    group=st.integers(1, 30),
    shard_rows=st.integers(1, 50),
    workers=st.integers(1, 3),
    seed=st.integers(0, 3),
)
@settings(max_examples=30)
def test_the_picks_are_those_of_select_on_the_same_items(
    seen, tmp_path_factory, rule, group, shard_rows, workers, seed
):
    address = written(tmp_path_factory.mktemp("any") / "pool.parquet", group, words=POOL)
    source = ParquetSource.open(address, TEXT.columns, shard_rows=shard_rows)
    picks = select_from(
        source, 7, labeled=seen, model=make(), strategy=rule, seed=seed,
        engine=LocalEngine(workers),
    )  # fmt: skip
    whole = askance.select(make(), (SEEN, LABELS), POOL, 7, strategy=rule, seed=seed)
    assert picks.indices.tolist() == whole.indices.tolist()
    np.testing.assert_allclose(picks.scores, whole.scores, rtol=1e-5)
    assert picks.read.rows == len(POOL)


def forms(root):
    """The images of the pool and of the labelled set in every form: (pool, labelled, naming)."""
    written(root / "pool.parquet", 16, img=PICTURES)
    written(root / "seen.parquet", img=SEEN_PICTURES, y=PICTURE_LABELS)
    worlds.tar(root / "pool.tar", [(f"{r:03d}", {"png": d}) for r, d in enumerate(PICTURES)])
    both = list(zip(SEEN_PICTURES, PICTURE_LABELS, strict=True))
    worlds.tar(
        root / "seen.tar",
        [(f"{r:03d}", {"png": d, "cls": str(y).encode()}) for r, (d, y) in enumerate(both)],
    )
    for name in ("pool", *(f"seen/{y}" for y in range(3))):
        (root / name).mkdir(parents=True)
    for row, data in enumerate(PICTURES):
        (root / "pool" / f"{row:03d}.png").write_bytes(data)
    for row, (data, label) in enumerate(both):
        (root / "seen" / str(label) / f"{row:03d}.png").write_bytes(data)
    image = Naming(image="img", label="y")
    return {
        "parquet": ("pool.parquet", "seen.parquet", image),
        "tar": ("pool.tar", "seen.tar", Naming()),
        "folder": ("pool", "seen", Naming()),
    }


@pytest.mark.parametrize("form", ["parquet", "tar", "folder"])
def test_images_of_every_form(tmp_path, form):
    pool, seen, naming = forms(tmp_path)[form]
    source = open_source(str(tmp_path / pool), replace(naming, label=None))
    labeled = open_source(str(tmp_path / seen), naming, labeled=True)
    picks = select_from(source, 6, labeled=labeled, model=image_encoder(), strategy="badge")
    whole = askance.select(
        image_encoder(), (SEEN_PICTURES, PICTURE_LABELS), PICTURES, 6, strategy="badge"
    )
    assert picks.indices.tolist() == whole.indices.tolist()


def test_texts_of_tar_files(seen, tmp_path):
    worlds.tar(
        tmp_path / "pool.tar", [(f"{r:03d}", {"txt": t.encode()}) for r, t in enumerate(POOL)]
    )
    source = open_source(str(tmp_path / "pool.tar"), Naming(text="txt"))
    picks = select_from(source, 7, labeled=seen, model=make(), strategy="margin")
    whole = askance.select(make(), (SEEN, LABELS), POOL, 7, strategy="margin")
    assert picks.indices.tolist() == whole.indices.tolist()
    assert list(picks.ids) == [f"{row:03d}" for row in whole.indices]


def test_every_item_is_encoded_once(seen, pool):
    function = Counting(lambda texts: [[len(text), text.count("c")] for text in texts])
    encoder = text_encoder(function)
    function.items.clear()  # of the probe
    told = []
    asked = {"labeled": seen, "model": encoder, "strategy": "badge"}
    first = select_from(pool, 5, encoding=lambda done, total: told.append((done, total)), **asked)
    assert sorted(function.items) == sorted({*POOL, *SEEN})
    assert told[0] == (12, 72)
    assert told[-1] == (72, 72)
    again = select_from(pool, 5, **asked)
    select_from(pool, 5, **asked | {"strategy": "margin"})
    assert len(function.items) == len({*POOL, *SEEN})
    assert again.ids == first.ids


def test_a_rule_that_needs_no_features_encodes_nothing(seen, pool):
    function = Counting(lambda texts: [[len(text)] for text in texts])
    encoder = text_encoder(function)
    function.items.clear()
    for labeled in (seen, None):
        picks = select_from(pool, 5, labeled=labeled, model=encoder, strategy="random")
        assert len(picks) == 5
    assert function.items == []


class Killed(LocalEngine):
    """An engine that stops after some shards of the pool, as a killed process would."""

    def map(self, job, shards):
        if "labels" in job.parts:
            yield from super().map(job, shards)
            return
        yield from islice(super().map(job, shards), 2)
        raise KeyboardInterrupt


@pytest.mark.parametrize("rule", ["margin", "badge"])
def test_a_scan_that_was_stopped_goes_on(seen, pool, tmp_path, rule):
    asked = {"labeled": seen, "strategy": rule, "resume": tmp_path / ".out.resume"}
    with pytest.raises(KeyboardInterrupt):
        select_from(pool, 5, model=make(), engine=Killed(1), **asked)
    with pytest.raises(StoreError, match="asked something else: reading is another"):
        select_from(pool, 5, model=text_encoder(version="2"), **asked)
    shards = []
    picks = select_from(pool, 5, model=make(), watch=lambda s, _: shards.append(s.index), **asked)
    whole = askance.select(make(), (SEEN, LABELS), POOL, 5, strategy=rule)
    assert picks.indices.tolist() == whole.indices.tolist()
    assert sorted(shards) == [0, 1, 2]


def test_encoding_that_was_stopped_goes_on(seen, tmp_path):
    given = []

    def letters(texts):
        given.extend(texts)
        if len(given) == 700:
            raise KeyboardInterrupt
        return [[len(text), text.count("c")] for text in texts]

    texts = [f"{text} {row}" for row, text in enumerate(POOL * 12)]
    source = open_source(written(tmp_path / "pool.parquet", 100, words=texts), TEXT)
    encoder = text_encoder(letters)
    encoder.batch_size = 1
    given.clear()
    asked = {"labeled": seen, "model": encoder, "strategy": "margin"}
    with pytest.raises(KeyboardInterrupt):
        select_from(source, 5, resume=tmp_path / ".out.resume", **asked)
    picks = select_from(source, 5, resume=tmp_path / ".out.resume", **asked)
    twice = len(given) - len(texts) - len(SEEN)
    assert 0 < twice <= 16  # a chunk, at most
    whole = askance.select(encoder, (SEEN, LABELS), texts, 5, strategy="margin")
    assert picks.indices.tolist() == whole.indices.tolist()


@pytest.mark.parametrize("form", ["parquet", "tar", "folder"])
def test_what_cannot_be_read(tmp_path, form):
    good = list(PICTURES)
    PICTURES[11] = PICTURES[11][:40]
    try:
        pool, seen, naming = forms(tmp_path)[form]
    finally:
        PICTURES[:] = good
    source = open_source(str(tmp_path / pool), replace(naming, label=None))
    labeled = open_source(str(tmp_path / seen), naming, labeled=True)
    asked = {"labeled": labeled, "model": image_encoder(), "strategy": "grad"}
    name = {"parquet": "pool.parquet:11", "tar": "011", "folder": "011.png"}[form]
    with pytest.raises(ShardError, match=rf"{name}: the image: not a readable image .*; correct"):
        select_from(source, 6, **asked)
    picks = select_from(source, 6, on_error="skip", **asked)
    assert [skip.rows for skip in picks.read.skipped] == [1]
    assert name in picks.read.skipped[0].what
    others = [data for row, data in enumerate(PICTURES) if row != 11]
    whole = askance.select(
        image_encoder(), (SEEN_PICTURES, PICTURE_LABELS), others, 6, strategy="grad"
    )
    assert [row - (row > 11) for row in picks.indices] == whole.indices.tolist()


def test_an_empty_text_and_a_shard_cut_short(seen, tmp_path):
    texts = [*POOL[:30], "  ", *POOL[30:]]
    for part in range(3):
        written(tmp_path / "pool" / f"{part}.parquet", words=texts[part::3])
    path = tmp_path / "pool" / "2.parquet"
    path.write_bytes(path.read_bytes()[:-9])
    asked = {"labeled": seen, "model": make(), "strategy": "margin"}
    source = open_source(str(tmp_path / "pool"), TEXT)
    with pytest.raises(ShardError, match=r"2.parquet: cut short"):
        select_from(source, 5, **asked)
    picks = select_from(source, 5, on_error="skip", **asked)
    assert picks.read.rows == 40
    told = [skip.what for skip in picks.read.skipped]
    assert any("0.parquet:10: an empty text" in what for what in told)
    left = [*texts[0::3], *texts[1::3]]
    whole = askance.select(
        make(), (SEEN, LABELS), [t for t in left if t.strip()], 5, strategy="margin"
    )
    assert [row - (row > 10) for row in picks.indices] == whole.indices.tolist()


def test_no_part_of_the_labelled_set_is_skipped(pool, tmp_path):
    labeled = open_source(
        written(tmp_path / "s.parquet", words=["a cat", ""], y=[0, 1]),
        replace(TEXT, label="y"), labeled=True,
    )  # fmt: skip
    with pytest.raises(ShardError, match=r"s.parquet:1: an empty text"):
        select_from(pool, 5, labeled=labeled, model=make(), strategy="margin", on_error="skip")


class Elsewhere:
    name = "ray"

    def map(self, task, shards):
        raise AssertionError


def test_what_does_not_fit_is_said(seen, pool, tmp_path):
    asked = {"labeled": seen, "model": make(), "strategy": "margin"}
    with pytest.raises(InputError, match="takes images, the data are texts"):
        select_from(pool, 5, **asked | {"model": image_encoder()})
    with pytest.raises(InputError, match="is found by itself"):
        select_from(pool, 5, head="fc", **asked)
    with pytest.raises(InputError, match=r"runs on this machine, .* not on engine 'ray'"):
        select_from(pool, 5, engine=Elsewhere(), **asked)
    with pytest.raises(LabelError, match="margin needs the answers of a model"):
        select_from(pool, 5, model=make(), strategy="margin")
    with pytest.raises(LabelError, match="a labelled set needs labels"):
        select_from(pool, 5, **asked | {"labeled": pool})
    nothing = written(tmp_path / "none.parquet", words=pa.array([], pa.string()), y=np.arange(0))
    empty = open_source(nothing, replace(TEXT, label="y"), labeled=True)
    with pytest.raises(LabelError, match=r"none.parquet: the labelled set is empty"):
        select_from(pool, 5, **asked | {"labeled": empty})
    rows = written(tmp_path / "several.parquet", words=["a", "b"], y=[[0.0, 1.0], [1.0, 1.0]])
    several = open_source(rows, replace(TEXT, label="y"), labeled=True)
    with pytest.raises(LabelError, match="one class an item, not several"):
        select_from(pool, 5, **asked | {"labeled": several})


def test_rows_that_are_no_texts_or_images(seen, pool, tmp_path):
    asked = {"labeled": seen, "model": make(), "strategy": "margin"}
    np.save(tmp_path / "features.npy", np.zeros((9, 2), dtype=np.float32))
    with pytest.raises(InputError, match=r"an encoder takes texts or images: .* got MemmapSource"):
        select_from(open_source(str(tmp_path)), 5, **asked)
    numbers = written(tmp_path / "n" / "n.parquet", x=np.arange(9.0), words=np.arange(9))
    with pytest.raises(InputError, match="got rows of numbers"):
        select_from(open_source(numbers, Naming(features=("x",))), 5, **asked)
    transformed = open_source(
        pool.address, replace(TEXT, transform="tests.pools.test_sources:length")
    )
    with pytest.raises(InputError, match="got a transform that makes a network's input"):
        select_from(transformed, 5, **asked)
    with pytest.raises(ShardError, match="expected a text, got int"):
        select_from(open_source(numbers, TEXT), 5, **asked)


def test_embed_gives_an_encoder_s_features():
    features = askance.embed(make(), SEEN).features
    expected = make().features(make().prepare(SEEN).inputs)
    assert torch.equal(features, expected)
    named = askance.embed("tests.encoders.toys:make", SEEN, batch_size=5)
    assert torch.equal(named.features, expected)
    assert named.logits is None
    with pytest.raises(InputError, match="an encoder has no head"):
        askance.embed(make(), SEEN, head="fc")
    with pytest.raises(InputError, match=r"the data must be a list of texts, got str"):
        askance.embed(make(), "a text")
    with pytest.raises(DataError, match="item 1: an empty text"):
        askance.embed(make(), ["a", ""])
    with pytest.raises(InputError, match=r"model must be a torch.nn.Module, got"):
        askance.embed(3, SEEN)


BANKING = Path(os.environ.get("ASKANCE_DATA", "nowhere")) / "banking77.parquet"


@pytest.mark.slow
@pytest.mark.skipif(not BANKING.exists(), reason="banking77 is not in ASKANCE_DATA")
def test_a_thousand_questions_of_customers(tmp_path):
    table = pq.read_table(BANKING).to_pandas()
    first = table.groupby("label").head(1)
    some = table.drop(first.index).sample(1000, random_state=0)
    address = written(tmp_path / "pool.parquet", 300, words=some.text.tolist())
    seen = written(tmp_path / "seen.parquet", words=first.text.tolist(), y=first.label.tolist())
    labeled = open_source(seen, replace(TEXT, label="y"), labeled=True)
    known = (first.text.tolist(), first.label.tolist())
    for rule in ONE_MODEL:
        asked = {"strategy": rule, "seed": 1}
        picks = select_from(
            open_source(address, TEXT), 50, labeled=labeled, model="minilm", **asked
        )
        whole = askance.select("minilm", known, some.text.tolist(), 50, **asked)
        assert picks.indices.tolist() == whole.indices.tolist(), rule
