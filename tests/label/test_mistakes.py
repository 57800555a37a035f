"""What the model gets wrong: counted on held-out answers, and answers it doubts come first."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import cohen_kappa_score, confusion_matrix

import askance
from askance.encoders.linear import Standardiser, fit_linear, unseen_probabilities
from askance.label.guesses import ModelGuesses
from askance.seeding import Draws
from tests.label.test_calibration import asked, encoded
from tests.label.test_last_answers import answer
from tests.label.worlds import Person, client_of


@pytest.fixture
def answered(start):
    """A project in which ann answers all, some wrongly, with a linear model."""
    session = start(n=120, model="linear", held_out=0.3, batch=20, repeat=0)
    ann, wrong = Person(client_of(session)), set()
    while questions := ann.ask()["questions"]:
        (question,) = questions
        choice = ann.choice(question)
        if len(session.annotations.answers) % 12 == 5:
            choice, _ = 1 - choice, wrong.add(question["item"])
        ann.answer(question, choice)
        session.scheduler.wait(0)
    session.scheduler.catch_up()
    return session, wrong


def test_confusions_are_scikit_learns(answered):
    session, _ = answered
    found = client_of(session).get("/api/mistakes").json()
    labels, guesses = session.annotations.labels, session.training.guesses
    held = [item for item in session.split.held_out if item in labels]
    expected = confusion_matrix(
        [labels[item] for item in held], [guesses.guess(item).choice for item in held]
    )
    counted = np.zeros((2, 2), int)
    for cell in found["confusion"]:
        counted[cell["said"], cell["guessed"]] = cell["n"]
    assert np.array_equal(counted, expected)
    assert found["n"] == len(held) == sum(one["n"] for one in found["by_class"])
    shares = [one["right"] / one["n"] for one in found["by_class"]]
    assert shares == sorted(shares)
    for one in found["by_class"]:
        row = expected[one["class"]]
        assert (one["right"], one["n"]) == (row[one["class"]], row.sum())
        assert one["low"] <= one["right"] / one["n"] <= one["high"]
    assert sum(one["n"] for one in found["by_confidence"]) == len(held)
    for one in found["by_confidence"]:
        assert one["least"] <= one["mean"] <= one["most"]


def test_wrong_answers_come_first(answered):
    session, wrong = answered
    client = client_of(session)
    query = {"show": "answered", "order": "doubtful"}
    listed = client.get("/api/items", params=query).json()["items"]
    first = [one["item"] for one in listed[: len(wrong)]]
    assert len(wrong) >= 8
    assert len(wrong & set(first)) >= 0.8 * len(wrong)
    found = client.get("/api/mistakes").json()
    assert abs(found["doubtful"] - len(wrong)) <= 3
    # An answer that was corrected is doubted no more, before the next training already.
    item = next(item for item in first if item in wrong and item not in session.split.held)
    person = Person(client)
    label = session.annotations.labels[item]
    body = {"items": [item], "class": 1 - label, "annotator": "ann", "token": "corrected"}
    assert client.post("/api/changes", json=body).status_code == 200
    listed = client.get("/api/items", params=query).json()["items"]
    assert item not in [one["item"] for one in listed[: len(wrong)]]
    assert person.state()["model"]["untrained"] == 1
    again = client.get("/api/mistakes").json()
    assert again["doubtful"] == found["doubtful"] - 1


def test_doubts_outlast_a_restart(answered, tmp_path):
    session, _ = answered
    guesses = session.training.guesses
    path = tmp_path / "guesses.npz"
    guesses.save(path)
    back = ModelGuesses.load(path, guesses.version)
    supported = [item for item in back.ids if back.support_of(item) is not None]
    assert set(supported) == set(session.training.trained_labels)
    assert [back.support_of(i) for i in supported] == [guesses.support_of(i) for i in supported]


def test_before_there_is_a_model_nothing_is_known(session):
    answer(session, 2)
    found = client_of(session).get("/api/mistakes").json()
    assert (found["version"], found["n"], found["doubtful"]) == (0, 0, 0)
    assert found["confusion"] == found["by_class"] == found["by_confidence"] == []


def test_a_held_out_items_guess_is_not_told_before_its_answer(session):
    answer(session, 6)
    session.scheduler.wait(1)
    found = client_of(session).get("/api/mistakes").json()
    answered = [item for item in session.split.held_out if item in session.annotations.answers]
    assert found["n"] <= len(answered)


def test_agreement_is_cohens(start):
    session = start(repeat=1.0, held_out=0, batch=500)
    people = [Person(client_of(session), name) for name in ("ann", "bob")]
    said = {"ann": {}, "bob": {}}
    rng = np.random.default_rng(0)
    for person in people:
        for _ in range(24):
            (question,) = person.ask()["questions"]
            choice = int(rng.integers(2)) if rng.random() < 0.4 else person.choice(question)
            if question["item"] in said[person.name]:
                choice = said[person.name][question["item"]]  # asked again: stands by it
            said[person.name][question["item"]] = choice
            person.answer(question, choice)
    (pair,) = client_of(session).get("/api/mistakes").json()["agreement"]
    both = [item for item in said["ann"] if item in said["bob"]]
    one, other = ([said[name][item] for item in both] for name in ("ann", "bob"))
    assert pair["n"] == len(both) > 10
    assert pair["agree"] == sum(a == b for a, b in zip(one, other, strict=True))
    assert pair["kappa"] == pytest.approx(cohen_kappa_score(one, other))


def test_no_model_that_is_asked_has_seen_the_answer():
    """Moving a point's label changes what the others are told, and never its own row's sum."""
    X, y = load_digits(return_X_y=True)
    x, y = Standardiser.of(X)(X)[:80], y[:80]
    fit = fit_linear(x, y, 10)
    told = unseen_probabilities(x, y, fit)
    np.testing.assert_allclose(told.sum(axis=1), 1)
    seen = fit.probabilities(x)
    rows = np.arange(80)
    assert told[rows, y].mean() < seen[rows, y].mean()  # it knows its own answers better
    # By hand: the fold of the first point, fitted without it.
    order = np.concatenate([np.flatnonzero(y == label) for label in range(10)])
    fold = np.empty(80, int)
    fold[order] = np.arange(80) % 5
    rest = fold != fold[0]
    without = fit_linear(x[rest], y[rest], 10, strength=fit.strength, calibrated=False)
    by_hand = np.exp(without.logits(x[:1]) / fit.temperature)
    np.testing.assert_allclose(told[0], (by_hand / by_hand.sum())[0], atol=5e-3)


def test_a_class_with_one_label_is_not_doubted():
    X, y = load_digits(return_X_y=True)
    x = Standardiser.of(X)(X)
    rows = np.concatenate([np.flatnonzero(y == 0)[:5], np.flatnonzero(y == 1)[:5], [4]])
    told = unseen_probabilities(x[rows], y[rows], fit_linear(x[rows], y[rows], 10))
    assert np.isnan(told[-1]).all()
    assert np.isfinite(told[:-1]).all()
    one = fit_linear(x[rows[:5]], y[rows[:5]], 10)
    assert np.isnan(unseen_probabilities(x[rows[:5]], y[rows[:5]], one)).all()


def test_on_digits_most_wrong_answers_are_in_the_first_tenth():
    """Of 300 labels one in twenty is wrong; by chance a tenth of those would be there."""
    X, truth = load_digits(return_X_y=True)
    rows = Standardiser.of(X)(X)
    rng = np.random.default_rng(0)
    y = truth.copy()
    flipped = rng.random(len(y)) < 0.05
    y[flipped] = (y[flipped] + rng.integers(1, 10, flipped.sum())) % 10
    known = askance.select(None, None, rows, 300, strategy="random", seed=Draws(0)).indices
    fit = fit_linear(rows[known], y[known], 10)
    support = unseen_probabilities(rows[known], y[known], fit)[np.arange(300), y[known]]
    wrong = flipped[known][np.argsort(support)]
    assert wrong.sum() >= 10
    assert wrong[:30].sum() > 0.5 * wrong.sum()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "encoder", "column", "found"),
    [
        ("20newsgroups", "minilm", "text", 0.77),
        ("trec", "minilm", "text", 0.71),
        ("sst2", "minilm", "text", 0.36),
        ("stl10", "efficientnet-lite0", "image", 0.70),
    ],
)
def test_wrong_answers_are_found_in_the_first_tenth(name, encoder, column, found):
    """One answer in twenty is wrong, to 300 questions of a rule; by chance a tenth would be found."""
    features, truth = encoded(name, encoder, column)
    rows, shares = Standardiser.of(features)(features), []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        labels, flipped = truth.copy(), rng.random(len(truth)) < 0.05
        classes = int(truth.max()) + 1
        moved = rng.integers(1, classes, flipped.sum())
        labels[flipped] = (labels[flipped] + moved) % classes
        *_, (known, fitted) = asked(rows, labels, seed)
        told = unseen_probabilities(rows[known], labels[known], fitted)
        support = told[np.arange(len(known)), labels[known]]
        wrong = flipped[known][np.argsort(support)]  # NaN comes last
        shares.append(wrong[: len(known) // 10].sum() / wrong.sum())
    assert np.mean(shares) == pytest.approx(found, abs=0.05)
