"""A project that was given answers from outside: the page, the exports and the estimate."""

from itertools import permutations

import pytest

from askance.label import estimate
from askance.label.exports import export
from askance.label.files import read_answers
from askance.label.ingest import ingest
from askance.label.status import state
from tests.label.outside import plain, rows_of, said, standing, state_of
from tests.label.worlds import CLASSES, Person, client_of, open_features, token


def test_the_page_goes_on_from_there(tmp_path, start):
    session = start(batch=5)
    ann = Person(client_of(session))
    open_now = [question["item"] for question in ann.ask(3)["questions"]]
    queued = [pick.item for pick in session.training.picks if pick.item not in open_now]
    held = session.split.held_out[0]
    session.close()
    lot = [said(item, "left", "ann") for item in open_now]
    lot += [said(item, "right") for item in [*queued[:4], held]]
    assert len(ingest(tmp_path / "project", lot).applied) == 3 + 4 + 1
    session = start(batch=5)
    ann = Person(client_of(session))
    session.scheduler.wait(1)  # there were answers enough for a model
    assert session.versions[0].trained_on == sum(
        item not in session.split.held_out for item in [*open_now, *queued[:4]]
    )
    assert held not in session.training.trained_labels
    asked = {question["item"] for question in ann.ask(12)["questions"]}
    assert not asked & {*open_now, *queued[:4], held}
    state = ann.state()
    assert state["answers"] == 8 == len(session.store.answers())
    assert session.annotations.current(held) == {"bob": 1}
    assert plain(session.annotations) == plain(state_of(session.store))
    reasons = {
        session.annotations.questions[e.question].reason
        for e in session.annotations.acts["bob"].values()
    }
    assert reasons == {"outside"}
    # An undo on the page takes back the latest act, from wherever it came.
    bob = Person(client_of(session), "bob")
    assert bob.undo().status_code == 200
    assert session.annotations.current(held) == {}
    assert bob.ask()["questions"][0]["item"] == held


def test_a_project_with_every_answer_opens_and_is_finished(tmp_path, start):
    start().close()
    lot = [said(n, CLASSES[n % 2], time=f"2024-05-01T12:00:{n:02}") for n in range(60)]
    assert len(ingest(tmp_path / "project", lot).applied) == 60
    session = start()
    session.scheduler.wait(1)
    bob = Person(client_of(session), "bob")
    assert bob.ask() == {
        "questions": [],
        "waiting": False,
        "finished": True,
        "message": "There is nothing left to ask you.",
    }
    reply = state(session, "bob")
    assert reply.estimate.n == len(session.split.held_out)
    assert reply.per_minute is None  # nobody answered here


def test_disagreement_from_outside_is_asked_about(tmp_path, start):
    session = start(held_out=0, repeat=0)
    ann = Person(client_of(session))
    question = ann.ask()["questions"][0]
    ann.answer(question, 0)
    session.close()
    ingest(tmp_path / "project", [said(question["item"], "right")])
    session = start(held_out=0, repeat=0)
    again = Person(client_of(session)).ask()["questions"][0]
    assert (again["item"], again["reason"]) == (question["item"], "disagreement")


@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet"])
def test_what_a_project_exports_changes_nothing_in_it(tmp_path, format, start):
    session = start(held_out=0)
    for name in ("ann", "bob"):  # they disagree, so the majority is none of their answers
        for question in session.questions(name, 3)[0]:
            session.answer(question.id, 0 if name == "ann" else 1, name, token())
    item = next(iter(session.annotations.answers))
    session.close()
    ingest(tmp_path / "project", [said(item, "right", "cem"), said(item, "left", "dora")])
    session = start(held_out=0)
    file = tmp_path / f"answers.{format}"
    file.write_bytes(export(session, "answers", format))
    session.close()
    answer_file = read_answers(file, "nobody")
    assert (answer_file.left, answer_file.refused) == ([], [])
    before = rows_of(tmp_path / "project")
    done = ingest(tmp_path / "project", answer_file.answers)
    assert (len(done.unchanged), done.applied, done.refused) == (8, [], [])
    assert rows_of(tmp_path / "project") == before
    other = tmp_path / "other"
    other.mkdir()
    open_features(other, held_out=0).close()
    assert (
        len(ingest(other / "project", answer_file.answers).applied) == 8
    )  # and makes a copy elsewhere
    assert standing(other / "project") == standing(tmp_path / "project")


def test_held_out_answers_from_outside_do_not_bend_the_estimate(tmp_path, start):
    session = start(n=100)
    held = session.split.held_out
    session.close()
    ingest(tmp_path / "project", [said(number, CLASSES[number % 2]) for number in range(0, 30)])
    hard = [item for item in held if int(item.split()[1]) % 3 == 0 and int(item.split()[1]) >= 30]
    ingest(tmp_path / "project", [said(item, "left") for item in hard])
    session = start(n=100)
    session.scheduler.wait(1)
    assert (
        state(session, "ann").estimate is None
    )  # whoever chose them may have chosen the hard ones
    assert state(session, "ann").held_out.answered == 0
    rest = [item for item in held if item not in session.annotations.asked]
    session.close()
    ingest(tmp_path / "project", [said(item, "left") for item in rest])
    session = start(n=100)
    assert state(session, "ann").held_out.answered == len(held)  # now it is all of them


@pytest.mark.parametrize("hard", [1, 3, 5])
@pytest.mark.parametrize("drawn", [1, 2])
def test_the_fair_part_of_a_random_order_is_unbiased(hard, drawn):
    """Over all orders of 7 items, of which `hard` (worth 0) were answered from outside."""
    items = "abcdefg"
    outside = set(items[:hard])
    shares = []
    for order in permutations(items):
        asked = [item for item in order if item not in outside][:drawn]
        fair = order[: estimate.fair(order, asked, {*outside, *asked})]
        if drawn == 7 - hard:
            fair = order  # all were asked
        shares.append(sum(item not in outside for item in fair) / len(fair))
    assert sum(shares) / len(shares) == pytest.approx((7 - hard) / 7)
    assert estimate.fair(order, [], outside) == 0
