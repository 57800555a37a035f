"""Adapters that run other libraries' batch acquisition rules on precomputed arrays.

Every adapter takes a :class:`Workload`, the batch size ``n`` and a seed, and returns ``n`` pool
indices. The forward pass is free for everyone: a peer that insists on a model gets a stub that
hands back the stored probabilities, logits or features, so that what is timed is the peer's own
selection code. Where a peer offers several ways to run one rule, the fastest that computes the
same thing is used; the comments give the settings and the reasons. Where a peer's rule differs
from the textbook one, the adapter's docstring says so.

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
import io
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
"""``(rule, peer) -> adapter``; rules: "entropy", "margin", "egl", "badge", "kcenter"."""

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


def _register(rule: str, peer: str) -> Callable[[Adapter], Adapter]:
    """Put the decorated adapter into :data:`PEERS`."""

    def add(adapter: Adapter) -> Adapter:
        PEERS[rule, peer] = adapter
        return adapter

    return add


@functools.cache
def _importable(peer: str) -> bool:
    """Whether everything the peer's adapters import can be imported."""
    _restore_aliases()
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
    return {key: adapter for key, adapter in PEERS.items() if _importable(key[1])}


def versions() -> dict[str, str]:
    """Return the installed version of each peer that is installed."""
    found: dict[str, str] = {}
    for peer, (distribution, _) in _PACKAGES.items():
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[peer] = importlib.metadata.version(distribution)
    return found


def _restore_aliases() -> None:
    """Put back names that peers use and that NumPy 2 and Python 3.10 have removed."""
    for name in ("Inf", "infty"):  # bmdal_reg
        if not hasattr(np, name):
            setattr(np, name, np.inf)
    if not hasattr(collections, "Iterable"):  # alipy
        collections.Iterable = collections.abc.Iterable  # type: ignore[attr-defined]


def _seed_globals(seed: int) -> None:
    """Seed the global generators, for peers that draw from them."""
    import torch

    np.random.seed(seed)  # noqa: NPY002
    torch.manual_seed(seed)


def _residuals(work: Workload) -> np.ndarray:
    """Return ``probs - onehot(argmax)``, the loss gradient at the logits, as float32."""
    residuals = work.probs.copy()
    residuals[np.arange(len(residuals)), residuals.argmax(axis=1)] -= 1.0
    return residuals


class _Proba:
    """Stand-in for a fitted classifier: its predictions are already known."""

    def __init__(self, probs: np.ndarray) -> None:
        self.probs = probs

    def predict_proba(self, _x: Any) -> np.ndarray:
        """Return the stored probabilities."""
        return self.probs


# --------------------------------------------------------------------------- scikit-activeml


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


def _skactiveml_query(strategy: Any, outputs: Any, n_pool: int, n: int) -> np.ndarray:
    # The stub never looks at its input, so X is one column of row numbers: validating and
    # copying the features would only slow the peer down. Every row counts as unlabelled.
    rows = np.arange(n_pool, dtype=np.float32)[:, None]
    unlabeled = np.full(n_pool, np.nan)
    clf = _skactiveml_stub()(outputs)
    return np.asarray(strategy.query(rows, unlabeled, clf, fit_clf=False, batch_size=n))


