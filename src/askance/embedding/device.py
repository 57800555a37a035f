"""Where to compute: a device that is there."""

from __future__ import annotations

import torch

from askance.errors import InputError


def usable(device: torch.device | str) -> torch.device:
    """The device; refused where nothing can be computed there."""
    try:
        wanted = torch.device(device)
        torch.zeros(1, device=wanted).item()
    except (RuntimeError, AssertionError, TypeError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"the device {str(device)!r} cannot be used here: {reason}") from error
    return wanted


def usable_or_best(device: torch.device | str | None) -> torch.device:
    """The device; when None, CUDA where there is one."""
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    return usable(device)


def scoring_device(device: torch.device) -> torch.device:
    """Where what a model says on a device is scored: on the CPU where the device has no float64."""
    return torch.device("cpu") if device.type == "mps" else device
