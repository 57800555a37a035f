"""LeNet: the small network for images."""

from __future__ import annotations

from typing import final

from torch import Tensor, nn

from askance.models.head import Shape, image_channels, mlp_head
from askance.models.initial import Init, initialise


@final
class LeNet(nn.Module):
    """Two 5×5 convolutions, each followed by ReLU and a max-pool, and the MLP head.

    The maps go 32 → 28 → 14 → 10 → 5 wide, so the head is given 16·5·5 = 400 features.

    Shapes: (B, channels, 32, 32) → (B, C).

    Args:
        shape: (channels, 32, 32).
        classes: C.
        init: of the weights, see `initialise`.

    Deviations: LeCun et al. (1998) have average pooling with learnt scales, a squashing non-linearity
    and layers of 120 and 84; here they are max-pooling, ReLU, and the head's 512 and 256.
    """

    def __init__(self, shape: Shape, classes: int, init: Init = "default") -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(image_channels("lenet", shape), 6, kernel_size=5),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(6, 16, kernel_size=5),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.flatten = nn.Flatten()
        self.head = mlp_head(16 * 5 * 5, classes)
        initialise(self, init)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.flatten(self.features(images)))
