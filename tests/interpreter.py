"""Our Triton kernels, compiled where there is a GPU, and interpreted on the CPU where there is none."""

import os
from types import ModuleType

import pytest
import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"  # read when Triton is first imported, by whatever test


def compiled_or_interpreted(name: str) -> ModuleType:
    """A module of kernels, by its whole name; its tests are skipped without Triton."""
    module: ModuleType = pytest.importorskip(
        name, reason="Triton is not installed", exc_type=ImportError
    )
    return module
