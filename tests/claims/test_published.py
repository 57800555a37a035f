"""What is published is what the committed stores and studies say, to the last number."""

import shutil
from pathlib import Path

import pytest

from askance import claims
from askance.bench import export
from askance.claims.evidence import STUDIES, SUITE, gather
from askance.claims.page import PICTURE, render
from askance.cli import main
from tests.claims.numbers import NUMBER, blocks, numbers, unsourced

ROOT = Path(__file__).parents[2]
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
    names = {f"{name}.svg" for name in evidence.facts.figures}
    there = {path.name for path in (ROOT / FOLDER / PICTURE).parent.iterdir()}
    assert there == names | {Path(PICTURE).name}


@pytest.mark.slow
def test_one_command_makes_every_figure_again(tmp_path):
    copy = tmp_path / "paper"
    shutil.copytree(ROOT / FOLDER, copy)
    pictures = {path for kind in ("svg", "png") for path in copy.rglob(f"*.{kind}")}
    for path in pictures - set((copy / STUDIES).glob("*")):
        path.unlink()
    assert main(["report", str(copy), "--out", str(tmp_path / "report.html")]) == 0
    assert {path for kind in ("svg", "png") for path in copy.rglob(f"*.{kind}")} == pictures


def test_stores_are_whole_and_small(evidence):
    for store in evidence.facts.stores:
        assert store.name in SUITE
        assert not store.unfinished
        assert (ROOT / store.path).stat().st_size < MEGABYTES * 1e6


def test_the_tidy_table_has_every_round(evidence):
    rows = export.table(ROOT / FOLDER)
    assert len(rows) == sum(len(store.records) for store in evidence.facts.stores)


@pytest.mark.parametrize("page", ["README.md", "docs/findings.md"])
def test_every_number_is_in_the_results(page, results):
    """Those of findings.md must all say where they are from; README speaks of other things too."""
    text = (ROOT / page).read_text(encoding="utf-8")
    only = page == "README.md"
    assert unsourced(text, results, linked_only=only) == []
    there = [block for block in blocks(text) if "RESULTS.md#" in block and numbers(block)]
    assert there, f"{page} has no number of the results"
    for block in there:  # and the check would see a wrong one
        wrong = NUMBER.sub("98765.4321", block)
        assert unsourced(wrong, results, linked_only=only)
