"""Encoders in ONNX files."""

import numpy as np
import pytest
import torch

from askance import encoders
from askance.errors import DataError
from tests.encoders.test_huggingface import IMAGES, WORDS

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
transformers = pytest.importorskip("transformers")


def saved(path, inputs, nodes, output, weights=()):
    graph = onnx.helper.make_graph(
        nodes, "encoder", inputs, [onnx.helper.make_tensor_value_info("out", 1, output)], weights
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    model.ir_version = 9
    onnx.save(model, path)


def value(name, kind, shape):
    return onnx.helper.make_tensor_value_info(name, kind, shape)


def test_texts_are_the_mean_over_their_tokens(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS))
    transformers.BertTokenizer(str(tmp_path / "vocab.txt")).save_pretrained(tmp_path)
    table = np.random.default_rng(0).normal(size=(len(WORDS), 5)).astype(np.float32)
    saved(
        tmp_path / "model.onnx",
        [value("input_ids", 7, ["B", "T"]), value("attention_mask", 7, ["B", "T"])],
        [onnx.helper.make_node("Gather", ["table", "input_ids"], ["out"])],
        ["B", "T", 5],
        [onnx.numpy_helper.from_array(table, "table")],
    )
    encoded = encoders.encode(f"onnx:{tmp_path / 'model.onnx'}", ["a cat", "dog"])
    expected = [table[[2, 4, 5, 3]].mean(axis=0), table[[2, 6, 3]].mean(axis=0)]
    np.testing.assert_allclose(encoded.features, expected, atol=1e-6)


def test_images_are_the_mean_over_places(tmp_path):
    processor = transformers.ViTImageProcessor(size={"height": 8, "width": 8})
    processor.save_pretrained(tmp_path)
    saved(
        tmp_path / "model.onnx",
        [value("pixels", 1, ["B", 3, 8, 8])],
        [onnx.helper.make_node("Relu", ["pixels"], ["out"])],
        ["B", 3, 8, 8],
    )
    encoded = encoders.encode(f"onnx:{tmp_path / 'model.onnx'}", IMAGES)
    pixels = transformers.AutoImageProcessor.from_pretrained(tmp_path)(
        images=IMAGES, return_tensors="pt"
    )["pixel_values"]
    np.testing.assert_allclose(encoded.features, torch.relu(pixels).mean(dim=(2, 3)), atol=1e-6)


def test_what_is_missing_is_said(tmp_path):
    with pytest.raises(DataError, match="there is no such file"):
        encoders.get(f"onnx:{tmp_path / 'model.onnx'}")
    (tmp_path / "model.onnx").write_bytes(b"x")
    with pytest.raises(DataError, match="neither is there"):
        encoders.get(f"onnx:{tmp_path / 'model.onnx'}")
    (tmp_path / "preprocessor_config.json").write_text("{}")
    with pytest.raises(DataError, match="not a model that onnxruntime reads"):
        encoders.get(f"onnx:{tmp_path / 'model.onnx'}")
