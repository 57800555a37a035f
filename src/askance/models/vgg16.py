"""VGG-16 for 32×32 images."""

from __future__ import annotations

from typing import final

from torch import Tensor, nn

from askance.errors import InputError
from askance.models.head import Shape, image_channels, mlp_head
from askance.models.initial import Init, initialise

# Configuration D of Simonyan & Zisserman (2015): the widths of the 3×3 convolutions between max-pools.
_CONFIGURATION_D = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))


@final
class VGG16(nn.Module):
    """Thirteen 3×3 convolutions in five blocks, a max-pool after each, and the MLP head.

    Five halvings bring a 32×32 image to 1×1, so the head is given 512 features. The last block works
    on 2×2 maps: batch-norm has four values a channel even in a mini-batch of one.

    Shapes: (B, channels, 32, 32) → (B, C).

    Args:
        shape: (channels, 32, 32).
        classes: C.
        batch_norm: normalise after each convolution. Without it, from random weights and in
            mini-batches of 8, the network was seen not to leave its starting loss.
        init: of the weights, see `initialise`.

    Deviations: the published network has no batch-norm, and a classifier of 4096, 4096 and C with
    dropout. Its weights began from a shallower, trained network; here they are PyTorch's default
    initialisation unless `init` says otherwise. Before batch-norm, which takes any mean
    out again, convolutions have no bias.
    """

    def __init__(
        self, shape: Shape, classes: int, batch_norm: bool = True, init: Init = "default"
    ) -> None:
        super().__init__()
        if not isinstance(batch_norm, bool):
            raise InputError(f"batch_norm must be True or False, got {batch_norm!r}")
        width = image_channels("vgg16", shape)
        layers: list[nn.Module] = []
        for block in _CONFIGURATION_D:
            for wider in block:
                layers.append(nn.Conv2d(width, wider, 3, padding=1, bias=not batch_norm))
                layers += [nn.BatchNorm2d(wider)] if batch_norm else []
                layers.append(nn.ReLU())
                width = wider
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers)
        self.flatten = nn.Flatten()
        self.head = mlp_head(width, classes)
        initialise(self, init)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.flatten(self.features(images)))
