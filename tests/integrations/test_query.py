"""`Query`: askance's rules through scikit-activeml's interface.

The checks follow what scikit-activeml documents of a query strategy and tests its own for. Its test
templates are in its repository, not in its packages; `test_template.py` runs them where they are given.
"""

import warnings

import numpy as np
import pytest
import torch
from skactiveml.base import SingleAnnotatorPoolQueryStrategy
from skactiveml.classifier import SklearnClassifier, SkorchClassifier
from skactiveml.pool import SubSamplingWrapper
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

import askance
from askance import strategies
from askance.errors import AskanceError, InputError, KindError, LabelError, UnknownError
from askance.integrations.heads import head_of
from askance.integrations.sklearn import Query
from askance.strategies import Batch, Grad, PowerGrad
from tests.integrations.test_heads import Net, net, task
from tests.rules import ONE_MODEL

RULES = ONE_MODEL
# Batch rules that do not say what each row was worth at each pick.
SILENT = [
    name
    for name in RULES
    if isinstance(strategies.get(name), Batch)
    and type(strategies.get(name)).utilities is Batch.utilities
]
TOLD = [name for name in RULES if name not in SILENT]
N, KNOWN = 40, 12
QUIET = {"train_split": None, "verbose": 0, "max_epochs": 3}


def partly(classes=3, seed=0):
    X, truth = task(classes, seed, rows=N)
    y = truth.astype(float)
    y[KNOWN:] = np.nan
    return X, y


def ask(rule="grad", **changes):
    X, y = partly()
    arguments = {"X": X, "y": y, "clf": LogisticRegression(), "batch_size": 4} | changes
    init = {k: arguments.pop(k) for k in ("missing_label", "head") if k in arguments}
    return Query(rule, random_state=0, **init).query(**arguments)


@pytest.mark.parametrize("rule", TOLD)
@pytest.mark.parametrize("classes", [2, 3])
def test_a_rule_gives_unlabelled_samples_and_what_each_was_worth(rule, classes):
    X, y = partly(classes)
    picks, utilities = ask(rule, X=X, y=y, return_utilities=True)
    assert picks.tolist() == ask(rule, X=X, y=y).tolist()
    assert len(set(picks.tolist())) == 4
    assert picks.min() >= KNOWN
    assert utilities.shape == (4, N)
    assert np.isnan(utilities[:, :KNOWN]).all(), "labelled samples have no utility"
    assert np.isfinite(utilities[0, KNOWN:]).all()
    for turn, pick in enumerate(picks):
        assert np.isnan(utilities[turn, picks[:turn]]).all()
        assert np.isfinite(utilities[turn, pick])
        if rule != "badge" or turn == 0:  # which draws ∝ D²
            assert utilities[turn, pick] == pytest.approx(np.nanmax(utilities[turn]))


@pytest.mark.parametrize("rule", SILENT)
def test_other_rules_pick_and_refuse_to_say_what_the_rest_was_worth(rule):
    X, y = partly()
    picks = ask(rule, X=X, y=y)
    assert len(set(picks.tolist())) == 4
    assert picks.min() >= KNOWN
    known = ~np.isnan(y)
    head = head_of(LogisticRegression().fit(X[known], y[known]))
    labeled = head.embed(X[known]), head.labels(y[known])
    if not strategies.get(rule).random:
        found = askance.select(None, labeled, head.embed(X[~known]), 4, strategy=rule)
        assert (np.flatnonzero(~known)[found.indices] == picks).all()
    with pytest.raises(InputError, match=f"{rule} says nothing of the rows it does not pick"):
        ask(rule, X=X, y=y, return_utilities=True)


@pytest.mark.parametrize("rule", TOLD)
def test_the_picks_are_those_of_select_on_the_classifiers_embedding(rule):
    X, y = partly()
    known = ~np.isnan(y)
    head = head_of(LogisticRegression().fit(X[known], y[known]))
    query = Query(rule, random_state=5)
    picks, utilities = query.query(X, y, LogisticRegression(), batch_size=5, return_utilities=True)
    seed = query.random_state_  # has given its one number
    again = Query(rule, random_state=5)
    again.query(X, y, LogisticRegression(), batch_size=1)
    assert seed.randint(10**6) == again.random_state_.randint(10**6)
    if strategies.get(rule).random:
        return
    labeled = head.embed(X[known]), head.labels(y[known])
    found = askance.select(None, labeled, head.embed(X[~known]), 5, strategy=rule)
    assert (np.flatnonzero(~known)[found.indices] == picks).all()
    if rule != "grad-spread":  # whose first pick scores 2, whatever its s(x)
        worth = utilities[np.arange(5), picks]
        assert worth == pytest.approx(found.scores)


