"""What `select` refuses, and how it says so: what was expected, what came, what to do."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

import askance
from askance import AskanceError, Embedding, errors, select, strategies
from askance.errors import (
    HeadError,
    InputError,
    LabelError,
    NonFiniteError,
    UnknownError,
)
from askance.strategies import Entropy, Grad, GradSpread, PowerGrad
from tests.embedding import zoo

X, POOL = zoo.rows(6, seed=1), zoo.rows(10, seed=2)
Y = torch.tensor([0, 1, 2, 0, 1, 2])
MULTI_HOT = torch.tensor([[0, 1, 1], [1, 0, 0]] * 3)
MODEL = zoo.seeded(zoo.mlp)
SEEN, UNSEEN = askance.embed(MODEL, X), askance.embed(MODEL, POOL)

NAMES = strategies.names()
NEED_LABELS = ["grad", "powergrad", "grad-spread", "kcenter"]


def with_entry(matrix, row, value):
    matrix = matrix.clone()
    matrix[row, 1] = value
    return matrix


# --- the tree -------------------------------------------------------------------------------------


def test_every_error_is_an_askance_error_and_a_value_error():
    found = [e for _, e in inspect.getmembers(errors, inspect.isclass) if issubclass(e, Exception)]
    assert {e.__name__ for e in found} == {
        "AskanceError",
        "InputError",
        "NonFiniteError",
        "LabelError",
        "HeadError",
        "UnknownError",
        "DataError",
        "ShardError",
        "ExtraError",
        "SpecError",
        "StoreError",
    }
    assert all(issubclass(e, AskanceError) for e in found)
    assert issubclass(AskanceError, ValueError)


def test_an_unknown_name_lists_the_closest_first_and_all_after():
    error = UnknownError.of("colour", "gren", ["blue", "grey", "green"])
    assert str(error) == (
        "unknown colour 'gren': did you mean 'green' or 'grey'? known: blue, green, grey"
    )
    assert str(UnknownError.of("colour", "zzz", [])) == "unknown colour 'zzz': known: none"


# --- n --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [0, -1])
def test_n_must_be_at_least_one(name, n):
    with pytest.raises(InputError, match=f"n must be at least 1, got {n}"):
        select(MODEL, (X, Y), POOL, n, strategy=name)


@pytest.mark.parametrize("n", [2.0, "3", None, True, [1], np.float64(2)])
def test_n_must_be_a_whole_number(n):
    with pytest.raises(InputError, match="n must be a whole number, got"):
        select(MODEL, (X, Y), POOL, n)


def test_n_may_be_a_numpy_integer():
    assert len(select(MODEL, (X, Y), POOL, np.int64(3))) == 3


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("pool", [POOL, UNSEEN, "stream"], ids=["inputs", "embedding", "stream"])
def test_n_must_not_exceed_the_pool(name, pool):
    pool = iter([UNSEEN[:6], UNSEEN[6:]]) if isinstance(pool, str) else pool
    with pytest.raises(InputError, match=r"n = 11 points .* the pool has 10; ask for at most 10"):
        select(MODEL, (X, Y), pool, 11, strategy=name)


# --- pool -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "pool",
    [POOL[:0], POOL[:0].numpy(), [], UNSEEN[:0], {}, {"x": POOL[:0]}, "stream"],
    ids=["tensor", "array", "list", "embedding", "no mapping", "mapping", "stream"],
)
def test_an_empty_pool_is_refused(name, pool):
    pool = iter([]) if isinstance(pool, str) else pool
    with pytest.raises(InputError, match="pool must hold at least one point, it is empty"):
        select(MODEL, (X, Y), pool, 1, strategy=name)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("random", "kcenter")])
def test_logits_that_are_no_numbers_are_counted_and_the_first_named(name, bad):
    pool = Embedding(with_entry(UNSEEN.logits, [4, 7], bad), UNSEEN.features)
    message = r"logits must be finite; 2 of 10 pool rows .* the first is row 4\. Look at the model"
    with pytest.raises(NonFiniteError, match=message):
        select(None, (SEEN, Y), pool, 2, strategy=name)


@pytest.mark.parametrize("name", ["grad", "badge", "kcenter", "entropy"])
def test_inputs_that_make_a_model_overflow_are_found(name):
    with pytest.raises(NonFiniteError, match=r"2 of 10 pool rows .* the first is row 4"):
        select(MODEL, (X, Y), with_entry(POOL, [4, 7], float("nan")), 2, strategy=name)
    with pytest.raises(NonFiniteError, match=r"2 of 5 pool rows .* the first is row 6"):
        select(
            MODEL, (X, Y), with_entry(POOL, [6, 7], float("nan")), 2, strategy=name, batch_size=5
        )


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize(
    "name", [name for name in NAMES if "features" in strategies.get(name).needs]
)
def test_features_that_are_no_numbers_are_counted_and_the_first_named(name, bad):
    pool = Embedding(UNSEEN.logits, with_entry(UNSEEN.features, [4, 7], bad))
    with pytest.raises(
        NonFiniteError, match=r"features must be finite; 2 of 10 pool rows .* row 4"
    ):
        select(None, (SEEN, Y), pool, 2, strategy=name)


def test_features_nobody_needs_may_be_anything():
    pool = Embedding(UNSEEN.logits, with_entry(UNSEEN.features, [4, 7], float("nan")))
    assert len(select(None, None, pool, 2, strategy="entropy")) == 2


@pytest.mark.parametrize("name", NEED_LABELS)
@pytest.mark.parametrize("part", ["logits", "features"])
def test_labelled_numbers_must_be_numbers_too(name, part):
    parts = {"logits": SEEN.logits, "features": SEEN.features}
    parts[part] = with_entry(parts[part], [2], float("nan"))
    with pytest.raises(
        NonFiniteError, match=f"{part} must be finite; 1 of 6 labelled rows .* row 2"
    ):
        select(None, (Embedding(**parts), Y), UNSEEN, 2, strategy=name)
    with pytest.raises(NonFiniteError, match="1 of 6 labelled rows"):
        select(MODEL, (with_entry(X, [2], float("nan")), Y), POOL, 2, strategy=name)


@pytest.mark.parametrize("name", ["grad", "badge", "egl", "gradnorm"])
def test_an_embedding_without_what_the_rule_needs_is_refused(name):
    with pytest.raises(InputError, match=f"{name} needs features, the pool's Embedding has none"):
        select(None, (SEEN, Y), Embedding(UNSEEN.logits), 2, strategy=name)
    with pytest.raises(InputError, match=f"{name} needs logits, the pool's Embedding has none"):
        select(None, (SEEN, Y), Embedding(features=UNSEEN.features), 2, strategy=name)
    with pytest.raises(InputError, match=f"{name} needs features, the pool's Embedding has none"):
        select(None, (SEEN, Y), iter([Embedding(UNSEEN.logits)]), 2, strategy=name)


def test_a_labelled_embedding_without_what_the_rule_needs_is_refused():
    with pytest.raises(InputError, match="the labelled Embedding has no features"):
        select(None, (Embedding(SEEN.logits), Y), UNSEEN, 2)
    with pytest.raises(InputError, match="the labelled Embedding has no logits"):
        select(None, (Embedding(features=SEEN.features), Y), UNSEEN, 2)
    with pytest.raises(InputError, match="kcenter needs features, the labelled Embedding has none"):
        select(None, (Embedding(SEEN.logits), Y), UNSEEN, 2, strategy="kcenter")


def test_pool_and_labelled_set_must_be_of_one_model():
    wide = Embedding(UNSEEN.logits, torch.cat([UNSEEN.features, UNSEEN.features], dim=1))
    with pytest.raises(
        InputError, match="features must have the same number of columns, got 12 and 6"
    ):
        select(None, (SEEN, Y), wide, 2)
    with pytest.raises(
        InputError, match="features must have the same number of columns, got 12 and 6"
    ):
        select(None, (SEEN, Y), wide, 2, strategy="kcenter")
    more = Embedding(torch.cat([UNSEEN.logits, UNSEEN.logits], dim=1), UNSEEN.features)
    with pytest.raises(
        InputError, match="logits must have the same number of columns, got 6 and 3"
    ):
        select(None, (SEEN, Y), more, 2)


def test_a_stream_must_be_of_embeddings():
    with pytest.raises(InputError, match="must give Embedding blocks, it gave a Tensor"):
        select(MODEL, (X, Y), (row for row in POOL), 2)


# --- labelled set ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NEED_LABELS)
def test_a_rule_that_needs_labels_says_so(name):
    with pytest.raises(LabelError, match=f"{name} compares .* labeled is None; pass .* 'entropy'"):
        select(MODEL, None, POOL, 2, strategy=name)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in NEED_LABELS])
def test_the_others_do_not(name):
    assert len(select(MODEL, None, POOL, 2, strategy=name)) == 2


@pytest.mark.parametrize("name", NEED_LABELS)
@pytest.mark.parametrize(
    "labeled", [(X[:0], Y[:0]), (SEEN[:0], Y[:0]), []], ids=["X", "embedding", "list"]
)
def test_an_empty_labelled_set_is_refused(name, labeled):
    with pytest.raises(LabelError, match="at least one labelled point, the labelled set is empty"):
        select(MODEL, labeled, POOL, 2, strategy=name)


BAD_LABELS = [
    (Y + 1, r"between 0 and 2 \(the model has 3 outputs\).* is 3 at labelled point"),
    (Y - 1, r"between 0 and 2 \(the model has 3 outputs\).* is -1 at labelled point"),
    (Y + 0.5, r"labels must be whole numbers, got torch\.float32 with fractions"),
    (Y * float("nan"), "labels must be whole numbers"),
    (Y[:5], r"labels must be \(6,\) class indices.* got shape \(5,\)"),
    (torch.cat([Y, Y]), r"labels must be \(6,\) class indices.* got shape \(12,\)"),
    (torch.tensor(1), r"labels must be \(6,\) class indices.* got shape \(\)"),
    (["cat"] * 6, "labels must be whole numbers"),
]


@pytest.mark.parametrize(("labels", "message"), BAD_LABELS)
def test_labels_are_checked(labels, message):
    with pytest.raises(LabelError, match=message):
        select(MODEL, (X, labels), POOL, 2)
    with pytest.raises(LabelError, match=message):
        select(None, (SEEN, labels), UNSEEN, 2)
    with pytest.raises(LabelError, match=message):
        select(MODEL, (X, labels), POOL, 2, strategy=Grad(parameters=["0"]))


@pytest.mark.parametrize(("labels", "message"), BAD_LABELS[2:])
def test_labels_are_checked_before_some_are_drawn(labels, message):
    with pytest.raises(LabelError, match=message):
        select(MODEL, (X, labels), POOL, 2, strategy=Grad(reference_size=3))
    with pytest.raises(LabelError, match=message):
        select(None, (SEEN, labels), UNSEEN, 2, strategy=Grad(reference_size=3))


def test_how_many_labels_are_wrong_and_which_is_first():
    with pytest.raises(LabelError, match="2 are not, the first is 9 at labelled point 3"):
        select(MODEL, (X, [0, 1, 2, 9, 1, 7]), POOL, 2)


@pytest.mark.parametrize(
    "name", ["margin", "least-confidence", "egl", "grad", "entropy", "badge", "powergrad"]
)
def test_several_labels_a_point_are_refused_where_one_class_is_needed(name):
    with pytest.raises(
        LabelError, match=rf"{name} is for one class a point.*6, 3.*loss='multilabel'"
    ):
        select(MODEL, (X, MULTI_HOT), POOL, 2, strategy=name)


def test_also_where_they_come_from_a_dataset():
    data = torch.utils.data.TensorDataset(X, MULTI_HOT)
    with pytest.raises(
        LabelError, match=r"got shape \(6, 3\); for several labels a point use loss="
    ):
        select(MODEL, data, POOL, 2)


def test_one_class_a_point_is_refused_where_several_are_needed():
    rule = Grad(loss="multilabel")
    with pytest.raises(LabelError, match=r"zeros and ones of shape \(6, 3\), got shape \(6,\)"):
        select(MODEL, (X, Y), POOL, 2, strategy=rule)
    with pytest.raises(LabelError, match=r"between 0 and 1 .* the first is \[0, 2, 1\]"):
        select(MODEL, (X, MULTI_HOT * torch.tensor([1, 2, 1])), POOL, 2, strategy=rule)


# --- exclude --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_exclude_must_be_in_the_pool(name):
    for exclude, bad in [([0, 10], 10), ([-1, 3], -1)]:
        with pytest.raises(InputError, match=f"between 0 and 9, got {bad}"):
            select(MODEL, (X, Y), POOL, 2, strategy=name, exclude=exclude)


@pytest.mark.parametrize("name", NAMES)
def test_something_must_be_left(name):
    with pytest.raises(InputError, match="has 10 and 10 of them excluded; ask for at most 0"):
        select(MODEL, (X, Y), POOL, 1, strategy=name, exclude=range(10))
    with pytest.raises(
        InputError, match=r"n = 3 .* has 10 and 8 of them excluded; ask for at most 2"
    ):
        select(MODEL, (X, Y), POOL, 3, strategy=name, exclude=set(range(8)))


@pytest.mark.parametrize("exclude", [3, [1.5], ["a"], [[1, 2]], [True] * 10])
def test_exclude_must_be_a_list_of_indices(exclude):
    with pytest.raises(InputError, match="exclude must be a list of pool indices, got"):
        select(MODEL, (X, Y), POOL, 2, exclude=exclude)


# --- strategies and options -----------------------------------------------------------------------


def test_an_unknown_strategy_lists_the_closest():
    with pytest.raises(
        UnknownError, match=r"unknown strategy 'entropi': did you mean 'entropy'.*badge"
    ):
        select(MODEL, (X, Y), POOL, 2, strategy="entropi")


@pytest.mark.parametrize("strategy", [Grad, None, 3, object()])
def test_a_strategy_must_be_a_name_or_an_instance(strategy):
    with pytest.raises(InputError, match="strategy must be a name or a Strategy instance, got"):
        select(MODEL, (X, Y), POOL, 2, strategy=strategy)


def test_an_unknown_option_lists_the_known():
    with pytest.raises(
        UnknownError, match=r"option of powergrad 'betta': did you mean 'beta'.*grad"
    ):
        strategies.get("powergrad", betta=1.0)


@pytest.mark.parametrize("name", ["margin", "least-confidence", "egl", "random", "kcenter"])
def test_a_rule_without_a_loss_says_which_have_one(name):
    with pytest.raises(InputError, match=f"{name} takes no loss.*take multi-label"):
        strategies.get(name, loss="multilabel")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Grad(loss="hinge"),
            "loss must be one of 'cross-entropy', 'multilabel', or a callable",
        ),
        (
            lambda: Entropy(loss="hinge"),
            "loss must be one of 'cross-entropy', 'multilabel'; got 'hinge'",
        ),
        (lambda: Entropy(loss=print), "loss must be one of"),
        (
            lambda: Grad(reference_size=0),
            "reference_size must be a whole number ≥ 1 or None, got 0",
        ),
        (lambda: Grad(reference_size=2.5), "reference_size must be a whole number"),
        (lambda: Grad(reference_size=True), "reference_size must be a whole number"),
        (lambda: Grad(reference_size=5, loss=max), "leave reference_size=None"),
        (lambda: PowerGrad(beta=-1.0), "beta must be a finite number ≥ 0, got -1"),
        (lambda: PowerGrad(beta=float("nan")), "beta must be a finite number ≥ 0"),
        (lambda: PowerGrad(beta=float("inf")), "beta must be a finite number ≥ 0"),
        (lambda: GradSpread(shortlist=0), "shortlist must be a whole number ≥ 1, got 0"),
        (lambda: GradSpread(grad=Grad(parameters="all")), r"use Grad\(parameters='last'\)"),
    ],
)
def test_options_are_checked_when_they_are_given(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        (lambda z, y: F.cross_entropy(z, y, reduction="none"), r"it gave shape \(7,\)"),
        (lambda _z, _y: 3.0, "must be a tensor computed from the logits .* gave a float"),
        (lambda z, y: F.cross_entropy(z.detach(), y), "cannot be differentiated"),
        (
            lambda z, y: F.cross_entropy(z, y, weight=torch.ones(3)),
            r"given float64 logits .* weights\.to\(logits\.dtype\)",
        ),
    ],
)
@pytest.mark.parametrize("parameters", ["last", "all"])
def test_an_objective_must_be_one_number_of_the_logits(objective, message, parameters):
    with pytest.raises(InputError, match=message):
        select(MODEL, (X, Y), POOL, 2, strategy=Grad(parameters=parameters, loss=objective))


def test_an_objective_that_is_no_number_is_refused():
    rule = Grad(loss=lambda z, _y: (z * float("nan")).sum())
    with pytest.raises(NonFiniteError, match="grad gave 10 of 10 points NaN or infinite scores"):
        select(MODEL, (X, Y), POOL, 2, strategy=rule)


@pytest.mark.parametrize("batch_size", [0, -3, 2.5, "8", True, None])
def test_a_bad_batch_size(batch_size):
    with pytest.raises(InputError, match="batch_size must be a whole number ≥ 1, got"):
        select(MODEL, (X, Y), POOL, 2, batch_size=batch_size)


@pytest.mark.parametrize("seed", [-1, 1.0, "a", None, True])
def test_a_bad_seed(seed):
    with pytest.raises(InputError, match="seed must be an integer ≥ 0, got"):
        select(MODEL, (X, Y), POOL, 2, seed=seed)


# --- model ----------------------------------------------------------------------------------------


def test_a_model_is_needed_for_inputs():
    with pytest.raises(InputError, match="a model is needed to embed the pool"):
        select(None, (X, Y), POOL, 2)
    with pytest.raises(InputError, match="a model is needed to embed the labelled set"):
        select(None, (X, Y), UNSEEN, 2)


def test_what_is_no_model_is_refused():
    with pytest.raises(InputError, match=r"model must be a torch\.nn\.Module, got function"):
        select(lambda x: x, (X, Y), POOL, 2)


def test_a_head_is_needed():
    with pytest.raises(HeadError, match=r"no nn\.Linear layer"):
        select(nn.Identity(), (X, Y), POOL, 2)
    with pytest.raises(UnknownError, match="unknown head 'fc'"):
        select(MODEL, (X, Y), POOL, 2, head="fc")


# --- rules of others ------------------------------------------------------------------------------


def test_a_rule_that_scores_wrong_is_told_so():
    class Short(Entropy):
        name = "short"

        def score(self, block, reference, draws):
            return super().score(block, reference, draws)[1:]

    class Undefined(Entropy):
        name = "undefined"

        def score(self, block, reference, draws):
            return (
                super()
                .score(block, reference, draws)
                .index_fill(0, torch.tensor([3]), float("nan"))
            )

    with pytest.raises(
        InputError, match=r"short must give one score a point: expected shape \(10,\)"
    ):
        select(MODEL, None, POOL, 2, strategy=Short())
    with pytest.raises(
        NonFiniteError, match=r"undefined gave 1 of 10 points .* the first is row 3"
    ):
        select(MODEL, None, POOL, 2, strategy=Undefined())


def test_a_rule_that_picks_wrong_is_told_so():
    class Twice(strategies.Badge):
        name = "twice"

        def pick(self, pool, n, reference, draws):
            picks = super().pick(pool, n, reference, draws)
            picks.rows[1] = picks.rows[0]
            return picks

    with pytest.raises(
        InputError, match=r"twice must give 3 different rows .* it gave 2 different ones"
    ):
        select(MODEL, None, POOL, 3, strategy=Twice())


@pytest.mark.parametrize("name", ["kcenter", "badge", "grad-spread"])
def test_features_of_a_stream_must_be_numbers(name):
    bad = Embedding(UNSEEN.logits, with_entry(UNSEEN.features, [2], float("nan")))
    with pytest.raises(NonFiniteError, match=r"features must be finite; 1 of 10"):
        select(None, (SEEN, Y), iter([bad]), 3, strategy=name)


def test_ragged_labels_are_refused():
    with pytest.raises(AskanceError, match="labels"):
        select(None, (SEEN, [[1], [1, 2], [0], [1]]), UNSEEN, 3)


def test_a_labelled_embedding_without_labels_is_refused():
    with pytest.raises(AskanceError, match=r"pass \(Embedding, y\)"):
        select(None, SEEN, UNSEEN, 3)
