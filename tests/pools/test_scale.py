"""Ten million rows: the benchmark itself, held to its bound on memory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "pools.py"


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads memory from /proc")
def test_ten_million_rows_take_less_than_one_and_a_half_gib(tmp_path):
    """Some 6 GB of disk; how fast it is, is for a quiet machine to say."""
    command = [sys.executable, str(SCRIPT), "--turns", "1", "--out", str(tmp_path / "out")]
    subprocess.run([*command, "--folder", str(tmp_path / "pool")], check=True, capture_output=True)
    result = json.loads((tmp_path / "out" / "pools.json").read_text())
    assert result["rows"] == 10_000_000
    for measured in result["rules"].values():
        assert measured["peak_bytes"] < 1.5 * 2**30