@pytest.mark.parametrize("rule", TOLD)
def test_candidates_may_be_none_indices_or_samples(rule):
    X, y = partly()
    free = np.flatnonzero(np.isnan(y))
    picks, utilities = ask(rule, return_utilities=True)
    by_index, same = ask(rule, candidates=free, return_utilities=True)
    assert picks.tolist() == by_index.tolist()
    assert np.array_equal(utilities, same, equal_nan=True)
    by_sample, own = ask(rule, candidates=X[free], return_utilities=True)
    assert free[by_sample].tolist() == picks.tolist()
    assert own.shape == (4, len(free))
    assert np.allclose(own, utilities[:, free], equal_nan=True)
    few, some = ask(rule, candidates=free[3:9], return_utilities=True)
    assert set(few.tolist()) <= set(free[3:9].tolist())
    assert np.isnan(np.delete(some, free[3:9], axis=1)).all()


@pytest.mark.parametrize(
    ("missing", "classes", "kind"),
    [
        (np.nan, [1.0, 2.0], float),
        (0, [1, 2], int),
        (None, [1, 2], object),
        (None, ["A", "B"], object),
        ("", ["A", "B"], "U1"),
    ],
)
def test_missing_labels_are_marked_as_scikit_activeml_marks_them(missing, classes, kind):
    X, _ = task(2, rows=20)
    y = np.full(20, missing, dtype=kind)
    y[:4] = [classes[0], classes[1], classes[0], classes[1]]
    plain = np.full(20, np.nan)
    plain[:4] = [0, 1, 0, 1]
    expected = Query("grad", random_state=0).query(X, plain, LogisticRegression(), batch_size=3)
    wrapped = SklearnClassifier(LogisticRegression(), classes=classes, missing_label=missing)
    for clf in (LogisticRegression(), wrapped):
        query = Query("grad", missing_label=missing, random_state=0)
        assert query.query(X, y, clf, batch_size=3).tolist() == expected.tolist()


@pytest.mark.parametrize("rule", ["badge", "random", "powergrad"])
def test_a_random_state_decides_the_draws(rule):
    X, y = partly()
    clf = LogisticRegression()

    def picks(state, y=y, **own):
        return Query(rule, random_state=state).query(X, y, clf, batch_size=6, **own).tolist()

    assert picks(1) == picks(1) == picks(None, random_state=1)
    assert picks(np.random.RandomState(3)) == picks(np.random.RandomState(3))
    assert len({tuple(picks(seed)) for seed in range(8)}) > 1
    same = Query(rule, random_state=np.random.RandomState(0))
    assert len({tuple(same.query(X, y, clf, batch_size=6).tolist()) for _ in range(3)}) == 1
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002
    assert picks(1) == picks(1)


def test_a_random_state_decides_the_weights_of_a_net_and_leaves_other_draws_alone():
    X, y = partly()
    clf = net()

    def worth(state):
        query = Query("grad", random_state=state)
        return query.query(X.astype(np.float32), y, clf, return_utilities=True)[1]

    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first = worth(1)
    assert torch.equal(torch.rand(3), expected)
    assert np.array_equal(worth(1), first, equal_nan=True)
    assert not np.allclose(worth(2), first, equal_nan=True)


def test_the_classifier_is_left_as_it_was():
    X, y = partly()
    known = ~np.isnan(y)
    fresh, fitted = LogisticRegression(C=0.5), LogisticRegression().fit(X[known], y[known])
    before = fitted.coef_.copy()
    for fit in (True, False):
        Query("grad").query(X, y, fitted, fit_clf=fit)
    Query("grad").query(X, y, fresh)
    assert np.array_equal(fitted.coef_, before)
    assert not hasattr(fresh, "coef_")


def test_a_fitted_classifier_is_taken_as_it_is():
    X, y = partly()
    known = ~np.isnan(y)
    other = LogisticRegression(C=0.01).fit(X[known], y[known])
    picks = ask("kcenter", clf=other, fit_clf=False)
    assert picks.tolist() == ask("kcenter").tolist(), "distances in X do not depend on the fit"
    worth = ask("entropy", clf=other, fit_clf=False, return_utilities=True)[1]
    assert not np.allclose(worth[0, KNOWN:], ask("entropy", return_utilities=True)[1][0, KNOWN:])


@pytest.mark.parametrize(
    "clf",
    [
        make_pipeline(StandardScaler(), LogisticRegression()),
        MLPClassifier((8,), solver="lbfgs", alpha=1.0, max_iter=2000, random_state=0),
        SklearnClassifier(LogisticRegression(), classes=[0, 1, 2]),
        SklearnClassifier(LogisticRegression(), classes=[0, 1, 2, 3]),
        net(),
        SkorchClassifier(Net, nn.CrossEntropyLoss, classes=[0, 1, 2], neural_net_param_dict=QUIET),
    ],
    ids=["pipeline", "mlp", "wrapper", "wrapper of more classes", "skorch", "wrapped skorch"],
)
@pytest.mark.parametrize("rule", ["grad", "badge"])
def test_classifiers_with_a_linear_head_can_be_asked(clf, rule):
    X, y = partly()
    X = X.astype(np.float32) if hasattr(clf, "module") else X  # as a net wants it
    picks = Query(rule, random_state=0).query(X, y, clf, batch_size=5)
    assert len(set(picks.tolist()) - set(range(KNOWN))) == 5
    whole = np.where(np.isnan(y), -1, y).astype(np.int64)
    if not hasattr(clf, "missing_label"):
        again = Query(rule, missing_label=-1, random_state=0).query(X, whole, clf, batch_size=5)
        assert again.tolist() == picks.tolist()


