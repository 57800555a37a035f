"""Data that changes while the page is served: nothing is mixed up or lost."""

import pytest

from askance.errors import DataError
from askance.label.media import shown
from tests.label.changing import (
    N,
    add,
    ann_of,
    choice,
    light,
    looked,
    opened,
    photos,
    put,
    trained_again,
)


@pytest.fixture
def root(tmp_path):
    return photos(tmp_path)


@pytest.fixture
def desk(tmp_path, root):
    desk = opened(tmp_path, root)
    yield desk
    desk.close()


def test_a_renamed_image_stays_the_item_it_was(desk, root, tmp_path):
    ann = ann_of(desk)
    ann.work(6, desk)
    first = next(iter(desk.book.answers))
    held = desk.shares.held_out
    (root / first).rename(root / "zzz.png")
    state = looked(desk)
    assert state["changes"]["text"] == (
        "The data has changed: 1 item has another name or place now and keeps its answers."
    )
    assert desk.items.name(first) == "zzz.png"
    assert desk.shares.held_out == held
    assert ann.client.get(f"/media/{first}").status_code == 200
    assert ann.client.get("/media/zzz.png").status_code == 404
    trained_again(desk, ann)
    assert first in desk.rounds._trained or first in held
    answers = ann.client.get("/api/export/answers?format=jsonl").text
    assert f'"item": "{first}"' in answers
    assert '"name": "zzz.png"' in answers
    desk.close()
    desk = opened(tmp_path, root)
    assert first in desk.items.position
    assert len(desk.store.items()) == N
    desk.close()


def test_new_images_are_asked_and_missing_ones_are_not(desk, root):
    ann = ann_of(desk)
    ann.work(6, desk)
    asked = ann.ask(3)["questions"]
    gone = asked[0]["item"]
    (root / gone).rename(root.parent / "away.png")
    for i in range(3):
        add(root, 900 + i)
    before = len(desk.store.answers())
    state = looked(desk)
    assert state["changes"]["text"] == (
        "The data has changed: 3 new items found, 1 item is missing and set aside. Answers about what "
        "is set aside are kept."
    )
    assert state["total"] == N + 2
    assert gone not in [question["item"] for question in ann.ask(48)["questions"]]
    assert gone not in desk.shares.held_out
    # Who had it before them may still say what it was; that is kept.
    assert ann.answer(asked[0]).status_code == 200
    assert len(desk.store.answers()) == before + 1
    assert ann.client.get(f"/api/items/{gone}").json()["missing"] is True
    while ann.work(1, desk):
        assert desk.rounds.error is None
    answered = set(desk.book.answers)
    assert {"n900.png", "n901.png", "n902.png"} <= answered
    assert gone not in desk.rounds._trained
    assert ann.state()["remaining"] == 0
    (root.parent / "away.png").rename(root / gone)
    assert looked(desk)["changes"]["missing"] == 0
    assert gone in desk.items.position
    assert desk.book.labels[gone] == choice(asked[0])


def test_an_open_question_waits_for_its_item(desk, root):
    ann = ann_of(desk)
    question = ann.ask()["questions"][0]
    (root / question["item"]).rename(root.parent / "away.png")
    looked(desk)
    other = ann.ask()["questions"][0]
    assert other["item"] != question["item"]
    (root.parent / "away.png").rename(root / question["item"])
    looked(desk)
    assert ann.ask()["questions"][0]["id"] == question["id"]


def test_an_answer_to_what_is_gone_can_be_taken_back(desk, root):
    ann = ann_of(desk)
    question = ann.ask()["questions"][0]
    ann.answer(question)
    (root / question["item"]).unlink()
    assert looked(desk)["answered"] == 0
    assert ann.undo().json()["question"]["item"] == question["item"]
    assert ann.skip(question).status_code == 200


def test_other_content_under_an_old_name_is_another_item(desk, root, tmp_path):
    ann = ann_of(desk)
    trained_again(desk, ann)
    old = next(item for item in desk.rounds._trained)
    put(root, old, 777, 1 - choice({"item": old}))  # what was said of it is wrong of this
    state = looked(desk)
    assert state["changes"]["changed"] == 1
    assert "1 item has other content now: the old one is set aside" in state["changes"]["text"]
    new = next(item for item in desk.items.ids if item.startswith(f"{old}@"))
    assert desk.items.name(new) == old
    assert old not in desk.items.position
    assert new not in desk.book.labels
    assert old in desk.book.labels
    ann.choice = lambda question: (
        1 - choice(question) if "@" in question["item"] else choice(question)
    )
    while ann.work(1, desk):
        assert desk.rounds.error is None
    assert old not in desk.rounds._trained
    assert desk.book.labels[new] == 1 - desk.book.labels[old]
    desk.close()
    desk = opened(tmp_path, root)
    assert new in desk.items.position
    assert len(desk.book.answers) == N + 1
    desk.close()


