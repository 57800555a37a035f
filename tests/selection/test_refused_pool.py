"""What `select` refuses of n, pool and exclude: what was expected, what came, what to do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import sparse

from askance import Embedding, select, strategies
from askance.errors import InputError, NonFiniteError
from askance.selection import select_many
from tests.selection.given import (
    MODEL,
    NAMES,
    NEED_LABELS,
    NEED_LOGITS,
    POOL,
    SEEN,
    UNSEEN,
    X,
    Y,
    with_entry,
)

# --- n --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [0, -1])
def test_n_must_be_at_least_one(name, n):
    with pytest.raises(InputError, match=f"n must be a whole number ≥ 1, got {n}"):
        select(MODEL, (X, Y), POOL, n, strategy=name)


@pytest.mark.parametrize("n", [2.0, "3", None, True, [1], np.float64(2)])
def test_n_must_be_a_whole_number(n):
    with pytest.raises(InputError, match="n must be a whole number ≥ 1, got"):
        select(MODEL, (X, Y), POOL, n)


def test_n_may_be_a_numpy_integer():
    assert len(select(MODEL, (X, Y), POOL, np.int64(3))) == 3


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("pool", [POOL, UNSEEN, "stream"], ids=["inputs", "embedding", "stream"])
def test_n_must_not_exceed_the_pool(name, pool):
    pool = iter([UNSEEN[:6], UNSEEN[6:]]) if isinstance(pool, str) else pool
    with pytest.raises(InputError, match=r"n = 11 points .* the pool has 10; ask for at most 10"):
        select(MODEL, (X, Y), pool, 11, strategy=name)


# --- pool -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "pool",
    [POOL[:0], POOL[:0].numpy(), [], UNSEEN[:0], {}, {"x": POOL[:0]}, "stream"],
    ids=["tensor", "array", "list", "embedding", "no mapping", "mapping", "stream"],
)
def test_an_empty_pool_is_refused(name, pool):
    pool = iter([]) if isinstance(pool, str) else pool
    with pytest.raises(InputError, match="pool must hold at least one point, it is empty"):
        select(MODEL, (X, Y), pool, 1, strategy=name)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("name", NEED_LOGITS)
def test_logits_that_are_no_numbers_are_counted_and_the_first_named(name, bad):
    pool = Embedding(with_entry(UNSEEN.logits, [4, 7], bad), UNSEEN.features)
    message = r"logits must be finite; 2 of 10 pool rows .* the first is row 4\. Look at the model"
    with pytest.raises(NonFiniteError, match=message):
        select(None, (SEEN, Y), pool, 2, strategy=name)


@pytest.mark.parametrize("name", ["grad", "badge", "kcenter", "entropy"])
def test_inputs_that_make_a_model_overflow_are_found(name):
    with pytest.raises(NonFiniteError, match=r"2 of 10 pool rows .* the first is row 4"):
        select(MODEL, (X, Y), with_entry(POOL, [4, 7], float("nan")), 2, strategy=name)
    with pytest.raises(NonFiniteError, match=r"2 of 5 pool rows .* the first is row 6"):
        select(
            MODEL, (X, Y), with_entry(POOL, [6, 7], float("nan")), 2, strategy=name, batch_size=5
        )


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize(
    "name", [name for name in NAMES if "features" in strategies.get(name).needs]
)
def test_features_that_are_no_numbers_are_counted_and_the_first_named(name, bad):
    pool = Embedding(UNSEEN.logits, with_entry(UNSEEN.features, [4, 7], bad))
    with pytest.raises(
        NonFiniteError, match=r"features must be finite; 2 of 10 pool rows .* row 4"
    ):
        select(None, (SEEN, Y), pool, 2, strategy=name)


def test_features_nobody_needs_may_be_anything():
    pool = Embedding(UNSEEN.logits, with_entry(UNSEEN.features, [4, 7], float("nan")))
    assert len(select(None, None, pool, 2, strategy="entropy")) == 2


@pytest.mark.parametrize("name", NEED_LABELS)
@pytest.mark.parametrize("part", ["logits", "features"])
def test_labelled_numbers_must_be_numbers_too(name, part):
    parts = {"logits": SEEN.logits, "features": SEEN.features}
    parts[part] = with_entry(parts[part], [2], float("nan"))
    with pytest.raises(
        NonFiniteError, match=f"{part} must be finite; 1 of 6 labelled rows .* row 2"
    ):
        select(None, (Embedding(**parts), Y), UNSEEN, 2, strategy=name)
    with pytest.raises(NonFiniteError, match="1 of 6 labelled rows"):
        select(MODEL, (with_entry(X, [2], float("nan")), Y), POOL, 2, strategy=name)


@pytest.mark.parametrize("name", ["grad", "badge", "egl", "gradnorm"])
def test_an_embedding_without_what_the_rule_needs_is_refused(name):
    with pytest.raises(InputError, match=f"{name} needs features, the pool's Embedding has none"):
        select(None, (SEEN, Y), Embedding(UNSEEN.logits), 2, strategy=name)
    with pytest.raises(InputError, match=f"{name} needs logits, the pool's Embedding has none"):
        select(None, (SEEN, Y), Embedding(features=UNSEEN.features), 2, strategy=name)
    with pytest.raises(InputError, match=f"{name} needs features, the pool's Embedding has none"):
        select(None, (SEEN, Y), iter([Embedding(UNSEEN.logits)]), 2, strategy=name)


@pytest.mark.parametrize("name", ["entropy", "margin", "grad", "badge"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_probabilities_are_no_logits(name, dtype):
    likely = UNSEEN.logits.double().softmax(dim=1)
    pool = Embedding(likely.to(dtype), UNSEEN.features)
    with pytest.raises(InputError, match=r"look like probabilities.*pass their logarithms"):
        select(None, (SEEN, Y), pool, 2, strategy=name)
    logs = Embedding(likely.log().to(UNSEEN.logits.dtype), UNSEEN.features)
    again = select(None, (SEEN, Y), logs, 2, strategy=name)
    assert (
        again.indices.tolist() == select(None, (SEEN, Y), UNSEEN, 2, strategy=name).indices.tolist()
    )


@pytest.mark.parametrize("name", ["entropy", "grad", "badge"])
@pytest.mark.parametrize("rows", [1, 4, 10])
def test_probabilities_in_a_stream_are_no_logits(name, rows):
    pool = Embedding(UNSEEN.logits.softmax(dim=1), UNSEEN.features)
    blocks = (pool[slice(at, at + rows)] for at in range(0, len(pool), rows))
    with pytest.raises(InputError, match="the logits of the pool look like probabilities"):
        select(None, (SEEN, Y), blocks, 2, strategy=name)


@pytest.mark.parametrize("name", ["margin", "grad", "badge"])
@pytest.mark.parametrize("given", [lambda pool: pool, lambda pool: iter([pool])])
def test_a_row_of_probabilities_is_no_row_of_logits(name, given):
    one = Embedding(UNSEEN.logits[:1].softmax(dim=1), UNSEEN.features[:1])
    with pytest.raises(InputError, match="the logits of the pool look like probabilities"):
        select(None, (SEEN, Y), given(one), 1, strategy=name)


@pytest.mark.parametrize("name", ["grad", "powergrad", "grad-spread"])
@pytest.mark.parametrize("pool", [UNSEEN, POOL], ids=["embedded", "inputs"])
def test_labelled_probabilities_are_no_logits(name, pool):
    seen = Embedding(SEEN.logits.softmax(dim=1), SEEN.features)
    with pytest.raises(InputError, match="the logits of the labelled set look like probabilities"):
        select(MODEL, (seen, Y), pool, 2, strategy=name)
    assert len(select(None, (seen, Y), UNSEEN, 2, strategy="kcenter")) == 2


@pytest.mark.parametrize("name", ["badge", "entropy"])
def test_probabilities_in_one_of_several_pools_are_no_logits(name):
    likely = Embedding(UNSEEN.logits.softmax(dim=1), UNSEEN.features)
    with pytest.raises(InputError, match="the logits of the pool look like probabilities"):
        select_many(
            [(SEEN, Y)] * 2, [UNSEEN, likely], 2, strategy=name, seeds=[0, 1], exclude=[[], []]
        )


def test_one_row_that_is_no_probability_makes_them_logits():
    likely = UNSEEN.logits.softmax(dim=1)
    for row in (0, len(likely) - 1):
        logits = likely.clone()
        logits[row] += 1
        assert len(select(None, None, Embedding(logits), 2, strategy="entropy")) == 2
    # What looks at no logits does not mind.
    pool = Embedding(likely, UNSEEN.features)
    assert len(select(None, (SEEN, Y), pool, 2, strategy="kcenter")) == 2


def test_a_labelled_embedding_without_what_the_rule_needs_is_refused():
    with pytest.raises(InputError, match="the labelled Embedding has no features"):
        select(None, (Embedding(SEEN.logits), Y), UNSEEN, 2, strategy="grad")
    with pytest.raises(InputError, match="the labelled Embedding has no logits"):
        select(None, (Embedding(features=SEEN.features), Y), UNSEEN, 2, strategy="grad")
    with pytest.raises(InputError, match="kcenter needs features, the labelled Embedding has none"):
        select(None, (Embedding(SEEN.logits), Y), UNSEEN, 2, strategy="kcenter")


def test_pool_and_labelled_set_must_be_of_one_model():
    wide = Embedding(UNSEEN.logits, torch.cat([UNSEEN.features, UNSEEN.features], dim=1))
    with pytest.raises(
        InputError, match="features must have the same number of columns, got 12 and 6"
    ):
        select(None, (SEEN, Y), wide, 2)
    with pytest.raises(
        InputError, match="features must have the same number of columns, got 12 and 6"
    ):
        select(None, (SEEN, Y), wide, 2, strategy="kcenter")
    more = Embedding(torch.cat([UNSEEN.logits, UNSEEN.logits], dim=1), UNSEEN.features)
    with pytest.raises(
        InputError, match="logits must have the same number of columns, got 6 and 3"
    ):
        select(None, (SEEN, Y), more, 2)


def test_a_stream_must_be_of_embeddings():
    with pytest.raises(InputError, match="must give Embedding blocks, it gave a Tensor"):
        select(MODEL, (X, Y), (row for row in POOL), 2)


@pytest.mark.parametrize("name", ["kcenter", "badge", "grad-spread"])
def test_features_of_a_stream_must_be_numbers(name):
    bad = Embedding(UNSEEN.logits, with_entry(UNSEEN.features, [2], float("nan")))
    with pytest.raises(NonFiniteError, match=r"features must be finite; 1 of 10"):
        select(None, (SEEN, Y), iter([bad]), 3, strategy=name)


# --- exclude --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_exclude_must_be_in_the_pool(name):
    for exclude, bad in [([0, 10], 10), ([-1, 3], -1)]:
        with pytest.raises(InputError, match=f"between 0 and 9, got {bad}"):
            select(MODEL, (X, Y), POOL, 2, strategy=name, exclude=exclude)


@pytest.mark.parametrize("name", NAMES)
def test_something_must_be_left(name):
    with pytest.raises(InputError, match="has 10 and 10 of them excluded; ask for at most 0"):
        select(MODEL, (X, Y), POOL, 1, strategy=name, exclude=range(10))
    with pytest.raises(
        InputError, match=r"n = 3 .* has 10 and 8 of them excluded; ask for at most 2"
    ):
        select(MODEL, (X, Y), POOL, 3, strategy=name, exclude=set(range(8)))


@pytest.mark.parametrize("exclude", [3, [1.5], [[1, 2]], ["a", 2.5, None], [[True] * 10]])
def test_exclude_must_be_a_list_of_indices(exclude):
    with pytest.raises(InputError, match="exclude must be a list of pool indices or of ident"):
        select(MODEL, (X, Y), POOL, 2, exclude=exclude)


@pytest.mark.parametrize("name", ["grad", "badge"])
def test_a_mask_must_be_as_long_as_the_pool(name):
    with pytest.raises(InputError, match="the pool has 10 rows, the mask 9"):
        select(MODEL, (X, Y), POOL, 2, strategy=name, exclude=[True] * 9)
    with pytest.raises(InputError, match="the pool has 10 rows, the mask 9"):
        select(None, (SEEN, Y), iter([UNSEEN]), 2, strategy=name, exclude=[True] * 9)


@pytest.mark.parametrize("name", ["grad", "badge"])
def test_identifiers_are_excluded_of_a_pool_that_has_them(name):
    with pytest.raises(InputError, match=r"identifiers \('a', 'b', …\), and the pool has none"):
        select(None, (SEEN, Y), UNSEEN, 2, strategy=name, exclude=["a", "b"])
    pool = replace(UNSEEN, ids=[f"row {row}" for row in range(10)])
    with pytest.raises(InputError, match="has 10 and 9 of them excluded; ask for at most 1"):
        select(None, (SEEN, Y), pool, 2, strategy=name, exclude=pool.ids.names[:9])
    rows = [2, 3, 5, 7]
    ways = [rows, np.isin(np.arange(10), rows), [f"row {row}" for row in rows]]
    picks = [select(None, (SEEN, Y), pool, 6, strategy=name, exclude=way) for way in ways]
    assert {picked.read.excluded for picked in picks} == {4}
    assert len({tuple(picked.indices) for picked in picks}) == 1
    assert sorted(picks[0].indices) == [0, 1, 4, 6, 8, 9]


def masked(values):
    return np.ma.masked_array(values, mask=values > 1)


# --- what looks like rows and would be misread ----------------------------------------------------


@pytest.mark.parametrize("name", ["grad", "random"])
@pytest.mark.parametrize(
    ("pool", "message"),
    [
        (sparse.csr_matrix(POOL.numpy()), r"sparse csr_matrix: pass its \.toarray\(\)"),
        (POOL.to_sparse(), r"sparse Tensor: pass its \.to_dense\(\)"),
        (masked(POOL.numpy()), "array without a mask"),
        (np.array([["a", None]] * 9, dtype=object), "must hold numbers, it holds object"),
        ((POOL, torch.zeros(len(POOL))), "got a tuple. Pass the inputs alone"),
    ],
    ids=["sparse", "sparse tensor", "masked", "objects", "tuple"],
)
def test_what_would_be_misread_is_refused(pool, message, name):
    with pytest.raises(InputError, match=message):
        select(MODEL, (X, Y), pool, 2, strategy=name)
    if not isinstance(pool, tuple):
        with pytest.raises(InputError, match=f"{message}|labelled X in"):
            select(MODEL, (pool, Y), POOL, 2, strategy="grad")


def test_a_frame_is_not_read_by_its_columns_nor_a_series_by_its_labels():
    pd = pytest.importorskip("pandas")
    square = pd.DataFrame(np.ones((4, 4), dtype=np.float32))  # frame[0] is a column
    backwards = pd.Series(list(POOL), index=range(len(POOL) - 1, -1, -1))
    with pytest.raises(InputError, match=r"got a Series: pass its \.to_numpy\(\)"):
        select(MODEL, (X, Y), backwards, 2)
    square.iloc[2] = 5.0
    whole, frame = (select(MODEL, (X, Y), pool, 4) for pool in (square.to_numpy(), square))
    assert frame.indices.tolist() == whole.indices.tolist()


def test_bytes_in_another_order_are_the_same_numbers():
    swapped = POOL.numpy().astype(">f4")
    same = select(MODEL, (X.numpy().astype(">f4"), Y), swapped, 3)
    assert same.indices.tolist() == select(MODEL, (X, Y), POOL, 3).indices.tolist()


def test_a_selection_to_exclude_says_what_to_pass():
    picks = select(MODEL, (X, Y), POOL, 2)
    with pytest.raises(InputError, match=r"pass its \.indices"):
        select(MODEL, (X, Y), POOL, 2, exclude=picks)
