"""Labelling on a pretrained encoder's features: prepared before they are needed, each item once."""

import json
import sqlite3
import time

import numpy as np
import pytest
from PIL import Image
from safetensors import safe_open
from safetensors.torch import save_file

from askance.errors import AskanceError, DataError, ExtraError, InputError, UnknownError
from askance.label import (
    LabelingOptions,
    bundle,
    chosen_encoder,
    load,
    messages,
    open_session,
)
from askance.label.learner import Learner
from askance.label.project import open_project
from askance.label.source import ItemSource
from askance.label.store import FILE, ProjectStore
from tests.label.small_encoders import COLOURS, WORDS, count_in
from tests.label.worlds import Person, client_of, images_folder, token

CLASSES = ["red", "blue"]


@pytest.fixture(autouse=True)
def counted(tmp_path, monkeypatch):
    return count_in(tmp_path / "counted", monkeypatch, tmp_path / "cache")


@pytest.fixture
def root(tmp_path):
    return images_folder(tmp_path, 30)


def reviews(folder, n=24, file="reviews.csv"):
    lines = [f"k{i},{'good' if i % 2 else 'bad'} film number {i * i}" for i in range(n)]
    (folder / file).write_text("\n".join(["key,review", *lines]) + "\n")
    return ItemSource(folder / file, text="review", id="key")


class Looker(Person):
    """Somebody who sees the colour, or reads the verdict."""

    def choice(self, question):
        if question["kind"] == "image":
            return int(question["item"].split("/")[-1].split(".")[0]) % 2
        return int("bad" in question["text"])


def opened(start, source, **more):
    session = start(
        source, more.pop("classes", CLASSES), encoder=more.pop("encoder", COLOURS), **more
    )
    return session, Looker(client_of(session))


def ready(session):
    session.scheduler.wait(0)


@pytest.mark.parametrize("worker", ["here", "beside"])
def test_a_model_on_features_comes_and_is_right(start, root, worker, counted):
    session, person = opened(start, root, worker=worker)
    ready(session)
    assert counted() == 2  # thirty images, of two contents
    assert person.state()["model"]["preparing"] is None
    given = person.work(10, session)
    assert {question["kind"] for question in given} == {"image"}
    assert all(q["media"].startswith("/media/") and q["text"] is None for q in given)
    session.scheduler.wait(1)
    assert counted() == 0
    newest = session.versions[-1]
    assert newest.model == f"linear on {COLOURS}" == person.state()["model"]["name"]
    assert newest.seconds < 5
    guesses = session.training.guesses
    said = {item: guesses.guess(item).choice for item in session.items.ids}
    assert said == {item: int(item.split("/")[-1][:3]) % 2 for item in session.items.ids}


def test_texts_are_shown_and_encoded_once(start, tmp_path, counted):
    session, person = opened(start, reviews(tmp_path), encoder=WORDS, classes=["good", "bad"])
    ready(session)
    assert counted() == 24
    questions = person.work(6, session)
    assert all("film number" in question["text"] for question in questions)
    session.scheduler.wait(1)
    session.close()
    again, _ = opened(start, reviews(tmp_path), encoder=WORDS, classes=[])  # it is started again
    ready(again)
    assert counted() == 0
    again.close()
    more, _ = opened(start, reviews(tmp_path, 27), encoder=WORDS, classes=[])
    ready(more)
    assert counted() == 3


def test_a_folder_that_grows_while_it_is_served(start, root, counted):
    session, person = opened(start, root)
    ready(session)
    counted()
    Image.new("RGB", (40, 30), (250, 3, 1)).save(root / "100.png")
    session.watch.look()
    session.watch.look()
    ready(session)
    assert "100.png" in session.items.position
    assert counted() == 1
    person.work(6, session)
    session.scheduler.wait(1)
    assert session.training.guesses.guess("100.png").choice == 0


def test_what_cannot_be_read_is_left_out_and_counted(start, root):
    (root / "900.png").write_bytes(b"no image")
    session, person = opened(start, root)
    ready(session)
    assert session.training.unreadable == {"900.png"}
    assert person.state()["changes"]["unreadable"] == 1
    person.work(10, session)
    session.scheduler.wait(1)
    assert "900.png" not in {pick.item for pick in session.training.picks}
    rows = person.client.get("/api/export/predictions", params={"format": "jsonl"}).text
    assert "001.png" in rows
    assert "900.png" not in rows
    Image.new("RGB", (40, 30), (255, 0, 0)).save(root / "900.png")
    session.watch.look()
    session.watch.look()
    ready(session)
    assert not session.training.unreadable


