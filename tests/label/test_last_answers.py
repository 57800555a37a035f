"""The last answers are trained on: when asked for, after a pause, and before an export."""

import io
import json
import time

import numpy as np
import pytest

from askance.errors import AskanceError, InputError
from askance.label import LabelingOptions, scheduler
from askance.label.exports import export
from askance.label.learner import Learner
from tests.label.worlds import Person, client_of


def answer(session, n, person="ann"):
    """Answer n questions that are trained on."""
    ann = Person(client_of(session), person)
    done = 0
    while done < n:
        (question,) = ann.ask()["questions"]
        assert ann.answer(question).status_code == 200
        done += question["item"] not in session.split.held


def trained_on(session):
    return session.versions[-1].trained_on if session.versions else 0


def test_every_answer_is_trained_on_when_asked_for(session):
    answer(session, 5)
    session.scheduler.wait(1)
    answer(session, 3)
    assert (session.scheduler.n_untrained, session.scheduler.due_in) == (3, 2)
    assert session.scheduler.train_now()
    session.scheduler.wait(2)
    assert (trained_on(session), session.scheduler.n_untrained) == (8, 0)
    assert not session.scheduler.train_now()  # there is nothing new


def test_a_first_model_needs_no_batch_when_asked_for(session):
    assert not session.scheduler.train_now()
    answer(session, 2)
    client = client_of(session)
    assert client.post("/api/train", json={}).json()["started"]
    session.scheduler.wait(1)
    assert trained_on(session) == 2
    assert not client.post("/api/train", json={}).json()["started"]
    assert client.get("/api/state").json()["model"]["untrained"] == 0


def test_after_a_pause_the_last_answers_are_trained_on(start):
    session = start(pause=0.2)
    answer(session, 2)
    time.sleep(0.5)
    assert not session.versions  # a first model waits for a batch
    answer(session, 3)
    session.scheduler.wait(1)
    answer(session, 1)
    session.scheduler.wait(2)
    with session.lock:
        done = session.scheduler._news.wait_for(lambda: trained_on(session) == 6, 30)
    assert done


def test_without_a_pause_the_next_batch_is_waited_for(start):
    session = start(pause=0)
    answer(session, 5)
    session.scheduler.wait(1)
    answer(session, 4)
    time.sleep(0.3)
    assert (len(session.versions), session.scheduler.n_untrained) == (1, 4)


@pytest.mark.parametrize("what", ["model", "predictions"])
def test_an_export_is_of_all_answers(session, what):
    answer(session, 5)
    session.scheduler.wait(1)
    answer(session, 2)
    name = {"model": "json", "predictions": "jsonl"}[what]
    old = export(session, what, name, fresh=False)
    assert trained_on(session) == 5
    new = export(session, what, name)
    assert trained_on(session) == 7
    if what == "model":
        assert json.loads(old)["trained_on"] == 5
        assert json.loads(new)["trained_on"] == 7
    else:
        versions = {json.loads(line)["model"] for line in io.BytesIO(new)}
        assert versions == {2}


def test_an_export_makes_the_first_model(session):
    answer(session, 2)
    client = client_of(session)
    reply = client.get("/api/export/model", params={"fresh": False})
    assert reply.status_code == 409
    assert client.get("/api/export/model", params={"format": "json"}).json()["trained_on"] == 2


def test_answers_are_exported_without_a_training(session):
    answer(session, 2)
    export(session, "answers", "csv")
    assert not session.versions


def test_an_export_waits_for_a_training_that_began_before_the_last_answers(session, held):
    began, go_on = held
    answer(session, 5)
    assert began.wait(30)
    answer(session, 2)
    go_on.set()
    export(session, "model", "safetensors")
    assert trained_on(session) == 7


def test_an_export_says_what_could_not_be_trained_on(session, monkeypatch):
    monkeypatch.setattr(scheduler, "_RETRY_AFTER", 60)
    answer(session, 5)
    session.scheduler.wait(1)
    answer(session, 2)

    def failing(self, task):
        raise AskanceError("no such luck")

    monkeypatch.setattr(Learner, "learn", failing)
    reply = client_of(session).get("/api/export/model")
    assert reply.status_code == 422
    said = reply.json()["error"]["message"]
    assert "2 answers could not be trained on before the export: no such luck" in said
    assert client_of(session).get("/api/export/model", params={"fresh": False}).status_code == 200


def test_an_export_does_not_wait_for_ever(session, held):
    answer(session, 2)
    with pytest.raises(AskanceError, match=r"2 answers could not be trained on .* longer than 0 s"):
        session.scheduler.catch_up(0.1)


def test_undone_answers_are_untrained(start):
    session = start(held_out=0)
    answer(session, 5)
    session.scheduler.wait(1)
    Person(client_of(session)).undo()
    assert session.scheduler.n_untrained == 1
    export(session, "model", "safetensors")
    assert trained_on(session) == 4


@pytest.mark.parametrize("pause", [-1, float("nan"), float("inf")])
def test_a_pause_is_so_many_seconds(pause):
    with pytest.raises(InputError, match="pause must be a number of seconds"):
        LabelingOptions(pause=pause)
    with pytest.raises(InputError, match="patience must be a number of seconds above 0"):
        LabelingOptions(patience=0)


def test_of_two_hundred_answers_none_is_left_out(start):
    """With batches of 20, up to 19 were."""
    session = start(n=300, batch=20, pause=0.1, held_out=0)
    answer(session, 57)
    with session.lock:
        assert session.scheduler._news.wait_for(lambda: trained_on(session) == 57, 60)
    assert np.isclose(session.scheduler.n_untrained, 0)
