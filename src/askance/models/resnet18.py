"""ResNet-18 for 32×32 images."""

from __future__ import annotations

from typing import Literal, final

import torch
from torch import Tensor, nn

from askance.errors import InputError, UnknownError
from askance.models.head import Shape, image_channels, mlp_head
from askance.models.initial import Init, initialise

Stem = Literal["cifar", "imagenet"]

_WIDTHS = (64, 128, 256, 512)


@final
class ResNet18(nn.Module):
    """A stem, four stages of two basic blocks, global average pooling, and the MLP head.

    The last stage works on maps an eighth of the stem's output wide: 4×4 after the 3×3 stem, which is
    enough for batch-norm whatever the mini-batch, and 1×1 after the ImageNet stem. There a
    mini-batch of one leaves batch-norm a single value a channel, whose variance does not exist, so
    that network refuses to train on one. Evaluation takes any batch.

    Shapes: (B, channels, 32, 32) → (B, C).

    Args:
        shape: (channels, 32, 32).
        classes: C.
        stem: "cifar", a 3×3 convolution that keeps the image's size; or "imagenet", a 7×7 one of
            stride 2 and a max-pool, which leave a quarter of its width.
        init: of the weights, see `initialise`.

    Deviations: He et al. (2016) have the ImageNet stem, a single linear layer after the pooling, and
    Kaiming's initialisation; the stem and the initialisation are options here.
    """

    def __init__(
        self, shape: Shape, classes: int, stem: Stem = "cifar", init: Init = "default"
    ) -> None:
        super().__init__()
        self.stem = _stem(stem, image_channels("resnet18", shape))
        blocks: list[nn.Module] = []
        width = _WIDTHS[0]
        for stage, wider in enumerate(_WIDTHS):
            blocks += [BasicBlock(width, wider, stride=2 if stage else 1), BasicBlock(wider, wider)]
            width = wider
        self.blocks = nn.Sequential(*blocks)
        self.pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.head = mlp_head(width, classes)
        self._needs_two = stem == "imagenet"
        initialise(self, init)

    def forward(self, images: Tensor) -> Tensor:
        if self._needs_two and self.training and len(images) == 1:
            raise InputError(
                "resnet18 with stem='imagenet' needs 2 or more points in a mini-batch to train on, got "
                "1: its last maps are 1×1, so batch-norm has no variance to take; choose a batch size "
                "that leaves no single point over, or use stem='cifar'"
            )
        return self.head(self.pool(self.blocks(self.stem(images))))


@final
class BasicBlock(nn.Module):
    """relu(F(x) + shortcut(x)), F two 3×3 convolutions with batch-norm, a ReLU between them.

    The shortcut is x itself, or a 1×1 convolution with batch-norm where the size changes.

    Shapes: (B, width, H, W) → (B, wider, H/stride, W/stride).
    """

    def __init__(self, width: int, wider: int, stride: int = 1) -> None:
        super().__init__()
        self.residual = nn.Sequential(
            nn.Conv2d(width, wider, kernel_size=3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(wider),
            nn.ReLU(),
            nn.Conv2d(wider, wider, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(wider),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or width != wider:
            self.shortcut = nn.Sequential(
                nn.Conv2d(width, wider, kernel_size=1, stride=stride, bias=False),
                nn.BatchNorm2d(wider),
            )

    def forward(self, maps: Tensor) -> Tensor:
        return torch.relu(self.residual(maps) + self.shortcut(maps))


def _stem(stem: Stem, channels: int) -> nn.Sequential:
    width = _WIDTHS[0]
    if stem == "cifar":
        return nn.Sequential(
            nn.Conv2d(channels, width, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
        )
    if stem == "imagenet":
        return nn.Sequential(
            nn.Conv2d(channels, width, kernel_size=7, stride=2, padding=3, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.MaxPool2d(kernel_size=3, stride=2, padding=1),
        )
    raise UnknownError.of("stem of resnet18", stem, ("cifar", "imagenet"))
