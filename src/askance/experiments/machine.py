"""What a process runs on: the hardware, the packages and the code. Never the name of the machine."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

import askance
from askance._io.processes import cores

# Those that can move a number.
PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "pillow", "pyarrow", "triton")


def hardware() -> dict[str, Any]:
    """Processor, cores this process may use, memory, GPUs and operating system."""
    gpus = range(torch.cuda.device_count()) if torch.cuda.is_available() else ()
    return {
        "processor": _processor(),
        "cores": cores(),
        "memory_gb": _memory_gb(),
        "gpus": [torch.cuda.get_device_name(i) for i in gpus],
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
    }


def packages() -> dict[str, str]:
    """The versions of the packages that can move a number, and CUDA's where torch has it."""
    versions = {}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    if torch.version.cuda:
        versions["cuda"] = torch.version.cuda
    return versions


@cache
def code_version() -> str:
    """askance's version and a digest of its source files, so that an edited copy shows: "0.1.0+3f…"."""
    folder = Path(askance.__file__).parent
    digest = blake2b(digest_size=6)
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\x00")
        digest.update(path.read_bytes() + b"\x00")
    return f"{askance.__version__}+{digest.hexdigest()}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def _memory_gb() -> float | None:
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None
    return round(total / 2**30, 1)


@dataclass(frozen=True, kw_only=True)
class Machine:
    """One process: its code and surroundings, and how it trains.

    Args:
        device: as torch names it, "cpu" or "cuda:0".
        engine: the name of the training engine.
        precision: the one in force, which may be less than asked ("tf32" is "float32" on a CPU).
        code: `code_version()`.
        hardware: processor, cores, memory_gb, gpus, system.
        packages: name to version.
        threads: those torch computes with.
    """

    device: str
    engine: str
    precision: str
    code: str = field(default_factory=code_version)
    hardware: Mapping[str, Any] = field(default_factory=hardware)
    python: str = field(default_factory=platform.python_version)
    packages: Mapping[str, str] = field(default_factory=packages)
    threads: int = field(default_factory=torch.get_num_threads)
