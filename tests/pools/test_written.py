"""CSV pools, and labels that are names of classes: the picks of the same rows in Parquet."""

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

import askance
from askance.cli import main
from askance.errors import DataError, SelectionWarning, ShardError
from askance.pools import Naming, open_source, select_from
from tests.encoders.toys import make

RNG = np.random.default_rng(0)
WORDS = ["cat", "dog", "rate", "bank", "tree, tall", 'a "leaf"', "line\nbreak"]
POOL = [" ".join(RNG.choice(WORDS, size=RNG.integers(2, 9))) for _ in range(60)]
SEEN = [" ".join(RNG.choice(WORDS, size=6)) for _ in range(12)]
NAMES = [["zebra", "ant"][text.count("cat") % 2] for text in SEEN]
NUMBERS = [["ant", "zebra"].index(name) for name in NAMES]
TEXT, LABELED = Naming(text="words", id="key"), Naming(text="words", label="kind")


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path_factory):
    monkeypatch.setenv("ASKANCE_CACHE", str(tmp_path_factory.mktemp("cache")))


def written(path, **columns):
    table = pa.table(columns)
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    else:
        delimiter = "\t" if path.suffix == ".tsv" else ","
        pc.write_csv(table, path, pc.WriteOptions(delimiter=delimiter))
    return str(path)


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet"])
@pytest.mark.parametrize("labels", [NAMES, NUMBERS])
@pytest.mark.parametrize("rule", ["margin", "badge"])
def test_texts_and_names_of_classes(tmp_path, suffix, labels, rule):
    keys = [f"00{i}" for i in range(len(POOL))]
    pool = open_source(written(tmp_path / f"pool.{suffix}", words=POOL, key=keys), TEXT)
    address = written(tmp_path / f"labels.{suffix}", kind=labels, words=SEEN, other=SEEN)
    seen = open_source(address, LABELED, labeled=True)
    picks = select_from(pool, 7, labeled=seen, model=make(), strategy=rule)
    whole = askance.select(make(), (SEEN, NUMBERS), POOL, 7, strategy=rule)
    assert picks.indices.tolist() == whole.indices.tolist()
    np.testing.assert_allclose(picks.scores, whole.scores, rtol=1e-5)
    assert [row["id"] for row in picks.rows()] == [keys[i] for i in whole.indices]


def test_names_in_several_files_are_numbered_together(tmp_path):
    folder = tmp_path / "seen"
    folder.mkdir()
    written(folder / "1.csv", words=SEEN[:5], kind=NAMES[:5])
    written(folder / "2.csv", words=SEEN[5:], kind=NAMES[5:])
    seen = open_source(str(folder), LABELED, labeled=True)
    assert seen.classes == ("ant", "zebra")
    blocks = [b for shard in seen.shards for b in seen.read(shard, 4, frozenset({"labels"}))]
    labels = [int(label) for block in blocks for label in block.labels]
    assert labels == NUMBERS


def test_a_csv_of_numbers_is_a_pool_of_stored_embeddings(tmp_path):
    features = RNG.normal(size=(30, 2)).round(3)
    columns = {"a": features[:, 0], "b": features[:, 1]}
    there = [
        open_source(written(tmp_path / name, **columns), Naming(features=("a", "b")))
        for name in ("pool.csv", "pool.parquet")
    ]
    blocks = [list(each.read(each.shards[0], 100, frozenset({"features"}))) for each in there]
    np.testing.assert_array_equal(blocks[0][0].features, blocks[1][0].features)


def test_a_csv_among_other_files_is_passed_over(tmp_path):
    written(tmp_path / "pool.parquet", words=POOL)
    (tmp_path / "notes.csv").write_text("about,these\n1,2\n")
    source = open_source(str(tmp_path), Naming(text="words"))
    assert [shard.name for shard in source.shards] == ["pool.parquet"]


def test_what_is_wrong_is_said(tmp_path):
    (tmp_path / "latin.csv").write_bytes("words\ncaf\xe9\n".encode("latin-1"))
    with pytest.raises(ShardError, match=r"latin\.csv: cut short, corrupt or not UTF-8 text"):
        list(_read(open_source(str(tmp_path / "latin.csv"), Naming(text="words"))))
    written(tmp_path / "seen.csv", words=SEEN, kind=["", *NAMES[1:]])
    source = open_source(str(tmp_path / "seen.csv"), LABELED, labeled=True)
    with pytest.raises(ShardError, match="a row has no label in column 'kind'"):
        list(_read(source, "labels"))
    written(tmp_path / "pool.csv", body=POOL)
    with pytest.raises(ShardError, match="no column 'words'; it has body"):
        list(_read(open_source(str(tmp_path / "pool.csv"), Naming(text="words"))))
    (tmp_path / "none").mkdir()
    with pytest.raises(DataError, match="the folder is empty"):
        open_source(str(tmp_path / "none"), Naming(text="words"))


def _read(source, part="inputs"):
    for shard in source.shards:
        yield from source.read(shard, 10, frozenset({part}))


def test_a_csv_that_changes_while_it_is_read_is_told(tmp_path):
    path = tmp_path / "pool.csv"
    source = open_source(written(path, words=POOL), Naming(text="words"))
    list(_read(source))
    written(path, words=[*POOL, "one more"])
    with pytest.raises(ShardError, match="the file changed after the pool was listed"):
        list(_read(source))


def test_labels_of_one_class_alone_are_warned_of(tmp_path, monkeypatch, capsys):
    with pytest.warns(SelectionWarning, match="all labelled items are of one class"):
        askance.select(make(), (SEEN, [0] * len(SEEN)), POOL, 3, strategy="margin")
    askance.select(make(), (SEEN, [0] * len(SEEN)), POOL, 3, strategy="kcenter")  # needs no answers
    monkeypatch.setattr("askance.encoders.registry._built", lambda name, kind: make())
    arguments = [
        "select", "--encoder", "minilm", "--text", "words", "--label", "kind", "--n", "3",
        "--pool", written(tmp_path / "pool.csv", words=POOL),
        "--out", str(tmp_path / "picks.csv"), "--strategy", "margin", "--labeled",
    ]  # fmt: skip
    one = written(tmp_path / "one.csv", words=SEEN, kind=["ant"] * len(SEEN))
    assert main([*arguments, one]) == 0
    assert "Note: all labelled items are of one class" in capsys.readouterr().out.replace("\n", " ")
    two = written(tmp_path / "two.csv", words=SEEN, kind=NAMES)
    assert main([*arguments, two, "--overwrite"]) == 0
    assert "one class" not in capsys.readouterr().out
