"""Peers' rules that score each point by itself: entropy, margin, EGL."""

from __future__ import annotations

import contextlib
import importlib
import io
from collections.abc import Callable
from typing import Any

import numpy as np
from peers import Workload, register, restore_aliases, skactiveml_query


class _Proba:
    """Stand-in for a fitted classifier: its predictions are already known."""

    def __init__(self, probs: np.ndarray) -> None:
        self.probs = probs

    def predict_proba(self, _x: Any) -> np.ndarray:
        """Return the stored probabilities."""
        return self.probs


# --------------------------------------------------------------------------- scikit-activeml


@register("entropy", "scikit-activeml")
def skactiveml_entropy(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``UncertaintySampling(method="entropy")``."""
    from skactiveml.pool import UncertaintySampling

    strategy = UncertaintySampling(method="entropy", random_state=seed)
    return skactiveml_query(strategy, work.probs, len(work.probs), n)


@register("margin", "scikit-activeml")
def skactiveml_margin(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``UncertaintySampling(method="margin_sampling")``."""
    from skactiveml.pool import UncertaintySampling

    strategy = UncertaintySampling(method="margin_sampling", random_state=seed)
    return skactiveml_query(strategy, work.probs, len(work.probs), n)


# -------------------------------------------------------------------------------- small-text


def _small_text_query(strategy: Any, clf: Any, n_pool: int, n: int) -> np.ndarray:
    pool = np.arange(n_pool)
    none = np.empty(0, dtype=np.int64)
    return np.asarray(strategy.query(clf, range(n_pool), pool, none, none, n=n))


@register("entropy", "small-text")
def small_text_entropy(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``PredictionEntropy`` (deterministic; the seed is unused)."""
    from small_text.query_strategies import PredictionEntropy

    return _small_text_query(PredictionEntropy(), _Proba(work.probs), len(work.probs), n)


@register("margin", "small-text")
def small_text_margin(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``BreakingTies`` (deterministic; the seed is unused)."""
    from small_text.query_strategies import BreakingTies

    return _small_text_query(BreakingTies(), _Proba(work.probs), len(work.probs), n)


class _SmallTextHead:
    """The part of a small-text PyTorch classifier that its EGL reads.

    ``model`` maps rows of ``[features, logits]`` to ``logits + features @ 0``: its output is the
    stored logits, and the gradient of the loss at the zero weight is that of the last layer.
    """

    def __init__(self, work: Workload) -> None:
        import torch

        dim = work.features.shape[1]

        class Head(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.last = torch.nn.Linear(dim, work.logits.shape[1], bias=False)
                torch.nn.init.zeros_(self.last.weight)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return self.last(x[:, :dim]) + x[:, dim:]

        self.model = Head()
        self.rows = torch.from_numpy(np.concatenate([work.features, work.logits], axis=1))

    def _create_collate_fn(self) -> Callable[[Any], tuple[Any]]:
        return lambda batch: (self.rows[np.asarray(batch, dtype=np.int64)],)


@register("egl", "small-text")
def small_text_egl(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``ExpectedGradientLengthLayer`` on the last layer's weight (the seed is unused).

    Its sibling ``ExpectedGradientLength`` sums absolute gradient entries (an L1 length); the
    layer variant takes the Euclidean length, which is the one compared here.
    """
    from small_text.integrations.pytorch.query_strategies import ExpectedGradientLengthLayer

    # One backward pass per (point, class) whatever the settings; of scoring batches from 1 to
    # 200, the default of 50 is as fast as any.
    strategy = ExpectedGradientLengthLayer(work.probs.shape[1], "last")
    strategy.device = "cpu"  # the constructor has no such option and assumes "cuda"
    with contextlib.redirect_stderr(io.StringIO()):  # a progress bar that cannot be disabled
        return _small_text_query(strategy, _SmallTextHead(work), len(work.probs), n)


# ------------------------------------------------------------------------------------- modAL


@register("entropy", "modAL")
def modal_entropy(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``entropy_sampling`` (deterministic; the seed is unused)."""
    from modAL.uncertainty import entropy_sampling

    return np.asarray(entropy_sampling(_Proba(work.probs), work.features, n_instances=n)[0])


@register("margin", "modAL")
def modal_margin(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``margin_sampling`` (deterministic; the seed is unused)."""
    from modAL.uncertainty import margin_sampling

    return np.asarray(margin_sampling(_Proba(work.probs), work.features, n_instances=n)[0])


# ------------------------------------------------------------------------------------ distil


def _distil_by_probs(name: str, work: Workload, n: int) -> np.ndarray:
    import torch

    strategies = importlib.import_module("distil.active_learning_strategies")
    probs = torch.from_numpy(work.probs)
    n_classes = work.probs.shape[1]
    strategy = getattr(strategies, name)(None, None, probs, None, None, n_classes, {})
    strategy.predict_prob = lambda stored: stored  # the forward pass is free
    return np.asarray(strategy.select(n))


@register("entropy", "distil")
def distil_entropy(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``EntropySampling`` (a zero probability makes its score NaN, which sorts last)."""
    return _distil_by_probs("EntropySampling", work, n)


@register("margin", "distil")
def distil_margin(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``MarginSampling`` (deterministic; the seed is unused)."""
    return _distil_by_probs("MarginSampling", work, n)


# ------------------------------------------------------------------------------------- alipy


def _alipy_uncertainty(measure: str, work: Workload, n: int) -> np.ndarray:
    restore_aliases()
    from alipy.query_strategy.query_labels import QueryInstanceUncertainty

    strategy = QueryInstanceUncertainty(measure=measure)
    probs = work.probs.copy()  # it overwrites zeros in place
    picks = strategy.select_by_prediction_mat(np.arange(len(probs)), probs, batch_size=n)
    return np.asarray(picks)


@register("entropy", "alipy")
def alipy_entropy(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``QueryInstanceUncertainty("entropy")`` (deterministic; the seed is unused)."""
    return _alipy_uncertainty("entropy", work, n)


@register("margin", "alipy")
def alipy_margin(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``QueryInstanceUncertainty("margin")`` (deterministic; the seed is unused)."""
    return _alipy_uncertainty("margin", work, n)


# ---------------------------------------------------------------------------------- cardinal


@register("entropy", "cardinal")
def cardinal_entropy(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``EntropySampler`` on precomputed probabilities (the seed is unused)."""
    from cardinal.uncertainty import EntropySampler

    return np.asarray(EntropySampler("precomputed", n).select_samples(work.probs))


@register("margin", "cardinal")
def cardinal_margin(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``MarginSampler`` on precomputed probabilities (the seed is unused)."""
    from cardinal.uncertainty import MarginSampler

    return np.asarray(MarginSampler("precomputed", n).select_samples(work.probs))


# -------------------------------------------------------------------------------------- baal


@register("entropy", "baal")
def baal_entropy(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run the ``Entropy`` heuristic, which ranks the whole pool (the seed is unused)."""
    from baal.active.heuristics import Entropy

    return np.asarray(Entropy()(work.probs)[:n])


@register("margin", "baal")
def baal_margin(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run the ``Margin`` heuristic, which ranks the whole pool (the seed is unused)."""
    from baal.active.heuristics import Margin

    return np.asarray(Margin()(work.probs)[:n])
