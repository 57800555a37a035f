"""Other libraries' acquisition rules on precomputed arrays: which there are, and which can be run.

The adapters are in ``peers_pointwise`` and ``peers_batch``. Every adapter takes a
:class:`Workload`, the batch size ``n`` and a seed, and returns ``n`` pool indices. The forward
pass is free for everyone: a peer that insists on a model gets a stub that hands back the stored
probabilities, logits or features, so that what is timed is the peer's own selection code. Where a
peer offers several ways to run one rule, the fastest that computes the same thing is used; the
comments give the settings and the reasons. Where a peer's rule differs from the textbook one, the
adapter's docstring says so.

Peers are imported inside the functions that need them, so a missing one costs nothing but its
own entries. Call :func:`available` once before timing: it imports the peers, which keeps import
time out of the first measured call.

Installing the peers, with the torch already in use pinned by a constraints file::

    pip install -c constraints.txt scikit-activeml small-text bmdal_reg modAL-python \
        alipy cardinal decile-distil "structlog<23" "torchmetrics<2"
    pip install --no-deps baal  # its declared dependencies include all of Jupyter
"""

from __future__ import annotations

import collections
import collections.abc
import contextlib
import functools
import importlib
import importlib.metadata
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Workload:
    """What a model's forward pass leaves behind, as float32 arrays (labels: integers)."""

    logits: np.ndarray
    """Pool logits, ``(N, C)``."""
    features: np.ndarray
    """Pool inputs of the last linear layer (penultimate, post-ReLU), ``(N, D)``."""
    probs: np.ndarray
    """Softmax of ``logits``, ``(N, C)``."""
    labeled_features: np.ndarray
    """Features of the points labelled so far, ``(L, D)``."""
    labeled_labels: np.ndarray
    """Their labels, ``(L,)``."""


Adapter = Callable[[Workload, int, int], np.ndarray]

PEERS: dict[tuple[str, str], Adapter] = {}
"""``(rule, peer) -> adapter``; rules: "entropy", "margin", "egl", "badge", "bait", "kcenter".

Filled by :func:`available`."""

# Peer name -> (distribution, modules its adapters import).
_PACKAGES: dict[str, tuple[str, tuple[str, ...]]] = {
    "alipy": ("alipy", ("alipy.query_strategy.query_labels",)),
    "baal": ("baal", ("baal.active.heuristics",)),
    "bmdal_reg": ("bmdal_reg", ("bmdal_reg.bmdal.selection",)),
    "cardinal": ("cardinal", ("cardinal.uncertainty", "cardinal.clustering")),
    "distil": ("decile-distil", ("distil.active_learning_strategies",)),
    "modAL": ("modAL-python", ("modAL.uncertainty",)),
    "scikit-activeml": ("scikit-activeml", ("skactiveml.pool", "skactiveml.base")),
    "scikit-learn": ("scikit-learn", ("sklearn.cluster",)),
    "small-text": (
        "small-text",
        ("small_text.query_strategies", "small_text.integrations.pytorch.query_strategies"),
    ),
}


def register(rule: str, peer: str) -> Callable[[Adapter], Adapter]:
    """Put the decorated adapter into :data:`PEERS`."""

    def add(adapter: Adapter) -> Adapter:
        PEERS[rule, peer] = adapter
        return adapter

    return add


def register_both(peer: str, **options: str) -> Callable[[Callable[..., np.ndarray]], Any]:
    """Put the decorated function into :data:`PEERS` for several rules, each with its own option.

    The option is the function's first argument.
    """

    def add(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
        for rule, option in options.items():
            PEERS[rule, peer] = functools.partial(function, option)
        return function

    return add


@functools.cache
def _importable(peer: str) -> bool:
    """Whether everything the peer's adapters import can be imported."""
    restore_aliases()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for module in _PACKAGES[peer][1]:
                importlib.import_module(module)
    except Exception:  # an old peer may fail at import in any way at all
        return False
    return True


def available() -> dict[tuple[str, str], Adapter]:
    """Return the entries of :data:`PEERS` whose peer can be imported (and import it)."""
    import peers_batch  # noqa: F401  they register their adapters
    import peers_pointwise  # noqa: F401

    return {key: adapter for key, adapter in PEERS.items() if _importable(key[1])}


def missing() -> list[str]:
    """Return the peers that cannot be imported."""
    return [peer for peer in _PACKAGES if not _importable(peer)]


def versions() -> dict[str, str]:
    """Return the installed version of each peer that is installed."""
    installed: dict[str, str] = {}
    for peer, (distribution, _) in _PACKAGES.items():
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            installed[peer] = importlib.metadata.version(distribution)
    return installed


def restore_aliases() -> None:
    """Put back names that peers use and that NumPy 2 and Python 3.10 have removed."""
    for name in ("Inf", "infty"):  # bmdal_reg
        if not hasattr(np, name):
            setattr(np, name, np.inf)
    if not hasattr(collections, "Iterable"):  # alipy
        collections.Iterable = collections.abc.Iterable  # type: ignore[attr-defined]


@functools.cache
def _skactiveml_stub() -> type:
    """Return a scikit-activeml classifier class around stored outputs."""
    from skactiveml.base import SkactivemlClassifier

    class Stub(SkactivemlClassifier):
        def __init__(self, outputs: Any = None) -> None:
            super().__init__()
            self.outputs = outputs

        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
            return self

        def predict_proba(self, X: Any) -> Any:
            return self.outputs

    return Stub


def skactiveml_query(strategy: Any, outputs: Any, n_pool: int, n: int) -> np.ndarray:
    """Ask a scikit-activeml strategy about ``n_pool`` rows whose outputs are known."""
    # The stub never looks at its input, so X is one column of row numbers: validating and
    # copying the features would only slow the peer down. Every row counts as unlabelled.
    rows = np.arange(n_pool, dtype=np.float32)[:, None]
    unlabeled = np.full(n_pool, np.nan)
    clf = _skactiveml_stub()(outputs)
    return np.asarray(strategy.query(rows, unlabeled, clf, fit_clf=False, batch_size=n))
