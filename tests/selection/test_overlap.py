"""Labelled rows that are still in the pool, and picks that are copies, are noticed and said."""

import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader, TensorDataset

import askance
from askance import Embedding, select
from askance.errors import SelectionWarning
from askance.selection.contents import copies, plain
from askance.selection.excluded import Excluded
from askance.selection.overlap import AlreadyLabeled, Overlap
from tests.embedding import zoo

X, POOL = zoo.rows(6, seed=1), zoo.rows(12, seed=2)
Y = torch.tensor([0, 1, 2, 0, 1, 2])
MODEL = zoo.seeded(zoo.mlp)
MIXED = torch.cat([POOL[:5], X[2:4], POOL[5:]])  # rows 5 and 6 are labelled
SAID = (
    r"rows of the pool that equal labelled ones: 2, picked again: \d; leave them out with exclude="
)


def as_it_is(data):
    return data


def pairs(data):
    return TensorDataset(data, torch.zeros(len(data)))


def numpy(data):
    return data.numpy()


def loader(data):
    return DataLoader(pairs(data), batch_size=5)


@pytest.mark.parametrize("strategy", ["entropy", "grad", "badge"])
@pytest.mark.parametrize("wrap", [as_it_is, numpy, pairs, loader, list])
def test_labelled_rows_are_noticed_whatever_the_pool_is_wrapped_in(strategy, wrap):
    with pytest.warns(SelectionWarning, match=SAID):
        picks = select(MODEL, (X, Y), wrap(MIXED), 3, strategy=strategy)
    assert picks.already_labeled.tolist() == [5, 6]
    assert "exclude=picks.already_labeled" in picks.notes[0]
    again = select(MODEL, (X, Y), wrap(MIXED), 3, strategy=strategy, exclude=picks.already_labeled)
    assert again.already_labeled.tolist() == []
    assert again.notes == ()


def test_labelled_rows_are_noticed_by_a_rule_that_reads_nothing():
    with pytest.warns(SelectionWarning, match=SAID):
        select(None, (X.numpy(), Y), MIXED.numpy(), 3, strategy="random")


def test_a_labelled_set_that_is_read_once_is_compared_as_it_is_read():
    with pytest.warns(SelectionWarning, match=SAID):
        select(MODEL, TensorDataset(X, Y), loader(MIXED), 3, strategy="grad", batch_size=4)


@pytest.mark.parametrize("stream", [False, True])
def test_embeddings_are_compared_by_features_or_by_identifiers(stream):
    seen, mixed = askance.embed(MODEL, X), askance.embed(MODEL, MIXED)
    mixed = Embedding(
        mixed.logits, torch.cat([mixed.features[:5], seen.features[2:4], mixed.features[7:]])
    )

    def select_from(pool, seen):
        pool = iter(list(pool.blocks(4))) if stream else pool
        return select(None, (seen, Y), pool, 3, strategy="entropy")

    with pytest.warns(SelectionWarning, match=SAID):
        assert select_from(mixed, seen).already_labeled.tolist() == [5, 6]
    named_pool = Embedding(mixed.logits, ids=[f"p{row}" for row in range(14)])
    named_seen = Embedding(seen.logits, ids=["p9", "x", "y", "p1", "z", "u"])
    with pytest.warns(SelectionWarning, match=SAID):
        assert select_from(named_pool, named_seen).already_labeled.tolist() == [1, 9]


def test_texts_and_frames_for_a_classifier_are_compared():
    class Model:
        classes_ = np.arange(3)

        def predict_proba(self, rows):
            return np.full((len(rows), 3), 1 / 3)

    texts = ["a", "b", "c", "d"]
    with pytest.warns(SelectionWarning, match=SAID):
        select(Model(), (["b", "c", "e"], [0, 1, 2]), texts, 1, strategy="margin")
    with pytest.warns(SelectionWarning, match="copies of another pick: 2 of 3"):
        select(Model(), None, ["a", "a", "a"], 3, strategy="margin")


def test_a_copy_of_a_row_that_is_excluded_is_not_taken_for_it():
    pool = torch.cat([X, POOL, X[:1]])
    picks = select(MODEL, (X, Y), pool, 3, strategy="entropy", exclude=range(6))
    assert picks.already_labeled.tolist() == []


def test_a_loop_says_nothing():
    X_, oracle = torch.randn(60, 5), askance.oracles.Truth(torch.randint(2, (60,)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for run in askance.loop(X_, oracle, strategy="margin", batch=5, rounds=3):
            run.ask(torch.nn.Linear(5, 2))


def test_picks_that_are_copies_are_said():
    pool = POOL[:3].repeat(5, 1)
    with pytest.warns(SelectionWarning, match="picks that are copies of another pick: 3 of 6"):
        picks = select(MODEL, (X, Y), pool, 6, strategy="badge")
    assert "max_similarity=1" in picks.notes[0]
    with pytest.warns(SelectionWarning, match="copies of another pick: 8 of 9"):
        select(None, None, Embedding(features=torch.ones(20, 3)), 9, strategy="random")
    picks = select(MODEL, (X, Y), pool, 6, strategy="badge", max_similarity=1)
    assert len(picks) == 3
    assert picks.notes == ("3 of 6 points picked: the constraints let no other one through",)


@settings(deadline=None, max_examples=60)
@given(
    st.integers(1, 40),
    st.integers(0, 20),
    st.integers(1, 40),
    st.sampled_from([np.float64, np.float32, np.uint8, np.int16]),
    st.integers(0, 2**32 - 1),
    st.booleans(),
)
def test_rows_are_those_of_a_comparison_pair_by_pair(N, L, D, dtype, seed, at_once):
    rng = np.random.default_rng(seed)
    # Few values, most of them zero, so that rows are alike where the 16 are taken.
    values = rng.integers(0, 2, size=(N + L, D)) * (rng.random((N + L, D)) < 0.1)
    rows = values.astype(dtype)
    pool, labeled = rows[:N], rows[N:]
    excluded = Excluded.of(rng.random(N) < 0.2)
    out = set(excluded.positions.tolist())
    equal = [[bool((x == y).all()) for y in labeled] for x in pool]
    covered = {y for y in range(L) if any(equal[x][y] for x in out)}
    expected = [x for x in range(N) if any(equal[x][y] for y in range(L) if y not in covered)]
    if at_once:
        overlap = Overlap((labeled, np.zeros(L)), pool, excluded)
        assert overlap.at_hand == (L > 0)
        assert overlap.already_labeled().tolist() == expected
    else:
        known = AlreadyLabeled(excluded)
        known.learn(torch.from_numpy(labeled))
        for start in range(0, N, 7):
            known.look([torch.from_numpy(pool[start : start + 7])])
        assert known.rows().tolist() == expected
    different = {row.tobytes() for row in pool}
    assert copies(pool) == N - len(different)


def test_what_cannot_be_compared_is_left_alone():
    assert plain(object()) is None
    assert plain(None) is None
    assert plain(Embedding(logits=torch.zeros(2, 3))) is None
    assert copies(Embedding(logits=torch.zeros(2, 3))) == 0


def test_what_select_refuses_is_left_to_select():
    ragged = {"a": torch.zeros(3, 2), "b": torch.zeros(4, 2)}
    empty, wide = torch.zeros(3, 0), np.zeros((3, 2), dtype=np.longdouble)
    for data in (ragged, empty, wide, np.zeros(()), torch.zeros(2, 2, device="meta")):
        assert plain(data) is None
        assert Overlap((data, None), POOL, Excluded.of(None)).already_labeled().tolist() == []
