"""What is published is what the committed stores and studies say, to the last number."""

import re
import shutil
from importlib.metadata import version
from pathlib import Path

import pytest

from askance.cli import main
from askance.experiments import export
from askance.experiments.statistics.stages import positions
from askance.paper import SUITE, claims
from askance.paper.claims import (
    contents,
    of_studies,
    page,
    reproduction,
    sensitivity_page,
    stores,
)
from askance.paper.claims.evidence import STUDIES, gather
from askance.paper.claims.losses import block_figures
from askance.paper.claims.page import PICTURE
from askance.paper.claims.reproduction import REPRODUCTION
from askance.paper.claims.sensitivity import Choices
from askance.paper.claims.sensitivity_page import SENSITIVITY
from askance.report import markdown
from tests.paper.claims.numbers import (
    LINK,
    NAMES,
    NUMBER,
    blocks,
    intervals,
    numbers,
    slug,
    unsourced,
)

ROOT = Path(__file__).parents[3]
FOLDER = Path("results/paper")
HEADING = re.compile(r"(?m)^##+ (.*)$")
TARGET = re.compile(r"\]\((?!https?:)([^)\s]+)\)")
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
    """The paper's results, the track's and the default's, as one text: their headings differ."""
    pages = [
        (ROOT / page).read_text(encoding="utf-8")
        for page in (
            FOLDER / claims.RESULTS,
            Path("results/pretrained/README.md"),
            Path("results/default/README.md"),
        )
    ]
    titles = [slug(title) for page in pages for title in HEADING.findall(page)]
    assert len(set(titles)) == len(titles)
    return "\n".join(pages)


@pytest.fixture(scope="module")
def made(evidence):
    choices = Choices(evidence.case, evidence.variants)
    return {
        claims.RESULTS: page.render(evidence, choices),
        SENSITIVITY: sensitivity_page.render(evidence, choices),
        REPRODUCTION: reproduction.render(evidence, choices),
    }


PAGES = [claims.RESULTS, SENSITIVITY, REPRODUCTION]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_the_data_say(made, name):
    """To the last digit and sign: what is looked up in the stores is the whole text."""
    there = (ROOT / FOLDER / name).read_text(encoding="utf-8").splitlines()
    ours = made[name].splitlines()
    for line, theirs in zip(ours, there, strict=False):
        assert line == theirs
    assert len(ours) == len(there)


@pytest.mark.parametrize("name", PAGES)
def test_every_link_leads_somewhere(made, name):
    """To a file of the repository or a heading of a page."""
    headings = {other: {slug(title) for title in HEADING.findall(made[other])} for other in PAGES}
    links = TARGET.findall(made[name])
    assert links
    for link in links:
        file, _, anchor = link.partition("#")
        assert (ROOT / FOLDER / file).exists(), link
        assert not anchor or anchor in headings[file], link


def test_the_paper_is_answered_to_its_last_claim(evidence, made):
    """Every name in paper.toml is that of a claim, and every claim of the paper is in it."""
    assert reproduction.unanswered(evidence) == []
    answered = made[REPRODUCTION].partition("## Variants")[0]
    studied = of_studies.of_the_paper(evidence.studies | evidence.earlier)
    for claim in [*stores.OVERALL, *stores.PANELS, *(one.claim for one in studied)]:
        assert re.search(rf"\| {re.escape(markdown.plain(claim))}(<br>| \|)", answered), claim


def test_every_test_that_is_named_exists_and_only_cinic_10_lacks_a_figure(made):
    items = [item for section in contents.contents().section for item in section.item]
    for path in (path for item in items for path in item.tests):
        assert (ROOT / path).is_file(), path
    assert re.findall(r"(?<=<br>)[^<|]*: not here", made[REPRODUCTION]) == [
        "curves-cinic10-resnet18.svg: not here"
    ]


def test_every_figure_of_the_paper_is_drawn_in_its_arrangement(made):
    drawn = re.findall(r"(?m)^!\[(Figure \d|Table 2): [^\n]*\]\(([^)]*)\)$", made[REPRODUCTION])
    assert [number for number, _ in drawn] == [
        *(f"Figure {n}" for n in range(1, 6)), "Table 2", *(f"Figure {n}" for n in range(6, 10))
    ]  # fmt: skip
    assert all((ROOT / FOLDER / file).is_file() for _, file in drawn)


def test_every_figure_is_there_and_no_other(evidence):
    names = {f"{name}.svg" for name in evidence.facts.figures | block_figures(evidence)}
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


def test_where_the_rules_are_furthest_apart_on_poker_hands(evidence):
    """A note of paper.toml says that it is in no stage the claim is judged by."""
    (one,) = (e for e in evidence.case.experiments if e.name == "pokerhand-mlp")
    spread_T = one.only(SUITE.rules).accuracy_MST.mean(axis=1).std(axis=0)
    assert 3 < one.rounds[int(spread_T.argmax())] < 19
    assert [one.rounds[at] for at in positions(one.rounds, "mid")] == [19, 20, 21]


def test_stores_are_whole_and_small(evidence):
    for store in evidence.facts.stores:
        assert store.name in SUITE.experiments
        assert not store.unfinished
        assert (ROOT / store.path).stat().st_size < MEGABYTES * 1e6


def test_the_tidy_table_has_every_round(evidence):
    rows = export.table(ROOT / FOLDER)
    assert len(rows) == sum(len(store.records) for store in evidence.all_seeds.stores)


@pytest.mark.parametrize("name", ["README.md", "docs/findings.md"])
def test_every_number_is_in_the_results(name, results):
    """Those of findings.md must all say where they are from; README speaks of other things too."""
    text = (ROOT / name).read_text(encoding="utf-8")
    only = name == "README.md"
    assert unsourced(text, results, linked_only=only) == []
    there = [block for block in blocks(text) if LINK.search(block)]
    assert any(numbers(block) or list(intervals(block)) for block in there)


@pytest.mark.parametrize("name", ["README.md", "docs/findings.md"])
def test_a_wrong_number_is_seen(name, results):
    """Whichever it is, by its last digit or its sign."""
    text = (ROOT / name).read_text(encoding="utf-8")
    only = name == "README.md"
    seen = 0
    for block in blocks(text):
        if not LINK.search(block):
            continue
        prose = NAMES.sub(_blank, re.sub(r"\]\([^)]*\)", _blank, block))
        for match in NUMBER.finditer(prose):
            start, end = match.span()
            wrong = [block[: end - 1] + str((int(block[end - 1]) + 1) % 10) + block[end:]]
            if match[0][0] == "−":
                wrong.append(block[:start] + "+" + block[start + 1 :])
            for one in wrong:
                whole = text.replace(block, one)
                assert unsourced(whole, results, linked_only=only), f"{match[0]} in {block}"
                seen += 1
    assert seen >= 8


def _blank(match):
    return "~" * len(match[0])
