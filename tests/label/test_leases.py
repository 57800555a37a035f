"""Questions that nobody answers come back, and invented names keep nothing from anybody."""

from datetime import UTC, datetime, timedelta

import pytest

from askance.label import planning, records
from askance.label import session as sessions
from askance.label.state import KEPT_FOR_NEWCOMERS
from tests.label.worlds import Person, client_of


@pytest.fixture
def clock(monkeypatch):
    """Seconds that the clock is ahead by."""
    ahead = [0.0]

    def now():
        moment = datetime.now(UTC) + timedelta(seconds=ahead[0])
        return moment.isoformat(timespec="milliseconds")

    for module in (records, planning, sessions):
        monkeypatch.setattr(module, "now", now)
    return ahead


@pytest.fixture
def people(start):
    def opened(**more):
        client = client_of(start(batch=60, repeat=0, **more))
        return Person(client, "ann"), Person(client, "ben")

    return opened


def items(batch):
    return [question["item"] for question in batch["questions"]]


def label_all(person, batches=100):
    """Everything this person can get, a batch at a time."""
    labelled = []
    for _ in range(batches):
        batch = person.ask(10)
        for question in batch["questions"]:
            assert person.answer(question, 0).status_code == 200
            labelled.append(question["item"])
        if batch["finished"]:
            break
    return labelled


def test_what_somebody_let_lie_is_asked_of_another(people, clock):
    ann, ben = people()
    first = ann.ask(2)["questions"]
    assert ann.answer(first[0], 0).status_code == 200
    lying = first[1]["item"]
    assert lying not in items(ben.ask(3))
    clock[0] = 1_000
    assert lying in items(ben.ask(6))
    assert items(ann.ask(1)) == [lying]  # who was asked still has it
    assert items(ann.ask(4)).count(lying) == 1


def test_every_item_is_labelled_though_somebody_left(people, clock):
    ann, ben = people()
    ann.answer(ann.ask()["questions"][0], 0)
    gone = set(items(ann.ask(20)))
    clock[0] = 1_000
    assert gone <= set(label_all(ben))
    assert ben.state()["answered"] == 60


def test_somebody_at_work_keeps_theirs(people, clock):
    ann, ben = people()
    *answered, last = ann.ask(6)["questions"]
    for question in answered:
        clock[0] += 600  # slow, but there
        assert ann.answer(question, 0).status_code == 200
    assert last["item"] not in items(ben.ask(10))


def test_a_clock_that_is_set_back_keeps_nothing_for_ever(people, clock):
    ann, ben = people()
    lying = items(ann.ask(3))
    clock[0] = -86_400
    assert set(lying) <= set(items(ben.ask(20)))


def test_invented_names_keep_nothing_from_people(people):
    ann, _ = people()
    for number in range(200):
        Person(ann.client, f"nobody {number}").ask(48)
    assert ann.answer(ann.ask()["questions"][0], 0).status_code == 200
    for number in range(200):
        Person(ann.client, f"no one {number}").ask(48)
    label_all(ann)
    assert ann.state()["answered"] == 60


def test_newcomers_keep_the_newest_alone(people):
    ann, _ = people()
    asked = [items(Person(ann.client, f"new {number}").ask(1)) for number in range(60)]
    assert all(asked)
    first = [each for (each,) in asked[:KEPT_FOR_NEWCOMERS]]
    assert len(set(first)) == KEPT_FOR_NEWCOMERS


def test_a_restart_keeps_what_was_kept(start):
    session = start(batch=60)
    ann = Person(client_of(session), "ann")
    ann.answer(ann.ask()["questions"][0], 0)
    kept = set(items(ann.ask(3)))
    session.close()
    ben = Person(client_of(start(batch=60)), "ben")
    assert not kept & set(items(ben.ask(10)))
