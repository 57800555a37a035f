"""Encoders in ONNX files, with the tokenizer or image processor beside them, as Optimum writes them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from askance.encoders.encoder import Encoder, Prepared, digest_of
from askance.encoders.huggingface import mean_over_tokens, tokenized
from askance.errors import DataError, ExtraError, InputError

_TEXT, _IMAGE = "tokenizer.json", "preprocessor_config.json"


def onnx_file(path: Path) -> Encoder:
    """The encoder in an ONNX file; `tokenizer.json` or `preprocessor_config.json` lies beside it.

    Its first output is the features (B, D); or (B, T, D), of which the mean over a text's tokens is
    taken; or (B, D, H, W), of which the mean over all places is taken.
    """
    path = path.expanduser()
    if not path.is_file():
        raise DataError(f"encoder 'onnx:{path}': there is no such file")
    beside = [name for name in (_TEXT, _IMAGE) if (path.parent / name).exists()]
    if len(beside) != 1:
        raise DataError(
            f"{path}: beside the file there must be {_TEXT} (of an encoder of texts) or {_IMAGE} (of "
            f"images), {'both are' if beside else 'neither is'} there; put the one that belongs to it "
            f"into its folder"
        )
    return OnnxEncoder(path, "text" if beside == [_TEXT] else "image")


class OnnxEncoder(Encoder):
    """A session of onnxruntime; it computes on the CPU."""

    def __init__(self, path: Path, kind: Any) -> None:
        try:
            import onnxruntime
            import transformers
        except ImportError as error:
            raise ExtraError.of(error.name or "onnxruntime", "encoders") from error
        self.name, self.kind = f"onnx:{path}", kind
        beside = path.parent / (_TEXT if kind == "text" else _IMAGE)
        self.digest = digest_of(path.read_bytes(), beside.read_bytes())
        try:
            self._session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        except Exception as error:  # of onnxruntime, which has a class for every status
            raise DataError(f"{path}: not a model that onnxruntime reads ({error})") from error
        self._inputs = [each.name for each in self._session.get_inputs()]
        if kind == "text":
            self._tokenizer = transformers.AutoTokenizer.from_pretrained(path.parent)
            self._longest = min(self._tokenizer.model_max_length, 512)
        else:
            self._processor = transformers.AutoImageProcessor.from_pretrained(
                path.parent, use_fast=False
            )
        probe = "text" if kind == "text" else np.zeros((32, 32, 3), dtype=np.uint8)
        self.dimension = self.features(self.prepare([self.load(probe)]).inputs).shape[1]

    def prepare(self, loaded: Sequence[Any]) -> Prepared:
        if self.kind == "image":
            pixels = self._processor(images=list(loaded), return_tensors="pt")["pixel_values"]
            return Prepared({self._inputs[0]: pixels})
        return tokenized(self._tokenizer, loaded, self._longest)

    def features(self, inputs: Any) -> Tensor:
        arrays = {name: inputs[name].cpu().numpy() for name in self._inputs if name in inputs}
        output = torch.from_numpy(self._session.run(None, arrays)[0])
        if output.ndim == 4:
            return output.mean(dim=(2, 3))
        if output.ndim == 3 and self.kind == "text":
            return mean_over_tokens(output, inputs["attention_mask"].cpu())
        if output.ndim != 2:
            raise InputError(
                f"{self.name}: the first output must be (B, D), (B, T, D) of texts or (B, D, H, W), "
                f"got shape {tuple(output.shape)}; export the model with pooled features"
            )
        return output
