"""How good the model is, what another hundred answers would bring, and how fast they come.

**The sample.** Before the first question every item is held out with probability `held_out`, by a draw
of its own. The rule never sees those items, so nothing it prefers can bend the sample; with a share of
0.1 every tenth question is about one of them, and they come in random order; no answer to one is ever
trained on. The answered ones are a uniform sample of the data that every model is new to, so the share
a model gets right is an unbiased estimate of its accuracy on items of this kind. The same share among
the questions the *rule* asked would be biased: it prefers what the model does not know.

**Every model, the same items.** Each version's guesses on all held-out items are stored when it is
trained, so all versions are compared on the same answers, and the difference between two is paired.

Intervals are 95% for one look, at a time that does not depend on the numbers. They do not cover
watching them and stopping when one likes. So the advice to stop is a suggestion; asking goes on.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt

import numpy as np
from numpy.typing import NDArray

Z = 1.959963984540054  # the normal distribution's 97.5% point
ENOUGH = 20  # held-out answers below which no advice is given
LITTLE = 0.01  # a gain per hundred answers that is little
PAUSE = 120.0  # seconds after which a person was away


@dataclass(frozen=True)
class Estimate:
    """A share of right guesses, of n."""

    accuracy: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Gain:
    """A difference in accuracy, with its interval."""

    gain: float
    low: float
    high: float

    def times(self, factor: float) -> Gain:
        """The same gain in another unit."""
        return Gain(self.gain * factor, self.low * factor, self.high * factor)


@dataclass(frozen=True)
class Advice:
    """Whether to go on, in words, and the numbers behind them."""

    text: str
    per_100: Gain | None
    stop: bool


def wilson(right: int, n: int) -> Estimate:
    """The share `right`/n with Wilson's score interval.

    (p + z²/2n ± z·√(p(1−p)/n + z²/4n²)) / (1 + z²/n); it holds its level for small n and p near 1.
    """
    p, z2 = right / n, Z * Z
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = Z * sqrt(p * (1 - p) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return Estimate(p, max(0.0, centre - half), min(1.0, centre + half), n)


def paired_gain(before_N: NDArray[np.bool_], after_N: NDArray[np.bool_]) -> Gain:
    """The difference of two models' accuracies on the same items.

    With b items only the later model gets right and c only the earlier one, Bonett & Price's interval
    (2012) for a paired difference: p̃ = (b+1)/(n+2), q̃ = (c+1)/(n+2),
    p̃ − q̃ ± z·√((p̃ + q̃ − (p̃ − q̃)²)/(n+2)). The gain itself is the plain (b − c)/n.
    """
    n = len(before_N)
    b, c = int((after_N & ~before_N).sum()), int((before_N & ~after_N).sum())
    p, q = (b + 1) / (n + 2), (c + 1) / (n + 2)
    half = Z * sqrt((p + q - (p - q) ** 2) / (n + 2))
    return Gain((b - c) / n, max(-1.0, p - q - half), min(1.0, p - q + half))


def gain_per_100(
    trained_on_V: Sequence[int], right_VN: NDArray[np.bool_]
) -> tuple[Gain, int] | None:
    """The last model's gain over the one about a hundred answers before it, per hundred answers.

    Returns the gain and how many answers lie between the two; None where there is no earlier model.
    """
    if len(trained_on_V) < 2 or right_VN.shape[1] == 0:
        return None
    last = trained_on_V[-1]
    earlier = [v for v, count in enumerate(trained_on_V) if count < last]
    if not earlier:
        return None
    base = min(earlier, key=lambda v: (abs(last - 100 - trained_on_V[v]), -v))
    between = last - trained_on_V[base]
    return paired_gain(right_VN[base], right_VN[-1]).times(100 / between), between


def advise(trained_on_V: Sequence[int], right_VN: NDArray[np.bool_]) -> Advice:
    """Whether another hundred answers look worth it.

    It speaks of the last hundred; the next ones usually bring less.
    """
    n = right_VN.shape[1]
    recent = gain_per_100(trained_on_V, right_VN)
    if n < ENOUGH or recent is None:
        need = f"{n} of the {ENOUGH} held-out answers that takes are there"
        if n >= ENOUGH:
            need = "there is no earlier model to compare with"
        return Advice(
            f"Go on: it is too early to say what more answers bring ({need}).", None, False
        )
    gain, between = recent
    said = (
        f"{gain.gain * 100:+.1f} points per hundred answers "
        f"({gain.low * 100:+.1f} to {gain.high * 100:+.1f}), from the last {between}"
    )
    if gain.high < LITTLE:
        text = f"You can stop: {said}. A hundred more would likely bring less than a point."
        return Advice(text, gain, True)
    if gain.low > 0:
        return Advice(f"Go on: the model still learns, {said}.", gain, False)
    text = f"It cannot be told yet whether more answers help: {said}."
    return Advice(text, gain, False)


def fair(order: Sequence[str], drawn: Collection[str], asked: Collection[str]) -> int:
    """How many items of a random order make a fair sample, where some were answered uncalled for.

    A file may hold answers to hard items alone. The page asks in the order, and passes over what has an
    answer; so the items before the next one it would ask are as good as drawn at random, whoever chose
    the others: (r − 1)/(n − 1) of inverse sampling is unbiased. Before it has asked for one there is no
    such sample.

    Args:
        order: items in random order.
        drawn: those that were asked about in this order.
        asked: those that need no asking any more, `drawn` among them.
    """
    places = [place for place, item in enumerate(order) if item in drawn]
    if not places:
        return 0
    end = places[-1] + 1
    while end < len(order) and order[end] in asked:
        end += 1
    return end


def per_minute(times: Sequence[float], last: int = 30) -> float | None:
    """Answers a minute over the last few, pauses left out; None before there are three."""
    gaps = [later - sooner for sooner, later in pairwise(times[-last:])]
    worked = [gap for gap in gaps if 0 <= gap <= PAUSE]
    if len(worked) < 2 or sum(worked) == 0:
        return None
    return 60 * len(worked) / sum(worked)
