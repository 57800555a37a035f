"""Frames and datasets of other libraries pick what their contents would pick."""

import datasets
import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier
from torch.utils.data import TensorDataset

import askance
from askance.errors import InputError, KindError, LabelError, UnknownError
from tests.encoders.toys import image_encoder, text_encoder

DRAWS = np.random.default_rng(0)
X = DRAWS.normal(size=(12, 3)).astype(np.float32)
POOL = DRAWS.normal(size=(40, 3)).astype(np.float32)
Y = (np.arange(12) % 3).tolist()
COLUMNS = ["a", "b", "c"]
TEXTS = ["ab c", "aaa", "b b b", "xyz"]
UNREAD = ["a a", "bbbb", "c", "aabb cc", "e e e e"]


def indexed(columns):
    """A frame whose index is not the rows' positions."""
    frame = pd.DataFrame(columns)
    return frame.set_index(frame.index + 7)


FRAMES = {"pandas": indexed, "polars": pl.DataFrame}
ALL = FRAMES | {"datasets": datasets.Dataset.from_dict}


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path_factory):
    monkeypatch.setenv("ASKANCE_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))


def columns(matrix, **more):
    return {name: matrix[:, k] for k, name in enumerate(COLUMNS)} | more


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("rule", ["grad", "margin"])
def test_a_network_takes_the_numbers_of_a_frame(model, kind, rule):
    frame = FRAMES[kind]
    expected = askance.select(model, (X, Y), POOL, 5, strategy=rule)
    whole = askance.select(
        model, frame(columns(X, label=Y)), frame(columns(POOL)), 5, strategy=rule
    )
    pairs = askance.select(
        model, (frame(columns(X)), frame({"y": Y})["y"]), frame(columns(POOL)), 5, strategy=rule
    )
    assert whole.indices.tolist() == pairs.indices.tolist() == expected.indices.tolist()
    assert type(whole.items).__module__.startswith(kind)
    np.testing.assert_array_equal(np.asarray(whole.items["a"]), POOL[expected.indices, 0])
    embedded = askance.embed(model, frame(columns(POOL)))
    assert torch.equal(embedded.logits, askance.embed(model, POOL).logits)


@pytest.mark.parametrize("kind", ALL)
def test_an_encoder_takes_the_one_column_of_texts(kind):
    frame = ALL[kind]
    expected = askance.select(text_encoder(), (TEXTS, ["p", "q"] * 2), UNREAD, 3, strategy="margin")
    labeled = frame({"text": TEXTS, "label": ["p", "q"] * 2})
    picks = askance.select(
        text_encoder(), labeled, frame({"text": UNREAD, "id": list("vwxyz")}), 3, strategy="margin"
    )
    assert picks.indices.tolist() == expected.indices.tolist()
    assert picks.classes == ("p", "q")
    assert list(picks.items["text"]) == [UNREAD[row] for row in picks]
    series = frame({"text": UNREAD})["text"]
    if kind != "datasets":
        one = askance.select(text_encoder(), labeled, series, 3, strategy="margin")
        assert one.indices.tolist() == expected.indices.tolist()


def test_a_dataset_of_images_and_named_labels():
    pixels = DRAWS.integers(0, 256, size=(10, 6, 6, 3), dtype=np.uint8)
    features = datasets.Features(
        {"image": datasets.Image(), "label": datasets.ClassLabel(names=["zebra", "ant"])}
    )
    hosted = datasets.Dataset.from_dict(
        {"image": list(pixels), "label": [0, 1] * 5}, features=features
    )
    picks = askance.select(
        image_encoder(), hosted.select(range(4)), hosted.select(range(4, 10)), 3, strategy="margin"
    )
    expected = askance.select(
        image_encoder(), (list(pixels[:4]), [0, 1] * 2), list(pixels[4:]), 3, strategy="margin"
    )
    assert picks.indices.tolist() == expected.indices.tolist()
    assert {why.pseudo_label for why in picks.explain()} <= {"zebra", "ant"}
    assert picks._repr_html_().count("<img") == 3


class Named(torch.nn.Module):
    """Takes the columns of a dataset by name, as a model of transformers does."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x)


def test_a_network_takes_the_items_of_a_dataset(model):
    labeled = datasets.Dataset.from_dict({"x": X, "label": Y}).with_format("torch")
    pool = datasets.Dataset.from_dict({"x": POOL}).with_format("torch")
    expected = askance.select(model, (X, Y), POOL, 5, strategy="grad")
    for given in (labeled, (labeled.remove_columns("label"), Y)):
        picks = askance.select(Named(model), given, pool, 5, strategy="grad")
        assert picks.indices.tolist() == expected.indices.tolist()


@pytest.mark.parametrize("kind", FRAMES)
def test_a_forest_takes_the_frame_itself(kind):
    frame = FRAMES[kind]
    forest = RandomForestClassifier(10, random_state=0).fit(frame(columns(X)), Y)
    picks = askance.select(forest, None, frame(columns(POOL)), 4, strategy="entropy")
    expected = askance.select(
        RandomForestClassifier(10, random_state=0).fit(X, Y), None, POOL, 4, strategy="entropy"
    )
    assert picks.indices.tolist() == expected.indices.tolist()


@pytest.mark.parametrize(
    ("pool", "error", "message"),
    [
        (
            lambda: pd.DataFrame({"a": [1.0], "t": ["x"]}),
            InputError,
            "columns 't' of the pool hold none",
        ),
        (
            lambda: pd.DataFrame({"a": [1.0], "id": [3]}),
            InputError,
            "'id' of the pool looks like an id",
        ),
        (lambda: pl.LazyFrame({"a": [1.0]}), InputError, r"pass its \.collect\(\)"),
        (
            lambda: datasets.DatasetDict({"train": datasets.Dataset.from_dict({"a": [1]})}),
            InputError,
            "DatasetDict of 'train'; pass one of them",
        ),
    ],
)
def test_frames_that_no_network_takes(model, pool, error, message):
    with pytest.raises(error, match=message):
        askance.select(model, None, pool(), 1, strategy="margin")


def test_frames_that_no_encoder_takes():
    two = pd.DataFrame({"title": TEXTS, "body": TEXTS})
    with pytest.raises(InputError, match=r"columns 'title', 'body' of texts.*frame\['title'\]"):
        askance.select(text_encoder(), None, two, 1)
    with pytest.raises(InputError, match="has none among 'n'"):
        askance.select(text_encoder(), None, pd.DataFrame({"n": [1, 2]}), 1)
    with pytest.raises(
        LabelError, match=r"needs a column of labels, called label, .*it has 'text'"
    ):
        askance.select(text_encoder(), pd.DataFrame({"text": TEXTS}), UNREAD, 1, strategy="margin")
    frame = pd.DataFrame({"text": TEXTS, "label": [0, 1] * 2, "y": [0, 1] * 2})
    with pytest.raises(LabelError, match="several columns of labels, 'label', 'y'"):
        askance.select(text_encoder(), frame, UNREAD, 1, strategy="margin")


def test_a_selection_is_a_frame_and_a_sequence(model):
    picks = askance.select(model, (X, Y), POOL, 12, strategy="grad")
    assert list(picks) == picks.indices.tolist()
    assert repr(picks).startswith(f"Selection(12 picks by grad: {picks.indices[0]}, ")
    assert repr(picks).endswith(", …)")
    for library, kind in (("pandas", pd.DataFrame), ("polars", pl.DataFrame)):
        frame = picks.to_frame(library)
        assert isinstance(frame, kind)
        assert list(frame["position"]) == list(picks)
        assert list(frame["score"]) == picks.scores.tolist()
        assert list(frame["grad_norm"]) == [why.grad_norm for why in picks.explain()]
    with pytest.raises(UnknownError, match="unknown library 'arrow'"):
        picks.to_frame("arrow")


def test_a_frame_of_a_library_that_is_not_there(model, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "polars", None)
    picks = askance.select(model, None, POOL, 2, strategy="margin")
    with pytest.raises(KindError, match="polars is not installed"):
        picks.to_frame("polars")


@pytest.mark.parametrize(
    "pool", [["<b>a</b>", "b b"], np.zeros((2, 3)), TensorDataset(torch.zeros(2, 3))]
)
def test_a_notebook_shows_texts_and_escapes_them(pool):
    texts = isinstance(pool, list)
    first = torch.nn.Linear(3, 2)
    picks = askance.select(
        text_encoder() if texts else first,
        None,
        pool,
        2,
        strategy="maxherding" if texts else "margin",
    )
    shown = picks._repr_html_()
    assert "2 picks by" in shown
    assert "<b>a</b>" not in shown
    assert ("&lt;b&gt;a&lt;/b&gt;" in shown) is texts
    assert shown.count("<tr>") == 3


def test_images_are_shown_whatever_their_form(tmp_path):
    from PIL import Image

    picture = Image.new("RGB", (300, 200), (200, 10, 10))
    picture.save(tmp_path / "a.png")
    forms = [[picture] * 2, [tmp_path / "a.png"] * 2, [(tmp_path / "a.png").read_bytes()] * 2]
    for form in forms:
        with pytest.warns(askance.errors.SelectionWarning):
            picks = askance.select(image_encoder(), None, form, 2)
        assert picks._repr_html_().count("<img src='data:image/png;base64,") == 2
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(48, 2))
    picks = askance.select(net, None, torch.rand(5, 3, 4, 4), 3, strategy="margin")
    assert picks._repr_html_().count("<img") == 3


def test_what_was_done_is_logged(model, caplog):
    with caplog.at_level("DEBUG", "askance"):
        askance.select(model, (X, Y), POOL, 4, strategy="badge", exclude=[1, 2])
    levels = [record.levelname for record in caplog.records]
    said = [record.message for record in caplog.records]
    assert levels.count("INFO") == 1
    assert any(
        text.startswith("badge picked 4 of 40 rows in") and "2 of them excluded" in text
        for text in said
    )
    assert any("badge needs features, logits; model Sequential on cpu" in text for text in said)


def test_progress_shows_the_encoder_too(capsys):
    askance.select(text_encoder(), None, UNREAD, 2, progress=True)
    out = capsys.readouterr()
    assert "Traceback" not in out.err


def test_the_picked_items_have_no_labels(model):
    frame = pd.DataFrame(columns(POOL, label=[0] * 40))
    assert list(askance.select(model, (X, Y), frame, 3).items.columns) == COLUMNS
    items = askance.select(
        Named(model), None, {"x": POOL, "y": [object()] * 40}, 3, strategy="margin"
    )
    assert list(items.items) == ["x"]
    dataset = TensorDataset(torch.from_numpy(POOL))
    assert askance.select(model, (X, Y), dataset, 3).items is None
