"""Any container of points, in its own order, and nothing of it read but the inputs."""

from __future__ import annotations

from collections import UserDict

import numpy as np
import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    TensorDataset,
    default_collate,
)

import askance
from askance.errors import InputError, LabelError
from askance.strategies import Grad
from tests.embedding import zoo
from tests.rules import ONE_MODEL

# DataLoader workers are forked; newer Pythons warn of that in any process with threads.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

X = zoo.rows(11)
Y = torch.tensor([0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1])
MODEL = zoo.seeded(zoo.mlp)


class Items(Dataset):
    """A Dataset of whatever `item(i)` gives."""

    def __init__(self, item, count=11):
        self.item, self.count = item, count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return self.item(index)


class Stream(IterableDataset):
    """The same items in order, without a length."""

    def __init__(self, item, count=11):
        self.item, self.count = item, count

    def __iter__(self):
        return map(self.item, range(self.count))


class Poison:
    """A label that raises when it is touched in any way."""

    def _raise(self, *_args, **_kwargs):
        raise AssertionError("a pool label was read")


DUNDERS = """
    abs add array bool call contains copy deepcopy dir eq float format ge getattribute getitem gt
    hash index int iter le len lt mul ne neg next radd reduce reduce_ex repr sizeof str sub
    torch_function
"""
for name in DUNDERS.split():
    setattr(Poison, f"__{name}__", Poison._raise)


def read_only(array):
    array = array.copy()
    array.setflags(write=False)
    return array


def pair(i):
    return X[i], Y[i]


def stacked(items):
    return torch.stack([x for x, _ in items]), torch.stack([y for _, y in items])


POOLS = {
    "tensor": X,
    "numpy": X.numpy(),
    "numpy float64": X.double().numpy(),
    "numpy read-only": read_only(X.numpy()),
    "numpy strided": np.repeat(X.numpy(), 2, axis=0)[::2],
    "numpy backwards": X.numpy()[::-1].copy()[::-1],
    "list of tensors": list(X),
    "list of arrays": list(X.numpy()),
    "list of (x, y)": [pair(i) for i in range(len(X))],
    "dataset of x": Items(lambda i: X[i]),
    "dataset of (x, y)": Items(pair),
    "dataset of [x, y]": Items(lambda i: [X[i], Y[i]]),
    "dataset of (x, y, more)": Items(lambda i: (X[i], Y[i], "file.png")),
    "TensorDataset of x": TensorDataset(X),
    "TensorDataset of (x, y)": TensorDataset(X, Y),
    "subset": torch.utils.data.Subset(TensorDataset(torch.cat([X, X])), range(len(X))),
    "iterable": Stream(lambda i: X[i]),
    "iterable of (x, y)": Stream(pair),
    "loader": DataLoader(TensorDataset(X, Y), batch_size=4),
    "loader, 2 workers": DataLoader(TensorDataset(X, Y), batch_size=2, num_workers=2),
    "loader, own collate": DataLoader(Items(pair), batch_size=4, collate_fn=stacked),
    "loader, own collate, 2 workers": DataLoader(
        Items(pair), batch_size=3, collate_fn=stacked, num_workers=2
    ),
    "loader, collate to x": DataLoader(Items(lambda i: X[i]), 4, collate_fn=torch.stack),
    "loader of an iterable": DataLoader(Stream(pair), batch_size=4),
    "loader, batches made by the data": DataLoader(
        Items(lambda i: (X[4 * i : 4 * i + 4], 0), count=3), batch_size=None
    ),
    "loader, sequential batch sampler": DataLoader(
        TensorDataset(X, Y), batch_sampler=BatchSampler(SequentialSampler(X), 4, False)
    ),
}


@pytest.mark.parametrize("kind", POOLS)
def test_the_same_points_in_any_container(kind):
    expected = askance.embed(MODEL, X)
    emb = askance.embed(MODEL, POOLS[kind], batch_size=5)
    torch.testing.assert_close(emb.logits, expected.logits)
    torch.testing.assert_close(emb.features, expected.features)


