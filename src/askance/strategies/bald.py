"""BALD: where a committee disagrees."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from askance.embedding import Embedding
from askance.seeding import Draws
from askance.strategies.base import Need, Pointwise, members_of

# Below it (1 + t)·log(1 + t) − t is the first terms of its series, to 13 digits.
_SMALL = 1e-4


@dataclass(frozen=True)
class Bald(Pointwise):
    """H(p̄) − mean_m H(p_m): what a label would tell about which member is right.

    The mutual information between the label and the member, with p̄ the mean of the members'
    probabilities p_m. It is zero where all members agree, however uncertain they are.

    Reference:
        Houlsby, Huszár, Ghahramani & Lengyel, *Bayesian Active Learning for Classification and
        Preference Learning*, 2011; with networks as members, Gal, Islam & Ghahramani, *Deep Bayesian
        Active Learning with Image Data*, 2017.

    Deviations: the members of `askance.committee` drop the same units for every point, where Gal et al.
    draw them anew for each.
    """

    name: ClassVar[str] = "bald"
    because: ClassVar[str] = "the models disagree about it"
    cost: ClassVar[str] = "N·M·C"
    needs = frozenset[Need]({"logits", "members"})
    multilabel = False

    def score(self, block: Embedding, reference: Any, draws: Draws) -> Tensor:
        return mutual_information(members_of(block))


def mutual_information(members_BMC: Tensor) -> Tensor:
    """(B,) the mean over members of Σ_c p_mc·log(p_mc / p̄_c), in float64.

    With p = p̄(1 + t), where Σ p̄t = 0, that sum is Σ p̄·((1 + t)·log(1 + t) − t): no term is below zero,
    so nothing cancels where members agree almost.
    """
    log_p_BMC = members_BMC.double().log_softmax(dim=2)
    log_mean_B1C = log_p_BMC.logsumexp(dim=1, keepdim=True) - math.log(log_p_BMC.shape[1])
    log_ratio_BMC = log_p_BMC - log_mean_B1C
    t_BMC = log_ratio_BMC.expm1()
    terms_BMC = torch.where(
        t_BMC.abs() < _SMALL,
        t_BMC.square() * (1 / 2 - t_BMC / 6 + t_BMC.square() / 12),
        (1 + t_BMC) * log_ratio_BMC - t_BMC,
    )
    return (log_mean_B1C.exp() * terms_BMC).sum(dim=2).mean(dim=1)
