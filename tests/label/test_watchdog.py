"""A training that hangs is ended and begun again; a person notices by a sentence alone."""

import os
import signal
import time

import pytest

from askance.errors import AskanceError
from askance.label import scheduler
from askance.label.worker import SubprocessWorker
from tests.label.person import stored, wait_for
from tests.label.test_last_answers import answer


@pytest.mark.slow
def test_a_hanging_training_is_ended_and_begun_again(start, monkeypatch):
    monkeypatch.setattr(scheduler, "_RETRY_AFTER", 0.5)
    session = start(worker="beside")
    worker = session.scheduler._worker
    answer(session, 5)
    session.scheduler.wait(1)
    assert worker._limit >= 60  # it was quick, and still gets a minute
    first = worker._process.pid
    worker._limit = 1.0
    os.kill(first, signal.SIGSTOP)
    answer(session, 5)
    wait_for(lambda: session.training.error is not None, 30)
    assert "gave no sign for 1 s and was ended; answers are safe" in session.training.error
    wait_for(lambda: len(session.versions) == 2, 60)
    assert session.training.error is None
    assert session.versions[-1].trained_on == 10
    assert worker._process.pid != first
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)
    answers = sum(map(len, session.annotations.answers.values()))
    acts = stored(session.folder)
    assert len(acts) == answers >= 10


class Silent:
    """A pipe on which nothing comes for so many signs, and then an answer."""

    def __init__(self, *signs):
        self.signs = list(signs)
        self.limits = []

    def poll(self, limit):
        self.limits.append(limit)
        return self.signs[0] is not None

    def recv(self):
        return self.signs.pop(0)

    def send(self, _):
        pass


def worker_of(session, *signs):
    worker = SubprocessWorker(session.items, session.options)
    worker._pipe = Silent(*signs)
    return worker


def test_every_sign_gives_it_as_long_again(session):
    worker = worker_of(session, (None, None), (None, (3, 9)), (True, ["a"]))
    heard = []
    assert worker._call("prepare", progress=lambda *done: heard.append(done)) == ["a"]
    assert heard == [(3, 9)]
    assert worker._pipe.limits == [600, 600, 600]


def test_after_it_was_ended_it_gets_twice_as_long(session):
    worker = worker_of(session, None)
    with pytest.raises(AskanceError, match="no sign for 600 s"):
        worker._call("unreadable")
    assert worker._limit == 1200


def test_thirty_times_the_longest_training_is_too_long(session, monkeypatch):
    worker = worker_of(session, (True, "outcome"), (True, "outcome"))
    clock = iter([0.0, 4.0, 10.0, 10.1])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    worker.learn("task")
    assert worker._limit == 120  # 30 × 4 s
    worker.learn("task")
    assert worker._limit == 120
    worker._longest = 100
    monkeypatch.setattr(time, "monotonic", lambda: 0.0)
    worker._pipe.signs.append((True, "outcome"))
    worker.learn("task")
    assert worker._limit == 600  # patience