@pytest.mark.parametrize("kind", POOLS)
@pytest.mark.parametrize("strategy", ["grad", "random"])
def test_the_same_picks_from_any_container(kind, strategy):
    options = {"strategy": strategy, "seed": 3, "batch_size": 5}
    expected = askance.select(MODEL, (X, Y), X, 4, **options)
    picks = askance.select(MODEL, (X, Y), POOLS[kind], 4, **options)
    np.testing.assert_array_equal(picks.indices, expected.indices)


LABELED = {
    "tensors": (X, Y),
    "numpy": (X.numpy(), Y.numpy()),
    "labels in a list": (X, Y.tolist()),
    "labels of whole floats": (X, Y.double().numpy()),
    "labels read-only and backwards": (X, read_only(Y.numpy()[::-1])[::-1]),
    "labels of int8": (X.numpy(), Y.numpy().astype(np.int8)),
    "mapping": {"input": X, "labels": Y},
    "mapping, labels in a list": {"input": X, "labels": Y.tolist()},
    "TensorDataset": TensorDataset(X, Y),
    "list of (x, y)": [(X[i], int(Y[i])) for i in range(len(X))],
    "dataset of mappings": Items(lambda i: {"label": int(Y[i]), "input": X[i]}),
    "iterable": Stream(pair),
    "loader": DataLoader(TensorDataset(X, Y), batch_size=4),
    "loader, shuffled": DataLoader(TensorDataset(X, Y), batch_size=4, shuffle=True),
    "loader, own collate, 2 workers": DataLoader(
        Items(pair), batch_size=4, collate_fn=stacked, num_workers=2
    ),
    "embedding": (askance.embed(MODEL, X), Y),
}


@pytest.mark.parametrize("kind", LABELED)
@pytest.mark.parametrize("rule", [Grad(), Grad(reference_size=len(X)), Grad(reference_size=99)])
def test_the_same_reference_from_any_labelled_container(kind, rule):
    pool = zoo.rows(9, seed=5)
    expected = askance.select(MODEL, (X, Y), pool, 9, strategy="grad", keep_scores=True)
    picks = askance.select(
        MODEL, LABELED[kind], pool, 9, strategy=rule, batch_size=4, keep_scores=True
    )
    np.testing.assert_allclose(picks.pool_scores, expected.pool_scores, rtol=1e-5)


@pytest.mark.parametrize("kind", [kind for kind in LABELED if "shuffled" not in kind])
def test_the_same_sampled_reference_from_any_labelled_container(kind):
    pool, rule = zoo.rows(9, seed=5), Grad(reference_size=4)
    expected = askance.select(MODEL, (X, Y), pool, 9, strategy=rule, keep_scores=True)
    picks = askance.select(
        MODEL, LABELED[kind], pool, 9, strategy=rule, batch_size=3, keep_scores=True
    )
    np.testing.assert_allclose(picks.pool_scores, expected.pool_scores, rtol=1e-5)


# --- several inputs -------------------------------------------------------------------------------

TOKENS = zoo.token_batch(9)
NAMED = {
    "mapping of tensors": TOKENS,
    "mapping of arrays": {key: value.numpy() for key, value in TOKENS.items()},
    "mapping with labels": {"labels": torch.zeros(9), **TOKENS},
    "another kind of mapping": UserDict(TOKENS),
    "dataset of mappings": Items(lambda i: {k: v[i] for k, v in TOKENS.items()}, 9),
    "dataset of mappings with labels": Items(
        lambda i: {"label": 0, **{k: v[i] for k, v in TOKENS.items()}}, 9
    ),
    "dataset of (mapping, y)": Items(lambda i: ({k: v[i] for k, v in TOKENS.items()}, 1), 9),
}


@pytest.mark.parametrize("kind", NAMED)
def test_inputs_by_name(kind):
    model = zoo.seeded(zoo.Tokens)
    emb = askance.embed(model, NAMED[kind], batch_size=4)
    torch.testing.assert_close(emb.logits, model(**TOKENS))