def test_the_page_is_usable_while_items_are_prepared(start, root, pause):
    began, go_on = pause(Learner, "prepare")
    session, person = opened(start, root, batch=2, ahead=0)
    assert began.wait(10)
    session.scheduler._report_progress(3, 30)
    assert person.state()["model"]["preparing"] == {"done": 3, "total": 30}
    answered = 0
    for _ in range(40):  # more than the first picks
        batch = person.ask()
        if batch["questions"]:
            assert person.answer(batch["questions"][0]).status_code == 200
            answered += 1
        if answered == 8:
            break
    assert answered == 8
    assert not session.versions
    go_on.set()
    session.scheduler.wait(1)
    assert session.versions[-1].trained_on > 2
    assert person.state()["model"]["preparing"] is None


def test_an_encoder_that_fails_is_told_and_nothing_else_is_used(start, root):
    session, person = opened(start, root, encoder="tests.label.small_encoders:nowhere")
    with pytest.raises(AskanceError, match="has no 'nowhere'"):
        session.scheduler.wait(1)
    assert "has no 'nowhere'" in person.state()["model"]["error"]
    assert person.ask()["questions"]  # answering goes on
    assert not session.versions


def test_a_class_without_a_label_is_never_guessed(start, root):
    session, person = opened(start, root, classes=["red", "blue", "green"])
    person.work(10, session)
    session.scheduler.wait(1)
    guesses = session.training.guesses
    assert set(guesses.guesses.tolist()) <= {0, 1}
    assert np.isfinite(guesses.confidence).all()


def test_one_class_alone(start, root):
    session, person = opened(start, root, batch=2, held_out=0)
    for _ in range(2):
        question = person.ask()["questions"][0]
        person.answer(question, 0)
    session.scheduler.wait(1)
    assert set(session.training.guesses.guesses.tolist()) == {0}


def test_people_see_one_calibrated_probability(start, tmp_path):
    session, person = opened(
        start, reviews(tmp_path, 60), encoder=WORDS, classes=["good", "bad"], held_out=0
    )
    for number in range(20):  # with errors, so that the temperature is another than 1
        question = person.ask()["questions"][0]
        person.answer(question, person.choice(question) ^ (number % 4 == 0))
        session.scheduler.wait(0)
    card = bundle.header_of(session.scheduler.model_file)
    assert card["temperature"] != 1.0
    for pick in session.training.picks:
        guess = session.training.guesses.guess(pick.item)
        assert pick.numbers["confidence"] == pytest.approx(guess.confidence, abs=1e-6)


# Which encoder a project uses


def encoder_of(project):
    with ProjectStore.open(project) as store:
        return [each.encoder for each in store.encoders()]


def made(folder, source, **more):
    settings = LabelingOptions(worker="here", **more)
    project = open_project(folder / "project", source, CLASSES, settings)
    project.store.close()
    return project.options


def test_the_default_goes_by_the_kind_and_stays(tmp_path, root):
    texts = reviews(tmp_path)
    assert made(tmp_path / "a", texts).encoder == "minilm"
    assert made(tmp_path / "b", root).encoder == "efficientnet-lite0"
    assert made(tmp_path / "b", root).model_for("image") == "linear"
    assert encoder_of(tmp_path / "b" / "project") == ["efficientnet-lite0"]
    assert made(tmp_path / "c", root, model="lenet").encoder == "none"
    assert made(tmp_path / "c", root).model_for("image") == "lenet"  # as it was made


def test_another_encoder_is_named_and_kept(tmp_path, root):
    made(tmp_path, root, encoder="none")
    assert made(tmp_path, root).encoder == "none"
    assert made(tmp_path, root, encoder=COLOURS).encoder == COLOURS
    assert encoder_of(tmp_path / "project") == ["none", COLOURS]
    with pytest.raises(InputError, match=f"is run only when it is named: give --encoder {COLOURS}"):
        made(tmp_path, root)
    assert made(tmp_path, root, encoder=COLOURS).encoder == COLOURS
    assert encoder_of(tmp_path / "project") == ["none", COLOURS]


