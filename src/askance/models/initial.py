"""Initial weights: how askance's own networks are drawn before training."""

from __future__ import annotations

from typing import Literal

from torch import nn

from askance.errors import UnknownError

Init = Literal["default", "kaiming", "torchvision"]


def initialise(model: nn.Module, init: Init) -> None:
    """Draw the weights of a network anew, in place, from PyTorch's global generator.

    - "default": as PyTorch made them, uniform in ±1/√fan_in. Nothing is drawn.
    - "kaiming": normal with variance 2/fan, biases zero (He et al. 2015); fan is fan_out for
      convolutions, fan_in for linear layers. Signals keep their size through any number of ReLUs, so a
      network learns from inputs as small as TF-IDF rows of length 1.
    - "torchvision": convolutions by "kaiming", the head by "default": what torchvision's VGG and ResNet
      with a new classifier start from.
    """
    if init not in ("default", "kaiming", "torchvision"):
        raise UnknownError.of("init", init, ("default", "kaiming", "torchvision"))
    if init == "default":
        return
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
        elif isinstance(layer, nn.Linear) and init == "kaiming":
            nn.init.kaiming_normal_(layer.weight, mode="fan_in", nonlinearity="relu")
        else:
            continue
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)
