"""Small embeddings of any shape, and the exact scores that theirs must be."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import settings
from hypothesis import strategies as st

from askance import Embedding
from tests.naive import gradients as naive

TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4}

quick = settings(deadline=None, max_examples=200)
pools = {
    "N": st.integers(1, 5),
    "C": st.integers(2, 4),
    "D": st.integers(1, 4),
    "seed": st.integers(0, 2**32 - 1),
    "bias": st.booleans(),
}
dtypes = {"dtype": st.sampled_from([torch.float64, torch.float32])}
shapes = pools | dtypes | {"L": st.integers(1, 5)}


def drawn(seed, rows, C, D, dtype, scale=1.0):
    rng = np.random.default_rng(seed)
    logits = torch.from_numpy(rng.normal(size=(rows, C)) * scale).to(dtype)
    features = torch.from_numpy(rng.normal(size=(rows, D)) * 2).to(dtype)
    return Embedding(logits, features), torch.from_numpy(rng.integers(C, size=rows))


def points(embedding, labels):
    return list(
        zip(embedding.logits.tolist(), embedding.features.tolist(), labels.tolist(), strict=True)
    )


def check(scores, pool, labeled, labels, bias, multilabel=False):
    """Every score within the tolerance of its dtype times ‖g‖ + ‖ḡ_L‖ of the exact one."""
    tolerance = TOLERANCE[pool.logits.dtype]
    assert torch.isfinite(scores).all()
    assert (scores >= 0).all()
    seen = points(labeled, labels)
    rows = zip(scores.tolist(), pool.logits.tolist(), pool.features.tolist(), strict=True)
    for score, z, h in rows:
        expected, scale = naive.df_score(z, h, seen, bias, multilabel)
        assert abs(score - expected) <= tolerance * scale
