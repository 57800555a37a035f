"""What `select` refuses of a labelled set: what was expected, what came, what to do."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, default_collate

from askance import AskanceError, select
from askance.errors import InputError, LabelError
from askance.oracles import Truth
from askance.strategies import Grad
from tests.encoders.toys import text_encoder
from tests.selection.given import MODEL, MULTI_HOT, NAMES, NEED_LABELS, POOL, SEEN, UNSEEN, X, Y


@pytest.mark.parametrize("name", NEED_LABELS)
def test_a_rule_that_needs_labels_says_so(name):
    with pytest.raises(LabelError, match=f"{name} compares .* labeled is None; pass .* 'entropy'"):
        select(MODEL, None, POOL, 2, strategy=name)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in NEED_LABELS])
def test_the_others_do_not(name):
    assert len(select(MODEL, None, POOL, 2, strategy=name)) == 2


@pytest.mark.parametrize("name", NEED_LABELS)
@pytest.mark.parametrize(
    "labeled", [(X[:0], Y[:0]), (SEEN[:0], Y[:0]), []], ids=["X", "embedding", "list"]
)
def test_an_empty_labelled_set_is_refused(name, labeled):
    with pytest.raises(LabelError, match="at least one labelled point, the labelled set is empty"):
        select(MODEL, labeled, POOL, 2, strategy=name)


BAD_LABELS = [
    (Y + 1, r"between 0 and 2 \(the model has 3 outputs\).* is 3 at labelled point"),
    (Y - 1, r"between 0 and 2 \(the model has 3 outputs\).* is -1 at labelled point"),
    (Y + 0.5, r"labels must be whole numbers, got torch\.float32 with fractions"),
    (Y * float("nan"), r"labelled row 0 has no label \(nan\); .*, 6 of 6"),
    (Y[:5], r"labels must be \(6,\) class indices.* got shape \(5,\)"),
    (torch.cat([Y, Y]), r"labels must be \(6,\) class indices.* got shape \(12,\)"),
    (torch.tensor(1), r"labels must be \(6,\) class indices.* got shape \(\)"),
    (["cat"] * 6, "labels must be whole numbers"),
]


@pytest.mark.parametrize(("labels", "message"), BAD_LABELS)
def test_labels_are_checked(labels, message):
    with pytest.raises(LabelError, match=message):
        select(MODEL, (X, labels), POOL, 2, strategy="grad")
    with pytest.raises(LabelError, match=message):
        select(None, (SEEN, labels), UNSEEN, 2, strategy="grad")
    with pytest.raises(LabelError, match=message):
        select(MODEL, (X, labels), POOL, 2, strategy=Grad(parameters=["0"]))


@pytest.mark.parametrize(("labels", "message"), BAD_LABELS[2:])
def test_labels_are_checked_before_some_are_drawn(labels, message):
    with pytest.raises(LabelError, match=message):
        select(MODEL, (X, labels), POOL, 2, strategy=Grad(reference_size=3))
    with pytest.raises(LabelError, match=message):
        select(None, (SEEN, labels), UNSEEN, 2, strategy=Grad(reference_size=3))


NAN = float("nan")
MISSING = {
    "nan among names": lambda: ["a", "b", NAN, "a"],
    "None": lambda: ["a", "b", None, "a"],
    "pandas.NA": lambda: ["a", "b", pd.NA, "a"],
    "NaT": lambda: ["a", "b", pd.NaT, "a"],
    "empty": lambda: ["a", "b", "", "a"],
    "two": lambda: ["a", "b", "", None],
    "array of objects": lambda: np.array(["a", "b", NAN, "a"], object),
    "array of texts": lambda: np.array(["a", "b", "", "a"]),
    "series of str": lambda: pd.Series(["a", "b", None, "a"], index=[3, 4, 5, 6], dtype="str"),
    "series of string": lambda: pd.Series(["a", "b", None, "a"], dtype="string"),
    "series of objects": lambda: pd.Series(["a", "b", NAN, "a"], dtype="object"),
    "series of numbers": lambda: pd.Series([0, 1, None, 0]),
    "series of Int64": lambda: pd.Series([0, 1, None, 0], dtype="Int64"),
    "polars": lambda: pl.Series(["a", "b", None, "a"]),
    "numbers": lambda: [0, 1, NAN, 0],
    "tensor": lambda: torch.tensor([0, 1, NAN, 0]),
    "several labels": lambda: np.array([[0, 1], [1, 0], [NAN, 0], [0, 1]]),
}


@pytest.mark.parametrize("kind", MISSING)
def test_a_missing_label_is_no_class(kind):
    labels, texts = MISSING[kind](), ["ab c", "aaa", "b b b", "xyz"]
    message = r"labelled row 2 has no label \(.+\); leave out the rows .*, [12] of 4"
    pool = ["a a", "bbbb", "c"]
    with pytest.raises(LabelError, match=message):
        select(text_encoder(), (texts, labels), pool, 2, strategy="margin")
    with pytest.raises(LabelError, match=message):
        select(MODEL, (X[:4], labels), POOL, 2, strategy="margin", classes=["a", "b", "c"])
    with pytest.raises(LabelError, match=message):
        select(MODEL, (X[:4], labels), POOL, 2, strategy="kcenter")
    for classes in (None, ["a", "b"]):
        with pytest.raises(LabelError, match=message):
            Truth(labels, classes)
    if np.ndim(labels) == 1:
        frame = pd.DataFrame({"text": texts, "label": list(labels)})
        with pytest.raises(LabelError, match=message):
            select(text_encoder(), frame, pool, 2, strategy="margin")


def test_a_class_may_be_called_nan():
    labels = ["nan", "None", "nan", "None"]
    picks = select(text_encoder(), (["a", "b", "ab", "c"], labels), ["d", "e", "f"], 2)
    assert picks.classes == ("None", "nan")


def test_how_many_labels_are_wrong_and_which_is_first():
    with pytest.raises(LabelError, match="2 are not, the first is 9 at labelled point 3"):
        select(MODEL, (X, [0, 1, 2, 9, 1, 7]), POOL, 2, strategy="grad")


@pytest.mark.parametrize(
    "name", ["margin", "least-confidence", "egl", "grad", "entropy", "badge", "powergrad"]
)
def test_several_labels_a_point_are_refused_where_one_class_is_needed(name):
    with pytest.raises(
        LabelError, match=rf"{name} is for one class a point.*6, 3.*loss='multilabel'"
    ):
        select(MODEL, (X, MULTI_HOT), POOL, 2, strategy=name)


def test_also_where_they_come_from_a_dataset():
    data = torch.utils.data.TensorDataset(X, MULTI_HOT)
    with pytest.raises(
        LabelError, match=r"got shape \(6, 3\); for several labels a point use loss="
    ):
        select(MODEL, data, POOL, 2, strategy="grad")


def test_one_class_a_point_is_refused_where_several_are_needed():
    rule = Grad(loss="multilabel")
    with pytest.raises(LabelError, match=r"zeros and ones of shape \(6, 3\), got shape \(6,\)"):
        select(MODEL, (X, Y), POOL, 2, strategy=rule)
    with pytest.raises(LabelError, match=r"between 0 and 1 .* the first is \[0, 2, 1\]"):
        select(MODEL, (X, MULTI_HOT * torch.tensor([1, 2, 1])), POOL, 2, strategy=rule)


def test_ragged_labels_are_refused():
    with pytest.raises(AskanceError, match="labels"):
        select(None, (SEEN, [[1], [1, 2], [0], [1]]), UNSEEN, 3)


def test_a_labelled_embedding_without_labels_is_refused():
    with pytest.raises(AskanceError, match=r"pass \(Embedding, y\)"):
        select(None, SEEN, UNSEEN, 3)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["cat", "dog", "cat"] * 2, r"got <U3; if they are names of classes"),
        (Y[:, None], r"shape \(6, 1\); pass y\.ravel\(\)"),
        (torch.eye(3)[Y], r"shape \(6, 3\); where they are one-hot, pass y\.argmax\(1\)"),
    ],
)
def test_labels_of_another_form_say_how_to_turn_them(labels, message):
    with pytest.raises(LabelError, match=message):
        select(MODEL, (X, labels), POOL, 2)


def test_a_labelled_list_of_arrays_is_no_labelled_set():
    with pytest.raises(LabelError, match=r"or be a tuple \(X, y\); got a list of arrays"):
        select(MODEL, [X, Y], POOL, 2)


def test_a_regression_model_is_not_told_of_multilabel():
    model = nn.Linear(4, 1)
    x, pool = torch.randn(6, 4), torch.randn(9, 4)
    with pytest.raises(LabelError, match="with fractions; for a regression pass"):
        select(model, (x, torch.randn(6)), pool, 2, strategy="grad")
    with pytest.raises(InputError, match="A regression model cannot be asked") as error:
        select(model, (x, torch.arange(6)), pool, 2, strategy="grad")
    assert "multilabel" not in str(error.value)
    with pytest.raises(
        InputError, match=r"regression model cannot be asked by this rule, .* \(a sigmoid\), use"
    ):
        select(model, None, pool, 2, strategy="margin")


def test_texts_and_batches_that_leave_points_out_are_named_as_the_cause():
    model, texts = nn.Linear(4, 3), ["a text", "b", "c"]
    for pool in (texts, np.array(texts)):
        with pytest.raises(InputError, match=r"pass what its tokenizer makes of the texts, as in"):
            select(model, None, pool, 2, strategy="entropy")
    with pytest.raises(InputError, match=r"X in \(X, y\) is a list of texts: a network takes numb"):
        select(model, (texts, [0, 1, 2]), torch.randn(5, 4), 2, strategy="grad")
    loader = DataLoader(
        TensorDataset(torch.randn(10, 4)),
        batch_size=5,
        collate_fn=lambda b: default_collate(b[:-1]),
    )
    with pytest.raises(InputError, match="held 8 points, the data has 10: a collate function or"):
        select(model, None, loader, 2, strategy="entropy")
