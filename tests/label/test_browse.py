"""Looking through all items: what is listed, what an answer there does, and how it is undone."""

import itertools

import numpy as np
import pytest

from askance.label import ItemSource
from askance.label.browse import ItemFilter, shown_guess
from askance.label.likeness import WIDTH, Likeness
from askance.label.store import ProjectStore
from tests.label.outside import plain
from tests.label.worlds import Person, client_of, open_features, token


class Browser(Person):
    """A person who looks through the items and answers them there."""

    def find(self, **filters):
        reply = self.client.get("/api/items", params={"n": 200, **filters})
        assert reply.status_code == 200, reply.text
        return reply.json()

    def items(self, **filters):
        return [item["item"] for item in self.find(**filters)["items"]]

    def change(self, items, choice, key=None):
        body = {"items": items, "class": choice, "annotator": self.name, "token": key or token()}
        return self.client.post("/api/changes", json=body)

    def again(self, key=None):
        return self.client.post(
            "/api/again", json={"annotator": self.name, "token": key or token()}
        )


@pytest.fixture
def ann(session):
    return Browser(client_of(session))


def rows(session):
    return list(session.store.questions()), list(session.store.events())


def test_every_filter_lists_what_the_records_say(start):
    session = start()
    ann, bob = Browser(client_of(session)), Browser(client_of(session), "bob")
    ann.work(20, session)
    session.scheduler.wait(2)
    for question in ann.ask(2)["questions"]:
        ann.skip(question)
    bob.change(ann.items(annotator="ann", **{"class": 0})[:3], 1)
    annotations, training, view = session.annotations, session.training, session.view()
    ids = session.items.ids
    guesses = {item: shown_guess(view, training, item) for item in ids}
    assert any(guess is None for guess in guesses.values())  # held out and not answered
    shows = {
        "all": lambda item: True,
        "answered": lambda item: item in annotations.answers,
        "unanswered": lambda item: item not in annotations.answers,
        "skipped": lambda item: item in annotations.skips and item not in annotations.answers,
        "disagreement": lambda item: len(set(annotations.current(item).values())) > 1,
        "model-disagrees": lambda item: (
            item in annotations.labels and annotations.labels[item] != guesses[item].choice
        ),
    }
    for show, choice, who, guess in itertools.product(
        shows, (None, 0, 1), (None, "ann", "bob"), (None, 1)
    ):
        given = {"show": show, "class": choice, "annotator": who, "guess": guess}
        given = {name: value for name, value in given.items() if value is not None}

        def wanted(item, show=show, choice=choice, who=who, guess=guess):
            said = annotations.current(item)
            mine = said if who is None else {who: said[who]} if who in said else {}
            if show == "skipped" and who is not None:
                told = choice is None and who in annotations.skips.get(item, ())
            else:
                told = (who is None or mine) and (choice is None or choice in mine.values())
            model = guess is None or (guesses[item] and guesses[item].choice == guess)
            return shows[show](item) and told and model

        assert ann.items(**given) == [item for item in ids if wanted(item)], given
    sure = ann.find(least=0.5, most=0.9)["items"]
    assert sure
    assert all(0.5 <= item["guess"]["confidence"] <= 0.9 for item in sure)
    surest = [item["guess"] for item in ann.find(order="surest")["items"]]
    told = [guess["confidence"] for guess in surest if guess]
    assert told == sorted(told, reverse=True)
    assert surest[-1] is None
    latest = ann.items(order="latest")
    assert set(latest[:3]) == {i for i, by in annotations.answers.items() if "bob" in by}


def test_pages_of_the_list(ann):
    whole = ann.find()
    assert whole["total"] == 60
    pages = [ann.find(n=25, offset=offset) for offset in (0, 25, 50, 75)]
    assert [len(page["items"]) for page in pages] == [25, 25, 10, 0]
    assert [item for page in pages for item in page["items"]] == whole["items"]
    assert ann.client.get("/api/items?n=0").status_code == 422
    assert ann.client.get("/api/items?show=nothing").status_code == 422


def test_texts_names_and_columns_are_searched(tmp_path, start):
    table = tmp_path / "t.csv"
    table.write_text("key,said,who\na,Grüße aus KÖLN,Bo\nb,nothing,Köln\nköln-3,other,\nd,x,y\n")
    ann = Browser(client_of(start(ItemSource(table, text="said", id="key"))))
    assert ann.items(search="köln") == ["a", "b", "köln-3"]
    assert ann.items(search="GRÜSSE") == ["a"]
    assert ann.items(search="%_") == []


