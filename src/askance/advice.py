"""`advise`: which rule for your case, and why, from the experiments that chose the default."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from askance import strategies
from askance._checks import check_whole
from askance.errors import UnknownError
from askance.selection.default import LARGE
from askance.strategies.base import Need
from askance.strategies.defaults import TrackEvidence, evidence

Model = Literal["encoder", "network", "probabilities", "committee"]

PICKS = {
    "badge": "picks large gradients that differ from each other",
    "grad": "picks the gradients farthest from the labelled set's mean gradient",
    "grad-cover": "picks points that cover what has large `grad` scores",
    "grad-cover-shortlist": "draws points with large `grad` scores, and picks some that cover the pool",
    "kcenter": "picks the points farthest from all labelled ones",
    "margin": "picks the smallest gaps between the two likeliest classes",
    "maxherding": "picks points that cover the pool together",
    "powerbald": "draws points on which the members disagree",
    "powergrad": "draws points, those with large `grad` scores more often",
    "powermargin": "draws points, those with small gaps between two classes more often",
    "typiclust": "picks the most typical point of each large cluster without a label",
    "uherding": "picks points that cover what the model is unsure of",
}
_WHERE = {"encoder": "with a pretrained encoder", "network": "with a small network"}
_COMPARE = (
    "No rule wins everywhere, so compare it with `random` on data like yours (`askance run`)."
)
_OPEN = (
    "This is provisional: the experiments that decide it are not all in, so its place before other "
    "rules rests on none of them."
)


@dataclass(frozen=True)
class RuleAdvice:
    """Which rule, and why.

    Args:
        strategy: the rule's name.
        sentences: what to take, why, and what to expect.
        decided: whether the experiments that decide the default are in.
    """

    strategy: str
    sentences: tuple[str, str, str]
    decided: bool

    def __str__(self) -> str:
        return " ".join(self.sentences)


def advise(
    model: Model | None = None,
    *,
    classes: int | None = None,
    labels: int | None = None,
    pool: int | None = None,
) -> RuleAdvice:
    """Which rule for your case, in three sentences. Whatever is left out is taken to be anything.

    Args:
        model: "encoder", a pretrained one with a regression on its features; "network", your own;
            "probabilities", a model that gives nothing else; "committee", several models.
        classes: how many classes there are.
        labels: how many labels there are; 0 before the first.
        pool: how many rows the pool has.

    Example:
        >>> import askance
        >>> askance.advise("encoder", labels=0).strategy
        'maxherding'
    """
    if model is not None and model not in get_args(Model):
        raise UnknownError.of("model", model, get_args(Model))
    for name, value, least in (("classes", classes, 2), ("labels", labels, 0), ("pool", pool, 1)):
        check_whole(name, value, least, or_none=True)
    is_large = pool is not None and pool > LARGE
    if model == "committee":
        return _advice(
            "powerbald",
            "`bald` takes the largest disagreements, and so copies of one point together; our "
            "experiments have compared no rule for committees.",
            _COMPARE,
        )
    rule = _best(model, is_large)
    if labels == 0 and model != "probabilities":
        why = "It looks at features alone, so it needs no label and no trained head."
        return _advice(strategies.FIRST, why, f"Once there are labels, take `{rule}`.")
    usable = [name for name in _usable(model, is_large) if name not in evidence().out]
    expected = _at(rule, usable, _tracks(model), classes, labels) if classes and labels else ""
    return _advice(rule, _why(rule, model), expected or _COMPARE, "in one pass" if is_large else "")


def reason() -> str:
    """Why the default is the default, in a sentence."""
    rule = strategies.default().name
    if not evidence().decided:
        return f"`{rule}` is the default for now: the experiments that decide it are not all in."
    gains = [f"{_points(each.gains[rule][0])} points {_WHERE[each.name]}" for each in _tracks()]
    return (
        f"`{rule}` is the default: of {len(evidence().order)} rules it has the best mean rank in our "
        f"experiments, with gains over random labelling of {' and '.join(gains)}."
    )


def _advice(rule: str, why: str, then: str, how: str = "") -> RuleAdvice:
    isdefault = ", askance's default" if rule == strategies.default().name else ""
    take = f"Take `{rule}`{isdefault}: it {PICKS[rule]}{', ' + how if how else ''}."
    return RuleAdvice(rule, (take, why, then), evidence().decided)


def _best(model: Model | None, is_large: bool) -> str:
    """The best rule that can be used: in the experiments of that kind, or else in all."""
    names = _usable(model, is_large)
    track = evidence().track(model or "")
    if track is None:
        return names[0]
    return next((rule for rule in track.order if rule in names), names[0])


def _usable(model: Model | None, is_large: bool) -> list[str]:
    """The rules that need no more than there is, best first."""
    given: set[Need] = {"logits", "labeled"}
    if model != "probabilities":
        given.add("features")
    return strategies.ranked(given, strategies.STREAMING if is_large else ())


def _tracks(model: Model | None = None) -> list[TrackEvidence]:
    """The kinds of experiment that say something of such a model."""
    one = evidence().track(model or "")
    return list(evidence().tracks) if one is None else [one]


def _why(rule: str, model: Model | None) -> str:
    if not evidence().decided:
        return _OPEN
    if model is None and rule == strategies.default().name:
        return reason()
    told = []
    for track in _tracks(model):
        value, low, high = track.gains[rule]
        count = sum(each.track == track.name for each in evidence().experiments)
        others = [name for name in ("badge", "margin", strategies.default().name) if name != rule]
        other = ", ".join(
            f"`{name}` {_points(track.gains[name][0])}" for name in dict.fromkeys(others)
        )
        told.append(
            f"in {count} experiment{'s' * (count > 1)} {_WHERE[track.name]} it gained "
            f"{_points(value)} points of accuracy over random labelling (95% interval {_points(low)} "
            f"to {_points(high)}; {other})"
        )
    return _sentence("; ".join(told))


def _at(
    rule: str, usable: list[str], tracks: Iterable[TrackEvidence], classes: int, labels: int
) -> str:
    """What the rule gained with about as many labels a class; nothing where no experiment is in."""
    each = labels / classes
    of = {track.name for track in tracks}
    there = [
        (_distance(each, ends), one, third)
        for one in evidence().experiments
        if one.track in of
        for third, ends in enumerate(one.per_class)
    ]
    if not there:
        return ""
    least = min(distance for distance, _, _ in there)
    nearest = [(one, third) for distance, one, third in there if distance == least]
    gains = {
        name: sum(one.gains[name][third] for one, third in nearest) / len(nearest)
        for name in dict.fromkeys([rule, *usable])
    }
    names = ", ".join(dict.fromkeys(one.name for one, _ in nearest))
    about = "about" if not least else "the nearest to"
    best = max(gains, key=lambda name: gains[name])
    more = "" if best == rule else f", and `{best}` the most, {_points(gains[best])}"
    gained = f"it gained {_points(gains[rule])} points{more}"
    return f"With {about} {each:.3g} labels a class ({names}) {gained}."


def _distance(each: float, ends: tuple[float, float]) -> float:
    """How far a number of labels a class is from a range, as a factor's logarithm."""
    return max(0.0, math.log(ends[0] / each), math.log(each / ends[1]))


def _points(share: float) -> str:
    return f"{100 * share:.1f}".replace("-", "−")


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."
