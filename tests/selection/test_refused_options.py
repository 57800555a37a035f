"""What `select` refuses of rules, options and models: what was expected, what came, what to do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from askance import select, strategies
from askance.errors import HeadError, InputError, KindError, NonFiniteError, UnknownError
from askance.strategies import Entropy, Grad, GradSpread, PowerGrad
from tests.selection.given import MODEL, NEED_LOGITS, POOL, SEEN, UNSEEN, X, Y

# --- strategies and options -----------------------------------------------------------------------


def test_an_unknown_strategy_lists_the_closest():
    with pytest.raises(
        UnknownError, match=r"unknown strategy 'entropi': did you mean 'entropy'.*badge"
    ):
        select(MODEL, (X, Y), POOL, 2, strategy="entropi")


@pytest.mark.parametrize("strategy", [Grad, 3, object()])
def test_a_strategy_must_be_a_name_or_an_instance(strategy):
    with pytest.raises(KindError, match="strategy must be a name or a Strategy instance, got"):
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
    with pytest.raises(InputError, match="seed must be a whole number ≥ 0, got"):
        select(MODEL, (X, Y), POOL, 2, seed=seed)


# --- model ----------------------------------------------------------------------------------------


def test_a_model_is_needed_for_inputs():
    with pytest.raises(InputError, match="a model is needed to embed the pool"):
        select(None, (X, Y), POOL, 2)
    with pytest.raises(InputError, match="a model is needed to embed the labelled set"):
        select(None, (X, Y), UNSEEN, 2)


def test_what_is_no_model_is_refused():
    with pytest.raises(InputError, match=r"a torch\.nn\.Module, an encoder .* got function"):
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


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([1.0, float("nan"), 0.0], r"finite score; pick 1, row \d+, has nan"),
        ([1.0, 0.0], "must give 3 scores, one a pick"),
    ],
)
def test_a_rule_whose_scores_are_wrong_is_told_so(scores, message):
    class Wrong(strategies.Badge):
        name = "wrong"

        def pick(self, pool, n, reference, draws):
            return replace(super().pick(pool, n, reference, draws), scores=np.array(scores))

    with pytest.raises(ValueError, match=message):
        select(MODEL, None, POOL, 3, strategy=Wrong())


@pytest.mark.parametrize("device", ["cuda:99", "warp", "meta", 1.5])
def test_a_device_that_is_not_there(device):
    with pytest.raises(InputError, match=f"the device '{device}' cannot be used here: ."):
        select(MODEL, (X, Y), POOL, 2, device=device)
    with pytest.raises(InputError, match=f"the device '{device}' cannot be used here: ."):
        select(None, (SEEN, Y), UNSEEN, 2, device=device)


# --- one output -----------------------------------------------------------------------------------

SIGMOID = nn.Sequential(nn.Linear(X.shape[1], 8), nn.ReLU(), nn.Linear(8, 1))


@pytest.mark.parametrize("name", NEED_LOGITS)
def test_a_softmax_over_one_output_is_refused(name):
    with pytest.raises(InputError, match=r"one output.*loss='multilabel'.*two outputs"):
        select(SIGMOID, (X, Y.clamp(max=1)), POOL, 2, strategy=name)


def test_one_output_for_two_classes_is_a_label_that_may_be_on():
    twice = nn.Sequential(*SIGMOID[:2], nn.Linear(8, 2))
    with torch.no_grad():  # the softmax of (0, z)
        twice[2].weight.copy_(torch.cat([0 * SIGMOID[2].weight, SIGMOID[2].weight]))
        twice[2].bias.copy_(torch.cat([0 * SIGMOID[2].bias, SIGMOID[2].bias]))
    y = Y.clamp(max=1)
    for rule in (Entropy, Grad):
        one = select(SIGMOID, (X, y[:, None]), POOL, 4, strategy=rule(loss="multilabel"))
        two = select(twice, (X, y), POOL, 4, strategy=rule())
        assert one.indices.tolist() == two.indices.tolist()


def test_the_scores_of_a_batch_rule_cannot_be_kept():
    with pytest.raises(InputError, match="badge picks points together; leave it out"):
        select(MODEL, (X, Y), POOL, 2, strategy="badge", keep_scores=True)
