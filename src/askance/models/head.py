"""The classifier that all networks share, and the check of an image's shape."""

from __future__ import annotations

from torch import nn

from askance.errors import InputError

Shape = tuple[int, ...]

IMAGE_SIDE = 32


def mlp_head(features: int, classes: int) -> nn.Sequential:
    """features → 512 → ReLU → 256 → ReLU → C; the last layer is the classifier.

    It takes the place of the published networks' own classifiers, so that the rules see the same
    256-wide features whatever is underneath.

    Shapes: (B, features) → (B, C).
    """
    return nn.Sequential(
        nn.Linear(features, 512),
        nn.ReLU(),
        nn.Linear(512, 256),
        nn.ReLU(),
        nn.Linear(256, classes),
    )


def image_channels(network: str, shape: Shape) -> int:
    """The channels of a (channels, 32, 32) image; any other shape is refused."""
    if len(shape) != 3 or shape[1:] != (IMAGE_SIDE, IMAGE_SIDE):
        raise InputError(
            f"{network} needs images of shape (channels, {IMAGE_SIDE}, {IMAGE_SIDE}), got {shape}; "
            f"resize the images, or use mlp, which takes any shape"
        )
    return shape[0]