@_register("entropy", "scikit-activeml")
def skactiveml_entropy(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``UncertaintySampling(method="entropy")``."""
    from skactiveml.pool import UncertaintySampling

    strategy = UncertaintySampling(method="entropy", random_state=seed)
    return _skactiveml_query(strategy, work.probs, len(work.probs), n)


@_register("margin", "scikit-activeml")
def skactiveml_margin(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``UncertaintySampling(method="margin_sampling")``."""
    from skactiveml.pool import UncertaintySampling

    strategy = UncertaintySampling(method="margin_sampling", random_state=seed)
    return _skactiveml_query(strategy, work.probs, len(work.probs), n)


@_register("badge", "scikit-activeml")
def skactiveml_badge(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``Badge``: first pick the largest norm, then k-means++ draws, in float64."""
    from skactiveml.pool import Badge

    outputs = (work.probs, work.features)
    return _skactiveml_query(Badge(random_state=seed), outputs, len(work.probs), n)


@_register("kcenter", "scikit-activeml")
def skactiveml_kcenter(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``CoreSet``; the pool comes first so that its indices are pool indices."""
    from skactiveml.pool import CoreSet

    x = np.concatenate([work.features, work.labeled_features])
    y = np.full(len(x), np.nan)
    y[len(work.features) :] = work.labeled_labels
    return np.asarray(CoreSet(random_state=seed).query(x, y, batch_size=n))


# -------------------------------------------------------------------------------- small-text


def _small_text_query(strategy: Any, clf: Any, n_pool: int, n: int) -> np.ndarray:
    pool = np.arange(n_pool)
    none = np.empty(0, dtype=np.int64)
    return np.asarray(strategy.query(clf, range(n_pool), pool, none, none, n=n))


@_register("entropy", "small-text")
def small_text_entropy(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``PredictionEntropy`` (deterministic; the seed is unused)."""
    from small_text.query_strategies import PredictionEntropy

    return _small_text_query(PredictionEntropy(), _Proba(work.probs), len(work.probs), n)


@_register("margin", "small-text")
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


@_register("egl", "small-text")
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


@_register("badge", "small-text")
def small_text_badge(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``BADGE.sample`` (its own embeddings, float64, scikit-learn's greedy k-means++).

    Not the textbook rule: the embedding is ``-probs x features`` (the pseudo-label's one is
    never added), the k-means++ gets norms where it expects squared norms, and it is the greedy
    variant with ``2 + log(n)`` candidates a step. Its generator cannot be seeded.
    """
    from small_text.integrations.pytorch.query_strategies import BADGE

    pool = np.arange(len(work.probs))
    none = np.empty(0, dtype=np.int64)
    _seed_globals(seed)  # reaches only its replacement of duplicates
    strategy = BADGE(work.probs.shape[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        picks = strategy.sample(None, None, pool, none, none, n, work.features, work.probs)
    return np.asarray(picks)


@_register("kcenter", "small-text")
def small_text_kcenter(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``greedy_coreset`` (deterministic; the seed is unused).

    Every step recomputes the distances from the whole pool to all labelled and picked points.
    """
    from small_text.query_strategies import greedy_coreset

    n_pool = len(work.features)
    x = np.concatenate([work.features, work.labeled_features])
    # The function, not the class GreedyCoreset: the class normalises by default, and ignores
    # its batch_size. Blocks of 2500 rows are faster than the default of 100.
    picks = greedy_coreset(
        x,
        np.arange(n_pool),
        np.arange(n_pool, len(x)),
        n,
        distance_metric="euclidean",
        batch_size=2500,
    )
    return np.asarray(picks)


# --------------------------------------------------------------------------------- bmdal_reg


def _bmdal_select(method: Any, n: int) -> np.ndarray:
    picks = method.select(n)
    if method.get_status() is not None:  # it fills up with random points instead of failing
        raise RuntimeError(f"bmdal_reg: {method.get_status()}")
    return picks.numpy()


@_register("badge", "bmdal_reg")
def bmdal_badge(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``KmeansppSelectionMethod`` on the product kernel (first pick uniform, not max-norm)."""
    import torch

    _restore_aliases()
    from bmdal_reg.bmdal.feature_data import ListFeatureData, TensorFeatureData
    from bmdal_reg.bmdal.feature_maps import IdentityFeatureMap, ProductFeatureMap
    from bmdal_reg.bmdal.features import Features
    from bmdal_reg.bmdal.selection import KmeansppSelectionMethod

    _seed_globals(seed)  # NumPy for the first pick, torch for the others
    # The last layer's weight gradient is features x residuals, so its inner products are the
    # product of two small ones: O(N (D + C)) a step instead of O(N D C) on the embeddings
    # written out. Exact, where its sketches are not. float32, P-mode (the labelled points play
    # no part in BADGE); precompute() stores the kernel diagonal once.
    features = torch.from_numpy(work.features)
    residuals = torch.from_numpy(_residuals(work))
    feature_map = ProductFeatureMap(
        [IdentityFeatureMap(features.shape[1]), IdentityFeatureMap(residuals.shape[1])]
    )
    data = ListFeatureData([TensorFeatureData(features), TensorFeatureData(residuals)])
    pool = Features(feature_map, data).precompute()
    return _bmdal_select(KmeansppSelectionMethod(pool, pool, sel_with_train=False, verbosity=0), n)


@_register("kcenter", "bmdal_reg")
def bmdal_kcenter(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``MaxDistSelectionMethod`` in TP-mode (deterministic; the seed is unused)."""
    import torch

    _restore_aliases()
    from bmdal_reg.bmdal.feature_data import TensorFeatureData
    from bmdal_reg.bmdal.feature_maps import IdentityFeatureMap
    from bmdal_reg.bmdal.features import Features
    from bmdal_reg.bmdal.selection import MaxDistSelectionMethod

    # TP-mode is its way to start from labelled points; it adds them one by one, so L more
    # steps of O(N D). float32 linear kernel on the features, diagonals precomputed.
    feature_map = IdentityFeatureMap(work.features.shape[1])
    pool, train = (
        Features(feature_map, TensorFeatureData(torch.from_numpy(x))).precompute()
        for x in (work.features, work.labeled_features)
    )
    return _bmdal_select(MaxDistSelectionMethod(pool, train, sel_with_train=True, verbosity=0), n)


# ------------------------------------------------------------------------------------- modAL


@_register("entropy", "modAL")
def modal_entropy(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``entropy_sampling`` (deterministic; the seed is unused)."""
    from modAL.uncertainty import entropy_sampling

    return np.asarray(entropy_sampling(_Proba(work.probs), work.features, n_instances=n)[0])


@_register("margin", "modAL")
def modal_margin(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``margin_sampling`` (deterministic; the seed is unused)."""
    from modAL.uncertainty import margin_sampling

    return np.asarray(margin_sampling(_Proba(work.probs), work.features, n_instances=n)[0])


# ------------------------------------------------------------------------------------ distil


@functools.cache
def _distil_parts() -> tuple[type, type]:
    """Return a model class and a data handler class for rows of ``[features, logits]``."""
    import torch

    class Net(torch.nn.Module):
        def __init__(self, dim: int) -> None:
            super().__init__()
            self.dim = dim

        def forward(self, x: torch.Tensor, last: bool = False) -> Any:
            logits = x[:, self.dim :]
            return (logits, x[:, : self.dim]) if last else logits

        def get_embedding_dim(self) -> int:
            return self.dim

    class Handler(torch.utils.data.Dataset):
        def __init__(self, rows: np.ndarray) -> None:
            self.rows = torch.from_numpy(rows)

        def __len__(self) -> int:
            return len(self.rows)

        def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
            return self.rows[index], index

    return Net, Handler


def _distil_by_probs(name: str, work: Workload, n: int) -> np.ndarray:
    import torch

    strategies = importlib.import_module("distil.active_learning_strategies")
    probs = torch.from_numpy(work.probs)
    n_classes = work.probs.shape[1]
    strategy = getattr(strategies, name)(None, None, probs, None, None, n_classes, {})
    strategy.predict_prob = lambda stored: stored  # the forward pass is free
    return np.asarray(strategy.select(n))


@_register("entropy", "distil")
def distil_entropy(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``EntropySampling`` (a zero probability makes its score NaN, which sorts last)."""
    return _distil_by_probs("EntropySampling", work, n)


@_register("margin", "distil")
def distil_margin(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``MarginSampling`` (deterministic; the seed is unused)."""
    return _distil_by_probs("MarginSampling", work, n)


@_register("badge", "distil")
def distil_badge(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``BADGE``: first pick the largest norm, then k-means++ draws on float32 embeddings."""
    from distil.active_learning_strategies import BADGE

    _seed_globals(seed)
    net, handler = _distil_parts()
    dim, n_classes = work.features.shape[1], work.logits.shape[1]
    rows = np.concatenate([work.features, work.logits], axis=1)
    # Blocks of 1000 rows bound the memory of the embeddings under construction; reading the
    # rows through its DataLoader is a small part of the run.
    args = {"batch_size": 1000, "device": "cpu"}
    return np.asarray(BADGE(None, None, rows, net(dim), handler, n_classes, args).select(n))


@_register("kcenter", "distil")
def distil_kcenter(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``CoreSet.furthest_first`` (deterministic; the seed is unused)."""
    from distil.active_learning_strategies import CoreSet

    strategy = CoreSet(None, None, None, None, None, work.probs.shape[1], {})
    return np.asarray(strategy.furthest_first(work.features, work.labeled_features, n))


# ------------------------------------------------------------------------------------- alipy


def _alipy_uncertainty(measure: str, work: Workload, n: int) -> np.ndarray:
    _restore_aliases()
    from alipy.query_strategy.query_labels import QueryInstanceUncertainty

    strategy = QueryInstanceUncertainty(measure=measure)
    probs = work.probs.copy()  # it overwrites zeros in place
    picks = strategy.select_by_prediction_mat(np.arange(len(probs)), probs, batch_size=n)
    return np.asarray(picks)


@_register("entropy", "alipy")
def alipy_entropy(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``QueryInstanceUncertainty("entropy")`` (deterministic; the seed is unused)."""
    return _alipy_uncertainty("entropy", work, n)


@_register("margin", "alipy")
def alipy_margin(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``QueryInstanceUncertainty("margin")`` (deterministic; the seed is unused)."""
    return _alipy_uncertainty("margin", work, n)


@_register("kcenter", "alipy")
def alipy_kcenter(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``QueryInstanceCoresetGreedy`` (deterministic; the seed is unused)."""
    from alipy.query_strategy.query_labels import QueryInstanceCoresetGreedy

    n_pool = len(work.features)
    x = np.concatenate([work.features, work.labeled_features])
    rows = np.arange(len(x))
    strategy = QueryInstanceCoresetGreedy(x, np.zeros(len(x)), rows)
    return np.asarray(strategy.select(rows[n_pool:], rows[:n_pool], batch_size=n))


# ---------------------------------------------------------------------------------- cardinal


@_register("entropy", "cardinal")
def cardinal_entropy(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``EntropySampler`` on precomputed probabilities (the seed is unused)."""
    from cardinal.uncertainty import EntropySampler

    return np.asarray(EntropySampler("precomputed", n).select_samples(work.probs))


@_register("margin", "cardinal")
def cardinal_margin(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``MarginSampler`` on precomputed probabilities (the seed is unused)."""
    from cardinal.uncertainty import MarginSampler

    return np.asarray(MarginSampler("precomputed", n).select_samples(work.probs))


@_register("kcenter", "cardinal")
def cardinal_kcenter(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``KCenterGreedy`` with the identity as its embedding (the seed is unused)."""
    from cardinal.clustering import KCenterGreedy

    # float64: scikit-learn's distances, on which it rests, are slower in float32.
    sampler = KCenterGreedy(lambda x: x, n).fit(work.labeled_features.astype(np.float64))
    return np.asarray(sampler.select_samples(work.features.astype(np.float64)))


# -------------------------------------------------------------------------------------- baal


@_register("entropy", "baal")
def baal_entropy(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run the ``Entropy`` heuristic, which ranks the whole pool (the seed is unused)."""
    from baal.active.heuristics import Entropy

    return np.asarray(Entropy()(work.probs)[:n])


@_register("margin", "baal")
def baal_margin(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run the ``Margin`` heuristic, which ranks the whole pool (the seed is unused)."""
    from baal.active.heuristics import Margin

    return np.asarray(Margin()(work.probs)[:n])


# ------------------------------------------------------------------------------ scikit-learn


@_register("badge", "scikit-learn")
def sklearn_badge(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``kmeans_plusplus`` on gradient embeddings written out.

    Not an active-learning library, but the usual short way to BADGE. The first pick is uniform;
    ``n_local_trials=1`` gives plain k-means++ draws, and is the fastest.
    """
    from sklearn.cluster import kmeans_plusplus

    # float64: several times faster than float32, which it converts block by block every step.
    features = work.features.astype(np.float64)
    embeddings = _residuals(work)[:, :, None] * features[:, None, :]
    embeddings = embeddings.reshape(len(features), -1)
    return kmeans_plusplus(embeddings, n, random_state=seed, n_local_trials=1)[1]
