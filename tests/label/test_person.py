"""A simulated person answering digits through the API, against the library's own loop."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from scipy import stats

import askance
from askance import data, models
from askance.label import ItemSource, load, open_session
from askance.label.bundle import encoder_for
from askance.label.items import read
from askance.label.learner import Learner, TrainingTask
from askance.seeding import Draws
from askance.training import Recipe, TrainingJob, evaluate, fit
from tests.label.worlds import Person, client_of, features_file, options
from tests.rules import ONE_MODEL

EPOCHS, RATE = 30, 0.01


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """The pool as a Parquet file, its labels, and the test split."""
    digits = data.load("digits")
    path = tmp_path_factory.mktemp("digits") / "digits.parquet"
    rows = digits.train.inputs.numpy()
    pq.write_table(pa.table({"x": list(rows)}), path)
    return path, rows, digits.train.labels, digits.test


def by_the_page(digits, folder, *, seed, batch, rounds, held_out, at_once=1, **more):
    """(accuracy, items in the order of questions, state) of somebody who answers through the API."""
    path, _rows, labels, test = digits
    settings = options(
        batch=batch,
        held_out=held_out,
        epochs=EPOCHS,
        learning_rate=RATE,
        seed=seed,
        repeat=0,
        **{"strategy": "powergrad", **more},
    )
    names = [str(digit) for digit in range(10)]
    session = open_session(folder / f"p{seed}", ItemSource(path, features="x"), names, settings)
    person = Person(client_of(session))
    person.choice = lambda question: int(labels[int(question["item"])])
    while len(session.versions) <= rounds:
        person.work(1, session, at_once)
    picks = [
        session.items.position[question.item]
        for question in session.annotations.questions.values()
        if question.reason in ("first", "rule")
    ]
    file = folder / f"model-{seed}.safetensors"
    file.write_bytes(person.client.get("/api/export/model").content)
    state = person.state()
    session.close()
    names, _ = load(file).predict(test.inputs.numpy())
    right = np.asarray([int(name) for name in names]) == test.labels.numpy()
    assert state["model"]["trained_on"] == batch * (rounds + 1)
    return float(right.mean()), picks, state


def by_the_loop(digits, *, seed, batch, rounds, strategy="powergrad"):
    """(accuracy, picks) of `askance.loop` with the same rule, network and recipe."""
    _path, rows, labels, test = digits
    encode = encoder_for("features", rows)
    X, X_test = encode(rows), encode(test.inputs.numpy())
    oracle = askance.oracles.Truth(labels)

    def build(draws):
        return models.build("mlp", (X.shape[1],), 10, draws)

    for run in askance.loop(X, oracle, strategy=strategy, batch=batch, rounds=rounds, seed=seed):
        job = TrainingJob(run.rows, run.labels, RATE, Draws(seed, run.round))
        fitted = fit(build, X, [job], Recipe(epochs=EPOCHS))
        score = evaluate(fitted.model(0), X_test, test.labels)
        trained_on = run.rows.tolist()
        run.ask(fitted.embed(X)[0])
    return score.accuracy, trained_on


def test_with_nothing_held_out_the_page_is_the_loop(digits, tmp_path):
    """The same first batch, the same networks, the same picks in the same order."""
    torch.set_num_threads(1)
    page, picks, _ = by_the_page(digits, tmp_path, seed=0, batch=20, rounds=4, held_out=0)
    loop, rows = by_the_loop(digits, seed=0, batch=20, rounds=4)
    assert picks[: len(rows)] == rows
    assert page == loop


@pytest.mark.parametrize("strategy", ["powergrad", "grad-spread"])
def test_with_nothing_ahead_a_page_that_fetches_questions_is_the_loop(digits, tmp_path, strategy):
    """Also by a rule whose first picks depend on how many are asked for."""
    torch.set_num_threads(1)
    more = {"held_out": 0, "ahead": 0, "at_once": 6, "strategy": strategy}
    page, picks, _ = by_the_page(digits, tmp_path, seed=0, batch=20, rounds=3, **more)
    loop, rows = by_the_loop(digits, seed=0, batch=20, rounds=3, strategy=strategy)
    assert picks[: len(rows)] == rows
    assert page == loop


@pytest.mark.parametrize("strategy", ONE_MODEL)
def test_whether_the_first_picks_depend_on_how_many_are_asked_for(tmp_path, strategy):
    """If they do, a page that asks for batches ahead is not the loop; the pages say of which rule."""
    items = read(features_file(tmp_path, 200))
    learner = Learner(items, options(strategy=strategy))
    labelled = tuple(zip(items.ids[:20], items.digests[:20], strict=True))
    labels, exclude = np.arange(20) % 2, frozenset(items.ids[:20])
    few, many = (
        learner.learn(TrainingTask(1, labelled, labels, ("a", "b"), exclude, n, tmp_path / "m"))
        for n in (10, 30)
    )
    assert len(many.picks) == 30
    assert (many.picks[:10] == few.picks) == (
        strategy not in ("grad-spread", "grad-cover-shortlist", "typiclust", "cluster-margin")
    )


def test_with_a_share_held_out_it_learns_as_well(digits, tmp_path):
    page, _, state = by_the_page(digits, tmp_path, seed=1, batch=20, rounds=3, held_out=0.1)
    loop, _ = by_the_loop(digits, seed=1, batch=20, rounds=3)
    assert state["held_out"]["answered"] == pytest.approx(0.1 * state["answers"], abs=2)
    assert page > 0.75
    assert abs(page - loop) < 0.08  # one seed; five of them are the long form's


@pytest.mark.slow
def test_it_learns_as_well_as_the_loop_over_five_seeds(digits, tmp_path, capsys):
    pages, loops, inside = [], [], 0
    for seed in range(5):
        page, _, state = by_the_page(digits, tmp_path, seed=seed, batch=20, rounds=10, held_out=0.1)
        loop, _ = by_the_loop(digits, seed=seed, batch=20, rounds=10)
        pages.append(page)
        loops.append(loop)
        inside += state["estimate"]["low"] <= page <= state["estimate"]["high"]
    difference = np.mean(pages) - np.mean(loops)
    p = stats.ttest_rel(pages, loops).pvalue
    with capsys.disabled():
        print(json.dumps({"pages": pages, "loops": loops, "p": p}))  # noqa: T201
    assert p > 0.05, (pages, loops)
    assert abs(difference) < 0.02, (pages, loops)
    assert inside >= 3, "the estimate's interval should hold the test accuracy"
