"""Every rule ends on every finite pool: n different rows with finite scores, or an error in words."""

import signal
import threading
import warnings
from contextlib import contextmanager

import numpy as np
import pytest

import askance
from askance import strategies
from askance.embedding import Embedding
from askance.errors import AskanceError

PATIENCE = 60  # seconds; a pool of these sizes takes milliseconds

# The largest |x| of a row: everything that float32 and float64 can hold, and what lies between.
SIZES = [
    0.0,
    1e-320,
    5e-324,
    1e-300,
    1e-140,
    1e-45,
    1e-38,
    1e-20,
    1e-3,
    1.0,
    1e3,
    1e19,
    3e38,
    1e140,
    1e300,
]


@contextmanager
def within(seconds):
    """Raise in this thread after so many seconds; where signals cannot, pytest's timeout does."""

    def late(*_):
        raise TimeoutError(f"not done within {seconds} s")

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def matrix(rng, rows, columns, dtype):
    """Rows of one of many awkward shapes."""
    kind = rng.choice(
        ["normal", "constant", "copies", "sizes", "one size", "one far", "zeros", "line", "close"]
    )
    x = rng.normal(size=(rows, columns))
    if kind == "constant":
        x[:] = x[:1]
    elif kind == "copies":
        x = x[rng.integers(max(1, rows // 6), size=rows)]
    elif kind == "sizes":
        x *= rng.choice(SIZES, size=(rows, 1))
    elif kind == "one size":
        x *= rng.choice(SIZES)
    elif kind == "one far":
        x[rng.integers(rows)] *= rng.choice(SIZES)
    elif kind == "zeros":
        x[rng.random(rows) < 0.7] = 0
    elif kind == "line":
        x = np.outer(np.arange(rows), x[0])
    elif kind == "close":
        x = x[:1] + 1e-7 * x
    with np.errstate(over="ignore"):
        x = x.astype(dtype)
    return np.clip(x, np.finfo(dtype).min, np.finfo(dtype).max)


def problem(seed):
    """A pool, a labelled set and how many are asked for."""
    rng = np.random.default_rng(seed)
    n_pool, n_labeled = (int(rng.choice(sizes)) for sizes in ([1, 2, 3, 7, 40, 90], [1, 2, 5, 20]))
    width, classes = int(rng.choice([1, 2, 5, 30])), int(rng.choice([2, 2, 3, 10]))
    dtype = rng.choice([np.float32, np.float64])

    def embedding(rows, **more):
        members = matrix(rng, rows * 4, classes, dtype).reshape(rows, 4, classes)
        return Embedding(
            logits=matrix(rng, rows, classes, dtype),
            features=matrix(rng, rows, width, dtype),
            members=members,
            **more,
        )

    labels = rng.integers(classes, size=n_labeled)
    if rng.random() < 0.3:
        labels[:] = labels[0]
    n = n_pool if rng.random() < 0.4 else int(rng.integers(1, n_pool + 1))
    return embedding(n_pool), (embedding(n_labeled), labels), n


def ends(name, seed):
    pool, labeled, n = problem(seed)
    rule = strategies.get(name)
    with warnings.catch_warnings(), within(PATIENCE):
        warnings.simplefilter("ignore", askance.errors.SelectionWarning)
        try:
            picked = askance.select(None, labeled, pool, n, strategy=rule, seed=seed)
        except AskanceError as error:
            return str(error)
    assert len(picked.indices) == n
    assert len(set(picked.indices.tolist())) == n
    assert np.isfinite(picked.scores).all(), picked.scores
    return None


@pytest.mark.parametrize(
    ("name", "seed"), [("bait", 2213), ("bait", 2451), ("grad-cover", 336), ("grad-cover", 1204)]
)
def test_numbers_that_overflowed_once(name, seed):
    assert ends(name, seed) is None


@pytest.mark.parametrize("name", strategies.names())
@pytest.mark.parametrize(
    "seeds",
    [range(12), pytest.param(range(12, 3_000), marks=[pytest.mark.slow, pytest.mark.timeout(3600)])],
    ids=["some", "many"],
)  # fmt: skip
def test_every_rule_ends(name, seeds):
    refused = []
    for seed in seeds:
        try:
            refused.append(ends(name, seed))
        except Exception as error:
            raise AssertionError(f"{name}, seed {seed}: {type(error).__name__}: {error}") from error
    assert refused.count(None) >= len(refused) // 4  # most are asked to pick, not refused
