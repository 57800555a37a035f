"""The thread that trains: it is waited for without polling, and says what went wrong."""

import threading
import time

import pytest

from askance.errors import AskanceError
from askance.label import messages, scheduler
from askance.label.learner import Learner
from tests.label.worlds import Person, client_of


def answered(session, n=6):
    ann = Person(client_of(session))
    for _ in range(n):
        assert ann.answer(ann.ask()["questions"][0]).status_code == 200


def test_who_waits_is_woken_and_does_not_poll(session, held, monkeypatch):
    began, go_on = held
    answered(session)
    assert began.wait(30)
    naps = []
    monkeypatch.setattr(time, "sleep", naps.append)
    waiting = threading.Thread(target=session.scheduler.wait, args=(1,))
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()
    go_on.set()
    waiting.join(30)
    assert not waiting.is_alive()
    assert len(session.versions) == 1
    assert naps == []


def test_waiting_ends_after_so_many_seconds(session):
    with pytest.raises(AskanceError, match="model 1 was not there after 0 s"):
        session.scheduler.wait(1, 0.05)


def test_an_undo_that_makes_a_training_undue_wakes_who_waits(session):
    """Nothing is trained then, so no training's end would wake them."""
    with session.lock:  # the thread cannot begin
        held = session.split.held
        while session.scheduler.due_in:
            (question,) = session.questions("ann", 1).questions
            session.answer(question.id, 0, "ann", f"answer {question.id}")
        assert question.item not in held
        assert not session.scheduler.idle
        session.undo("ann", "undo it")
        assert session.scheduler.idle
    session.scheduler.wait(0, 5)


def test_a_failed_training_wakes_who_waits_with_its_error(session, monkeypatch):
    def failing(self, task):
        raise AskanceError("no such luck")

    monkeypatch.setattr(Learner, "learn", failing)
    answered(session)
    with pytest.raises(AskanceError, match="no such luck"):
        session.scheduler.wait(1)
    assert not session.training.running


def test_the_state_is_replaced_and_never_changed(session, held):
    before = session.training
    began, go_on = held
    answered(session)
    assert began.wait(30)
    assert (before.running, session.training.running) == (False, True)
    go_on.set()
    session.scheduler.wait(1)
    assert before.versions == ()
    assert before.held_out_guesses.of(session.split.held_out).shape[0] == 0
    after = session.training
    assert after.held_out_guesses.of(session.split.held_out).shape[0] == 1
    assert session.revision > 1


def test_picks_are_drawn_at_once_where_nothing_can_be_learnt(start):
    session = start(ahead=0, held_out=0)
    for question in session.questions("ann", 5).questions:
        session.skip(question.id, "ann", f"skip {question.id}")
    assert (
        session.questions("ann", 1).more == "waiting"
    )  # asks for picks, which are there next time
    (question,) = session.questions("ann", 1).questions
    assert question.why == "Drawn at random: nothing could be learnt yet."


def test_a_first_batch_by_kcenter_that_fails_is_tried_again(start, monkeypatch):
    """Random picks in its place would be another first batch than the one that was asked for."""
    first, failed = Learner.first, threading.Event()

    def failing(self, n, exclude):
        if failed.is_set():
            return first(self, n, exclude)
        failed.set()
        raise AskanceError("no such luck")

    monkeypatch.setattr(Learner, "first", failing)
    monkeypatch.setattr(scheduler, "_RETRY_AFTER", 0.5)
    session = start(first="kcenter")
    with pytest.raises(AskanceError, match="no such luck"):
        session.scheduler.wait(1)
    assert session.questions("ann", 1) == ([], "waiting")
    with session.lock:
        session.scheduler._news.wait_for(lambda: session.training.picks, 30)
    (question,) = session.questions("ann", 1).questions
    assert question.why == messages.FAR_APART
    assert session.training.error is None


def test_who_asks_before_the_thread_begins_waits_for_kcenter(start, pause):
    began, go_on = pause(scheduler.TrainingScheduler, "_run")
    session = start(first="kcenter")
    assert began.wait(30)
    assert session.questions("ann", 1) == ([], "waiting")
    go_on.set()
    with session.lock:
        session.scheduler._news.wait_for(lambda: session.training.picks, 30)
    (question,) = session.questions("ann", 1).questions
    assert question.why == messages.FAR_APART
