"""An encoder in place of a model: items to features, and the regression on them as the model."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from askance.embedding import Embedding, sources
from askance.embedding.device import usable
from askance.encoders import Encoder, encode, get
from askance.encoders.encode import as_items
from askance.encoders.encoder import Prepared
from askance.encoders.linear import ONE_CLASS, Standardiser, fit_linear
from askance.errors import InputError, KindError, LabelError, SelectionWarning
from askance.selection.classes import are_names, class_names, numbered
from askance.selection.clock import encoding_bar
from askance.selection.tables import as_model_takes, without_frames
from askance.strategies import Strategy
from askance.strategies.base import Need


class EncodedRegression(Encoder):
    """An encoder with the regression on its features, fitted once for all that look at it.

    `select` takes it in place of the encoder, with the same labelled set and the same pool.

    Args:
        encoder: whose features.
        labeled: (items, y), the labels as numbers.
        pool: items, by which the features are standardised.
        device: where to encode.
        names: of the classes, where they are known.
        progress: show a bar.
    """

    def __init__(
        self,
        encoder: Encoder,
        labeled: Any,
        pool: Any,
        device: torch.device | None,
        names: Sequence[str] | None = None,
        progress: bool = False,
    ) -> None:
        self.encoder, self.device = encoder, device
        self.name, self.kind, self.dimension = encoder.name, encoder.kind, encoder.dimension
        self.digest, self.batch_size, self.draft = encoder.digest, encoder.batch_size, encoder.draft
        self.answers: Sequence[str] | None = None  # names to answer with, in place of numbers
        pool_ND = _pool_features(encoder, pool, device, progress)
        self.standardise = Standardiser.of(pool_ND)
        self.pool_ND = self.standardise(pool_ND)
        if not isinstance(labeled, tuple) or len(labeled) != 2:
            raise LabelError(
                f"with an encoder the labelled set is (items, y), got {type(labeled).__name__}"
            )
        items, y = labeled
        self.seen_LD = self.standardise(features_of(encoder, items, "labelled set", device))
        self.labels = sources.as_labels(y, len(self.seen_LD))
        if self.labels.ndim != 1:
            raise LabelError(f"{encoder.name} with `linear` is for one class an item, not several")
        known = int(self.labels.max()) + 1 if names is None else len(names)
        self.fit = fit_linear(self.seen_LD, self.labels.numpy(), max(2, known))

    def prepare(self, loaded: Sequence[Any]) -> Prepared:
        return self.encoder.prepare(loaded)

    def features(self, inputs: Any) -> Tensor:
        return self.encoder.features(inputs)

    def load(self, item: Any) -> Any:
        return self.encoder.load(item)

    def to(self, device: torch.device | str) -> None:
        self.encoder.to(device)

    def classes_of_rows(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """(S,) the class of some rows of the pool: a number, or its name where labels are names."""
        return self._classes(self.pool_ND[rows])

    def classes_of(self, items: Any, what: str) -> NDArray[Any]:
        """(M,) the class of other items, which messages call `what`."""
        each = as_model_takes(self.encoder, items, what)
        return self._classes(self.standardise(features_of(self.encoder, each, what, self.device)))

    def _classes(self, z_ND: NDArray[np.float64]) -> NDArray[Any]:
        places = self.fit.logits(z_ND).argmax(axis=1)
        return places if self.answers is None else np.asarray(self.answers)[places]


def regression_of(
    encoder: str | Encoder, labeled: Any, pool: Any, options: Mapping[str, Any]
) -> EncodedRegression:
    """The regression that `select` fits of the same encoder, labelled set, pool and options."""
    given = labeled
    _, labeled, pool, own = without_frames(encoder, labeled, pool)
    names = class_names(encoder, labeled, options.get("classes") or own)
    device = options.get("device")
    made = EncodedRegression(
        get(encoder), numbered(labeled, names), pool, None if device is None else usable(device),
        names, options.get("progress", False),
    )  # fmt: skip
    if names is not None and are_names(given[1]):
        made.answers = names
    return made


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
    if labeled is None:
        pool_ND = _pool_features(encoder, pool, device, progress)
        return None, _embedding(Standardiser.of(pool_ND)(pool_ND))
    made = (
        encoder
        if isinstance(encoder, EncodedRegression)
        else EncodedRegression(encoder, labeled, pool, device, names, progress)
    )
    fit = made.fit
    if fit.is_constant and "logits" in needs:
        warnings.warn(ONE_CLASS, SelectionWarning, stacklevel=4)
    seen = _embedding(made.seen_LD, fit.logits(made.seen_LD))
    return (seen, made.labels), _embedding(made.pool_ND, fit.logits(made.pool_ND))


def _pool_features(
    encoder: Encoder, pool: Any, device: torch.device | None, progress: bool
) -> NDArray[np.float32]:
    with encoding_bar(progress, encoder.name) as advance:
        return features_of(encoder, pool, "pool", device, progress=advance)


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
