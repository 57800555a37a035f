"""What comes next, as a function of records: no thread, no file, no model."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from askance.label.guesses import ModelGuesses
from askance.label.items import Items
from askance.label.planning import (
    NextQuestion,
    ProjectView,
    TrainingState,
    changed_labels,
    first_picks,
    next_question,
    next_step,
    random_picks,
    training_task,
)
from askance.label.project import ItemSplit
from askance.label.records import AskedQuestion, Class, Event, Guess, ModelVersion, RankedPick
from askance.label.source import ItemSource, LabelingOptions
from askance.label.state import replayed

TIME = "2024-01-01T00:00:00.000+00:00"
IDS = ["a", "b", "c", "d", "e", "f"]
VERSION = ModelVersion(1, TIME, 0, 0, 2, "mlp", "powergrad", 0.1)


def view_of(acts=(), held_out=(), repeats=(), ids=IDS):
    """A project in which `acts`, (item, annotator, class or None for open), were asked and said."""
    digests = [f"digest {item}" for item in ids]
    source = ItemSource(Path("items.csv"), text="t")
    items = Items(source, "text", list(ids), list(ids), digests, {}, texts=list(ids))
    rows = [row for row, item in enumerate(ids) if item not in held_out]
    split = ItemSplit(tuple(held_out), frozenset(repeats), np.asarray(rows))
    questions, events = [], []
    for number, (item, who, choice) in enumerate(acts, start=1):
        questions.append(AskedQuestion(number, item, who, TIME, "first", None, "why"))
        if choice is not None:
            events.append(Event(number, "answer", number, who, TIME, f"t{number}", choice))
    state = replayed([Class(0, "x"), Class(1, "y")], questions, events)
    return ProjectView(items, split, state, repeats)


def options(**more):
    return LabelingOptions(**{"batch": 2, "held_out": 0.0, **more})


def asked(view, training=TrainingState(), who="ann", taken=None, **more):  # noqa: B008
    step = next_question(view, training, options(**more), who, taken or {})
    return (step.item, step.reason) if isinstance(step, NextQuestion) else step


PICKS = first_picks(["c", "a"], "why")


def test_picks_come_best_first_and_only_once():
    training = TrainingState(picks=PICKS)
    assert asked(view_of(), training) == ("c", "first")
    assert asked(view_of(), training, taken={"c": "first"}) == ("a", "first")
    assert asked(view_of([("c", "bob", None)]), training) == ("a", "first")
    assert asked(view_of(ids=["a", "b"]), training) == ("a", "first")  # c is no longer there
    both = [("c", "bob", None), ("a", "bob", None)]
    assert asked(view_of(both), training) == "waiting"
    assert asked(view_of(), TrainingState(picks=(RankedPick(1, 0, "d", "why"),))) == ("d", "rule")


def test_one_question_in_so_many_is_held_out():
    view, training = view_of(held_out=["e", "f"]), TrainingState(picks=PICKS)
    reasons = []
    taken = {}
    for _ in range(4):
        item, reason = asked(view, training, taken=taken, held_out=0.5)
        taken[item] = reason
        reasons.append(reason)
    assert reasons == ["first", "held-out", "first", "held-out"]
    unreadable = replace(training, unreadable=frozenset(["e"]))
    assert asked(view, unreadable, taken={"c": "first"}, held_out=0.5) == ("f", "held-out")


@pytest.mark.parametrize("answered", [1, 2, 3])
@pytest.mark.parametrize("size", [1, 2, 4, 12])
def test_every_fourth_question_is_held_out_whatever_a_request_holds(start, answered, size):
    """A repeat in the same request is no new question, as it is none in a request of its own."""
    session = start(held_out=0.25, repeat=1, ahead=4)
    for number in range(answered):
        (question,) = session.questions("ann", 1).questions
        session.answer(question.id, 0, "ann", f"answer {number}")
    for _ in range(12 // size):
        for question in session.questions("bob", size).questions:
            session.skip(question.id, "bob", f"skip {question.id}")
    reasons = [question.reason for question in session.annotations.questions.values()]
    assert reasons.count("repeat") == answered
    new = [reason for reason in reasons if reason != "repeat"]
    assert [reason == "held-out" for reason in new] == [n % 4 == 3 for n in range(len(new))]


def test_the_end_comes_when_held_out_items_are_asked_too():
    everything = [(item, "bob", 0) for item in "abcd"]
    view = view_of(everything, held_out=["e"], ids=[*"abcde"])
    assert asked(view) == ("e", "held-out")
    assert asked(view, taken={"e": "held-out"}) == "finished"
    assert asked(view_of(everything[:3], ids=[*"abcd"])) == "waiting"
    unreadable = TrainingState(unreadable=frozenset("d"))
    assert asked(view_of(everything[:3], ids=[*"abcd"]), unreadable) == "finished"


def test_a_disagreement_comes_first_then_what_is_asked_twice():
    acts = [("a", "ann", 0), ("a", "bob", 1), ("b", "bob", 0)]
    view = view_of(acts, repeats=["b"])
    training = TrainingState(picks=PICKS)
    assert asked(view, training) == ("a", "disagreement")
    assert asked(view, training, taken={"a": "disagreement"}) == ("b", "repeat")
    assert asked(view, training, who="bob", taken={"a": "disagreement"}) == ("c", "first")
    assert asked(view, training, who="cem") == ("b", "repeat")


def test_a_question_has_the_newest_models_guess():
    guesses = ModelGuesses(3, ["b"], np.asarray([1]), np.asarray([0.75], np.float32))
    view = view_of([("b", "bob", 0)], repeats=["b"])
    step = next_question(view, TrainingState(guesses=guesses), options(), "ann")
    assert (step.version, step.guess) == (3, Guess(1, 0.75))


@pytest.mark.parametrize(
    ("n_changed", "picks_requested", "step"),
    [(0, False, None), (1, False, None), (2, False, "train"), (0, True, "train")],
)
def test_training_is_due_after_a_batch_or_on_request(n_changed, picks_requested, step):
    view = view_of([("a", "ann", 0)])
    assert next_step(view, TrainingState(), options(), n_changed, picks_requested) == step


def test_nothing_is_trained_without_a_label_to_train_on():
    for view in (view_of(), view_of([("e", "ann", 0)], held_out=["e"])):
        assert next_step(view, TrainingState(), options(), 5, True) is None


def test_kcenter_covers_a_new_project_once():
    kcenter = options(first="kcenter")
    assert next_step(view_of(), TrainingState(), kcenter, 0, False) == "cover"
    for view, training in (
        (view_of([("a", "ann", None)]), TrainingState()),
        (view_of(), TrainingState(picks=PICKS)),
        (view_of(), TrainingState(versions=(VERSION,))),
    ):
        assert next_step(view, training, kcenter, 0, False) is None


def test_changed_labels_are_those_the_newest_model_does_not_know():
    acts = [("a", "ann", 0), ("b", "ann", 1), ("c", "ann", 1), ("e", "ann", 0)]
    training = TrainingState(trained_labels={"a": 0, "b": 0, "d": 1, "gone": 1})
    assert changed_labels(view_of(acts, held_out=["e"]), training) == {"b", "c", "d"}


def test_a_task_has_all_labels_but_held_out_ones():
    view = view_of([("b", "ann", 1), ("e", "ann", 0), ("a", "ann", 0)], held_out=["e"])
    task = training_task(view, options(batch=3, ahead=1), 4, Path("m"))
    assert task.items == (("b", "digest b"), ("a", "digest a"))
    assert task.labels.tolist() == [1, 0]
    assert (task.version, task.classes, task.n) == (4, ("x", "y"), 6)
    assert task.exclude == {"a", "b", "e"}


def test_random_picks_are_of_free_items_and_follow_the_seed():
    view = view_of([("a", "ann", None)], held_out=["e"])
    picks = random_picks(view, options(batch=1, ahead=9))
    assert sorted(pick.item for pick in picks) == ["b", "c", "d", "f"]
    assert [pick.rank for pick in picks] == [0, 1, 2, 3]
    assert picks == random_picks(view, options(batch=1, ahead=9))
    assert len({random_picks(view, options(seed=seed))[0].item for seed in range(20)}) > 1
