"""The published track is what its stores say, to the last digit."""

import runpy
from pathlib import Path

import pytest

from askance.report.facts import read

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "results" / "pretrained"

pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="no results/, as in an sdist")


def test_the_page_is_what_the_stores_say():
    render = runpy.run_path(str(ROOT / "benchmarks" / "pretrained_track.py"))["render"]
    facts = read(FOLDER)
    assert all(len(one.seeds) >= 10 for one in facts.experiments)
    assert not any(store.unfinished for store in facts.stores)
    assert render(facts) == (FOLDER / "README.md").read_text(encoding="utf-8")
