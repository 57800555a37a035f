"""Data that changes while the page is served: nothing is mixed up or lost."""

import pytest

from askance.errors import DataError
from askance.label.media import page_image
from tests.label.changing import (
    SHADES,
    N,
    add,
    ann_of,
    choice,
    light,
    looked,
    put,
    trained_again,
)


@pytest.fixture
def session(start, root):
    return start(root, SHADES)


def test_a_renamed_image_stays_the_item_it_was(session, root, start):
    ann = ann_of(session)
    ann.work(6, session)
    first = next(iter(session.annotations.answers))
    held = session.split.held_out
    (root / first).rename(root / "zzz.png")
    state = looked(session)
    assert state["changes"]["text"] == (
        "The data has changed: 1 item has another name or place now and keeps its answers."
    )
    assert session.items.name(first) == "zzz.png"
    assert session.split.held_out == held
    assert ann.client.get(f"/media/{first}").status_code == 200
    assert ann.client.get("/media/zzz.png").status_code == 404
    trained_again(session, ann)
    assert first in session.training.trained_labels or first in held
    answers = ann.client.get("/api/export/answers?format=jsonl").text
    assert f'"item": "{first}"' in answers
    assert '"name": "zzz.png"' in answers
    session.close()
    session = start(root, SHADES)
    assert first in session.items.position
    assert len(session.store.items()) == N


def test_new_images_are_asked_and_missing_ones_are_not(session, root):
    ann = ann_of(session)
    ann.work(6, session)
    asked = ann.ask(3)["questions"]
    gone = asked[0]["item"]
    (root / gone).rename(root.parent / "away.png")
    for i in range(3):
        add(root, 900 + i)
    before = len(session.store.answers())
    state = looked(session)
    assert state["changes"]["text"] == (
        "The data has changed: 3 new items found, 1 item is missing. Answers about missing "
        "items are kept."
    )
    assert state["total"] == N + 2
    assert gone not in [question["item"] for question in ann.ask(48)["questions"]]
    assert gone not in session.split.held_out
    # Who had it before them may still say what it was; that is kept.
    assert ann.answer(asked[0]).status_code == 200
    assert len(session.store.answers()) == before + 1
    assert ann.client.get(f"/api/items/{gone}").json()["missing"] is True
    while ann.work(1, session):
        assert session.training.error is None
    answered = set(session.annotations.answers)
    assert {"n900.png", "n901.png", "n902.png"} <= answered
    assert gone not in session.training.trained_labels
    assert ann.state()["remaining"] == 0
    (root.parent / "away.png").rename(root / gone)
    assert looked(session)["changes"]["missing"] == 0
    assert gone in session.items.position
    assert session.annotations.labels[gone] == choice(asked[0])


def test_an_open_question_waits_for_its_item(session, root):
    ann = ann_of(session)
    question = ann.ask()["questions"][0]
    (root / question["item"]).rename(root.parent / "away.png")
    looked(session)
    other = ann.ask()["questions"][0]
    assert other["item"] != question["item"]
    (root.parent / "away.png").rename(root / question["item"])
    looked(session)
    assert ann.ask()["questions"][0]["id"] == question["id"]


def test_an_answer_to_what_is_gone_can_be_taken_back(session, root):
    ann = ann_of(session)
    question = ann.ask()["questions"][0]
    ann.answer(question)
    (root / question["item"]).unlink()
    assert looked(session)["answered"] == 0
    assert ann.undo().json()["question"]["item"] == question["item"]
    assert ann.skip(question).status_code == 200


def test_other_content_under_an_old_name_is_another_item(session, root, start):
    ann = ann_of(session)
    trained_again(session, ann)
    old = next(item for item in session.training.trained_labels)
    put(root, old, 777, 1 - choice({"item": old}))  # what was said of it is wrong of this
    state = looked(session)
    assert state["changes"]["changed"] == 1
    assert "1 item has other content now: the old one is missing" in state["changes"]["text"]
    new = next(item for item in session.items.ids if item.startswith(f"{old}@"))
    assert session.items.name(new) == old
    assert old not in session.items.position
    assert new not in session.annotations.labels
    assert old in session.annotations.labels
    ann.choice = lambda question: (
        1 - choice(question) if "@" in question["item"] else choice(question)
    )
    while ann.work(1, session):
        assert session.training.error is None
    assert old not in session.training.trained_labels
    assert session.annotations.labels[new] == 1 - session.annotations.labels[old]
    session.close()
    session = start(root, SHADES)
    assert new in session.items.position
    assert len(session.annotations.answers) == N + 1


