"""What the benchmarks share: a clock, a process's memory, new processes, and files of results."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

RESULTS = Path(__file__).resolve().parent.parent / "results"


def clocked(call: Callable[[], T]) -> tuple[float, T]:
    """The seconds of one call, and what it returned."""
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def memory() -> int:
    """The bytes this process holds."""
    return _status("VmRSS")


def peak_memory() -> int:
    """The most bytes this process has held, since it began or since `forget_peak`."""
    return _status("VmHWM")


def forget_peak() -> int:
    """Begin a new peak; returns the bytes this process holds."""
    Path("/proc/self/clear_refs").write_text("5")
    return memory()


def _status(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(field)).split()[1])


def run_script(script: str | Path, *arguments: object, tree: Path | None = None, **how: Any) -> Any:
    """Run a benchmark in a process of its own; returns the JSON it prints last.

    Args:
        tree: a source tree whose package it uses, in place of this one's.
    """
    env = os.environ | {"PYTHONPATH": str(tree.resolve() / "src")} if tree else None
    command = [sys.executable, str(script), *map(str, arguments)]
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True, **how)
    return json.loads(done.stdout.strip().splitlines()[-1])


def machine(*packages: str) -> dict[str, Any]:
    """The processor, its cores, and the versions of Python, askance and these packages."""
    import platform
    from importlib.metadata import version

    import askance
    from askance.experiments.machine import hardware

    here = hardware()
    versions = {"askance": askance.__version__, "python": platform.python_version()}
    versions |= {package: version(package) for package in packages}
    return {"cpu": here["processor"], "cores": here["cores"], "versions": versions}


def need_gpu(script: str) -> dict[str, str]:
    """The GPU and the version of torch; ends the program where there is no GPU."""
    import torch

    if not torch.cuda.is_available():
        raise SystemExit(f"benchmarks/{script}.py measures a GPU, and there is none here")
    return {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__}


def parser(doc: str | None) -> argparse.ArgumentParser:
    """A parser that describes itself by the first line of a module's docstring."""
    return argparse.ArgumentParser(description=(doc or "").splitlines()[0])


def load(path: Path) -> dict[str, Any]:
    """The results of an earlier run; empty where there was none."""
    content: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return content


def save(path: Path, results: Any, page: str | None = None, name: str = "README.md") -> None:
    """Write results as JSON, and beside them a page."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1) + "\n")
    if page is not None:
        path.with_name(name).write_text(page)
