"""What is committed stays small enough to travel."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MOST_MB = 30


def test_tracked_files_are_under_30_megabytes():
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    sizes = {
        name: (ROOT / name).stat().st_size for name in listed.stdout.decode().split("\0") if name
    }
    total = sum(sizes.values()) / 1e6
    largest = sorted(sizes, key=sizes.__getitem__)[-5:]
    assert total < MOST_MB, f"{total:.1f} MB are tracked, the largest are {largest}"
