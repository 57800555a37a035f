"""Peers' rules that score each point by itself: entropy, margin, EGL."""

from __future__ import annotations

import contextlib
import importlib
import io
from collections.abc import Callable
from typing import Any

import numpy as np
from peers import Workload, register, register_both, restore_aliases, skactiveml_query


class _Proba:
    """Stand-in for a fitted classifier: its predictions are already known."""

    def __init__(self, probs: np.ndarray) -> None:
        self.probs = probs

    def predict_proba(self, _x: Any) -> np.ndarray:
        """Return the stored probabilities."""
        return self.probs


# --------------------------------------------------------------------------- scikit-activeml


@register_both("scikit-activeml", entropy="entropy", margin="margin_sampling")
def skactiveml_uncertainty(method: str, work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``UncertaintySampling``."""
    from skactiveml.pool import UncertaintySampling

    strategy = UncertaintySampling(method=method, random_state=seed)
    return skactiveml_query(strategy, work.probs, len(work.probs), n)


# -------------------------------------------------------------------------------- small-text


def _small_text_query(strategy: Any, clf: Any, n_pool: int, n: int) -> np.ndarray:
    pool = np.arange(n_pool)
    none = np.empty(0, dtype=np.int64)
    return np.asarray(strategy.query(clf, range(n_pool), pool, none, none, n=n))


@register_both("small-text", entropy="PredictionEntropy", margin="BreakingTies")
def small_text_uncertainty(name: str, work: Workload, n: int, seed: int) -> np.ndarray:
    """Run the rule of that name (deterministic; the seed is unused)."""
    from small_text import query_strategies

    strategy = getattr(query_strategies, name)()
    return _small_text_query(strategy, _Proba(work.probs), len(work.probs), n)


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


@register_both("modAL", entropy="entropy_sampling", margin="margin_sampling")
def modal_uncertainty(name: str, work: Workload, n: int, seed: int) -> np.ndarray:
    """Run the function of that name (deterministic; the seed is unused)."""
    from modAL import uncertainty

    sample = getattr(uncertainty, name)
    return np.asarray(sample(_Proba(work.probs), work.features, n_instances=n)[0])


# ------------------------------------------------------------------------------------ distil


@register_both("distil", entropy="EntropySampling", margin="MarginSampling")
def distil_uncertainty(name: str, work: Workload, n: int, seed: int) -> np.ndarray:
    """Run the class of that name (deterministic; the seed is unused).

    A zero probability makes the score of ``EntropySampling`` NaN, which sorts last.
    """
    import torch

    strategies = importlib.import_module("distil.active_learning_strategies")
    probs = torch.from_numpy(work.probs)
    n_classes = work.probs.shape[1]
    strategy = getattr(strategies, name)(None, None, probs, None, None, n_classes, {})
    strategy.predict_prob = lambda stored: stored  # the forward pass is free
    return np.asarray(strategy.select(n))


# ------------------------------------------------------------------------------------- alipy


@register_both("alipy", entropy="entropy", margin="margin")
def alipy_uncertainty(measure: str, work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``QueryInstanceUncertainty`` (deterministic; the seed is unused)."""
    restore_aliases()
    from alipy.query_strategy.query_labels import QueryInstanceUncertainty

    strategy = QueryInstanceUncertainty(measure=measure)
    probs = work.probs.copy()  # it overwrites zeros in place
    picks = strategy.select_by_prediction_mat(np.arange(len(probs)), probs, batch_size=n)
    return np.asarray(picks)


# ---------------------------------------------------------------------------------- cardinal


@register_both("cardinal", entropy="EntropySampler", margin="MarginSampler")
def cardinal_uncertainty(name: str, work: Workload, n: int, seed: int) -> np.ndarray:
    """Run the class of that name on precomputed probabilities (the seed is unused)."""
    from cardinal import uncertainty

    sampler = getattr(uncertainty, name)("precomputed", n)
    return np.asarray(sampler.select_samples(work.probs))


# -------------------------------------------------------------------------------------- baal


@register_both("baal", entropy="Entropy", margin="Margin")
def baal_uncertainty(name: str, work: Workload, n: int, seed: int) -> np.ndarray:
    """Run the heuristic of that name, which ranks the whole pool (the seed is unused)."""
    from baal.active import heuristics

    return np.asarray(getattr(heuristics, name)()(work.probs)[:n])
