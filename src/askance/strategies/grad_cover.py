"""Gradient-weighted coverage: cover what labelled points do not explain."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

import torch
from torch import Tensor

from askance._checks import check_whole
from askance.embedding import Embedding, Evaluation
from askance.errors import InputError
from askance.gradients.discrepancy import Reference, ScoreTerms
from askance.gradients.last_layer import pseudo_residuals, sq_norms
from askance.picking import Picks
from askance.picking.coverage import cover
from askance.picking.eligible import Eligible
from askance.seeding import Draws
from askance.strategies.base import (
    Labeled,
    Pointwise,
    TwoStage,
    features_of,
    labeled_features,
    logits_of,
)
from askance.strategies.coverage import Covering, CoversPool, equal_weights
from askance.strategies.grad import Grad, UsesGrad
from askance.strategies.margin import margins
from askance.strategies.powergrad import PowerGrad

Weights = Literal["discrepancy", "gradnorm", "margin", "equal"]


@dataclass(frozen=True, eq=False)
class CoverReference(Reference):
    """The labelled set's mean gradient, and its features, which are covered already.

    Args:
        gradient: what s(x) needs of the labelled set.
        features_LD: the labelled features.
    """

    gradient: Reference
    features_LD: Tensor

    @property
    def norm(self) -> float | None:
        return self.gradient.norm

    def parts(self, block: Embedding) -> ScoreTerms | None:
        return self.gradient.parts(block)

    def scores(self, block: Embedding) -> Tensor:
        return self.gradient.scores(block)


class CoversByGrad(UsesGrad, CoversPool):
    """A rule with fields `grad` and `weights` that covers the pool as they say."""

    weights: Weights

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.weights not in get_args(Weights):
            known = ", ".join(map(repr, get_args(Weights)))
            raise InputError(f"weights must be one of {known}; got {self.weights!r}")
        if self.grad.parameters != "last" or callable(self.grad.loss):
            raise InputError(
                f"{self.name} measures gradients of the last layer under a named loss; use "
                f"Grad(parameters='last')"
            )
        if self.grad.reference_size is not None:
            raise InputError(
                f"{self.name} counts every labelled point as covered; leave reference_size=None"
            )
        if self.weights == "margin" and self.grad.loss == "multilabel":
            raise InputError(
                "margin weights are for one class a point; with several labels a point use "
                "weights='discrepancy' or 'gradnorm'"
            )

    @property
    def random(self) -> bool:
        return True

    def prepare(self, labeled: Labeled | None, model: Evaluation | None) -> CoverReference:
        assert labeled is not None
        return CoverReference(super().prepare(labeled, model), labeled_features(self, labeled))

    def covered_by(self, reference: CoverReference) -> Tensor:
        return reference.features_LD

    def weigh(self, rows: Embedding, reference: Any) -> Tensor:
        if self.weights == "equal":
            return equal_weights(rows)
        if self.weights == "margin":
            return 1.0 - margins(logits_of(rows).double())
        if self.weights == "gradnorm":
            loss = self.grad.loss
            assert not callable(loss)
            residuals_MC = pseudo_residuals(logits_of(rows).double(), loss)
            return sq_norms(residuals_MC, features_of(rows), self.grad.bias).sqrt()
        return self.grad.score(rows.mapped(torch.Tensor.double), reference, Draws())


@dataclass(frozen=True)
class GradCover(CoversByGrad, Covering):
    """Greedy maximum of Σ_e s(e)·max_x k(x, e): cover what labels do not explain.

    Each pick x has the largest Σ_e s(e)·(k(x, e) − cov(e))₊, with s the score of `grad` and
    cov(e) = max k(x', e) over the labelled and the earlier picked points x'. k(x, e) =
    exp(−‖h_x − h_e‖²/σ²) on features h of unit length, and the sum is over a sample of the pool. A
    pick's score is that sum.

    Args:
        weights: what a point e of the sample counts: "discrepancy", s(e); "gradnorm", ‖g(e)‖; "margin",
            1 − (p₁ − p₂), as `uherding`; or "equal", 1, as `maxherding`.
        bandwidth: σ² is this many times the median squared distance of the sample to the nearest
            labelled point.
        sample: how many points of the pool the coverage is measured on.
        grad: the score s, with its options; over the last layer.

    Reference:
        ours; s is of Khosravani & Zilles, *Gradient-Discrepancy Acquisition for Pool-Based Active
        Learning*, eq. 11, and weighted coverage of Bae, Oliveira & Sutherland, *Uncertainty Herding*,
        ICLR 2025.
    """

    weights: Weights = "discrepancy"
    bandwidth: float = 3.0
    sample: int = 4000
    grad: Grad = field(default_factory=Grad)

    name: ClassVar[str] = "grad-cover"
    because: ClassVar[str] = "it stands for many items that the labelled ones do not explain"
    cost: ClassVar[str] = "as `grad`, + ≤ (n·N + L)·4000·D"


@dataclass(frozen=True)
class GradCoverShortlist(CoversByGrad, TwoStage):
    """`grad-cover` in one pass: candidates are drawn ∝ s(x)², and cover a uniform sample.

    `candidates`·n points are drawn without replacement ∝ s(x)², as by `powergrad`. n of them are picked
    greedily, each x with the largest Σ_e w(e)·(k(x, e) − cov(e))₊, as in `grad-cover`, but w(e) = 1.
    So the pool is read once, and candidates and sample alone are kept of it. A pick's score is that
    sum.

    Args:
        candidates: how many points are drawn for each pick.
        weights: what a point e of the sample counts, see `grad-cover`.
        bandwidth: σ² is this many times the median squared distance of the sample to the nearest
            labelled point.
        sample: how many points of the pool the coverage is measured on.
        grad: the score s, with its options; over the last layer.

    Reference:
        ours; s is of Khosravani & Zilles, *Gradient-Discrepancy Acquisition for Pool-Based Active
        Learning*, eq. 11, draws ∝ s² of Kirsch et al., *Stochastic Batch Acquisition*, 2023, and
        coverage of Bae, Noh & Sutherland, *Generalized Coverage*, ECCV 2024.
    """

    candidates: int = 3
    weights: Weights = "equal"
    bandwidth: float = 3.0
    sample: int = 4000
    grad: Grad = field(default_factory=Grad)

    name: ClassVar[str] = "grad-cover-shortlist"
    because: ClassVar[str] = "it stands for many items that the labelled ones do not explain"
    cost: ClassVar[str] = "as `grad`, + ≤ (3n² + L)·4000·D"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("candidates", self.candidates, 1)

    @property
    def draws_above(self) -> int:
        return 0

    @property
    def sampled(self) -> int:
        return self.sample

    def shortlisted(self, n: int) -> tuple[Pointwise, int]:
        return PowerGrad(beta=2.0, grad=self.grad), self.candidates * n

    def finish(
        self,
        shortlist: Embedding,
        sample: Embedding,
        n: int,
        reference: Any,
        draws: Draws,
        eligible: Eligible | None = None,
    ) -> Picks:
        return cover(features_of(shortlist), self.audience(sample, reference), n, eligible)