def test_what_is_shown_is_what_was_listed(session, root):
    ann = ann_of(session)
    question = ann.ask()["questions"][0]
    put(root, question["item"], 777, 0)
    reply = ann.client.get(question["media"])
    assert reply.status_code == 422
    assert "has other content now" in reply.json()["error"]["message"]
    with pytest.raises(DataError, match="other content now"):
        page_image(root / question["item"], root, "0" * 16)


def test_a_change_that_no_look_has_seen_yet_is_not_trained_on(session, root):
    """The files are other ones by the time the worker reads them."""
    ann = ann_of(session)
    ann.work(3, session)
    item = next(i for i in session.annotations.labels if i not in session.split.held)
    put(root, item, 777, 1 - choice({"item": item}))
    trained_again(session, ann)
    assert item in session.training.unreadable
    assert ann.state()["changes"]["unreadable"] == 1
    looked(session)
    trained_again(session, ann)
    assert session.training.unreadable == frozenset()


def test_an_image_that_moved_under_the_worker_is_found_again(session, root):
    ann = ann_of(session)
    ann.work(3, session)
    item = next(i for i in session.annotations.labels if i not in session.split.held)
    (root / item).rename(root / "zzz.png")
    trained_again(session, ann)
    assert session.training.unreadable == {item}
    looked(session)
    assert session.training.unreadable == frozenset()
    (root / "zzz.png").rename(root / item)
    looked(session)
    trained_again(session, ann)
    assert session.training.unreadable == frozenset()


def test_a_file_that_is_still_copied_is_waited_for(session, root):
    add(root, 900)
    whole = (root / "n900.png").read_bytes()
    for size in (0, 100, 1000, len(whole)):
        (root / "n900.png").write_bytes(whole[:size])
        session.watch.look()
    assert "n900.png" not in session.items.position
    session.watch.look()
    assert "n900.png" in session.items.position
    assert looked(session)["changes"] | {"new": 1, "changed": 0} == looked(session)["changes"]


def test_data_that_is_gone_for_a_while(session, root):
    ann = ann_of(session)
    ann.work(3, session)
    root.rename(root.parent / "away")
    state = looked(session)
    assert "no such folder" in state["changes"]["trouble"]
    assert state["total"] == N
    assert ann.answer(ann.ask()["questions"][0]).status_code == 200
    (root.parent / "away").rename(root)
    state = looked(session)
    assert (state["changes"]["trouble"], state["changes"]["text"]) == (None, "")
    assert state["answers"] == 4


def test_other_data_is_not_taken_for_the_projects(session, root):
    for file in list(root.iterdir()):
        file.unlink()
    put(root, "x.png", 500, 0)
    assert "project of other data" in looked(session)["changes"]["trouble"]
    assert len(session.items) == N


def test_every_image_renamed_is_the_same_data(session, root, start):
    for file in list(root.iterdir()):
        file.rename(root / f"trip {file.name}")
    assert looked(session)["changes"]["renamed"] == N
    session.close()
    session = start(root, SHADES)
    assert len(session.store.items()) == len(session.items) == N


def test_who_is_held_out_is_decided_by_each_item(session, root):
    ann = ann_of(session)
    ann.work(6, session)
    before = set(session.split.held_out)
    for i in range(30):
        put(root, f"m{i:03d}.png", 1000 + i, light(i))
    for item in sorted(before)[:2]:
        (root / item).rename(root / f"renamed {item}")
    looked(session)
    after = set(session.split.held_out)
    assert before < after
    assert {item for item in after - before if item.startswith("n")} == set()
    while ann.work(1, session):
        assert not after & set(session.training.trained_labels)
    state = ann.state()
    assert state["held_out"]["answered"] == len(after)
    # A new item has no guess of the models before it: it counts for those that came later.
    guesses = session.training.held_out_guesses.of(session.split.held_out)
    new = [item not in before for item in session.split.held_out]
    assert (guesses[0, new] == -1).all()
    assert (guesses[-1] >= 0).all()
