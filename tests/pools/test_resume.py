"""A pass that was stopped goes on from its last completed shard, to the same picks."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch

import askance
from askance.embedding import Embedding, Listed, texts
from askance.errors import LabelError, ShardError, StoreError
from askance.picking import TopRows
from askance.pools import Columns, LocalEngine, ParquetSource, ShardResult, select_from
from askance.pools.cache import EmbeddedRows
from askance.pools.decode import ImageTensor
from askance.pools.resume import PassLog, cache_path, forget, resume_path
from askance.selection.scan import StagedRows
from askance.selection.selection import ReadCounts, Skipped
from tests.pools import worlds

RULES = ["powergrad", "entropy", "random", "badge", "kcenter", "grad-spread"]


class Stopping:
    """An engine that stops after some shards, as a killed process would."""

    name = "stopping"

    def __init__(self, after):
        self.after, self.left = after, None

    def map(self, job, shards):
        if "labels" in job.parts:  # the labelled set
            yield from LocalEngine(1).map(job, shards)
            return
        self.left = [shard.index for shard in shards]
        yield from islice(LocalEngine(1).map(job, shards), self.after)
        raise KeyboardInterrupt


class Counting(LocalEngine):
    """Says which shards it was given."""

    def map(self, job, shards):
        if "labels" not in job.parts:
            self.given = [shard.index for shard in shards]
        yield from super().map(job, shards)


@pytest.fixture
def world(tmp_path):
    pool = worlds.embedding(60)
    names = [f"n{row}" for row in range(60)]
    address = worlds.write(tmp_path / "pool", pool, [10] * 6, name=names)
    seen, _ = worlds.labeled(tmp_path / "labeled")
    columns = replace(worlds.VECTORS, id="name")
    return lambda: ParquetSource.open(address, columns), seen, tmp_path / ".out.resume"


@pytest.mark.parametrize("rule", RULES)
def test_what_is_done_is_not_done_again(world, rule):
    opened, seen, path = world
    options = {"labeled": seen, "strategy": rule, "seed": 5}
    whole = select_from(opened(), 8, **options)
    with pytest.raises(KeyboardInterrupt):
        select_from(opened(), 8, engine=Stopping(2), resume=path, **options)
    with pytest.raises(KeyboardInterrupt):
        select_from(opened(), 8, engine=Stopping(2), resume=path, **options)
    engine, told = Counting(1), []
    picks = select_from(
        opened(), 8, engine=engine, resume=path, watch=lambda s, _: told.append(s.index), **options
    )
    assert engine.given == [4, 5]
    assert sorted(told) == [0, 1, 2, 3, 4, 5]
    assert picks.ids == whole.ids
    np.testing.assert_array_equal(picks.scores, whole.scores)
    assert picks.read.rows == 60
    assert picks.explain() == whole.explain()
    forget(path)
    assert sorted(p.name for p in path.parent.iterdir()) == ["labeled", "pool"]


@pytest.mark.parametrize("rule", ["badge", "kcenter", "entropy"])
def test_a_pass_that_was_stopped_after_the_last_shard_reads_nothing_again(world, rule):
    """As when the output cannot be written."""
    opened, seen, path = world
    options = {"labeled": seen, "strategy": rule, "resume": path}
    whole = select_from(opened(), 8, **options)
    engine = Counting(1)
    again = select_from(opened(), 8, engine=engine, **options)
    assert engine.given == []
    assert again.ids == whole.ids
    np.testing.assert_array_equal(again.scores, whole.scores)
    forget(path)
    assert sorted(p.name for p in path.parent.iterdir()) == ["labeled", "pool"]


def test_a_shard_that_is_missing_when_identifiers_are_read_loses_nothing(world, monkeypatch):
    opened, _, path = world
    whole = select_from(opened(), 8, strategy="badge")

    def missing(source, positions):
        raise ShardError("part-003.parquet: no such file")

    with monkeypatch.context() as patched:
        patched.setattr("askance.pools.select.ids_at", missing)
        with pytest.raises(ShardError, match="no such file"):
            select_from(opened(), 8, strategy="badge", resume=path)
    engine = Counting(1)
    assert select_from(opened(), 8, strategy="badge", engine=engine, resume=path).ids == whole.ids
    assert engine.given == []


@pytest.mark.parametrize("lost", ["shard", "rows"])
def test_shards_of_which_no_row_was_read_leave_no_embeddings(tmp_path, lost):
    folder = tmp_path / "pool"
    if lost == "shard":
        worlds.write(folder, worlds.embedding(30), [10] * 3)
        source = ParquetSource.open(str(folder), worlds.VECTORS)
        (folder / "part-000.parquet").write_bytes(b"damaged")
        model = None
    else:
        folder.mkdir()
        good = [worlds.png(pixels) for pixels in worlds.pictures(20, side=8)]
        for part, images in enumerate([[b"no image"] * 10, good[:10], good[10:]]):
            table = worlds.pa.table({"img": images})
            worlds.pq.write_table(table, folder / f"part-{part:03d}.parquet")
        source = ParquetSource.open(str(folder), Columns(image="img"), transform=ImageTensor(8))
        model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 3))
    options = {"strategy": "badge", "on_error": "skip", "model": model}
    whole = select_from(source, 8, **options)
    with pytest.raises(KeyboardInterrupt):
        select_from(source, 8, engine=Stopping(1), resume=tmp_path / "r", **options)
    engine = Counting(1)
    again = select_from(source, 8, engine=engine, resume=tmp_path / "r", **options)
    assert engine.given == [1, 2]
    assert again.ids == whole.ids
    assert again.read == whole.read


def test_a_batch_rule_cannot_go_on_without_its_cache(world):
    opened, _, path = world
    with pytest.raises(KeyboardInterrupt):
        select_from(opened(), 8, strategy="badge", engine=Stopping(2), resume=path)
    shutil.rmtree(cache_path(path))
    with pytest.raises(StoreError, match=r"embeddings of what is done are gone; .*--restart"):
        select_from(opened(), 8, strategy="badge", resume=path)
    again = select_from(opened(), 8, strategy="badge", resume=path, restart=True)
    assert again.ids == select_from(opened(), 8, strategy="badge").ids


def test_forgetting_a_pass_leaves_what_others_put_beside_it(world):
    opened, _, path = world
    select_from(opened(), 8, strategy="badge", resume=path)
    (cache_path(path) / "notes.txt").touch()
    forget(path)
    assert [file.name for file in cache_path(path).iterdir()] == ["notes.txt"]
    forget(path)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"seed": 1}, r"seed was \[0, 0\], it is \[1, 0\]"),
        ({"strategy": "margin"}, r"strategy was .Entropy\(.*\)., it is 'Margin\(\)'"),
        ({"n": 9}, "n was 8, it is 9"),
        ({"exclude": ["n1"]}, "excluded was"),
        ({"batch_size": 3}, "batch size is another"),
        ({"on_error": "skip"}, "on error was 'raise', it is 'skip'"),
    ],
)
def test_another_question_is_refused(world, change, told):
    opened, _, path = world
    asked = {"n": 8, "strategy": "entropy"}
    with pytest.raises(KeyboardInterrupt):
        select_from(opened(), engine=Stopping(2), resume=path, **asked)
    with pytest.raises(StoreError, match=f"asked something else: .*{told}.*--restart"):
        select_from(opened(), resume=path, **asked | change)
    assert len(select_from(opened(), resume=path, restart=True, **asked | change)) >= 8


def test_a_question_that_failed_before_its_first_shard_is_not_in_the_way(world):
    opened, seen, path = world
    with pytest.raises(LabelError, match="there is none; give one"):
        select_from(opened(), 8, strategy="grad", resume=path)
    assert path.exists()
    again = select_from(opened(), 8, strategy="grad", labeled=seen, resume=path)
    assert again.ids == select_from(opened(), 8, strategy="grad", labeled=seen).ids


@pytest.mark.parametrize("change", ["gone", "rows", "time", "new"])
def test_another_pool_is_refused(world, change):
    opened, _, path = world
    with pytest.raises(KeyboardInterrupt):
        select_from(opened(), 8, strategy="entropy", engine=Stopping(2), resume=path)
    folder = path.parent / "pool"
    if change == "gone":
        (folder / "part-004.parquet").unlink()
    elif change == "time":
        os.utime(folder / "part-004.parquet", ns=(1, 1))
    else:
        name = {"rows": "part-004.parquet", "new": "part-009.parquet"}[change]
        rows = {"rows": 9, "new": 10}[change]
        table = worlds.table(worlds.embedding(rows), name=[f"m{row}" for row in range(rows)])
        worlds.pq.write_table(table, folder / name)
    told = {
        "gone": r"shard part-004\.parquet is gone",
        "rows": r"shard part-004\.parquet changed \(it had 10 rows, it has 9\)",
        "time": r"shard part-004\.parquet changed",
        "new": r"shard part-009\.parquet is new",
    }[change]
    with pytest.raises(StoreError, match=f"pool: {told}"):
        select_from(opened(), 8, strategy="entropy", resume=path)


def test_identifiers_of_what_was_done_before_are_compared_too(tmp_path):
    names = [f"n{row}" for row in range(30)]
    names[25] = names[4]
    address = worlds.write(tmp_path / "pool", worlds.embedding(30), [10] * 3, name=names)
    source = ParquetSource.open(address, replace(worlds.VECTORS, id="name"))
    with pytest.raises(KeyboardInterrupt):
        select_from(source, 3, strategy="entropy", engine=Stopping(2), resume=tmp_path / "r")
    with pytest.raises(ShardError, match=r"'n4' in part-000\.parquet and again in part-002"):
        select_from(source, 3, strategy="entropy", resume=tmp_path / "r")


def test_a_record_cut_short_is_dropped(world):
    """A hot journal, as a kill in the middle of a commit leaves it, made without waiting for luck."""
    opened, _, path = world
    whole = select_from(opened(), 8, strategy="entropy")
    with pytest.raises(KeyboardInterrupt):
        select_from(opened(), 8, strategy="entropy", engine=Stopping(3), resume=path)
    journal = path.with_name(f"{path.name}-journal")
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA cache_size = 1")  # so that pages reach the file before the commit
    db.execute("BEGIN IMMEDIATE")
    db.execute("DELETE FROM piece")
    db.executemany("INSERT INTO piece (shard, content) VALUES (9, ?)", [(b"half" * 999,)] * 50)
    half, undo = path.read_bytes(), journal.read_bytes()
    db.execute("ROLLBACK")
    db.close()
    assert half != path.read_bytes()
    path.write_bytes(half)
    journal.write_bytes(undo)
    engine = Counting(1)
    picks = select_from(opened(), 8, strategy="entropy", engine=engine, resume=path)
    assert picks.ids == whole.ids
    assert engine.given == [3, 4, 5]


def test_a_file_that_was_only_begun_is_a_new_one(world):
    opened, _, path = world
    path.touch()
    engine = Counting(1)
    select_from(opened(), 8, strategy="entropy", engine=engine, resume=path)
    assert engine.given == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("damage", ["cut", "scribbled", "notes", "other"])
def test_a_damaged_file_is_refused_and_left_alone(world, damage):
    opened, _, path = world
    whole = select_from(opened(), 8, strategy="entropy")
    with pytest.raises(KeyboardInterrupt):
        select_from(opened(), 8, strategy="entropy", engine=Stopping(3), resume=path)
    data = path.read_bytes()
    content = {
        "cut": data[:-4096],
        "scribbled": data[:4096] + b"\xaa" * 4096 + data[8192:],
        "notes": b"somebody's notes",
        "other": data[:68] + bytes(4) + data[72:],
    }[damage]
    path.write_bytes(content)
    told = "another application" if damage == "other" else "no askance store, or a damaged one"
    with pytest.raises(StoreError, match=told) as refused:
        select_from(opened(), 8, strategy="entropy", resume=path)
    assert "--restart" in str(refused.value)
    assert path.read_bytes() == content
    engine = Counting(1)
    again = select_from(opened(), 8, strategy="entropy", engine=engine, resume=path, restart=True)
    assert again.ids == whole.ids
    assert len(engine.given) == 6


def test_a_record_larger_than_a_piece_comes_back_whole(world, monkeypatch):
    monkeypatch.setattr("askance.pools.resume.PIECE", 100)
    opened, _, path = world
    whole = select_from(opened(), 8, strategy="entropy")
    with pytest.raises(KeyboardInterrupt):
        select_from(opened(), 8, strategy="entropy", engine=Stopping(3), resume=path)
    again = select_from(opened(), 8, strategy="entropy", resume=path)
    assert again.ids == whole.ids
    np.testing.assert_array_equal(again.scores, whole.scores)


def test_a_record_comes_back_as_it_was(tmp_path):
    rows = Embedding(
        torch.randn(2, 3).bfloat16(),
        torch.randn(2, 4).double(),
        np.array([7, 3]),
        Listed(["ä", "b\n"]),
    )
    read = ReadCounts(9, 1, (Skipped("x", None, True),))
    top = TopRows(rows, np.array([2.0, 1.0]))
    other = TopRows(Embedding(None, rows.features[:1], np.array([5])), np.array([-0.5]))
    result = ShardResult(StagedRows(top, other), read, np.arange(9, dtype=np.uint64))
    cached = EmbeddedRows(rows, np.array([3, 4]))
    shards = worlds.labeled(tmp_path / "l", sizes=[2, 3, 4])[0].shards
    with PassLog(tmp_path / "r", {"n": 2}) as log:
        log.add(shards[0], result)
        log.add(shards[1], ShardResult(cached, read))
        log.add(shards[2], ShardResult(None, read))
        with pytest.raises(
            StoreError, match=rf"is being written by this process \(pid {os.getpid()}\)"
        ):
            PassLog(tmp_path / "r", {"n": 2})
    with PassLog(tmp_path / "r", {"n": 2}) as log:
        back = log.done
    assert [back[index].read for index in range(3)] == [read] * 3
    best, sample = back[0].value.shortlist, back[0].value.sample
    assert best.scores.tolist() == [2.0, 1.0]
    assert best.rows.positions.tolist() == [7, 3]
    assert texts(best.rows.ids) == ("ä", "b\n")
    assert torch.equal(best.rows.logits, rows.logits.float())
    assert torch.equal(best.rows.features, rows.features)
    assert (sample.scores.tolist(), sample.rows.positions.tolist()) == ([-0.5], [5])
    assert back[1].value.unpickable.tolist() == [3, 4]
    assert back[2].value is None


def test_a_killed_command_goes_on(tmp_path, monkeypatch, capsys):
    """SIGKILL in the middle; the same command ends with the picks of an unbroken one."""
    worlds.write_slow_pool(tmp_path)
    out, log = tmp_path / "picks.jsonl", tmp_path / "log"
    command = [
        "select", "--pool", str(tmp_path / "pool"), "--text", "t", "--model", "slow_pool:net",
        "--transform", "slow_pool:slowly", "--n", "9", "--strategy", "margin", "--workers", "1",
    ]  # fmt: skip
    monkeypatch.syspath_prepend(tmp_path)
    from askance.cli import main

    assert main([*command, "-o", str(tmp_path / "whole.jsonl")]) == 0
    paths = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": paths, "ASKANCE_TEST_LOG": str(log)}
    process = subprocess.Popen(
        [sys.executable, "-m", "askance", *command, "-o", str(out)],
        env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while not log.exists() or len(log.read_text().split()) < 90:
        assert process.poll() is None, process.stderr.read().decode()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not out.exists()
    assert resume_path(out).exists()
    read = log.read_text().split()
    assert len(read) < 200, "it was killed too late to tell"
    monkeypatch.setenv("ASKANCE_TEST_LOG", str(log))
    assert main([*command, "-o", str(out)]) == 0
    assert out.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert not resume_path(out).exists()
    again = log.read_text().split()[len(read) :]
    assert len(again) <= 200 - 80, "shards that were done are not read again"
    assert set(read) | set(again) == {str(value) for value in range(200)}
    capsys.readouterr()


def test_the_ledger_is_beside_the_output():
    assert resume_path(Path("a/b.jsonl")) == Path("a/.b.jsonl.resume")
    assert askance.__version__
