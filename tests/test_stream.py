"""Pools that are never in memory as a whole."""

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

import askance
from tests.rules import ONE_MODEL

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "stream.py"


def embedding(rows, seed=0):
    generator = torch.Generator().manual_seed(seed)
    h = torch.randn(rows, 5, generator=generator, dtype=torch.float64)
    return askance.Embedding(torch.randn(rows, 3, generator=generator, dtype=torch.float64), h)


def split(pool, sizes):
    return (pool[slice(a, b)] for a, b in pairwise(np.cumsum([0, *sizes])))


@pytest.mark.parametrize("rule", ONE_MODEL)
def test_a_stream_of_blocks_is_the_pool_they_make(rule):
    pool, labeled = embedding(100), (embedding(9, seed=1), torch.arange(9) % 3)
    whole = askance.select(None, labeled, pool, 12, strategy=rule, exclude=[4, 50])
    blocks = split(pool, [1, 49, 30, 20])
    streamed = askance.select(None, labeled, blocks, 12, strategy=rule, exclude=[4, 50])
    assert streamed.indices.tolist() == whole.indices.tolist()
    np.testing.assert_allclose(streamed.scores, whole.scores, rtol=1e-9)
    explained, expected = streamed.explain(), whole.explain()
    assert [e.pseudo_label for e in explained] == [e.pseudo_label for e in expected]


def test_a_stream_that_ends_too_early_is_an_error():
    with pytest.raises(askance.AskanceError, match="n = 12 points were asked for, the pool has 10"):
        askance.select(None, None, split(embedding(10), [5, 5]), 12, strategy="entropy")


def test_a_stream_of_anything_else_is_an_error():
    with pytest.raises(askance.AskanceError, match="must give Embedding blocks, it gave a Tensor"):
        askance.select(None, None, iter([torch.zeros(3, 2)]), 1, strategy="entropy")


# `powergrad` is `grad` with noise drawn for every row.
@pytest.mark.parametrize(
    ("rows", "rule"),
    [
        (1_000_000, "powergrad"),
        pytest.param(1_000_000, "grad", marks=pytest.mark.slow),
        pytest.param(10_000_000, "grad", marks=pytest.mark.slow),
        pytest.param(10_000_000, "powergrad", marks=pytest.mark.slow),
    ],
)
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads memory from /proc")
def test_memory_does_not_grow_with_the_pool(rows, rule):
    """10,000,000 rows take under 1 GiB; 1,000,000 of them less than half of what the pool would."""
    command = [sys.executable, str(SCRIPT), "--rows", str(rows), "--strategy", rule]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    result = json.loads(done.stdout)
    assert result["picked"] == 1_000
    assert result["memory_above_start"] < (2**30 if rows > 1_000_000 else 2**28)
