"""A model that gives probabilities, and nothing else: scikit-learn's classifiers, and their like.

log p serves as logits: softmax(log p) = p / Σ p = p. A class of probability 0 is given 1e-300 instead
(`FLOOR`), so that its logarithm is finite; the sum of a row is the same float64 either way.

Probabilities are rounded to 40 bits, 12 digits. A forest with several threads adds up its trees in the
order in which they finish, so that the last digits of two calls differ. Rounding makes them equal
again, but for the rare number that is at the edge between two.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from askance.embedding import Embedding
from askance.embedding.guard import evaluating, preserved_rng
from askance.embedding.rows import check_rows, row_count, rows_between, sliceable
from askance.errors import InputError, KindError, LabelError, NonFiniteError
from askance.selection.inputs import is_stream
from askance.strategies import Strategy
from askance.strategies.base import Need

FLOOR = 1e-300
_BITS = 40
# How far from 1 a row's sum may be: float16's probabilities of many classes are off by as much.
_ROUNDED = 0.01
_ENOUGH = "'margin', 'entropy', 'least-confidence' or 'random'"


class GivesProbabilities(Protocol):
    """A fitted classifier as scikit-learn's are: a pipeline, a forest, a skorch net."""

    def predict_proba(self, X: Any, /) -> Any:
        """(rows, classes) probabilities, columns in the order of `classes_`."""


def is_estimator(model: object) -> bool:
    """Whether it predicts as scikit-learn's models do, with probabilities or without."""
    if isinstance(model, nn.Module):
        return False
    names = ("predict_proba", "decision_function", "predict")
    return any(hasattr(model, name) for name in names)


def predicted(
    rule: Strategy,
    model: Any,
    labeled: Any,
    pool: Any,
    batch_size: int,
    needs: frozenset[Need],
) -> tuple[Any, Any, int | None]:
    """(labelled set, pool, its size) with what the model says of them in place of rows.

    Args:
        rule: who asks.
        model: a fitted classifier with `predict_proba`.
        labeled: (X, y); looked at by rules that need it only.
        pool: rows as the model takes them, or embeddings, which need no model.
        batch_size: rows of a call.
        needs: what must be known of the pool: what the rule needs, or more.
    """
    if isinstance(pool, Embedding) or is_stream(pool):
        return labeled, pool, None
    _check_estimator(rule, model, needs)
    check_rows(pool)
    if {"labeled", "logits"} <= rule.needs and labeled is not None:
        labeled = _predicted_labeled(model, labeled, batch_size)
    return labeled, _predicted_blocks(needs, model, pool, batch_size), row_count(pool)


def _check_estimator(rule: Strategy, model: Any, needs: frozenset[Need]) -> None:
    """Raise where the rule needs more than the model gives."""
    if isinstance(model, type):
        raise KindError(
            f"model must be a fitted classifier, got the class {model.__name__}; pass "
            f"{model.__name__}(...).fit(X, y)"
        )
    kind = type(model).__name__
    more = rule.needs & {"features", "inputs"}
    if (more or "logits" in needs) and not hasattr(model, "predict_proba"):
        raise KindError(
            f"{rule.name} needs a model with predict_proba, a {kind} has none. Fit it with an option "
            f"that gives probabilities (such as loss='log_loss'), or fit "
            f"sklearn.calibration.CalibratedClassifierCV around it; scores of your own go in as "
            f"askance.Embedding(logits=...)"
        )
    if more:
        raise KindError(
            f"{rule.name} needs gradients or features, a {kind} gives probabilities alone; pass "
            f"strategy={_ENOUGH}. A linear classifier, an MLPClassifier and a skorch net can be asked "
            f"by every rule: askance.integrations.sklearn.Query({rule.name!r})"
        )
    if "features" in needs:
        raise KindError(
            f"max_similarity compares features, a {kind} gives probabilities alone; pass the pool as "
            f"askance.Embedding(logits=..., features=...)"
        )
    if rule.multilabel and "logits" in rule.needs:
        raise InputError(
            f"{rule.name} with loss='multilabel' takes independent classes, predict_proba is for one "
            f"class a point; pass askance.Embedding(logits=log(p / (1 - p))) of your probabilities"
        )


