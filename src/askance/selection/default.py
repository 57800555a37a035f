"""The rule where none is named: the best by our experiments of those that what is given allows."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from typing import Any

from askance import strategies
from askance.embedding import Embedding
from askance.embedding.committee import Committee
from askance.selection.inputs import is_embedded, is_stream
from askance.selection.probabilities import is_estimator
from askance.strategies import Batch, Default, Pointwise, Strategy
from askance.strategies.base import Need

LARGE = 1_000_000
"""Rows of a pool above which a rule is taken that streams, unless an embedding is in memory already."""


def rule_of(
    strategy: str | Strategy | None, model: Any, labeled: Any, pool: Any
) -> tuple[Pointwise | Batch, str]:
    """The rule that is named, or else the default; and in words why, where none is named."""
    if strategy is not None:
        return strategies.of(strategy), ""
    taken = default_for(model, labeled, pool)
    return strategies.of(taken.name), taken.why


def default_for(model: Any, labeled: Any, pool: Any) -> Default:
    """The default of `select`, which is given the same."""
    large = not isinstance(pool, Embedding) and _rows(pool) > LARGE
    kinds = strategies.STREAMING if large or is_stream(pool) else ()
    return strategies.default(_given(model, labeled, pool), kinds)


def _given(model: Any, labeled: Any, pool: Any) -> frozenset[Need]:
    """What is known of the pool, and whether there is a labelled set."""
    known: frozenset[Need] = frozenset({"logits", "features"})
    if isinstance(pool, Embedding):
        known = _parts(pool)
    elif is_stream(pool):  # whose blocks have what the labelled set has
        known = known if labeled is not None else frozenset({"features"})
    elif isinstance(model, Committee) or is_estimator(model):
        known = frozenset({"logits"})
    elif model is None:
        known = frozenset({"features"})
    if labeled is None:
        return known
    if is_embedded(labeled):
        known &= _parts(labeled[0])
    is_empty = isinstance(labeled, tuple) and len(labeled) == 2 and not _rows(labeled[0], 1)
    return known if is_empty else known | {"labeled"}


def _rows(data: Any, unknown: int = 0) -> int:
    """How many rows; a lower bound where data comes in batches."""
    if isinstance(data, Mapping):
        return max((_rows(each, unknown) for each in data.values()), default=unknown)
    return len(data) if isinstance(data, Sized) else unknown


def _parts(embedding: Embedding) -> frozenset[Need]:
    names: tuple[Need, ...] = ("logits", "features")
    return frozenset(name for name in names if name in embedding.matrices)
