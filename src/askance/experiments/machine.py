"""What a process runs on: the hardware, the packages and the code, and never whose machine it is."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Machine:
    """One process: its code and surroundings, and how it trains.

    Args:
        code: `code_version()`.
        hardware: processor, cores, memory_gb, gpus, system.
        packages: name to version.
        device: as torch names it, "cpu" or "cuda:0".
        engine: the name of the training engine.
        precision: the one in force, which may be less than asked ("tf32" is "float32" on a CPU).
        threads: those torch computes with.
    """

    code: str
    hardware: Mapping[str, Any]
    python: str
    packages: Mapping[str, str]
    device: str
    engine: str
    precision: str
    threads: int

    @classmethod
    def here(cls, *, device: str, engine: str, precision: str) -> Machine:
        """This process."""
        return cls(
            code=code_version(),
            hardware=hardware(),
            python=platform.python_version(),
            packages=packages(),
            device=device,
            engine=engine,
            precision=precision,
            threads=torch.get_num_threads(),
        )

    def to_row(self) -> dict[str, Any]:
        """As the table `machine` holds it."""
        return vars(self) | {
            "hardware": json.dumps(self.hardware),
            "packages": json.dumps(self.packages),
        }


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
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    if torch.version.cuda:
        found["cuda"] = torch.version.cuda
    return found


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