def test_what_is_shown_is_what_was_listed(desk, root):
    ann = ann_of(desk)
    question = ann.ask()["questions"][0]
    put(root, question["item"], 777, 0)
    reply = ann.client.get(question["media"])
    assert reply.status_code == 422
    assert "has other content now" in reply.json()["error"]["message"]
    with pytest.raises(DataError, match="other content now"):
        shown(root / question["item"], root, "0" * 16)


def test_a_change_that_no_look_has_seen_yet_is_not_trained_on(desk, root):
    """The files are other ones by the time the worker reads them."""
    ann = ann_of(desk)
    ann.work(3, desk)
    item = next(i for i in desk.book.labels if i not in desk.shares.held)
    put(root, item, 777, 1 - choice({"item": item}))
    trained_again(desk, ann)
    assert item in desk.rounds.unreadable
    assert ann.state()["changes"]["unreadable"] == 1
    looked(desk)
    trained_again(desk, ann)
    assert desk.rounds.unreadable == frozenset()


def test_an_image_that_moved_under_the_worker_is_found_again(desk, root):
    ann = ann_of(desk)
    ann.work(3, desk)
    item = next(i for i in desk.book.labels if i not in desk.shares.held)
    (root / item).rename(root / "zzz.png")
    trained_again(desk, ann)
    assert desk.rounds.unreadable == {item}
    looked(desk)
    assert desk.rounds.unreadable == frozenset()
    (root / "zzz.png").rename(root / item)
    looked(desk)
    trained_again(desk, ann)
    assert desk.rounds.unreadable == frozenset()


def test_a_file_that_is_still_copied_is_waited_for(desk, root):
    add(root, 900)
    whole = (root / "n900.png").read_bytes()
    for size in (0, 100, 1000, len(whole)):
        (root / "n900.png").write_bytes(whole[:size])
        desk.watch.look()
    assert "n900.png" not in desk.items.position
    desk.watch.look()
    assert "n900.png" in desk.items.position
    assert looked(desk)["changes"] | {"new": 1, "changed": 0} == looked(desk)["changes"]


def test_data_that_is_gone_for_a_while(desk, root):
    ann = ann_of(desk)
    ann.work(3, desk)
    root.rename(root.parent / "away")
    state = looked(desk)
    assert "no such folder" in state["changes"]["trouble"]
    assert state["total"] == N
    assert ann.answer(ann.ask()["questions"][0]).status_code == 200
    (root.parent / "away").rename(root)
    state = looked(desk)
    assert (state["changes"]["trouble"], state["changes"]["text"]) == (None, "")
    assert state["answers"] == 4


def test_other_data_is_not_taken_for_the_projects(desk, root):
    for file in list(root.iterdir()):
        file.unlink()
    put(root, "x.png", 500, 0)
    assert "project of other data" in looked(desk)["changes"]["trouble"]
    assert len(desk.items) == N


def test_every_image_renamed_is_the_same_data(desk, root, tmp_path):
    for file in list(root.iterdir()):
        file.rename(root / f"trip {file.name}")
    assert looked(desk)["changes"]["renamed"] == N
    desk.close()
    desk = opened(tmp_path, root)
    assert len(desk.store.items()) == len(desk.items) == N
    desk.close()


def test_who_is_held_out_is_decided_by_each_item(desk, root):
    ann = ann_of(desk)
    ann.work(6, desk)
    before = set(desk.shares.held_out)
    for i in range(30):
        put(root, f"m{i:03d}.png", 1000 + i, light(i))
    for item in sorted(before)[:2]:
        (root / item).rename(root / f"renamed {item}")
    looked(desk)
    after = set(desk.shares.held_out)
    assert before < after
    assert {item for item in after - before if item.startswith("n")} == set()
    while ann.work(1, desk):
        assert not after & set(desk.rounds._trained)
    state = ann.state()
    assert state["held_out"]["answered"] == len(after)
    # A new item has no guess of the models before it: it counts for those that came later.
    guesses = desk.rounds.held_guesses.of(desk.shares.held_out)
    new = [item not in before for item in desk.shares.held_out]
    assert (guesses[0, new] == -1).all()
    assert (guesses[-1] >= 0).all()
