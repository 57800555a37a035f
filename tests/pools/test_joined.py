"""Labels in a table of their own, joined to a pool by identifier; names of classes on the way."""

import numpy as np
import pytest

from askance.cli import main
from askance.errors import InputError, LabelError
from askance.pools import Columns, Naming, ParquetSource, open_source, select_from
from askance.pools.constraints import ColumnConstraints
from askance.pools.joined import JoinedSource
from tests.encoders.toys import text_encoder
from tests.pools import worlds
from tests.pools.test_written import NAMES, POOL, written

KEYS = [f"00{row}" for row in range(len(POOL))]
SEEN = [3, 17, 20, 41, 55, 9, 30, 12]
LABELS = [NAMES[row] for row in range(len(SEEN))]


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path_factory):
    monkeypatch.setenv("ASKANCE_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def world(tmp_path):
    """A pool, and some of its rows with labels: by identifier alone, and written out."""
    pool = open_source(
        written(tmp_path / "pool.csv", words=POOL, key=KEYS), Naming(text="words", id="key")
    )
    ids = [KEYS[row] for row in SEEN]
    short = written(tmp_path / "labels.csv", key=ids, kind=LABELS)
    texts = [POOL[row] for row in SEEN]
    whole = written(tmp_path / "whole.csv", key=ids, kind=LABELS, words=texts)
    return pool, short, whole


def joined(short, pool):
    table = ParquetSource.open(short, Columns(id="key", label="kind"), labeled=True)
    return JoinedSource.of(table, pool)


@pytest.mark.parametrize("rule", ["margin", "badge", "grad"])
def test_the_picks_are_those_of_items_that_are_written_out(world, rule):
    pool, short, whole = world
    naming = Naming(text="words", label="kind", id="key")
    written_out = open_source(whole, naming, labeled=True)
    options = {"model": text_encoder(), "strategy": rule}
    expected = select_from(
        pool, 6, labeled=written_out, exclude=[KEYS[row] for row in SEEN], **options
    )
    picks = select_from(pool, 6, labeled=joined(short, pool), **options)
    assert picks.ids == expected.ids
    # In the order of the pool, not of the table: sums differ in the last digits.
    np.testing.assert_allclose(picks.scores, expected.scores, rtol=1e-4, atol=1e-6)
    assert not any("labelled" in note for note in picks.notes)
    assert picks.classes == ("ant", "zebra")


def test_vectors_of_many_shards(tmp_path):
    rows = worlds.embedding(90)
    worlds.write(tmp_path / "p", rows, [40, 30, 20], 8, name=[f"r{row}" for row in range(90)])
    pool = ParquetSource.open(str(tmp_path / "p"), Columns(("features",), ("logits",), id="name"))
    chosen = [2, 39, 41, 88, 7]
    labels = [0, 1, 2, 1, 0]
    short = written(tmp_path / "l.parquet", key=[f"r{row}" for row in chosen], kind=labels)
    picks = select_from(pool, 8, labeled=joined(short, pool), strategy="grad")
    order = np.argsort(chosen)
    seen = rows[np.array(chosen)[order]].renumbered()
    worlds.write(tmp_path / "w", seen, [5], label=np.array(labels)[order])
    whole = ParquetSource.open(str(tmp_path / "w"), worlds.LABELED)
    out = [f"r{row}" for row in chosen]
    expected = select_from(pool, 8, labeled=whole, strategy="grad", exclude=out)
    assert picks.ids == expected.ids
    np.testing.assert_allclose(picks.scores, expected.scores, rtol=1e-12)


def test_labels_that_cannot_be_joined(tmp_path, world):
    pool, _, _ = world
    stranger = written(tmp_path / "a.csv", key=["003", "zzz"], kind=["ant", "ant"])
    with pytest.raises(LabelError, match=r"1 of 2 labels are of identifiers .*: 'zzz'"):
        joined(stranger, pool)
    twice = written(tmp_path / "b.csv", key=["003", "003"], kind=["ant", "zebra"])
    with pytest.raises(LabelError, match="'003' has two different labels"):
        joined(twice, pool)
    same = written(tmp_path / "same.csv", words=POOL[:3], key=["a", "b", "a"])
    ambiguous = open_source(same, Naming(text="words", id="key"))
    named = written(tmp_path / "c.csv", key=["a"], kind=["ant"])
    with pytest.raises(LabelError, match="'a' is the identifier of several rows"):
        joined(named, ambiguous)


def test_classes_in_the_order_of_a_network(tmp_path, world):
    pool, short, _ = world
    options = {"model": text_encoder(), "strategy": "margin"}
    plain = select_from(pool, 6, labeled=joined(short, pool), **options)
    limits = ColumnConstraints("predicted", {"zebra": 1})
    other = select_from(
        pool, 4, labeled=joined(short, pool), classes=["zebra", "owl", "ant"],
        constraints=limits, **options,
    )  # fmt: skip
    assert [why.pseudo_label for why in other.explain()].count("zebra") <= 1
    assert {why.pseudo_label for why in plain.explain()} == {"ant", "zebra"}
    with pytest.raises(LabelError, match="the classes are 'zebra'; its labels also have 'ant'"):
        select_from(pool, 6, labeled=joined(short, pool), classes=["zebra"], **options)


def test_a_network_with_more_outputs_than_there_are_names(tmp_path):
    rows = worlds.embedding(20)
    worlds.write(tmp_path / "p", rows, [20])
    worlds.write(tmp_path / "l", rows[:4], [4], label=["bee", "ant", "bee", "ant"])
    pool = ParquetSource.open(str(tmp_path / "p"), worlds.VECTORS)
    seen = ParquetSource.open(str(tmp_path / "l"), worlds.LABELED, labeled=True)
    with pytest.raises(InputError, match=f"2 names of classes .* {worlds.CLASSES} outputs"):
        select_from(pool, 3, labeled=seen, strategy="grad")
    names = ["ant", "bee", *(f"c{k}" for k in range(worlds.CLASSES - 2))]
    picks = select_from(pool, 3, labeled=seen, strategy="grad", classes=names)
    assert {why.pseudo_label for why in picks.explain()} <= set(names)
    unread = select_from(pool, 3, labeled=seen, strategy="margin")
    assert any("2 names of classes" in note for note in unread.notes)
    assert all(isinstance(why.pseudo_label, int) for why in unread.explain())


def run(capsys, tmp_path, *more, out="picks.jsonl"):
    where = tmp_path / out
    arguments = ["--pool", str(tmp_path / "pool.csv"), "--text", "words", "-o", str(where)]
    code = main(["select", *arguments, "--strategy", "random", "--n", "5", *map(str, more)])
    told = capsys.readouterr()
    return code, " ".join((told.out + told.err).split()), where


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_an_earlier_file_of_picks_is_excluded(tmp_path, world, capsys, kind):
    first = run(capsys, tmp_path, "--id", "key", out=f"first.{kind}")[2]
    code, told, second = run(capsys, tmp_path, "--id", "key", "--exclude", first, out="second.csv")
    assert code == 0
    assert "Excluded: 5 rows." in told
    ids = {line.split(",")[0] for line in second.read_text().splitlines()[1:]}
    assert len(ids) == 5
    assert all(key not in first.read_bytes().decode(errors="ignore") for key in ids)


def test_a_column_of_another_table_is_excluded(tmp_path, world, capsys):
    code, told, _ = run(capsys, tmp_path, "--id", "key", "--exclude", world[1])
    assert code == 0
    assert f"Excluded: {len(SEEN)} rows." in told


def test_identifiers_that_are_not_in_the_pool_are_told(tmp_path, world, capsys):
    (tmp_path / "out.txt").write_text("nobody\nnowhere\n")
    code, told, _ = run(capsys, tmp_path, "--exclude", tmp_path / "out.txt")
    assert code == 0
    assert "2 of 2 identifiers in" in told
    assert "are like 'nobody', the pool's are like 'pool.csv:" in told


def test_a_table_without_identifiers_is_refused(tmp_path, world, capsys):
    file = written(tmp_path / "two.csv", a=["x"], b=["y"])
    code, told, _ = run(capsys, tmp_path, "--exclude", file)
    assert code == 2
    assert "no column 'id' of identifiers; it has 'a', 'b'" in told


def test_a_labelled_set_without_texts_says_how_to_join_it(tmp_path, world, capsys):
    code, told, _ = run(capsys, tmp_path, "--labeled", world[1], "--label", "kind")
    assert code == 2
    assert "joined to the pool if --id names its column" in told