def _predicted_labeled(model: Any, labeled: Any, batch_size: int) -> tuple[Embedding, Any]:
    """(X, y) as (log probabilities, the place of each label in the model's `classes_`)."""
    if not isinstance(labeled, tuple) or len(labeled) != 2:
        raise LabelError(
            f"with a model that has predict_proba the labelled set is (X, y), got a "
            f"{type(labeled).__name__}"
        )
    X, y = labeled
    if isinstance(X, Embedding):
        return X, y
    check_rows(X)
    if not row_count(X) or row_count(X) != len(y):
        raise LabelError(
            f"the labelled set must hold one label for each of one point or more; got {row_count(X)} "
            f"points and {len(y)} labels"
        )
    logits_LC = torch.cat(list(_log_probabilities(model, X, batch_size)))
    classes = np.asarray(getattr(model, "classes_", np.arange(logits_LC.shape[1]))).tolist()
    place = {name: number for number, name in enumerate(classes)}
    unknown = sorted({str(name) for name in np.asarray(y).tolist() if name not in place})
    if unknown:
        raise LabelError(f"the classifier knows the classes {classes}, y also has {unknown}")
    return Embedding(logits=logits_LC), np.array([place[name] for name in np.asarray(y).tolist()])


def _predicted_blocks(
    needs: frozenset[Need], model: Any, pool: Any, batch_size: int
) -> Iterator[Embedding]:
    """The pool in blocks, with log probabilities as logits where somebody looks at them."""
    if "logits" not in needs:
        yield Embedding(positions=range(row_count(pool)))
        return
    start = 0
    for logits_BC in _log_probabilities(model, pool, batch_size):
        yield Embedding(logits=logits_BC, positions=range(start, start + len(logits_BC)))
        start += len(logits_BC)


def _log_probabilities(model: Any, data: Any, batch_size: int) -> Iterator[torch.Tensor]:
    """(B, C) log p of each batch of rows, columns in the order of the model's `classes_`.

    The model is called with rows as they came: parts of a frame are frames, parts of a list lists.
    """
    count, data = row_count(data), sliceable(data)
    for start in range(0, count, batch_size):
        stop = min(count, start + batch_size)
        yield _logarithms(_probabilities(model, rows_between(data, start, stop)), start, stop)


def _probabilities(model: Any, rows: Any) -> Any:
    """What the model says of some rows; the model and the generators are as before."""
    with ExitStack() as stack:
        stack.enter_context(preserved_rng())
        module = getattr(model, "module_", None)  # of a skorch net
        if isinstance(module, nn.Module):
            stack.enter_context(evaluating(module, None))
        try:
            return model.predict_proba(rows)
        except Exception as error:  # the model's own, with what it was about
            shape = f" of shape {tuple(rows.shape)}" if hasattr(rows, "shape") else ""
            error.add_note(f"askance called predict_proba with a {type(rows).__name__}{shape}")
            raise


def _logarithms(probabilities: Any, start: int, stop: int) -> torch.Tensor:
    """(B, C) log p of rows start to stop − 1 of a pool, once p is seen to be probabilities."""
    if isinstance(probabilities, list):
        raise InputError(
            f"predict_proba must give one array (rows, classes), it gave a list of "
            f"{len(probabilities)}; several outputs a point cannot be asked about here"
        )
    if isinstance(probabilities, torch.Tensor):
        probabilities = probabilities.detach().cpu().double()
    p_BC: NDArray[np.float64] = np.asarray(probabilities, dtype=np.float64)
    if p_BC.ndim != 2 or len(p_BC) != stop - start:
        raise InputError(
            f"predict_proba must give one row for each point, (rows, classes): expected "
            f"{stop - start} rows, got shape {p_BC.shape}"
        )
    if p_BC.shape[1] < 2:
        raise InputError(
            "predict_proba gives one class alone, so every point is as certain as the next; fit the "
            "model on labels of two classes at least"
        )
    bad = np.flatnonzero(~np.isfinite(p_BC).all(axis=1))
    if len(bad):
        raise NonFiniteError(
            f"probabilities must be finite; predict_proba gave NaN or infinity for {len(bad)} of "
            f"{stop - start} rows, the first is row {start + bad[0]}"
        )
    wrong = np.flatnonzero((p_BC < 0).any(axis=1) | (np.abs(p_BC.sum(axis=1) - 1) > _ROUNDED))
    if len(wrong):
        raise InputError(
            f"the probabilities of a point must be ≥ 0 and sum to 1; for {len(wrong)} of "
            f"{stop - start} rows they do not, the first is row {start + wrong[0]}: "
            f"{p_BC[wrong[0]].round(4).tolist()[:8]}. A model of several labels a point is the usual "
            f"cause; it cannot be asked here"
        )
    mantissas, exponents = np.frexp(p_BC)
    rounded_BC = np.ldexp(np.round(np.ldexp(mantissas, _BITS)), exponents - _BITS)
    return torch.from_numpy(np.log(np.maximum(rounded_BC, FLOOR)))
