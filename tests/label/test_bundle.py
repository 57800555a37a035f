"""A model's file: what it names is not run unless the caller trusts it."""

import json
import sys

import numpy as np
import pytest
from PIL import Image
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn

from askance import models
from askance.errors import DataError, InputError
from askance.label import load
from askance.label.bundle import Bundle, encoder_for
from askance.seeding import Draws

VECTORS = np.arange(12, dtype=np.float32).reshape(4, 3) ** 1.5

PAYLOAD = """
import pathlib
import torch

pathlib.Path(__file__).with_name("mark").write_text("imported")

def net(shape, classes):
    return torch.nn.Linear(shape[0], classes)
"""


@pytest.fixture
def payload(tmp_path, monkeypatch):
    """The mark that the module `payload` leaves beside itself when it is imported."""
    (tmp_path / "payload.py").write_text(PAYLOAD)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "payload", raising=False)
    yield tmp_path / "mark"
    sys.modules.pop("payload", None)


@pytest.fixture
def file(tmp_path):
    """A sound file of an `mlp`."""
    path = tmp_path / "model.safetensors"
    model = models.build("mlp", (3,), 2, Draws())
    Bundle(model, "mlp", ("a", "b"), encoder_for("features", VECTORS)).save(path)
    return path


def rewritten(path, **header):
    """The same tensors under another header."""
    with safe_open(path, framework="pt") as read:
        card = json.loads(read.metadata()["askance"]) | header
        tensors = {key: read.get_tensor(key) for key in read.keys()}  # noqa: SIM118
    save_file(tensors, path, {"askance": json.dumps(card)})
    return path


def test_images_are_given_as_files_or_as_bytes(tmp_path):
    images = np.arange(2 * 32 * 32 * 3, dtype=np.uint32).reshape(2, 32, 32, 3).astype(np.uint8)
    files = [tmp_path / f"{row}.png" for row in range(2)]
    for file, image in zip(files, images, strict=True):
        Image.fromarray(image).save(file)
    model = models.build("lenet", (3, 32, 32), 2, Draws()).eval()
    path = tmp_path / "model.safetensors"
    Bundle(model, "lenet", ("a", "b"), encoder_for("image", images)).save(path)
    of_files, of_bytes = (load(path).predict(items) for items in (files, images))
    assert of_files[0] == of_bytes[0]
    assert np.array_equal(of_files[1], of_bytes[1])


def test_a_file_that_names_code_runs_none(tmp_path, payload):
    path = tmp_path / "model.safetensors"
    encoder = encoder_for("features", VECTORS)
    bundle = Bundle(nn.Linear(3, 2), "payload:net", ("a", "b"), encoder)
    bundle.save(path)
    with pytest.raises(InputError, match=r"expected one of .*'payload:net'.*trust=True") as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert not payload.exists()
    assert "payload" not in sys.modules
    trusted = load(path, trust=True)
    assert payload.read_text() == "imported"
    assert trusted.predict(VECTORS)[0] == bundle.predict(VECTORS)[0]
    assert "trust=True" in trusted.card()["load"]


def test_one_of_our_networks_needs_no_trust(file):
    assert load(file).predict(VECTORS)[0] == load(file, trust=True).predict(VECTORS)[0]
    assert "trust" not in load(file).card()["load"]


@pytest.mark.parametrize("name", ["os:system", "", None, 7, ["mlp"], "../mlp"])
def test_any_other_network_is_refused(file, name):
    with pytest.raises(InputError, match="expected one of askance's own networks"):
        load(rewritten(file, model=name))


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"shape": [10**12]}, r"inputs of shape \[3\] and a network for \[1000000000000\]"),
        ({"kind": "pickle"}, "kind must be image, text or features, got 'pickle'"),
        ({"kind": "text"}, "KeyError: 'words'"),
        ({"classes": None}, "does not fit"),
        ({"classes": ["a", "b", "c"]}, "expected the weights of mlp for 3 classes"),
        ({"form": "other"}, "not a model that askance label exported"),
    ],
)
def test_a_header_that_does_not_fit_is_told(file, header, message):
    with pytest.raises(DataError, match=message):
        load(rewritten(file, **header))


def test_a_header_that_is_no_object(file):
    with safe_open(file, framework="pt") as read:
        tensors = {key: read.get_tensor(key) for key in read.keys()}  # noqa: SIM118
    for text in ("[]", "{", '"askance-label-1"'):
        save_file(tensors, file, {"askance": text})
        with pytest.raises(DataError, match="safetensors file"):
            load(file)