@pytest.mark.parametrize("clf", [np.nan, "state", object(), GaussianNB(), LogisticRegression, net])
@pytest.mark.parametrize("rule", ["grad", "random"])
def test_what_is_no_such_classifier_is_a_type_error(rule, clf):
    with pytest.raises(TypeError, match="clf must be a linear model"):
        ask(rule, clf=clf)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"batch_size": 0}, ValueError),
        ({"batch_size": 1.2}, TypeError),
        ({"return_utilities": "string"}, TypeError),
        ({"fit_clf": "state"}, TypeError),
        ({"fit_clf": np.nan}, TypeError),
        ({"X": "string"}, ValueError),
        ({"X": np.ones((2 * N, 5))}, ValueError),
        ({"y": np.nan}, TypeError),
        ({"y": np.full((2, N), np.nan)}, ValueError),
        ({"candidates": np.nan}, ValueError),
        ({"candidates": object}, TypeError),
        ({"candidates": np.empty((0, 5))}, ValueError),
        ({"missing_label": object}, TypeError),
        ({"rule": 3}, TypeError),
        ({"rule": "gard"}, UnknownError),
        ({"clf": None}, KindError),
        ({"rule": Grad(parameters="all")}, InputError),
    ],
)
def test_wrong_arguments_are_refused_with_the_errors_scikit_activeml_has(changes, error):
    with pytest.raises(error):
        ask(**changes)


@pytest.mark.parametrize("state", [np.nan, "state"])
def test_a_random_state_that_is_none_is_refused(state):
    X, y = partly()
    with pytest.raises(ValueError, match="cannot be used to seed"):
        Query("grad", random_state=state).query(X, y, LogisticRegression())
    with pytest.raises(ValueError, match="cannot be used to seed"):
        Query("grad").query(X, y, LogisticRegression(), random_state=state)


def test_more_than_there_are_is_a_warning_and_all_of_them():
    with pytest.warns(Warning, match="larger than number of candidates"):
        picks = ask("entropy", batch_size=100)
    assert sorted(picks.tolist()) == list(range(KNOWN, N))


def test_no_candidate_is_an_error():
    with (
        pytest.warns(Warning, match="larger than"),
        pytest.raises(InputError, match="no candidate"),
    ):
        ask("entropy", y=np.arange(N) % 2)


def test_only_random_starts_with_no_labels():
    """A model that was never fitted has no gradients, and none are made up."""
    X, _ = partly()
    nothing = np.full(N, np.nan)
    assert len(ask("random", y=nothing)) == len(ask("random", y=nothing, clf=None)) == 4
    for clf in (LogisticRegression(), SklearnClassifier(LogisticRegression(), classes=[0, 1])):
        with pytest.raises(LabelError, match=r"no label is known yet.*rule 'random'"):
            ask("entropy", y=nothing, clf=clf)
    one = nothing.copy()
    one[0] = 1.0
    wrapper = SklearnClassifier(LogisticRegression(), classes=[0, 1])
    for clf in (LogisticRegression(), wrapper):
        with pytest.raises(LabelError, match="only one class is labelled yet"):
            ask("entropy", y=one, clf=clf)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(LabelError, match="could not be fitted"):
            ask("entropy", clf=wrapper.fit(X, one), fit_clf=False)


def test_it_is_a_query_strategy_with_parameters_that_can_be_cloned():
    query = Query(PowerGrad(beta=1.0), head="head", missing_label=-1, random_state=3)
    assert isinstance(query, SingleAnnotatorPoolQueryStrategy)
    twin = clone(query)
    assert twin is not query
    assert twin.get_params() == query.get_params()
    assert twin.set_params(strategy="badge").strategy == "badge"


def test_it_works_inside_scikit_activemls_own_wrapper():
    X, y = partly()
    query = SubSamplingWrapper(Query("badge", random_state=0), max_candidates=0.5, random_state=0)
    picks = query.query(X, y, batch_size=3, clf=LogisticRegression())
    assert len(set(np.asarray(picks).tolist()) - set(range(KNOWN))) == 3


def test_a_batch_rule_that_knows_no_utilities_says_so():
    class Quiet(Batch):
        name = "quiet"
        needs = frozenset({"features"})

        def pick(self, pool, n, reference, draws):
            return askance.picking.Picks(np.arange(n), np.zeros(n))

    assert ask(Quiet()).tolist() == [KNOWN, KNOWN + 1, KNOWN + 2, KNOWN + 3]
    with pytest.raises(AskanceError, match="quiet says nothing of the rows it does not pick"):
        ask(Quiet(), return_utilities=True)
