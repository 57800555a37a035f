"""Killed while it takes answers in, a project has all of them or none."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from askance.label.store import LOCK, ProjectStore
from tests.label.outside import rows_of, standing

# For every line it reads, another process that takes answers in: killed by itself at its nth statement,
# or by who reads its pid. It is reaped when a second line is read, so that its pid stays its own.
CHILDREN = """
import os, signal, sys
from askance.label.ingest import ExternalAnswer, ingest
from askance.label.store import ProjectStore

def lot(n):
    labels = ("left", "new")
    return [ExternalAnswer(f"item {i % 60}", labels[i % 2], f"p{i // 60}") for i in range(n)]

def play(rows, statement, folder):
    rows, statement = int(rows), int(statement)
    store = ProjectStore.open(folder)
    def count(sql):
        nonlocal statement
        statement -= 1
        if statement == 0:
            os.kill(os.getpid(), signal.SIGKILL)
    store._db.set_trace_callback(count)
    os.write(1, f"{os.getpid()}\\n".encode())
    ingest(store, lot(rows), add_classes=True)
    store.close()

for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        play(*line.strip().split(maxsplit=2))
        os._exit(0)
    sys.stdin.readline()
    os.write(1, f"{os.waitpid(pid, 0)[1]}\\n".encode())
"""


@pytest.fixture(scope="module")
def parent():
    with subprocess.Popen(
        [sys.executable, "-c", CHILDREN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.stdin.close()


@pytest.fixture
def children(project, parent):
    """From rows, a statement to die at and seconds to live: how a child of those ended."""

    def child(rows, statement=-1, seconds=None):
        print(rows, statement, project, file=parent.stdin, flush=True)
        pid = int(parent.stdout.readline())
        assert pid > 1
        if seconds is not None:
            time.sleep(seconds)
            os.kill(pid, signal.SIGKILL)
        print("reap", file=parent.stdin, flush=True)
        return os.waitstatus_to_exitcode(int(parent.stdout.readline()))

    return child


def test_killed_at_a_statement_it_leaves_nothing(project, children):
    before = rows_of(project)
    # 6 that read, BEGIN, a class, 60 questions, 60 events, COMMIT
    for statement in (1, 7, 8, 9, 30, 68, 69, 100, 128, 129):
        assert children(60, statement) == -signal.SIGKILL
        assert rows_of(project) == before
    assert children(60, 130) == 0
    classes, questions, events = rows_of(project)
    assert (len(classes), len(questions), len(events)) == (3, 60, 60)
    assert not (project / LOCK).exists()


@pytest.mark.parametrize(
    "turns", [5, pytest.param(100, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])]
)
def test_killed_at_any_moment_it_keeps_all_or_nothing(project, children, turns):
    draws, rows, kept = random.Random(0), 0, 0
    assert children(60) == 0
    began = time.monotonic()
    assert children(600) == 0  # everything is imported by now
    took = time.monotonic() - began
    for turn in range(turns):
        rows = 600 * (turn + 2)
        children(rows, seconds=draws.uniform(0, 1.5 * took))
        now_there = len(standing(project))
        assert now_there in {600 * n for n in range(1, turn + 3)}
        with ProjectStore.open(project) as store:
            assert store._query("PRAGMA integrity_check")[0][0] == "ok"
            assert now_there == len(list(store.events())) == len(list(store.questions()))
        kept += now_there == rows
    assert children(rows) == 0
    assert len(standing(project)) == rows
    assert kept < turns, "none was killed before the end"
