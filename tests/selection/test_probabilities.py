"""`select` with a model that gives probabilities: scikit-learn's classifiers and their like."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from torch.utils.data import DataLoader, TensorDataset

import askance
from askance import strategies
from askance.errors import InputError, KindError, LabelError, NonFiniteError
from askance.oracles import Truth
from askance.selection.probabilities import FLOOR
from tests.rules import ONE_MODEL

RNG = np.random.default_rng(0)
POOL = RNG.normal(size=(90, 4))
X = RNG.normal(size=(40, 4))
NAMES = np.array(["owl", "ant", "cat"])
Y = NAMES[(X[:, 0] > 0).astype(int) + (X[:, 1] > 0)]
RULES = ["entropy", "margin", "least-confidence"]
MODELS = {
    "forest": RandomForestClassifier(20, random_state=0),
    "forest in threads": RandomForestClassifier(30, max_depth=3, n_jobs=2, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=5, random_state=0),
    "tree": DecisionTreeClassifier(random_state=0),
    "neighbours": KNeighborsClassifier(3),
    "bayes": GaussianNB(),
    "pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
    "search": GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2),
    "calibrated": CalibratedClassifierCV(RidgeClassifier(), cv=2),
    "support vectors": SVC(),
}


def fitted(kind):
    model = MODELS[kind]
    if isinstance(model, SVC):
        model = CalibratedClassifierCV(model, cv=2)
    return model.fit(X, Y)


def utilities(p, rule):
    """Higher is better, straight from probabilities."""
    if rule == "entropy":
        return -np.sum(np.where(p > 0, p * np.log(np.where(p > 0, p, 1.0)), 0.0), axis=1)
    if rule == "margin":
        best = np.sort(p, axis=1)
        return best[:, -2] - best[:, -1]
    return -p.max(axis=1)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("rule", RULES)
def test_scores_are_those_of_its_probabilities_whatever_the_batch(kind, rule):
    model = fitted(kind)
    picks = askance.select(model, None, POOL, 10, strategy=rule, keep_scores=True)
    expected = utilities(model.predict_proba(POOL), rule)
    scores = picks.pool_scores
    if rule == "least-confidence":  # the same order, on a scale of its own
        np.testing.assert_array_equal(np.argsort(-scores, kind="stable")[:10], picks.indices)
        assert np.allclose(np.sort(expected)[::-1][:10], expected[picks.indices], atol=1e-9)
    else:
        np.testing.assert_allclose(scores, expected, atol=1e-9)
    for batch_size in (6, 64):
        again = askance.select(
            model, None, POOL, 10, strategy=rule, batch_size=batch_size, keep_scores=True
        )
        np.testing.assert_array_equal(again.indices, picks.indices)
        np.testing.assert_allclose(again.pool_scores, scores, atol=1e-10)


def test_the_default_looks_at_probabilities_alone():
    for model in (fitted("forest"), fitted("pipeline")):
        for labeled in (None, (X, Y)):
            picks = askance.select(model, labeled, POOL, 5)
            assert picks.strategy == strategies.get(strategies.ranked({"logits"})[0])
            assert picks.chosen.endswith("default for probabilities alone")


def test_a_rule_that_looks_at_more_says_what_to_do_instead():
    for model in (fitted("forest"), fitted("pipeline")):
        with pytest.raises(
            KindError,
            match=r"grad needs gradients .*strategy='margin', 'entropy', 'least-confidence' or "
            r"'random'.*askance\.integrations\.sklearn\.Query\('grad'\)",
        ):
            askance.select(model, (X, Y), POOL, 5, strategy="grad")


@pytest.mark.parametrize("name", ONE_MODEL)
def test_every_rule_works_or_is_refused(name):
    rule = strategies.get(name)
    if rule.needs <= {"logits", "labeled"}:
        known = (X, Y) if "labeled" in rule.needs else None
        assert len(askance.select(fitted("forest"), known, POOL, 5, strategy=rule)) == 5
    else:
        with pytest.raises(KindError, match=f"{name} needs gradients or features"):
            askance.select(fitted("forest"), (X, Y), POOL, 5, strategy=rule)


# --- data -----------------------------------------------------------------------------------------

FRAME = pd.DataFrame(POOL, columns=list("abcd"), index=RNG.permutation(90) * 3)
KINDS = {
    "array": POOL,
    "list of lists": POOL.tolist(),
    "tensor": torch.from_numpy(POOL),
    "CSR": sparse.csr_matrix(POOL),
    "CSR array": sparse.csr_array(POOL),
    "CSC": sparse.csc_matrix(POOL),
    "COO": sparse.coo_matrix(POOL),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("batch_size", [8, 256])
def test_rows_of_any_kind(kind, batch_size):
    model = fitted("forest")
    expected = askance.select(model, None, POOL, 10, strategy="margin")
    picks = askance.select(model, None, KINDS[kind], 10, strategy="margin", batch_size=batch_size)
    np.testing.assert_array_equal(picks.indices, expected.indices)


class Watching:
    """A classifier that keeps what it is given."""

    classes_ = np.array([0, 1])

    def __init__(self, answer=None):
        self.given, self.answer = [], answer

    def predict_proba(self, rows):
        self.given.append(rows)
        if self.answer is not None:
            return self.answer(len(rows))
        p = 1 / (1 + np.exp(-np.asarray(rows, dtype=float)[:, 0]))
        return np.stack([1 - p, p], axis=1)


def test_parts_of_a_frame_are_frames_taken_by_place():
    model = Watching()
    picks = askance.select(model, None, FRAME, 10, strategy="margin", batch_size=40)
    assert [type(part) for part in model.given] == [pd.DataFrame] * 3
    pd.testing.assert_frame_equal(pd.concat(model.given), FRAME)
    assert set(picks.indices) == set(np.argsort(np.abs(POOL[:, 0]))[:10])


def test_a_pipeline_of_named_columns():
    kinds = pd.DataFrame({"size": X[:, 0], "colour": np.where(X[:, 1] > 0, "red", "blue")})
    pool = pd.DataFrame({"size": POOL[:, 0], "colour": np.where(POOL[:, 1] > 0, "red", "blue")})
    columns = make_column_transformer(
        (OneHotEncoder(), ["colour"]), remainder=StandardScaler(), verbose_feature_names_out=False
    )
    model = make_pipeline(columns, RandomForestClassifier(20, random_state=0)).fit(kinds, Y)
    picks = askance.select(model, None, pool, 6, strategy="margin", batch_size=16)
    expected = utilities(model.predict_proba(pool), "margin")
    np.testing.assert_allclose(picks.scores, np.sort(expected)[::-1][:6], atol=1e-9)


TEXTS = [" ".join(RNG.choice(["cat", "dog", "bank", "tree", "leaf"], size=5)) for _ in range(50)]


@pytest.mark.parametrize("kind", [list, np.array, pd.Series])
def test_texts_for_a_pipeline_of_texts(kind):
    labels = [text.count("cat") > 1 for text in TEXTS]
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(TEXTS, labels)
    picks = askance.select(model, None, kind(TEXTS), 6, strategy="margin", batch_size=16)
    expected = np.argsort(-utilities(model.predict_proba(TEXTS), "margin"))[:6]
    assert set(picks.indices) == set(expected)


def test_inputs_by_name_go_in_by_name_without_their_labels():
    class Named(Watching):
        def predict_proba(self, rows):
            assert list(rows) == ["a"]
            return super().predict_proba(rows["a"])

    pool = {"a": POOL, "label": object()}
    picks = askance.select(Named(), None, pool, 5, strategy="margin", batch_size=30)
    expected = askance.select(Watching(), None, POOL, 5, strategy="margin")
    np.testing.assert_array_equal(picks.indices, expected.indices)


def test_excluded_rows_and_the_size_are_known_before_the_model_is_called():
    model = Watching()
    with pytest.raises(
        InputError, match="the pool has 90 and 88 of them excluded; ask for at most 2"
    ):
        askance.select(model, None, FRAME, 3, strategy="margin", exclude=range(88))
    with pytest.raises(InputError, match="the pool must hold at least one point"):
        askance.select(model, None, POOL[:0], 1, strategy="margin")
    assert model.given == []
    picks = askance.select(model, None, FRAME, 2, strategy="margin", exclude=range(88))
    assert sorted(picks.indices) == [88, 89]
    assert len(set(askance.select(model, None, FRAME, 90, strategy="random").indices)) == 90


def test_an_embedding_needs_no_model():
    stored = askance.Embedding(logits=np.log(fitted("bayes").predict_proba(POOL)))
    with_model = askance.select(fitted("forest"), None, stored, 5, strategy="margin")
    without = askance.select(None, None, stored, 5, strategy="margin")
    np.testing.assert_array_equal(with_model.indices, without.indices)


# --- probabilities --------------------------------------------------------------------------------


def test_a_probability_of_zero_is_given_a_floor():
    p = np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.6, 0.3, 0.1]])
    rows = np.arange(3)[:, None]
    for rule in RULES:
        model = Watching(lambda _count: p)
        model.classes_ = np.arange(3)
        picks = askance.select(model, None, rows, 3, strategy=rule, keep_scores=True)
        expected = utilities(p, rule)
        if rule != "least-confidence":
            np.testing.assert_allclose(picks.pool_scores, expected, atol=1e-12)
        assert np.isfinite(picks.pool_scores).all()
        assert [why.confidence for why in sorted(picks.explain(), key=lambda e: e.index)] == (
            pytest.approx(p.max(1), abs=1e-12)
        )
    assert np.isfinite(np.log(FLOOR))
    assert 1.0 + FLOOR == 1.0


def test_the_pseudo_label_is_the_name_in_classes():
    model = fitted("bayes")
    picks = askance.select(model, None, POOL, 20, strategy="margin")
    said = [why.pseudo_label for why in picks.explain()]
    np.testing.assert_array_equal(said, model.predict(POOL[picks.indices]))


def test_digits_that_threads_leave_to_chance_do_not_decide():
    """The last bits of equal probabilities differ, as where trees are added in another order."""
    draws = np.random.default_rng(1)
    p = np.repeat(draws.dirichlet(np.ones(3), size=1), 50, axis=0)

    def noisy(_count):
        return p * (1 + draws.integers(-2, 3, size=p.shape) * 2.0**-53)

    model = Watching(noisy)
    model.classes_ = np.arange(3)
    picks = askance.select(model, None, POOL[:50], 10, strategy="margin")
    assert picks.indices.tolist() == list(range(10))


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (lambda n: [np.ones((n, 2)) / 2] * 3, InputError, "gave a list of 3; several outputs"),
        (lambda n: np.ones((n, 1)), InputError, "one class alone.* labels of two classes"),
        (lambda n: np.ones(n), InputError, r"expected 30 rows, got shape \(30,\)"),
        (lambda _n: np.ones((5, 2)) / 2, InputError, r"expected 30 rows, got shape \(5, 2\)"),
        (lambda n: np.full((n, 2), np.nan), NonFiniteError, "for 30 of 30 rows, .* is row 0"),
        (
            lambda n: np.full((n, 3), 0.9),
            InputError,
            "sum to 1; for 30 of 30 rows.*several labels",
        ),
        (lambda n: np.tile([1.5, -0.5], (n, 1)), InputError, "must be ≥ 0 and sum to 1"),
    ],
)
def test_what_are_no_probabilities_is_refused(answer, error, message):
    with pytest.raises(error, match=message):
        askance.select(Watching(answer), None, POOL[:30], 3, strategy="margin")


def test_the_row_that_is_wrong_is_counted_from_the_start_of_the_pool():
    def late(rows):
        p = np.full((len(rows), 2), 0.5)
        p[np.asarray(rows)[:, 0] == 17] = np.nan
        return p

    model = Watching()
    model.predict_proba = late
    with pytest.raises(NonFiniteError, match="1 of 5 rows, the first is row 17"):
        askance.select(model, None, np.arange(30)[:, None], 3, strategy="margin", batch_size=5)


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (SVC().fit(X, Y), "margin needs a model with predict_proba, a SVC has none.*Calibrated"),
        (RidgeClassifier().fit(X, Y), "a RidgeClassifier has none"),
        (DecisionTreeRegressor().fit(X, X[:, 0]), "a DecisionTreeRegressor has none"),
        (make_pipeline(StandardScaler(), SVC()).fit(X, Y), "a Pipeline has none"),
        (RandomForestClassifier, r"got the class .*; pass RandomForestClassifier\(\.\.\.\)\.fit"),
    ],
)
def test_models_without_probabilities_are_refused(model, message):
    with pytest.raises(KindError, match=message):
        askance.select(model, None, POOL, 5, strategy="margin")
    with pytest.raises(KindError, match=r"has none|got the class"):
        askance.select(model, (X, Y), POOL, 5)


@pytest.mark.parametrize(
    "pool",
    [
        TensorDataset(torch.from_numpy(POOL)),
        DataLoader(TensorDataset(torch.from_numpy(POOL))),
        7,
        None,
        {POOL.shape},
        (POOL, Y),
        "pool.csv",
        np.array(1.0),
    ],
    ids=lambda pool: type(pool).__name__,
)
def test_what_has_no_rows_is_refused(pool):
    with pytest.raises(InputError, match=r"rows of an array, a DataFrame.*net\.module_"):
        askance.select(fitted("forest"), None, pool, 5, strategy="margin")


def test_other_options_that_do_not_fit():
    model = fitted("forest")
    with pytest.raises(InputError, match="a RandomForestClassifier has none"):
        askance.select(model, None, POOL, 5, strategy="margin", head="fc")
    rule = strategies.Entropy(loss="multilabel")
    with pytest.raises(InputError, match="predict_proba is for one class a point"):
        askance.select(model, None, POOL, 5, strategy=rule)
    with pytest.raises(InputError, match="same number of rows"):
        askance.select(model, None, {"a": POOL, "b": POOL[:3]}, 5, strategy="margin")
    with pytest.raises(InputError, match="a mapping must hold arrays"):
        askance.select(model, None, {"label": Y}, 5, strategy="margin")


def test_an_error_of_the_models_own_says_what_it_was_given():
    with pytest.raises(NotFittedError) as unfitted:
        askance.select(RandomForestClassifier(), None, POOL, 5, strategy="margin")
    assert unfitted.value.__notes__ == [
        "askance called predict_proba with a ndarray of shape (90, 4)"
    ]


# --- the rest -------------------------------------------------------------------------------------


def test_generators_and_a_net_come_back_as_they_were():
    skorch = pytest.importorskip("skorch")

    class Net(torch.nn.Sequential):
        def __init__(self):
            super().__init__(
                torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 3),
                torch.nn.Softmax(dim=-1),
            )  # fmt: skip

    torch.manual_seed(0)
    net = skorch.NeuralNetClassifier(Net, max_epochs=2, verbose=0)
    net.fit(X.astype(np.float32), np.array([0, 1, 2] * 13 + [0]))
    net.module_.train()
    before = random.getstate(), torch.get_rng_state()
    picks = askance.select(net, None, POOL.astype(np.float32), 8, strategy="margin", batch_size=9)
    assert net.module_.training
    assert random.getstate() == before[0]
    assert torch.equal(torch.get_rng_state(), before[1])
    module = askance.select(net.module_, None, POOL, 8, strategy="margin")
    np.testing.assert_array_equal(picks.indices, module.indices)


@dataclass(frozen=True)
class NewToLabels(strategies.Pointwise):
    """The classes that have the fewest labels, by the model's own answer."""

    name: ClassVar[str] = "new-to-labels"
    needs = frozenset({"logits", "labeled"})

    def prepare(self, labeled, model):
        assert labeled.block.logits is not None
        return torch.bincount(labeled.labels, minlength=labeled.block.classes).double()

    def score(self, block, reference, draws):
        return -reference[block.logits.argmax(1)]


