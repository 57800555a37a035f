"""The rule for a pool that is read in shards, where none is named."""

from __future__ import annotations

from typing import Any

from askance import strategies
from askance.encoders import Encoder
from askance.pools.source import Source, rows_in
from askance.strategies import Default
from askance.strategies.base import Need

_EMBEDDED: frozenset[Need] = frozenset({"logits", "features"})


def default_for(
    source: Source, labeled: Source | None, model: Any, shortlist: int | None, *, limited: bool
) -> Default:
    """The default of `select_from`, which is given the same: a rule that streams, where one can be.

    With a shortlist it is a rule that picks from one. Limits on the picks let a two-stage rule look at
    the whole pool, whose length has to be known: else the rule is pointwise.
    """
    known = _EMBEDDED
    if isinstance(model, (str, Encoder)):  # the regression on its features needs labels
        known = known if labeled is not None else frozenset({"features"})
    elif model is None:
        known = _held(source) if labeled is None else _held(source) & _held(labeled)
    if labeled is not None:
        known |= {"labeled"}
    kinds: tuple[str, ...] = strategies.STREAMING
    if shortlist is not None:
        kinds = strategies.BATCH
    elif limited and rows_in(source.shards) is None:
        kinds = ("pointwise",)
    return strategies.default(known, kinds)


def _held(source: Source) -> frozenset[Need]:
    return frozenset(part for part in _EMBEDDED if part in source.holds)
