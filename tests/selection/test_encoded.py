"""`select` with an encoder in place of a model."""

import numpy as np
import pytest

import askance
from askance.encoders import FunctionEncoder
from askance.encoders.linear import Standardiser, fit_linear
from askance.errors import InputError, LabelError

RNG = np.random.default_rng(0)
WORDS = ["cat", "dog", "rate", "bank", "tree", "leaf"]
POOL = [" ".join(RNG.choice(WORDS, size=6)) for _ in range(60)]
SEEN = [" ".join(RNG.choice(WORDS, size=6)) for _ in range(12)]
LABELS = [text.count("cat") % 3 for text in SEEN]


def counts(texts):
    return [[text.count(word) for word in WORDS] for text in texts]


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("ASKANCE_CACHE", str(tmp_path))


@pytest.fixture
def encoder():
    return FunctionEncoder(counts, "text", "1")


@pytest.mark.parametrize("rule", ["entropy", "grad", "badge", "kcenter", "powergrad"])
def test_picks_are_those_of_the_regression_on_its_features(encoder, rule):
    picks = askance.select(encoder, (SEEN, LABELS), POOL, 8, strategy=rule)
    standardise = Standardiser.of(np.array(counts(POOL), dtype=np.float32))
    x, z = standardise(np.array(counts(SEEN))), standardise(np.array(counts(POOL)))
    fit = fit_linear(x, LABELS, 3)
    seen, pool = (
        askance.Embedding(
            logits=fit.logits(rows).astype(np.float32), features=rows.astype(np.float32)
        )
        for rows in (x, z)
    )
    expected = askance.select(None, (seen, LABELS), pool, 8, strategy=rule)
    np.testing.assert_array_equal(picks.indices, expected.indices)
    np.testing.assert_array_equal(picks.scores, expected.scores)


def test_by_name_and_without_the_excluded():
    picks = askance.select(
        "tests.selection.test_encoded:made", (SEEN, LABELS), POOL, 50, exclude=range(10)
    )
    assert sorted(picks.indices) == list(range(10, 60))


def made():
    return FunctionEncoder(counts, "text", "1")


def test_without_labels_a_rule_that_needs_none():
    picks = askance.select(made(), None, POOL, 5, strategy="random")
    assert len(set(picks.indices)) == 5
    with pytest.raises(LabelError, match="labeled is None"):
        askance.select(made(), None, POOL, 5, strategy="kcenter")
    with pytest.raises(LabelError, match="entropy needs a regression fitted on labelled items"):
        askance.select(made(), None, POOL, 5, strategy="entropy")


def test_a_rule_that_looks_at_nothing_encodes_nothing():
    def refuse(texts):
        assert texts == ["text"], "encoded for nothing"  # the encoder is tried once on "text"
        return [[1.0]]

    askance.select(FunctionEncoder(refuse, "text", "1"), (SEEN, LABELS), POOL, 5, strategy="random")


def test_what_does_not_fit_is_said(encoder):
    with pytest.raises(InputError, match="the pool must be a list of texts, got str"):
        askance.select(encoder, (SEEN, LABELS), "one text", 1)
    with pytest.raises(InputError, match="the labelled set must hold at least one item"):
        askance.select(encoder, ([], []), POOL, 1)
    with pytest.raises(LabelError, match=r"\(items, y\), got list"):
        askance.select(encoder, SEEN, POOL, 1)
    with pytest.raises(InputError, match="is found by itself"):
        askance.select(encoder, (SEEN, LABELS), POOL, 1, head="fc")
