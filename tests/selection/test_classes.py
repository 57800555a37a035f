"""Labels, limits and explanations have the names of the user's classes."""

import numpy as np
import pytest
import torch

import askance
from askance.errors import InputError, LabelError, UnknownError
from askance.strategies import Entropy
from tests.encoders.toys import text_encoder

CLASSES = ["dog", "cat", "ant"]  # in the order of the model's outputs, which no alphabet gives
DRAWS = np.random.default_rng(0)
X = torch.from_numpy(DRAWS.normal(size=(12, 4))).float()
POOL = torch.from_numpy(DRAWS.normal(size=(60, 4))).float()
NUMBERS = np.arange(12) % 3
NAMES = [CLASSES[number] for number in NUMBERS]


@pytest.fixture
def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))


@pytest.mark.parametrize("form", [list, np.array, lambda y: np.array(y, object)])
@pytest.mark.parametrize("rule", ["grad", "badge", "margin"])
def test_labels_that_are_names_pick_as_their_numbers_do(model, form, rule):
    by_number = askance.select(model, (X, NUMBERS), POOL, 5, strategy=rule)
    named = askance.select(model, (X, form(NAMES)), POOL, 5, strategy=rule, classes=CLASSES)
    assert named.indices.tolist() == by_number.indices.tolist()
    said = [CLASSES[why.pseudo_label] for why in by_number.explain()]
    assert [why.pseudo_label for why in named.explain()] == said
    assert named.classes == ("dog", "cat", "ant")
    assert by_number.classes is None


def test_limits_are_of_names(model):
    limits = {"groups": "predicted", "at_most": {"cat": 1, "dog": 2}, "classes": CLASSES}
    picks = askance.select(model, (X, NAMES), POOL, 5, strategy="margin", **limits)
    said = [why.pseudo_label for why in picks.explain()]
    assert said.count("cat") <= 1
    assert said.count("dog") <= 2
    with pytest.raises(
        UnknownError, match="'bee', which the pool does not have; it has 'dog', 'cat'"
    ):
        askance.select(
            model, None, POOL, 5, strategy="margin", groups="predicted", at_most={"bee": 1},
            classes=CLASSES,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("classes", "error", "message"),
    [
        (["dog", "cat"], LabelError, "the classes are 'dog', 'cat'; the labels also have 'ant'"),
        ([*CLASSES, "bee"], InputError, "4 names of classes .* has 3 outputs"),
        (["dog", "dog", "ant"], InputError, "different names, 'dog' comes twice"),
        ("dog", InputError, "must be the names of all classes"),
        ([0, 1, 2], InputError, "must be the names of all classes"),
        (None, LabelError, r"say which output of the model is which: classes="),
    ],
)
def test_names_that_cannot_be(model, classes, error, message):
    with pytest.raises(error, match=message):
        askance.select(model, (X, NAMES), POOL, 5, strategy="grad", classes=classes)


def test_an_encoder_takes_labels_as_names_whatever_order_they_came_in():
    texts, pool = ["ab c", "aaa", "b b b", "xyz"], ["a a", "bbbb", "c", "aabb cc", "e e e e"]
    said = []
    for order in ([0, 1, 2, 3], [3, 1, 0, 2]):
        names = np.array(["zoo", "money", "zoo", "art"])[order]
        items = [texts[row] for row in order]
        picks = askance.select(text_encoder(), (items, names), pool, 5, strategy="entropy")
        assert picks.classes == ("art", "money", "zoo")
        said.append({why.index: why.pseudo_label for why in picks.explain()})
    assert said[0] == said[1]
    wider = askance.select(
        text_encoder(), (texts, ["zoo", "money"] * 2), pool, 2, strategy=Entropy(),
        classes=["zoo", "art", "money"], groups="predicted", at_most={"art": 1},
    )  # fmt: skip
    assert {why.pseudo_label for why in wider.explain()} <= {"zoo", "money"}
