"""Peers' rules that pick a batch by the pool's geometry: BADGE, k-center."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
from peers import Workload, register, restore_aliases, skactiveml_query


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


# --------------------------------------------------------------------------- scikit-activeml


@register("badge", "scikit-activeml")
def skactiveml_badge(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``Badge``: first pick the largest norm, then k-means++ draws, in float64."""
    from skactiveml.pool import Badge

    outputs = (work.probs, work.features)
    return skactiveml_query(Badge(random_state=seed), outputs, len(work.probs), n)


@register("kcenter", "scikit-activeml")
def skactiveml_kcenter(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``CoreSet``; the pool comes first so that its indices are pool indices."""
    from skactiveml.pool import CoreSet

    x = np.concatenate([work.features, work.labeled_features])
    y = np.full(len(x), np.nan)
    y[len(work.features) :] = work.labeled_labels
    return np.asarray(CoreSet(random_state=seed).query(x, y, batch_size=n))


# -------------------------------------------------------------------------------- small-text


@register("badge", "small-text")
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


@register("kcenter", "small-text")
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


@register("badge", "bmdal_reg")
def bmdal_badge(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``KmeansppSelectionMethod`` on the product kernel (first pick uniform, not max-norm)."""
    import torch

    restore_aliases()
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


@register("kcenter", "bmdal_reg")
def bmdal_kcenter(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``MaxDistSelectionMethod`` in TP-mode (deterministic; the seed is unused)."""
    import torch

    restore_aliases()
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


@register("bait", "bmdal_reg")
def bmdal_bait(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``BaitFeatureSpaceSelectionMethod``, forward only, on the binary form's vectors.

    Its F is of pool and labelled points, where ours is of the pool; labelled points have the pool's
    mean weight here, since a workload has no logits of theirs. The steps are as many and as large.
    """
    import torch

    restore_aliases()
    from bmdal_reg.bmdal.feature_data import TensorFeatureData
    from bmdal_reg.bmdal.feature_maps import IdentityFeatureMap
    from bmdal_reg.bmdal.features import Features
    from bmdal_reg.bmdal.selection import BaitFeatureSpaceSelectionMethod

    # float32, as its users have it. TP-mode adds the labelled points one by one, so L more steps of
    # O(N D). sigma = 1 is a ridge of 1, overselection 1 leaves the backward steps out.
    peak = work.probs.max(axis=1)
    weights = np.sqrt(peak * (1 - peak)).astype(np.float32)
    weighted = [weights, np.full(len(work.labeled_features), weights.mean(), np.float32)]
    pool, train = (
        Features(
            IdentityFeatureMap(h.shape[1] + 1),
            TensorFeatureData(torch.from_numpy(w[:, None] * np.c_[h, np.ones(len(h), np.float32)])),
        ).precompute()
        for h, w in zip((work.features, work.labeled_features), weighted, strict=True)
    )
    method = BaitFeatureSpaceSelectionMethod(
        pool, train, sel_with_train=True, noise_sigma=1.0, overselection_factor=1.0, verbosity=0
    )
    return _bmdal_select(method, n)


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


@register("badge", "distil")
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


@register("kcenter", "distil")
def distil_kcenter(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``CoreSet.furthest_first`` (deterministic; the seed is unused)."""
    from distil.active_learning_strategies import CoreSet

    strategy = CoreSet(None, None, None, None, None, work.probs.shape[1], {})
    return np.asarray(strategy.furthest_first(work.features, work.labeled_features, n))


# ------------------------------------------------------------------------------------- alipy


@register("kcenter", "alipy")
def alipy_kcenter(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``QueryInstanceCoresetGreedy`` (deterministic; the seed is unused)."""
    from alipy.query_strategy.query_labels import QueryInstanceCoresetGreedy

    n_pool = len(work.features)
    x = np.concatenate([work.features, work.labeled_features])
    rows = np.arange(len(x))
    strategy = QueryInstanceCoresetGreedy(x, np.zeros(len(x)), rows)
    return np.asarray(strategy.select(rows[n_pool:], rows[:n_pool], batch_size=n))


# ---------------------------------------------------------------------------------- cardinal


@register("kcenter", "cardinal")
def cardinal_kcenter(work: Workload, n: int, seed: int) -> np.ndarray:
    """Run ``KCenterGreedy`` with the identity as its embedding (the seed is unused)."""
    from cardinal.clustering import KCenterGreedy

    # float64: scikit-learn's distances, on which it rests, are slower in float32.
    sampler = KCenterGreedy(lambda x: x, n).fit(work.labeled_features.astype(np.float64))
    return np.asarray(sampler.select_samples(work.features.astype(np.float64)))


# ------------------------------------------------------------------------------ scikit-learn


@register("badge", "scikit-learn")
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