def test_inputs_by_position():
    left, right = zoo.rows(7), zoo.rows(7, seed=1)[:, :2]
    model = zoo.seeded(zoo.TwoInputs)
    emb = askance.embed(model, Items(lambda i: ((left[i], right[i]), 0), 7), batch_size=3)
    torch.testing.assert_close(emb.logits, model(left, right))


# --- pool labels are poison -----------------------------------------------------------------------


def test_the_poison_works():
    for touch in (len, repr, hash, int, list, np.asarray, lambda p: p == 0, lambda p: p.shape):
        with pytest.raises(AssertionError, match="a pool label was read"):
            touch(Poison())


POISONED = {
    "list of (x, y)": [(x, Poison()) for x in X],
    "dataset of (x, y)": Items(lambda i: (X[i], Poison())),
    "dataset of (x, y, more)": Items(lambda i: (X[i], Poison(), Poison())),
    "dataset of mappings": Items(lambda i: {"label": Poison(), "input": X[i]}),
    "mapping": {"labels": Poison(), "input": X},
    "iterable": Stream(lambda i: (X[i], Poison())),
    "loader": DataLoader(Items(lambda i: (X[i], Poison())), batch_size=4),
    "loader, 2 workers": DataLoader(Items(lambda i: (X[i], Poison())), batch_size=4, num_workers=2),
    "loader of an iterable": DataLoader(Stream(lambda i: (X[i], Poison())), batch_size=4),
    "loader, own collate": DataLoader(
        Items(lambda i: (X[i], Poison())),
        4,
        collate_fn=lambda items: (torch.stack([x for x, _ in items]), Poison()),
    ),
}


@pytest.mark.parametrize("kind", POISONED)
@pytest.mark.parametrize("strategy", ["grad", "badge", "random"])
def test_pool_labels_are_never_read(kind, strategy):
    picks = askance.select(MODEL, (X, Y), POISONED[kind], 4, strategy=strategy, batch_size=5)
    expected = askance.select(MODEL, (X, Y), X, 4, strategy=strategy)
    np.testing.assert_array_equal(picks.indices, expected.indices)


@pytest.mark.parametrize("rule", [*ONE_MODEL, Grad(parameters="all")], ids=str)
def test_no_rule_reads_them(rule):
    pool = POISONED["dataset of (x, y)"]
    askance.select(MODEL, (X, Y), pool, 4, strategy=rule).explain()


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loader", "message"),
    [
        (
            DataLoader(TensorDataset(X), 4, shuffle=True),
            "must read in order, its sampler is Random",
        ),
        (
            DataLoader(TensorDataset(X), 4, sampler=[3, 1, 2]),
            "must read in order, its sampler is list",
        ),
        (
            DataLoader([X[:5], X[5:]], batch_size=None, shuffle=True),
            "must read in order, its sampler is RandomSampler",
        ),
        (
            DataLoader(TensorDataset(X), 4, drop_last=True),
            "pool DataLoader must keep its last batch",
        ),
        (
            DataLoader(TensorDataset(X), batch_sampler=BatchSampler(RandomSampler(X), 4, False)),
            "must read in order, its sampler is RandomSampler",
        ),
        (
            DataLoader(TensorDataset(X), batch_sampler=[[3, 1], [2, 0]]),
            "must read in order, its sampler is list",
        ),
        (
            DataLoader(TensorDataset(X), batch_sampler=BatchSampler(SequentialSampler(X), 4, True)),
            "pool DataLoader must keep its last batch",
        ),
    ],
)
@pytest.mark.parametrize("strategy", ["entropy", "random"])
def test_a_pool_loader_that_reorders_or_drops_is_refused(loader, message, strategy):
    with pytest.raises(InputError, match=message):
        askance.select(MODEL, None, loader, 1, strategy=strategy)


def test_a_labelled_loader_that_drops_its_last_batch_is_refused():
    loader = DataLoader(TensorDataset(X, Y), 4, drop_last=True)
    with pytest.raises(InputError, match="labelled DataLoader must keep its last batch"):
        askance.select(MODEL, loader, X, 1)


