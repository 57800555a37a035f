"""The published track is what its stores say, to the last digit; what is in it and what is marked."""

import re
import runpy
from importlib.metadata import version
from pathlib import Path

import pytest

from askance.experiments.formats import ResultRow
from askance.report.facts import Facts

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "benchmarks" / "pretrained_track.py"
FOLDER = ROOT / "results" / "pretrained"

pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="no results/, as in an sdist")


@pytest.fixture(scope="module")
def script():
    return runpy.run_path(str(SCRIPT))


@pytest.fixture(scope="module")
def facts(script):
    return script["read_all"](FOLDER)


def test_the_page_is_what_the_stores_say(script, facts):
    assert all(len(one.seeds) >= 10 for one in facts.experiments)
    unfinished = {store.name for store in facts.stores if store.unfinished}
    assert unfinished <= {"clinc150-minilm"}  # of which the page says so
    assert script["render"](facts) == (FOLDER / "README.md").read_text(encoding="utf-8")


def test_the_figure_is_what_the_stores_say(script, facts, tmp_path):
    """The same bytes, where it is the same release that draws them."""
    drawn = script["draw"](facts, tmp_path)
    assert {file.name for file in drawn} == {file.name for file in (FOLDER / "figures").iterdir()}
    release = f"Matplotlib v{version('matplotlib')},".encode()
    for file in drawn:
        there = (FOLDER / "figures" / file.name).read_bytes()
        if file.suffix == ".svg" and release in there:
            assert there == file.read_bytes(), file.name
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r'(?:src|srcset)="([^"]*)"', text)
    assert shown
    assert all((FOLDER / path).is_file() for path in shown)


# A track of made-up accuracies: that of `random` is half, in every round after the first.
DATASETS = {
    "sst2-minilm": "sst2", "banking77-minilm": "banking77", "pets-efficientnet": "pets",
    "sst2-minilm-cold": "sst2", "banking77-minilm-cold": "banking77",
    "banking77-minilm-rare": "banking77",
}  # fmt: skip
GAINS = {"random": 0.0, "margin": 0.02, "grad-cover": 0.05}


def made_up(more=0.0):
    """Rows in which rules gain `GAINS`, on seeds 0 to 4 `more`; macro-F1 gains twice as much."""
    return [
        ResultRow(
            name, dataset, "linear", rule, seed, number, 10 * (number + 1),
            accuracy=(0.3 if name.endswith("-cold") else 0.2) + 0.001 * seed
            if number == 0
            else 0.5 + gain + (more if seed < 5 and rule != "random" else 0.0),
            balanced_accuracy=0.4 + gain, macro_f1=0.4 + 2 * gain,
        )
        for name, dataset in DATASETS.items()
        for rule, gain in GAINS.items()
        for seed in range(10)
        for number in range(4)
    ]  # fmt: skip


def section(page, title):
    """What stands under a heading, up to the next."""
    return re.split(r"(?m)^##+ ", page.split(f" {title}\n", 1)[1])[0]


@pytest.fixture(scope="module")
def page(script):
    return script["render"](Facts(["made up"], made_up(more=0.3), []))


def test_means_leave_out_what_flatters_and_the_seeds_that_were_in_view(page):
    mean = section(page, "Over `random`, in the mean over datasets")
    assert "banking77-minilm and sst2-minilm, seeds 5-9" in mean
    assert "pets" not in mean
    assert "| grad-cover ‡ | +5.0 | +5.0 | +5.0 | +5.0 |" in mean  # not the 35 of seeds 0 to 4
    assert "| random | −2.0 |" in section(page, "Over `margin`, in the mean over datasets")


def test_what_designed_a_rule_and_what_flatters_is_marked(page):
    assert "\n### pets-efficientnet †\n" in page
    banking, sst2 = section(page, "banking77-minilm"), section(page, "sst2-minilm")
    assert "| grad-cover ‡ | +20.0 \\[8.7, 31.3\\] |" in banking
    assert "| grad-cover | +20.0" in sst2
    assert "margin ‡" not in page
    assert "`random`: 50.0% in the mean" in sst2


def test_a_start_from_no_label_has_its_own_part(page):
    cold = section(page, "From no label, over `random`, in the mean over datasets")
    assert "banking77-minilm-cold and sst2-minilm-cold, seeds 5-9" in cold
    first = section(page, "What the first batch is worth")
    assert "| sst2-minilm | 10 | 20.4% | 30.4% | +10.0 \\[9.7, 10.3\\] |" in first
    assert "cold" not in section(page, "Over `random`, in the mean over datasets")


def test_rare_classes_are_judged_by_class(page):
    rare = page.split("## Rare classes\n", 1)[1].split("\n## ", 1)[0]
    assert "### banking77-minilm-rare" in rare
    assert (
        "| grad-cover ‡ | +20.0 \\[8.7, 31.3\\] | +5.0 \\[5.0, 5.0\\] | +10.0 \\[10.0, 10.0\\] |"
        in rare
    )
    assert "-rare" not in section(page, "Over `random`, in the mean over datasets")


def test_seeds_that_not_every_rule_has_are_in_no_mean(script):
    rows = [row for row in made_up() if not (row.strategy == "margin" and row.seed == 7)]
    many = script["in_means"](Facts(["made up"], rows, []))
    assert [one.seeds for one in many] == [(5, 6, 8, 9)] * 2
