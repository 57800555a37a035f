"""Pools to pick from, each a function of (kind, shape, seed), and how picks are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from torch import Tensor

from askance.picking import Picks
from tests.naive import picking as naive

DTYPES = (torch.float32, torch.float64, torch.float16)
NO_TIES = DTYPES[:2]  # float16 is coarse enough for random points to be at the same distance
KINDS = (
    "random",
    "relu",  # features after a ReLU: half of them zero
    "repeated",  # each row five times, shuffled
    "same",  # one row, N times
    "clusters-1e-4",  # spread 1e-4 of the distance between centres
    "clusters-1e-7",
    "lumps",  # five loose clusters
    "confident-50",  # logits × 50
    "confident-300",
    "untrained",  # logits near zero
    "untrained-0",  # logits zero: every residual alike
)


@dataclass(frozen=True)
class Pool:
    logits: Tensor
    features: Tensor
    residuals: NDArray[np.float64]
    n: int
    bias: bool

    def gradients(self) -> NDArray[np.float64]:
        return naive.pseudo_gradients(self.logits, self.features, self.bias)


def make(kind: str, N: int, C: int, D: int, seed: int, dtype: torch.dtype = torch.float32) -> Pool:
    """A pool of this kind; n is N and there is no bias."""
    rng = np.random.default_rng(seed)
    z, h = rng.normal(size=(N, C)), rng.normal(size=(N, D))
    if kind == "relu":
        h = np.maximum(h, 0.0)
    elif kind == "repeated":
        copies = rng.permutation(N) // 5
        z, h = z[copies], h[copies]
    elif kind == "same":
        z, h = z[[0] * N], h[[0] * N]
    elif kind.startswith("clusters"):
        spread = float(kind.removeprefix("clusters-"))
        centre = rng.integers(1 + N // 20, size=N)
        z = rng.normal(size=(N, C))[centre] + spread * z
        h = rng.normal(size=(N, D))[centre] + spread * h
    elif kind == "lumps":
        centre = rng.integers(5, size=N)
        z, h = rng.normal(size=(5, C))[centre] + z / 10, rng.normal(size=(5, D))[centre] + h / 10
    elif kind.startswith("confident"):
        z = z * float(kind.removeprefix("confident-"))
    elif kind.startswith("untrained"):
        z = z * (0.0 if kind == "untrained-0" else 1e-6)
    residuals = rng.exponential(size=N)
    return Pool(torch.tensor(z).to(dtype), torch.tensor(h).to(dtype), residuals, N, False)


@st.composite
def pools(
    draw: st.DrawFn, *kinds: str, most: int = 150, dtypes: Sequence[torch.dtype] = DTYPES
) -> Pool:
    """A pool of one of these kinds and dtypes, to pick any number of its rows from."""
    kind = draw(st.sampled_from(kinds))
    N = draw(st.integers(1, most))
    D = 8 if kind.startswith("clusters") else draw(st.integers(2, 12))
    dtype = draw(st.sampled_from(dtypes))
    pool = make(kind, N, draw(st.integers(2, 6)), D, draw(st.integers(0, 2**32 - 1)), dtype)
    n = draw(st.one_of(st.just(N), st.integers(1, N)))
    return Pool(pool.logits, pool.features, pool.residuals, n, draw(st.booleans()))


def assert_same_d2_picks(picks: Picks, twin: naive.Picked, G: NDArray[np.float64]) -> None:
    """The same rows in the same order, and their D² to 1e-9.

    D² itself is only known to float64's rounding of the gradients: moving g by ε‖g‖ moves D² by
    2Dε‖g‖, more than 1e-9 of it where D is 1e-7 of ‖g‖. That much is granted as well.

    Gradients under 1e-140 have squares that float64 cannot hold. Where a pool has some, the order
    is compared as far as D² is a number; the rest only has to be picked once.
    """
    rows, scores = twin
    assert len(picks.rows) == len(picks.scores) == len(rows)
    assert len(set(picks.rows.tolist())) == len(rows)
    lost = (scores < 1e-270) & bool(((G != 0) & (np.abs(G) < 1e-140)).any())
    clear = int(np.argmax(lost)) if lost.any() else len(rows)
    np.testing.assert_array_equal(picks.rows[:clear], rows[:clear])
    norms = np.sqrt(naive.sq_norms(G))[rows]
    granted = 1e-9 * scores + 64 * 2.0**-52 * norms * np.sqrt(scores)
    assert (np.abs(picks.scores - scores) <= np.where(lost, 1e-269, granted)).all()


def pair_p_value(pairs: NDArray[np.int64], law: NDArray[np.float64]) -> float:
    """Chi-square of ordered pairs (runs, 2) against P[i, j]; rare cells are counted together."""
    counts = np.zeros(law.shape)
    np.add.at(counts, tuple(pairs.T), 1)
    assert counts[law == 0].sum() == 0, "a pair came up that cannot"
    expected = law * len(pairs)
    common = expected >= 5
    seen, due = counts[common], expected[common]
    if expected[~common].sum() > 0:
        seen = np.append(seen, counts[~common].sum())
        due = np.append(due, expected[~common].sum())
    return float(stats.chisquare(seen, due).pvalue)