def test_a_held_out_items_guess_is_hidden_until_it_is_answered(start):
    session = start()
    ann = Browser(client_of(session))
    ann.work(12, session)
    session.scheduler.wait(1)
    held = [item for item in ann.find()["items"] if item["held_out"]]
    assert {bool(item["guess"]) for item in held if not item["answers"]} == {False}
    assert {bool(item["guess"]) for item in held if item["answers"]} == {True}
    surest = (
        ann.find(show="unanswered", guess=0)["items"]
        + ann.find(show="unanswered", guess=1)["items"]
    )
    assert surest
    assert not any(item["held_out"] for item in surest)


def test_an_answer_is_changed_and_its_history_is_kept(ann, session):
    question = ann.ask()["questions"][0]
    ann.answer(question, 0)
    before = len(rows(session)[1])
    reply = ann.change([question["item"]], 1).json()
    assert reply["items"] == [question["item"]]
    assert session.annotations.current(question["item"]) == {"ann": 1}
    assert len(rows(session)[1]) == before + 1
    told = ann.client.get(f"/api/items/{question['item']}").json()["history"]
    assert [row["name"] for row in told if row["kind"] == "answer"] == ["left", "right"]
    undone = ann.undo().json()
    assert undone["items"] == [question["item"]]
    assert session.annotations.current(question["item"]) == {"ann": 0}
    assert question["id"] not in {one["id"] for one in ann.ask(5)["questions"]}
    assert ann.undo().json()["question"] == question


def test_the_same_answer_again_changes_nothing(ann, session):
    question = ann.ask()["questions"][0]
    ann.answer(question, 0)
    before = rows(session)
    assert ann.change([question["item"]], 0).json()["items"] == []
    assert rows(session) == before


def test_an_item_that_is_open_is_answered_there(ann, session):
    first, second = ann.ask(2)["questions"]
    assert ann.change([first["item"]], 1).json()["questions"] == [first["id"]]
    assert [one["id"] for one in ann.ask(1)["questions"]] == [second["id"]]
    assert ann.answer(first, 0).status_code == 409  # it has been answered
    assert ann.undo().json()["question"]["id"] == first["id"]
    assert ann.ask(1)["questions"][0]["id"] == first["id"]


def test_many_are_one_act(ann, session):
    asked = ann.ask()["questions"][0]
    free = [item for item in ann.items(show="unanswered") if item != asked["item"]][:20]
    key = token()
    reply = ann.change([asked["item"], *free, free[0]], 1, key)
    assert reply.json()["items"] == [asked["item"], *free]
    assert ann.state()["mine"]["answers"] == 21
    after = rows(session)
    again = ann.change([asked["item"], *free], 1, key).json()  # a reply that was lost
    assert again["duplicate"]
    assert again["items"] == [asked["item"], *free]
    assert rows(session) == after
    assert ann.change(free, 0, key).status_code == 409
    key = token()
    undone = ann.undo(key).json()
    assert undone["items"] == [asked["item"], *free]
    assert ann.undo(key).json()["items"] == undone["items"]
    assert ann.state()["mine"]["answers"] == 0
    assert ann.undo().status_code == 409  # there is nothing left to undo
    # Nobody was asked about the others: they can be asked and picked like any.
    assert [one["item"] for one in ann.ask()["questions"]] == [asked["item"]]
    assert set(free).isdisjoint(session.annotations.asked)
    for item in free:
        assert session.annotations.current(item) == {}


def test_what_is_refused(ann, session):
    assert ann.change(["nowhere"], 0).status_code == 404
    assert ann.change(["item 1", "nowhere"], 0).status_code == 404
    assert ann.change(["item 1"], 7).status_code == 422
    assert ann.change([], 0).status_code == 422
    assert ann.again().status_code == 409
    session.broken["item 2"] = "damaged"
    assert ann.change(["item 1", "item 2"], 0).status_code == 409
    assert rows(session) == ([], [])


