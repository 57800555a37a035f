"""How the machine computes while training: determinism, TF32, bfloat16, put back afterwards."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from askance.embedding.guard import default_dtype
from askance.training.recipe import Precision, check_precision


@contextmanager
def numerics(
    device: torch.device, precision: Precision, deterministic: bool = True
) -> Iterator[None]:
    """Compute on `device` in `precision`, with the same result each time where `deterministic`.

    A CPU computes float32 for "tf32": it has no such unit. A network that makes tensors without a dtype
    makes float32 ones, whatever PyTorch's default.
    """
    check_precision(precision)
    if deterministic and device.type == "cuda":
        # cuBLAS reads this when its first handle is made.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    cudnn = torch.backends.cudnn
    matmul, conv = torch.get_float32_matmul_precision(), cudnn.allow_tf32
    algorithms = torch.get_deterministic_debug_mode()
    flags = cudnn.deterministic, cudnn.benchmark
    filling: Any = torch.utils.deterministic
    fill = filling.fill_uninitialized_memory
    tf32 = precision in ("tf32", "bf16")
    try:
        torch.set_float32_matmul_precision("high" if tf32 else "highest")
        cudnn.allow_tf32 = tf32
        # Not `use_deterministic_algorithms`, which imports a compiler. A CPU needs neither.
        mode = "error" if deterministic and device.type == "cuda" else "default"
        torch.set_deterministic_debug_mode(mode)
        cudnn.deterministic, cudnn.benchmark = deterministic, not deterministic
        # Nothing here reads what it has not written; filling it first would cost a tenth of a step.
        filling.fill_uninitialized_memory = False
        bf16 = torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16")
        with default_dtype(torch.float32), bf16:
            yield
    finally:
        torch.set_float32_matmul_precision(matmul)
        cudnn.allow_tf32 = conv
        torch.set_deterministic_debug_mode(algorithms)
        cudnn.deterministic, cudnn.benchmark = flags
        filling.fill_uninitialized_memory = fill