def test_a_project_of_before_goes_on_without(tmp_path, root):
    made(tmp_path, root, encoder="none")
    with sqlite3.connect(tmp_path / "project" / FILE) as db:
        db.execute("DROP TABLE encoder")
        db.execute("DROP TABLE event_group")
        db.execute("DROP TABLE class_edit")
        db.execute("PRAGMA user_version = 2")
    assert made(tmp_path, root).encoder == "none"
    assert encoder_of(tmp_path / "project") == []
    assert made(tmp_path, root, encoder="efficientnet-lite0").encoder == "efficientnet-lite0"
    assert made(tmp_path, root).encoder == "efficientnet-lite0"


def test_without_the_extra(tmp_path, root, monkeypatch):
    monkeypatch.setattr(chosen_encoder, "find_spec", lambda name: None)
    assert made(tmp_path / "new", root).encoder == "none"
    with pytest.raises(ExtraError, match=r"encoders"):
        made(tmp_path / "named", root, encoder="efficientnet-lite0")
    assert encoder_of(tmp_path / "named" / "project") == []
    monkeypatch.undo()
    assert made(tmp_path / "new", root).encoder == "none"  # it stays what it was


@pytest.mark.parametrize(
    ("encoder", "message"),
    [("minilm", "not for images; use 'efficientnet-lite0'"), ("minilms", "did you mean 'minilm'")],
)
def test_an_encoder_that_cannot_be_is_refused(tmp_path, root, encoder, message):
    with pytest.raises((InputError, UnknownError), match=message):
        made(tmp_path, root, encoder=encoder)


def test_what_does_not_go_together(tmp_path, root):
    with pytest.raises(InputError, match="leave out --model"):
        LabelingOptions(encoder="minilm", model="mlp")
    with pytest.raises(InputError, match="needs an encoder's features"):
        made(tmp_path, root, encoder="none", model="linear")


def test_features_are_taken_as_they_are(start):
    with pytest.raises(InputError, match="features already"):
        start(encoder="minilm")
    session = start(model="linear")
    Person(client_of(session)).work(12, session)
    session.scheduler.wait(1)
    again = load(session.scheduler.model_file)
    names, confidence = again.predict(session.items.features)
    guesses = session.training.guesses
    new = np.isnan(
        guesses.support
    )  # of the others it says what a model would that had not seen them
    said = [again.classes[choice] for choice in guesses.guesses]
    assert [names[row] for row in np.flatnonzero(new)] == [said[row] for row in np.flatnonzero(new)]
    assert np.allclose(confidence[new], guesses.confidence[new], atol=1e-6)
    assert 0 < new.sum() < len(new)


# The model's file


@pytest.fixture
def file(start, tmp_path):
    session, person = opened(start, reviews(tmp_path), encoder=WORDS, classes=["good", "bad"])
    person.work(8, session)
    session.scheduler.wait(1)
    return session.scheduler.model_file, session


def rewritten(path, **header):
    with safe_open(path, framework="pt") as read:
        card = json.loads(read.metadata()["askance"])
        tensors = {key: read.get_tensor(key) for key in read.keys()}  # noqa: SIM118
    for key, value in header.items():
        card[key] = {**card[key], **value} if isinstance(value, dict) else value
    save_file(tensors, path, {"askance": json.dumps(card)})
    return path


def test_the_file_predicts_what_the_page_says(file):
    path, session = file
    bundle = load(path, trust=True)
    names, confidence = bundle.predict(session.items.texts)
    guesses = session.training.guesses
    new = np.isnan(
        guesses.support
    )  # of the others it says what a model would that had not seen them
    said = [bundle.classes[choice] for choice in guesses.guesses]
    assert [names[row] for row in np.flatnonzero(new)] == [said[row] for row in np.flatnonzero(new)]
    assert np.allclose(confidence[new], guesses.confidence[new], atol=1e-6)
    assert 0 < new.sum() < len(new)
    assert "trust=True" in bundle.card()["load"]


def test_an_encoder_of_ones_own_needs_trust(file):
    with pytest.raises(InputError, match=r"one of askance's own encoders .*trust=True"):
        load(file[0])