def test_a_rule_that_looks_at_labels_sees_their_place_in_classes():
    model = fitted("bayes")
    assert model.classes_.tolist() == ["ant", "cat", "owl"]
    few = np.flatnonzero(Y != "cat")
    picks = askance.select(model, (X[few], Y[few]), POOL, 5, strategy=NewToLabels())
    assert set(model.predict(POOL[picks.indices])) == {"cat"}
    for labeled, message in (
        ((X, ["bee"] * 40), r"knows the classes \['ant', 'cat', 'owl'\], y also has \['bee'\]"),
        ((X, Y[:5]), "got 40 points and 5 labels"),
        (X, r"the labelled set is \(X, y\), got a ndarray"),
        (None, "labeled is None"),
    ):
        with pytest.raises(LabelError, match=message):
            askance.select(model, labeled, POOL, 5, strategy=NewToLabels())


LOOPS = {
    "array": POOL,
    "frame": FRAME,
    "CSR": sparse.csr_matrix(POOL),
    "CSC": sparse.csc_matrix(POOL),
}


@pytest.mark.parametrize("kind", LOOPS)
@pytest.mark.parametrize("strategy", ["margin", "random"])
def test_a_loop_around_a_forest(kind, strategy):
    truth = (POOL[:, 0] > 0).astype(int)

    def asked(pool):
        oracle = Truth(torch.from_numpy(truth))
        for run in askance.loop(pool, oracle, strategy=strategy, batch=10, rounds=2):
            inputs, labels = run.labeled
            assert type(inputs) is type(pool) or kind == "CSC"
            np.testing.assert_array_equal(labels, truth[run.rows])
            run.ask(RandomForestClassifier(10, random_state=0).fit(inputs, labels))
        return run.rows.tolist()

    assert asked(LOOPS[kind]) == asked(POOL)


def test_a_loop_over_texts():
    truth = torch.tensor([int(text.count("cat") > 1) for text in TEXTS])
    for run in askance.loop(TEXTS, Truth(truth), strategy="margin", batch=10, rounds=2):
        texts, labels = run.labeled
        assert texts == [TEXTS[row] for row in run.rows]
        model = make_pipeline(TfidfVectorizer(), MLPClassifier((4,), max_iter=20, random_state=0))
        with pytest.warns(match="Stochastic Optimizer"):
            model.fit(texts, labels)
        run.ask(model)
    assert len(run.rows) == 30