@pytest.mark.parametrize("sized", [True, False])
@pytest.mark.parametrize("strategy", ["entropy", "random"])
def test_an_iterable_repeated_by_its_workers_is_refused(sized, strategy):
    """Every worker of an iterable without shards reads all of it: positions would mean nothing."""

    class Sized(Stream):
        def __len__(self):
            return self.count

    loader = DataLoader((Sized if sized else Stream)(pair), 4, num_workers=2)
    with pytest.raises(InputError, match="read by one worker, its DataLoader has 2"):
        askance.embed(MODEL, loader)
    with pytest.raises(InputError, match="read by one worker, its DataLoader has 2"):
        askance.select(MODEL, None, loader, 1, strategy=strategy)


def test_an_indexed_pool_has_a_length():
    class Endless(Dataset):
        def __getitem__(self, index):
            return X[index]

    with pytest.raises(InputError, match="must have a length; Endless has none"):
        askance.select(MODEL, None, Endless(), 1, strategy="entropy")


@pytest.mark.parametrize(
    ("pool", "message"),
    [
        (None, "expected an array or tensor, .*; got NoneType"),
        ("pool.csv", "expected an array or tensor, .*; got a str"),
        (7, "expected an array or tensor, .*; got int"),
        ((X, Y), "expected an array or tensor, .*; got a tuple"),
        (torch.tensor(3.0), "one row for each point"),
        (np.array(3.0), "one row for each point"),
        ([[1.0, 2.0, 3.0, 4.0]], "of plain values. Pass an array for rows of numbers"),
        ([(0.5, 1), (0.25, 0)], "of plain values. Pass an array for rows of numbers"),
        ({"a": X, "b": X[:3]}, "same number of rows, got {'a': 11, 'b': 3}"),
        ({"a": X, "b": 3}, r"must hold arrays with one row for each point; \['b'\] do not"),
        ({"a": 3}, r"must hold arrays with one row for each point; \['a'\] do not"),
        ([object(), object()], "could not be made into a batch .* collate_fn"),
        ([X[0, :2], X[0]], "could not be made into a batch .* collate_fn"),
    ],
)
def test_what_is_no_pool_is_refused(pool, message):
    with pytest.raises(InputError, match=message):
        askance.embed(MODEL, pool)
    with pytest.raises(InputError, match=message):
        askance.select(MODEL, None, pool, 1, strategy="entropy")


@pytest.mark.parametrize(
    ("labeled", "error", "message"),
    [
        ((X, Y, Y), InputError, r"must be \(X, y\), got 3 parts"),
        ((list(X), Y), InputError, "must be an array, a tensor or a mapping of them, got list"),
        (X, LabelError, r"must come with labels: \(X, y\).* found none"),
        (list(X), LabelError, r"must give \(x, y\) items"),
        ({"input": X}, LabelError, "must come with labels.* found none"),
        ({"input": X, "y": Y, "label": Y}, LabelError, r"found \['label', 'y'\]"),
        (
            {"input": X, "y": Y[:5]},
            LabelError,
            r"labels must be \(11,\) class indices.*shape \(5,\)",
        ),
        (
            {"input": X[:8], "y": Y},
            LabelError,
            r"labels must be \(8,\) class indices.*shape \(11,\)",
        ),
        ((X, None), LabelError, "labels must be whole numbers, got"),
        ((X, ["cat"] * 11), LabelError, "labels must be whole numbers, got"),
        (([1, 2], Y), InputError, "must be an array, a tensor or a mapping of them, got list"),
        ({"input": 3, "y": Y}, InputError, "a mapping must hold arrays"),
    ],
)
def test_what_is_no_labelled_set_is_refused(labeled, error, message):
    with pytest.raises(error, match=message):
        askance.select(MODEL, labeled, X, 1, batch_size=4)


def test_default_collate_given_by_name_is_still_the_default():
    loader = DataLoader(Items(lambda i: (X[i], Poison())), 4, collate_fn=default_collate)
    assert len(askance.embed(MODEL, loader)) == len(X)
