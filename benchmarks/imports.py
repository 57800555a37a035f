"""How long `import askance` takes, beside `import torch`: fresh processes, turn by turn.

python benchmarks/imports.py            # ten turns
"""

from __future__ import annotations

import platform
import statistics
import subprocess
import sys

import torch

TURNS = 10
TIMED = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"


def seconds(module: str) -> float:
    command = [sys.executable, "-c", TIMED.format(module)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    for module in ("torch", "askance"):  # files into memory, bytecode onto the disk
        seconds(module)
    pairs = [(seconds("torch"), seconds("askance")) for _ in range(TURNS)]
    ratios = [ours / theirs for theirs, ours in pairs]
    for name, times in zip(("torch", "askance"), zip(*pairs, strict=True), strict=True):
        middle = statistics.median(times)
        print(f"import {name}: median {middle:.2f} s, {min(times):.2f} to {max(times):.2f}")
    print(
        f"ratio: median {statistics.median(ratios):.2f}, {min(ratios):.2f} to {max(ratios):.2f} "
        f"(n = {TURNS}, torch {torch.__version__}, Python {platform.python_version()})"
    )


if __name__ == "__main__":
    main()
