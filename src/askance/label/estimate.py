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

from askance.stopping import Checkpoint, Gain, Plateau, StablePredictions, earlier, paired_gain

ENOUGH = 20  # held-out answers below which nothing is said of a gain
SAMPLE = 100  # held-out items below which stable predictions say nothing
OVER = 100  # answers that a gain is spoken of
LITTLE = 0.01  # a gain in so many answers that is little
PAUSE = 120.0  # seconds after which a person was away

STABLE = StablePredictions()
PLATEAU = Plateau(gain=LITTLE, over=OVER, level=0.95)


@dataclass(frozen=True)
class Advice:
    """Whether to go on, in words, and the numbers behind them.

    Args:
        text: the advice.
        gain: in accuracy, over the last `answers` answers; None where it is too early to say.
        answers: how many those are.
        stop: whether a stopping rule says so.
    """

    text: str
    gain: Gain | None
    answers: int | None
    stop: bool


def spaced(history: Sequence[Checkpoint], answers: int) -> list[Checkpoint]:
    """The last model, and of those before it each that is `answers` answers or more apart.

    Two models that differ by an answer or two predict alike, which says nothing about the next hundred.
    """
    kept: list[Checkpoint] = []
    for one in reversed(history):
        if not kept or kept[-1].labels - one.labels >= answers:
            kept.append(one)
    return kept[::-1]


def recent_gain(history: Sequence[Checkpoint]) -> tuple[Gain, int] | None:
    """The last model's gain over the one about a hundred answers before it, on the same items.

    Returns the gain in at most a hundred answers, and in how many; None where no model is fifty
    answers older, or too few held-out answers count. A gain in fewer answers is not scaled up.
    """
    base = earlier(history, OVER) if history else None
    if base is None or base.correct is None or history[-1].correct is None:
        return None
    if len(base.correct) < ENOUGH:
        return None
    between = history[-1].labels - base.labels
    scale = min(1.0, OVER / between)
    gain = paired_gain(base.correct, history[-1].correct).times(scale)
    return gain, round(between * scale)


def advise(history: Sequence[Checkpoint], batch: int) -> Advice:
    """Whether more answers look worth it.

    Args:
        history: of every model its answers, what it predicts of the held-out items, and whether it is
            right on those that are answered.
        batch: answers between two models that are compared.
    """
    recent = recent_gain(history)
    gain, answers = recent or (None, None)
    measured = ""
    if gain is not None:
        digits = 0 if gain.high - gain.low > 0.1 else 1
        rise, low, high = (f"{100 * end:+.{digits}f}" for end in vars(gain).values())
        band = f"95%: {low} to {high}"
        measured = f" Lately, {answers} answers changed the accuracy by {rise} points ({band})."
    if gain is not None and PLATEAU(history):
        text = (
            f"You can stop: a hundred more answers would likely bring less than a point.{measured}"
        )
        return Advice(text, gain, answers, True)
    apart = spaced(history, batch)
    sample = 0 if not apart or apart[-1].predictions is None else len(apart[-1].predictions)
    if sample >= SAMPLE and STABLE(apart):
        text = (
            f"You can stop: the last {STABLE.window + 1} models say the same of nearly all of "
            f"{sample} items that none was trained on.{measured}"
        )
        return Advice(text, gain, answers, True)
    if gain is None:
        n = 0 if not history or history[-1].correct is None else len(history[-1].correct)
        need = f"{n} of the {ENOUGH} held-out answers that takes are there"
        if n >= ENOUGH:
            need = "there is no model of fifty answers ago to compare with"
        text = f"Go on: it is too early to say what more answers bring ({need})."
        return Advice(text, None, None, False)
    text = "Go on, or stop where it is good enough: whether more answers help is not clear."
    if gain.low > 0:
        text = "Go on: the model still learns."
    return Advice(f"{text}{measured}", gain, answers, False)


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
