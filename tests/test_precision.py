"""Scores are differences: an enclosing autocast or TF32 may speed up the model, never the scores."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import askance
from askance.embedding.guard import full_precision


@pytest.mark.parametrize("rule", ["grad", "badge", "kcenter", "egl"])
def test_scores_are_made_in_float32_under_autocast(rule):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 5))
    X, y, pool = torch.randn(40, 8), torch.arange(40) % 5, torch.randn(300, 8)
    with torch.autocast("cpu", torch.bfloat16):
        inside = askance.select(model, (X, y), pool, 20, strategy=rule)
        embedded = [askance.embed(model, data) for data in (X, pool)]
    assert embedded[1].logits.dtype == torch.bfloat16
    outside = askance.select(None, (embedded[0], y), embedded[1], 20, strategy=rule)
    assert np.array_equal(inside.indices, outside.indices)
    assert np.allclose(inside.scores, outside.scores, rtol=1e-6)


def test_full_precision_puts_everything_back():
    torch.set_float32_matmul_precision("high")
    try:
        with torch.autocast("cpu", torch.bfloat16):
            with full_precision(torch.device("cpu")):
                assert torch.get_float32_matmul_precision() == "highest"
                assert not torch.is_autocast_enabled("cpu")
            assert torch.is_autocast_enabled("cpu")
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision("highest")
