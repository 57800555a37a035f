"""Every registered rule, and its main variants, against the contract suite."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch

import askance
from askance import strategies
from askance.embedding.guard import default_dtype
from askance.picking import Picks
from askance.strategies import Badge, Batch, Grad, GradNorm, GradSpread, Pointwise, PowerGrad
from askance.testing import CONTRACT, check_strategy

RULES = {name: strategies.get(name) for name in strategies.names()}
RULES |= {
    "grad without bias": Grad(bias=False),
    "grad of 5 labelled points": Grad(reference_size=5),
    "grad over all parameters": Grad(parameters="all"),
    "grad over named parameters": Grad(parameters=["body.weight", "head"]),
    "multi-label grad": Grad(loss="multilabel"),
    "multi-label gradnorm": GradNorm(loss="multilabel"),
    "multi-label powergrad": PowerGrad(grad=Grad(loss="multilabel")),
    "multi-label grad-spread": GradSpread(grad=Grad(loss="multilabel")),
    "multi-label entropy": strategies.Entropy(loss="multilabel"),
    "multi-label badge": Badge(loss="multilabel"),
    "maxherding on a sample": strategies.MaxHerding(sample=20),
    "uherding on a sample": strategies.UHerding(sample=20),
    "grad-cover on a sample": strategies.GradCover(sample=20),
    "multi-label grad-cover": strategies.GradCover(grad=Grad(loss="multilabel")),
    "grad-cover-shortlist on a sample": strategies.GradCoverShortlist(sample=20),
    "grad of an objective": Grad(loss=lambda z, y: torch.nn.functional.cross_entropy(z, y).exp()),
}


@pytest.mark.parametrize("check", CONTRACT)
@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_rule_keeps_the_contract(rule, check):
    check_strategy(rule, checks=[check])


@dataclass(frozen=True)
class Fixed(Pointwise):
    """A rule to break in one way at a time."""

    name: ClassVar[str] = "fixed"
    needs = frozenset({"logits"})

    def score(self, block, reference, draws):
        return -torch.arange(block.positions.start, block.positions.stop, dtype=torch.float64)


class ReadsGlobalRng(Fixed):
    def score(self, block, reference, draws):
        return torch.randn(len(block), dtype=torch.float64)


class IgnoresSeed(Fixed):
    random = True


class TakesTheDefaultDtype(Fixed):
    def score(self, block, reference, draws):
        return torch.arange(1, len(block) + 1).reciprocal()


class FailsUnderAnotherDefault(Fixed):
    def score(self, block, reference, draws):
        return torch.mm(block.logits, torch.ones(block.logits.shape[1], 1))[:, 0]


class TwicePicked(Batch):
    name = "twice"
    needs = frozenset({"features"})

    def pick(self, pool, n, reference, draws):
        return Picks(np.zeros(n, dtype=np.int64), np.zeros(n))


@pytest.mark.parametrize(
    ("rule", "check", "complaint"),
    [
        (Fixed(), "equivariant_to_order", "order of the pool"),
        (ReadsGlobalRng(), "same_seed_same_picks", "same seed"),
        (ReadsGlobalRng(), "invariant_to_batches_and_containers", "batches of"),
        (IgnoresSeed(), "same_seed_same_picks", "seeds say otherwise"),
        (TakesTheDefaultDtype(), "ignores_default_dtype", "under the default dtype torch.float64"),
    ],
)
def test_contract_catches_a_broken_rule(rule, check, complaint):
    with pytest.raises(AssertionError, match=complaint):
        check_strategy(rule, checks=[check])


@pytest.mark.parametrize("default", [torch.float32, torch.float64])
@pytest.mark.parametrize("rule", [TakesTheDefaultDtype(), FailsUnderAnotherDefault()])
def test_contract_puts_the_default_dtype_back(rule, default):
    with default_dtype(default):
        with pytest.raises((AssertionError, RuntimeError)):
            check_strategy(rule, checks=["ignores_default_dtype"])
        assert torch.get_default_dtype() == default


def test_select_refuses_a_batch_rule_that_picks_twice():
    with pytest.raises(ValueError, match="must give 9 different rows"):
        check_strategy(TwicePicked(), checks=["unique_in_pool_exactly_n"])


def test_unknown_check_names_the_closest():
    with pytest.raises(ValueError, match="explains_itself"):
        check_strategy("entropy", checks=["explain_itself"])


class FirstRows(Batch):
    """A rule that knows nothing of limits."""

    name = "first"
    needs = frozenset({"features"})

    def pick(self, pool, n, reference, draws):
        return Picks(np.arange(n), np.zeros(n))


class DeafToLimits(FirstRows):
    def pick(self, pool, n, reference, draws, eligible=None):
        return super().pick(pool, n, reference, draws)


class GivesUpEarly(FirstRows):
    def pick(self, pool, n, reference, draws, eligible=None):
        rows = np.arange(n) if eligible is None else np.flatnonzero(eligible.mask)[: n - 1]
        for row in rows if eligible is not None else []:
            eligible.take(row)
        return Picks(rows, np.zeros(len(rows)))


class TakesWhatHasLeft(FirstRows):
    def pick(self, pool, n, reference, draws, eligible=None):
        for row in range(n) if eligible is not None else []:
            eligible.take(row)
        return super().pick(pool, n, reference, draws)


@pytest.mark.parametrize(
    ("rule", "complaint"),
    [
        (DeafToLimits(), r"must call eligible\.take\(row\) for each pick"),
        (GivesUpEarly(), "must give 9 rows, or all that are eligible; it gave 8, and 5[0-9] more"),
        (TakesWhatHasLeft(), "row 8 may not be picked"),
    ],
)
def test_a_batch_rule_that_does_not_keep_to_limits_is_refused(rule, complaint):
    pool = torch.randn(61, 3)
    groups = np.array([0] * 9 + [1] * 52)
    embedding = askance.Embedding(features=pool)
    with pytest.raises(ValueError, match=complaint):
        askance.select(None, None, embedding, 9, strategy=rule, groups=groups, at_most=8)
    with pytest.raises(ValueError, match=r"eligible|may not be picked"):
        check_strategy(rule, checks=["keeps_to_limits"])


def test_a_batch_rule_of_before_is_refused_under_limits_alone():
    check_strategy(FirstRows(), checks=["keeps_to_limits"])
    pool = askance.Embedding(features=torch.randn(20, 3))
    assert len(askance.select(None, None, pool, 4, strategy=FirstRows())) == 4
    with pytest.raises(
        ValueError, match=r"first cannot pick under constraints: its pick\(\) takes no"
    ):
        askance.select(None, None, pool, 4, strategy=FirstRows(), max_similarity=0.9)