@pytest.mark.parametrize("name", ["os:system", "hf:someone/model", "onnx:/tmp/x", None, 7])
def test_any_other_encoder_needs_trust(file, name):
    with pytest.raises(InputError, match="one of askance's own encoders"):
        load(rewritten(file[0], encoder={"name": name}))


def test_another_digest_is_refused(file):
    path, session = file
    sound = load(path, trust=True)
    with pytest.raises(DataError, match=r"with digest 00.*train the model again"):
        load(rewritten(path, encoder={"digest": "00"}), trust=True)
    sound.encoder.encoder.digest = "11"
    with pytest.raises(DataError, match=r"the encoder here has 11"):
        sound.predict(session.items.texts)
    name = WORDS.replace(":words", ":other_words")
    with pytest.raises(DataError, match="so its features differ"):
        load(rewritten(path, encoder={"name": name}), trust=True)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"temperature": 0}, "temperature must be a number above 0"),
        ({"temperature": None}, "does not fit"),
        ({"shape": [10**12]}, "inputs of shape"),
        ({"model": "mlp"}, "a pretrained encoder and the network 'mlp'"),
        ({"classes": ["a"]}, "expected the weights of linear for 1 classes"),
    ],
)
def test_a_header_that_does_not_fit_is_told(file, header, message):
    with pytest.raises(DataError, match=message):
        load(rewritten(file[0], **header), trust=True)


def test_the_real_ones_by_default(tmp_path):
    """Texts and MiniLM, in the other process, with nothing said."""
    source = reviews(tmp_path)
    session = open_session(tmp_path / "p", source, CLASSES, LabelingOptions(batch=6, held_out=0))
    try:
        person = Looker(client_of(session))
        session.scheduler.wait(0, 120)
        began = time.monotonic()
        for _ in range(6):
            question = person.ask()["questions"][0]
            body = {"question": question["id"], "class": person.choice(question)}
            body |= {"annotator": "ann", "token": token()}
            assert person.client.post("/api/answers", json=body).status_code == 200
        session.scheduler.wait(1)
        assert time.monotonic() - began < 10
        names, _ = load(session.scheduler.model_file).predict(["a good film", "a bad film"])
        assert len(names) == 2
    finally:
        session.close()


def test_a_first_batch_that_covers_waits_for_the_features(start, root, pause):
    began, go_on = pause(Learner, "prepare")
    session, person = opened(start, root, first="kcenter", batch=4, held_out=0)
    assert began.wait(10)
    batch = person.ask()
    assert not batch["questions"]
    assert batch["message"] == "The items are being prepared (0 of 30); questions come then."
    go_on.set()
    session.scheduler.wait(0)
    assert "unlike the others" in person.ask()["questions"][0]["why"]["text"]


def test_random_items_are_asked_until_the_features_are_there(start, root, pause):
    began, go_on = pause(Learner, "prepare")
    session, person = opened(start, root, batch=4, held_out=0)
    assert began.wait(10)
    question = person.ask()["questions"][0]
    assert question["why"]["text"] == messages.FIRST
    person.answer(question)
    go_on.set()
    session.scheduler.wait(0)
    picks = [pick.item for pick in session.training.picks]
    assert {pick.why for pick in session.training.picks} == {messages.COVERING}
    # One of each colour first, and not the item that was asked before.
    assert {int(item.split("/")[-1][:3]) % 2 for item in picks[:2]} == {0, 1}
    assert question["item"] not in picks
    person.work(5, session)
    session.scheduler.wait(1)
    assert len(session.versions) == 1


def test_with_one_class_labelled_picks_are_random_and_say_so(start, tmp_path):
    session, person = opened(
        start, reviews(tmp_path, 40), encoder=WORDS, batch=3, ahead=0, held_out=0.0, first="random"
    )
    ready(session)
    person.choice = lambda question: 0
    person.work(6, session)
    session.scheduler.wait(1)
    picks = list(session.training.picks)
    assert picks
    assert {pick.why for pick in picks} == {messages.ONE_CLASS}
    # Not the pool's order, which equal answers would give.
    order = [session.items.position[pick.item] for pick in picks]
    free = sorted(set(range(40)) - {session.items.position[i] for i in session.annotations.labels})
    assert order != free[: len(order)]
