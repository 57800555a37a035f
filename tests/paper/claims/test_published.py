"""What is published is what the committed stores and studies say, to the last number."""

import re
import shutil
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from askance.cli import main
from askance.experiments import export
from askance.paper import SUITE, claims
from askance.paper.claims.evidence import STUDIES, gather
from askance.paper.claims.page import PICTURE, render
from askance.paper.claims.tables import block_figures
from tests.paper.claims.numbers import (
    LINK,
    NAMES,
    NUMBER,
    TOLD,
    blocks,
    intervals,
    numbers,
    unsourced,
)

ROOT = Path(__file__).parents[3]
FOLDER = Path("results/paper")
MEGABYTES = 2.5  # of one experiment, at most

pytestmark = pytest.mark.skipif(
    not (ROOT / FOLDER / claims.RESULTS).exists(), reason="no results/, as in an sdist"
)


@pytest.fixture(scope="module")
def evidence():
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)  # the page quotes the folder as it was given
        yield gather(FOLDER)


@pytest.fixture(scope="module")
def results():
    return (ROOT / FOLDER / claims.RESULTS).read_text(encoding="utf-8")


def test_the_page_is_what_the_data_say(evidence, results):
    made, there = render(evidence).splitlines(), results.splitlines()
    for ours, theirs in zip(made, there, strict=False):
        assert ours == theirs
    assert len(made) == len(there)


def test_every_figure_is_there_and_no_other(evidence):
    names = {f"{name}.svg" for name in (*evidence.facts.figures, *block_figures(evidence))}
    there = {path.name for path in (ROOT / FOLDER / PICTURE).parent.iterdir()}
    assert there == names | {Path(PICTURE).name}


@pytest.mark.slow
def test_one_command_makes_every_figure_again(tmp_path):
    """The same pictures; the same bytes, where it is the same release that draws them."""
    copy = tmp_path / "paper"
    shutil.copytree(ROOT / FOLDER, copy)
    pictures = {path for kind in ("svg", "png") for path in copy.rglob(f"*.{kind}")}
    before = {path: path.read_bytes() for path in pictures if path.suffix == ".svg"}
    for path in pictures - set((copy / STUDIES).glob("*")):
        path.unlink()
    assert main(["paper", "publish", str(copy)]) == 0
    assert {path for kind in ("svg", "png") for path in copy.rglob(f"*.{kind}")} == pictures
    release = f"Matplotlib v{version('matplotlib')},".encode()
    for path, content in before.items():
        assert path.read_bytes() == content or release not in content, path.name


def test_stores_are_whole_and_small(evidence):
    for store in evidence.facts.stores:
        assert store.name in SUITE.experiments
        assert not store.unfinished
        assert (ROOT / store.path).stat().st_size < MEGABYTES * 1e6


def test_the_tidy_table_has_every_round(evidence):
    rows = export.table(ROOT / FOLDER)
    assert len(rows) == sum(len(store.records) for store in evidence.everything.stores)


@pytest.mark.parametrize("page", ["README.md", "docs/findings.md"])
def test_every_number_is_in_the_results(page, results):
    """Those of findings.md must all say where they are from; README speaks of other things too."""
    text = (ROOT / page).read_text(encoding="utf-8")
    only = page == "README.md"
    assert unsourced(text, results, linked_only=only) == []
    there = [block for block in blocks(text) if LINK.search(block)]
    assert any(numbers(block) or list(intervals(block)) for block in there)


@pytest.mark.parametrize("page", ["README.md", "docs/findings.md"])
def test_a_wrong_number_would_be_seen(page, results):
    """Always one told with its interval; of others, by its last digit or its sign, most."""
    text = (ROOT / page).read_text(encoding="utf-8")
    seen = []
    for block in blocks(text):
        if not LINK.search(block):
            continue
        prose = NAMES.sub(_blank, re.sub(r"\]\([^)]*\)", _blank, block))
        told = {m.span(i) for m in TOLD.finditer(prose) for i in (1, 3, 4)}
        for match in NUMBER.finditer(prose):
            start, end = match.span()
            wrong = [block[: end - 1] + str((int(block[end - 1]) + 1) % 10) + block[end:]]
            if match[0][0] == "−":
                wrong.append(block[:start] + "+" + block[start + 1 :])
            noticed = [bool(unsourced(one, results)) for one in wrong]
            assert all(noticed) or (start, end) not in told, f"{match[0]} in {block}"
            seen += noticed
    assert np.mean(seen) > 0.85


def _blank(match):
    return "~" * len(match[0])
