"""The rules, by name.

Third parties register theirs under the entry-point group `askance.strategies`; each entry is a
`Strategy` subclass whose options all have defaults. A whole library of rules registers under
`askance.strategy_sources`: `PREFIX:NAME` is what its entry, a function from NAME to such a class, says.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from askance.errors import InputError, KindError, UnknownError
from askance.strategies.badge import Badge
from askance.strategies.bait import Bait
from askance.strategies.bald import Bald
from askance.strategies.base import (
    Batch,
    Labeled,
    Need,
    Pointwise,
    ShardedBatch,
    Strategy,
    TwoStage,
)
from askance.strategies.cluster_margin import ClusterMargin
from askance.strategies.defaults import Default, evidence
from askance.strategies.egl import EGL
from askance.strategies.entropy import Entropy
from askance.strategies.grad import Grad
from askance.strategies.grad_cover import GradCover, GradCoverShortlist
from askance.strategies.grad_spread import GradSpread
from askance.strategies.gradnorm import GradNorm
from askance.strategies.kcenter import KCenter
from askance.strategies.least_confidence import LeastConfidence
from askance.strategies.margin import Margin
from askance.strategies.maxherding import MaxHerding
from askance.strategies.powerbald import PowerBald
from askance.strategies.powergrad import PowerGrad
from askance.strategies.powermargin import PowerMargin
from askance.strategies.probcover import ProbCover
from askance.strategies.random import Random
from askance.strategies.strata import Strata
from askance.strategies.typiclust import TypiClust
from askance.strategies.uherding import UHerding

FIRST = "maxherding"
"""The rule of a first batch: it looks at features alone."""

BATCH, STREAMING = ("batch",), ("pointwise", "two-stage")
"""Kinds of rule that keep the whole pool in memory, and that keep a block of it."""

GROUP = "askance.strategies"
SOURCES = "askance.strategy_sources"

_BUILTIN: dict[str, type[Strategy]] = {
    rule.name: rule
    for rule in (
        Random,
        Entropy,
        Margin,
        PowerMargin,
        LeastConfidence,
        Bald,
        PowerBald,
        EGL,
        GradNorm,
        Grad,
        PowerGrad,
        GradSpread,
        Badge,
        Bait,
        ClusterMargin,
        KCenter,
        TypiClust,
        ProbCover,
        MaxHerding,
        UHerding,
        GradCover,
        GradCoverShortlist,
        Strata,
    )
}


def names() -> list[str]:
    """Every registered rule: askance's own, then third parties' in alphabetical order."""
    return [*_BUILTIN, *sorted(_third_party())]


def get(name: str, **options: Any) -> Strategy:
    """The rule of that name, with its options.

    Example:
        >>> import askance
        >>> askance.strategies.get("powergrad", beta=1.0).beta
        1.0
    """
    rule = _class_of(name)
    names_of_options = options_of(rule)
    for option in options:
        if option == "loss" and not {"loss", "grad"} & set(names_of_options):
            raise InputError(
                f"{name} takes no loss: it needs a single class for each point, or none "
                f"at all; grad, powergrad, gradnorm, entropy and badge take multi-label"
            )
        if option not in names_of_options:
            raise UnknownError.of(f"option of {name}", option, names_of_options)
    return rule(**options)


def of(strategy: str | Strategy) -> Pointwise | Batch:
    """The rule of that name without options, or the rule that is given."""
    rule = get(strategy) if isinstance(strategy, str) else strategy
    if not isinstance(rule, (Pointwise, Batch)):
        raise KindError(f"strategy must be a name or a Strategy instance, got {strategy!r}")
    return rule


def ranked(given: Collection[Need], kinds: Collection[str] = ()) -> list[str]:
    """The rules that were compared and need no more than what is given, the best first.

    Args:
        given: "logits" and "features" where they are known of the pool, and "labeled" where there is a
            labelled set.
        kinds: of these kinds alone (`kind_of`); of all where it is empty.
    """
    rules = {name: get(name) for name in evidence().order}
    return [
        name
        for name, rule in rules.items()
        if rule.needs <= frozenset(given) and (not kinds or kind_of(rule) in kinds)
    ]


def default(
    given: Collection[Need] = ("logits", "features", "labeled"), kinds: Collection[str] = ()
) -> Default:
    """The rule that is taken where none is named: the best of `ranked`.

    Without a labelled set it is "maxherding", where there are features. Where no rule of these kinds
    can be used, it is of another kind.

    Example:
        >>> import askance
        >>> askance.strategies.default({"features"}).name
        'maxherding'
    """
    what = "the default" if evidence().decided else "the provisional default"
    if "features" in given and "labeled" not in given:
        return Default(FIRST, f"{what} for a first batch")
    of_kind = ranked(given, kinds)
    names = of_kind or ranked(given)
    if not names:
        raise InputError(
            "no rule is named, and a default needs features or logits of the pool: pass a model, or an "
            "Embedding that has them; or name a rule, such as 'random'"
        )
    if not {"logits", "features"} <= set(given):
        what += " for features alone" if "features" in given else " for probabilities alone"
    elif of_kind and tuple(kinds) == STREAMING:
        what += " for a pool that is read in parts"
    return Default(names[0], what)


def kind_of(rule: Strategy) -> str:
    """ "pointwise", "two-stage" or "batch"; see `strategies.base`."""
    if isinstance(rule, Pointwise):
        return "pointwise"
    return "two-stage" if isinstance(rule, TwoStage) else "batch"


def options_of(rule: Strategy | type[Strategy]) -> list[str]:
    """The names of a rule's options. Every rule is a dataclass, which its type cannot say."""
    return [field.name for field in fields(rule)]  # type: ignore[arg-type]


def _class_of(name: str) -> type[Strategy]:
    if name in _BUILTIN:
        return _BUILTIN[name]
    entry = _third_party().get(name)
    prefix, colon, within = name.partition(":")
    if entry is None and colon:
        sources = {source.name: source for source in entry_points(group=SOURCES)}
        if prefix not in sources:
            raise UnknownError.of("source of strategies", prefix, sources)
        return sources[prefix].load()(within)
    if entry is None:
        raise UnknownError.of("strategy", name, names())
    rule = entry.load()
    if not (isinstance(rule, type) and issubclass(rule, (Pointwise, Batch))):
        raise InputError(
            f"the entry point {entry.value!r} must be a Pointwise or Batch strategy class, "
            f"it is {rule!r}"
        )
    return rule


@cache
def _third_party() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP) if entry.name not in _BUILTIN}


__all__ = [
    "EGL",
    "Badge",
    "Bait",
    "Bald",
    "Batch",
    "ClusterMargin",
    "Default",
    "Entropy",
    "Grad",
    "GradCover",
    "GradCoverShortlist",
    "GradNorm",
    "GradSpread",
    "KCenter",
    "Labeled",
    "LeastConfidence",
    "Margin",
    "MaxHerding",
    "Pointwise",
    "PowerBald",
    "PowerGrad",
    "PowerMargin",
    "ProbCover",
    "Random",
    "ShardedBatch",
    "Strata",
    "Strategy",
    "TwoStage",
    "TypiClust",
    "UHerding",
    "default",
    "get",
    "kind_of",
    "names",
    "of",
    "options_of",
    "ranked",
]