def test_a_restart_says_the_same(tmp_path):
    session = open_features(tmp_path)
    ann, bob = Browser(client_of(session)), Browser(client_of(session), "bob")
    ann.change(ann.items()[:10], 0)
    ann.change(ann.items()[:4], 1)
    ann.undo()
    bob.change(ann.items()[5:9], 1)
    bob.undo()
    ann.skip(ann.ask()["questions"][0])
    ann.again()
    before, groups = plain(session.annotations), session.annotations.groups
    session.close()
    with ProjectStore.open(tmp_path / "project") as store:
        assert plain(store.annotations()) == before
        assert store.annotations().groups == groups
    session = open_features(tmp_path)
    assert {item for item, who in session.annotations.asked.items() if "bob" in who} == set()
    assert Browser(client_of(session)).undo().json()["items"] == ann.items()[:10]
    session.close()


def test_answers_from_the_list_train_the_model_but_not_on_held_out_items(start):
    session = start(batch=10)
    ann = Browser(client_of(session))
    items = ann.find()["items"]
    for choice in (0, 1):
        lot = [item["item"] for item in items if int(item["item"].split()[1]) % 2 == choice][:15]
        ann.change(lot, choice)
    session.scheduler.wait(1)
    answered = {item["item"] for item in ann.find(show="answered")["items"]}
    held = answered & session.split.held
    assert held
    assert set(session.training.trained_labels) == answered - held
    # A held-out item counts once the page has reached it in its random order.
    assert ann.state()["held_out"]["answered"] == 0


def test_skipped_items_come_back_when_asked_for(ann, session):
    skipped = [question["item"] for question in ann.ask(3)["questions"]]
    for question in ann.ask(3)["questions"]:
        ann.skip(question)
    assert ann.items(show="skipped") == sorted(skipped, key=session.items.position.get)
    assert ann.state()["mine"]["again"] == 3
    ann.change([skipped[1]], 0)  # answered meanwhile
    key = token()
    assert ann.again(key).json()["n"] == 2
    assert ann.again(key).json()["n"] == 2
    assert [one["item"] for one in ann.ask(2)["questions"]] == [skipped[0], skipped[2]]
    assert ann.state()["mine"]["again"] == 0


def test_skipped_items_come_back_once_at_the_end(start):
    session = start(n=12, held_out=0.0, batch=100)
    ann, times = Browser(client_of(session)), {}
    while questions := ann.ask()["questions"]:
        item = questions[0]["item"]
        times[item] = times.get(item, 0) + 1
        ann.skip(questions[0]) if int(item.split()[1]) < 4 else ann.answer(questions[0])
    assert times == {f"item {n}": 2 if n < 4 else 1 for n in range(12)}
    assert ann.again().json()["n"] == 4  # and as often as somebody wants


def test_look_alikes_come_by_their_cosine():
    rng = np.random.default_rng(0)
    for width in (5, 3 * WIDTH):
        inputs = rng.normal(size=(40, width)).astype(np.float32)
        inputs[7] = 1.5 * inputs[3] + 0.01 * inputs[7]
        likeness = Likeness.of([f"i{n}" for n in range(40)], inputs)
        assert likeness.nearest("i3")[:2] == ["i3", "i7"]
        assert sorted(likeness.nearest("i3")) == sorted(f"i{n}" for n in range(40))
        assert likeness.nearest("nowhere") == []
    centred = inputs[:, :5] - inputs[:, :5].mean(axis=0)
    unit = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    exact = sorted(range(40), key=lambda n: (n != 9, -float(unit[9] @ unit[n])))
    near = Likeness.of([f"i{n}" for n in range(40)], inputs[:, :5]).nearest("i9")
    assert near == [f"i{n}" for n in exact]
    assert Likeness.of(["a", "b"], np.ones((2, 3), np.float32)).nearest("b") == ["b", "a"]


def test_look_alikes_of_a_project(start):
    session = start()
    ann = Browser(client_of(session))
    assert ann.find(like="item 4")["likeness"] is False
    ann.work(12, session)
    session.scheduler.wait(1)
    session.scheduler.close()  # its last work is done
    found = ann.find(like="item 4", show="unanswered", n=10)
    assert found["likeness"]
    assert not any(item["held_out"] or item["answers"] for item in found["items"])
    even = [int(item["item"].split()[1]) % 2 == 0 for item in found["items"]]
    assert sum(even) >= 8  # the features tell the classes apart


def test_the_list_is_made_again_only_when_something_changed(session):
    wanted = ItemFilter(show="unanswered")
    first = session.matching(wanted)
    assert session.matching(ItemFilter(show="unanswered")) is first
    assert session.matching(ItemFilter()) is not first
    ann = Browser(client_of(session))
    first = session.matching(wanted)
    ann.answer(ann.ask()["questions"][0])
    assert len(session.matching(wanted)) == len(first) - 1
