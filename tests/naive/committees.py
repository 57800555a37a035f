"""Naive twin of BALD: two entropies, member by member, with many digits."""

from __future__ import annotations

from decimal import Decimal, localcontext


def bald(members: list[list[float]]) -> float:
    """H(mean p) − mean H(p) of one point's logits, a list for each member."""
    with localcontext() as context:
        context.prec = 60
        every = [softmax(z) for z in members]
        mean = [sum(column) / len(every) for column in zip(*every, strict=True)]
        return float(entropy(mean) - sum(entropy(p) for p in every) / len(every))


def mean_logits(members: list[list[float]]) -> list[float]:
    """log of the mean of the members' probabilities."""
    with localcontext() as context:
        context.prec = 60
        every = [softmax(z) for z in members]
        means = [sum(column) / len(every) for column in zip(*every, strict=True)]
        return [float(p.ln()) for p in means]


def softmax(logits: list[float]) -> list[Decimal]:
    exps = [Decimal(z).exp() for z in logits]
    return [e / sum(exps) for e in exps]


def entropy(p: list[Decimal]) -> Decimal:
    return -sum((x * x.ln() for x in p if x > 0), Decimal(0))
