"""An encoder in place of a model: items to features, and the regression on them as the model."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from askance.embedding import Embedding, sources
from askance.encoders import Encoder, encode, get
from askance.encoders.encode import as_items
from askance.encoders.linear import ONE_CLASS, Standardiser, fit_linear
from askance.errors import InputError, KindError, LabelError, SelectionWarning
from askance.selection.clock import encoding_bar
from askance.strategies import Strategy
from askance.strategies.base import Need


def embedded_by(
    model: object,
    labeled: Any,
    pool: Any,
    device: torch.device | None,
    rule: Strategy,
    needs: frozenset[Need],
    names: Sequence[str] | None = None,
    progress: bool = False,
) -> tuple[tuple[Embedding, torch.Tensor] | None, Embedding]:
    """(the labelled set, the pool) as embeddings of `linear` on an encoder's features.

    The features are standardised by the pool, and the regression is fitted on the labelled points.
    Without any, the pool has features and no logits.

    Args:
        model: an encoder, or its name.
        labeled: (items, y) or None.
        pool: items: texts, or images as paths, bytes, Pillow images or uint8 arrays.
        device: where to encode.
        rule: who picks.
        needs: what must be known of the pool; where that is nothing, nothing is encoded.
        names: of the classes, where labels came as names.
        progress: show a bar.
    """
    if not isinstance(model, (str, Encoder)):
        raise KindError(
            f"model must be a torch.nn.Module, an encoder or an encoder's name, got "
            f"{type(model).__name__}; it may be None where both pool and labelled points are given as "
            f"Embedding. scikit-learn's classifiers are asked by askance.integrations.sklearn.Query"
        )
    if not needs & {"logits", "features"}:
        return None, Embedding(positions=range(len(_items(pool, "pool", "item"))))
    encoder = get(model)
    if labeled is None and "logits" in needs:
        who = rule.name if "logits" in rule.needs else "groups='predicted'"
        raise LabelError(
            f"{who} needs a regression fitted on labelled items, but labeled is None; pass "
            f"(items, y), or use a rule that needs no labels, such as 'maxherding'"
        )
    with encoding_bar(progress, encoder.name) as advance:
        pool_ND = features_of(encoder, pool, "pool", device, progress=advance)
    standardise = Standardiser.of(pool_ND)
    z_ND = standardise(pool_ND)
    if labeled is None:
        return None, _embedding(z_ND)
    if not isinstance(labeled, tuple) or len(labeled) != 2:
        raise LabelError(
            f"with an encoder the labelled set is (items, y), got {type(labeled).__name__}"
        )
    items, y = labeled
    seen_LD = standardise(features_of(encoder, items, "labelled set", device))
    labels = sources.as_labels(y, len(seen_LD))
    if labels.ndim != 1:
        raise LabelError(f"{encoder.name} with `linear` is for one class an item, not several")
    known = int(labels.max()) + 1 if names is None else len(names)
    fit = fit_linear(seen_LD, labels.numpy(), max(2, known))
    if fit.is_constant and "logits" in needs:
        warnings.warn(ONE_CLASS, SelectionWarning, stacklevel=4)
    seen = _embedding(seen_LD, fit.logits(seen_LD))
    return (seen, labels), _embedding(z_ND, fit.logits(z_ND))


def features_of(
    encoder: Encoder,
    items: Any,
    what: str,
    device: torch.device | None,
    batch_size: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> np.ndarray[Any, np.dtype[np.float32]]:
    """The (N, D) features of some items, which messages call `what`; cached."""
    each = _items(items, what, encoder.kind)
    place = None if device is None else str(device)
    options: dict[str, Any] = {"batch_size": batch_size, "device": place, "progress": progress}
    return encode(encoder, each, cache=True, **options).features


def _embedding(
    features_ND: np.ndarray[Any, np.dtype[np.float64]],
    logits_NC: np.ndarray[Any, np.dtype[np.float64]] | None = None,
) -> Embedding:
    return Embedding(
        features=torch.from_numpy(features_ND.astype(np.float32)),
        logits=None if logits_NC is None else torch.from_numpy(logits_NC.astype(np.float32)),
    )


def _items(items: Any, what: str, kind: str) -> list[Any]:
    """The items as a list that is not empty."""
    if isinstance(items, (Embedding, torch.Tensor)):
        raise InputError(f"the {what} must be a list of {kind}s, got {type(items).__name__}")
    each = as_items(items, kind, what)
    if not each:
        raise InputError(f"the {what} must hold at least one item, it is empty")
    return each
