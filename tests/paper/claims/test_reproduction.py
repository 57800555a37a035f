"""REPRODUCTION.md, SENSITIVITY.md, the table of training and runs of variants, of worlds made up."""

from dataclasses import replace

import numpy as np
import pytest

from askance.errors import SpecError
from askance.experiments import export
from askance.paper import claims
from askance.paper.claims import contents, guard, reproduction, sensitivity_page, stated
from askance.paper.claims.evidence import gather
from askance.paper.claims.judge import UNJUDGED
from askance.paper.claims.sensitivity import Choices, left_out, readings
from askance.paper.claims.variant_runs import read_variants, swapped
from askance.paper.suite import RULES, SUITE
from tests.experiments.statistics.worlds import noise, rows
from tests.paper.claims.worlds import picks
from tests.report.worlds import spec, store

NAMES = ("isolet-mlp", "pokerhand-mlp", "svhn-lenet", "stl10-lenet", "gtsrb-lenet", "cifar10-lenet")
PLAN = 'seeds = "5-14"\nexploratory = "0-4"\nvariants = "../variants"\n'


def of_seeds(name, seeds, lifts, number=0, flagged=(), rounds=5):
    """Rows of an experiment of the paper; {(seed, round)} of grad's networks did not train."""
    dataset, model = name.split("-")[:2]
    made = rows(
        noise(RULES, len(seeds), rounds, number, lifts, spread=0.004),
        name=name,
        dataset=dataset,
        model=model,
    )
    for row in made:
        seed = seeds[row.seed]
        out = row.strategy == "grad" and (seed, row.round) in flagged
        yield replace(
            row, seed=seed, flagged=out, train_accuracy=0.1 if out else 0.99, train_loss=0.01
        )


@pytest.fixture
def folder(tmp_path):
    """Six experiments: grad is above entropy in seeds 5–14 and below it in seeds 0–4."""
    paper = tmp_path / "paper"
    paper.mkdir()
    (paper / "judging.toml").write_text(PLAN)
    fresh, seen = [], []
    for number, name in enumerate(NAMES):
        out = {(6, 0), (6, 2)} if name == "svhn-lenet" else set()
        fresh += of_seeds(name, range(5, 15), {"grad": 0.03}, number, out)
        seen += of_seeds(name, range(5), {"entropy": 0.03}, 10 + number)
    (paper / "fresh").mkdir()
    export.write(fresh, "csv", paper / "fresh" / "a.csv")
    export.write(seen, "csv", paper / "b.csv")
    (tmp_path / "variants").mkdir()
    variant = of_seeds("svhn-lenet", range(5), {"grad": 0.03}, 20)
    other = [replace(row, experiment="svhn-lenet-100") for row in variant]
    export.write(other, "csv", tmp_path / "variants" / "c.csv")
    return paper


def line_of(page, start):
    return next(line for line in page.splitlines() if line.startswith(start))


def test_every_item_has_what_was_looked_up(folder):
    page = reproduction.render(gather(folder))
    entropy = line_of(page, "| **§1** the score against entropy")
    assert (
        "| **confirmed**: 6 \\[6, 6\\] of 6, 6 experiments × 10 seeds; exploratory: denied "
        "0 \\[0, 0\\] of 6, 6 experiments × 5 seeds |" in (entropy)
    )
    assert "“typically outperforms entropy-based scoring in uncertainty sampling”" in entropy
    assert line_of(page, "| **Equation 11**").endswith("| implemented |")
    assert "4 of 9 panels" not in page
    assert "| 2 of 3 panels; not here: 20newsgroups-mlp |" in page
    assert "**cannot be judged**: nothing here measures it" in page  # there are no studies
    # A folder elsewhere has no links to the repository.
    assert "`df_scores`" in page
    assert "](../" not in page


def test_what_became_of_earlier_verdicts_is_listed(folder):
    page = reproduction.render(gather(folder)).partition("## What became of the earlier verdicts")[
        2
    ]
    assert "| grad usually beats entropy | denied |" in page
    assert "| confirmed | 6 \\[6, 6\\] of 6 |" in line_of(page, "| grad usually beats entropy")
    claims_ = [line.split(" | ")[0] for line in page.splitlines() if line.startswith("| ")]
    assert len(claims_) == len(set(claims_))


def test_the_pages_follow_the_data(folder):
    """One accuracy of one store is another: every page that rests on it is another too."""
    before = {page: page.render(gather(folder)) for page in (reproduction, sensitivity_page)}
    path = folder / "fresh" / "a.csv"
    lines = path.read_text().splitlines()
    start = "cifar10-lenet,cifar10,lenet,grad,14,4,"
    at = next(i for i, line in enumerate(lines) if line.startswith(start))
    cells = lines[at].split(",")
    cells[lines[0].split(",").index("accuracy")] = "0.1"
    lines[at] = ",".join(cells)
    path.write_text("\n".join(lines) + "\n")
    for page, text in before.items():
        assert page.render(gather(folder)) != text


def test_publishing_writes_the_pages_after_the_figures_they_show(folder):
    claims.publish(folder)
    page = (folder / "REPRODUCTION.md").read_text()
    assert "(figures/blocks-penalty-rounds.svg)" in page
    assert "![Figure 5" in page
    for name in ("blocks-penalty-backbone", "blocks-penalty-dataset", "all-seeds-penalty-rounds"):
        assert (folder / "figures" / f"{name}.svg").is_file()
    assert (folder / "SENSITIVITY.md").read_text() == sensitivity_page.render(gather(folder))


def test_a_round_that_is_left_out_is_in_no_headline_mean(folder):
    world = gather(folder)
    (one,) = (one for one in world.experiments if one.name == "svhn-lenet")
    assert np.isnan(one.accuracy_MST[:, one.seeds.index(6), 2]).all()
    table = guard.section(world)
    assert line_of(table, "| svhn-lenet | 5-14").endswith("| 99.0% | 0.0100 | 2 of 250 | 2 of 50 |")
    assert line_of(table, "| svhn-lenet | 0-4").endswith("| 0 of 125 | 0 of 25 |")
    assert "2 rounds of 50 left out for every rule of the seed" in claims.page.render(world)


def test_what_was_not_recorded_is_said(tmp_path):
    export.write(rows(noise(RULES), name="svhn-lenet", dataset="svhn"), "csv", tmp_path / "a.csv")
    table = guard.section(gather(tmp_path))
    assert line_of(table, "| svhn-lenet").endswith(f"|{' not recorded |' * 5}")


def test_a_variant_takes_the_place_of_its_experiment(folder):
    world = gather(folder)
    (variant,) = world.variants
    assert (variant.base, variant.name) == ("svhn-lenet", "svhn-lenet-100")
    assert list(swapped(world.fresh, world.variants)) == []  # its seeds are others
    ((name, case),) = swapped(world.explored, world.variants)
    assert name == "with svhn-lenet-100"
    means = {one.name: np.nanmean(one.accuracy_MST) for one in case.experiments}
    assert means["svhn-lenet"] == np.nanmean(variant.results.accuracy_MST)
    assert list(means) == [one.name for one in world.explored.experiments]
    page = reproduction.render(world).partition("## Variants")[2]
    assert "| svhn-lenet-100 | a table of results alone | 0-4 |" in page
    assert "| svhn-lenet | the experiment | 0-4 |" in page
    gone = line_of(page, "Not here: ")
    assert "20newsgroups-mlp-default-init, " in gone
    assert "svhn-lenet-1000" in gone
    assert "svhn-lenet-100," not in gone


def test_a_rule_with_options_takes_the_place_of_the_rule(folder):
    path = folder.parent / "variants" / "c.csv"
    made = list(of_seeds("svhn-lenet", range(5), {"grad": 0.03}, 20))
    whole = [
        replace(row, strategy="grad(parameters='all')", accuracy=row.accuracy + 0.01)
        for row in made
        if row.strategy == "grad"
    ]
    export.write(
        [replace(row, experiment="svhn-lenet-all") for row in [*made, *whole]], "csv", path
    )
    world = gather(folder)
    ((name, case),) = swapped(world.explored, world.variants)
    assert name == "with svhn-lenet-all: grad(parameters='all')"
    (one,) = (one for one in case.experiments if one.name == "svhn-lenet")
    assert set(one.methods) == set(RULES)
    assert one.accuracy_MST[one.index("grad"), 0, 1] == pytest.approx(whole[1].accuracy)
    assert "| grad(parameters='all') |" in reproduction.render(world).replace("\\", "")


def test_a_variant_says_what_differs(tmp_path):
    wanted = spec(RULES, seeds=2, name="svhn-lenet-100", dataset="svhn", model="lenet")
    store(tmp_path / "variants" / "one", wanted)
    (variant,) = read_variants(tmp_path / "variants")
    assert "schedule.batch: 500 → 8" in variant.differs
    assert "name" not in variant.differs
    assert read_variants(tmp_path / "none") == []


def test_choices_are_those_of_the_rule(folder):
    world = gather(folder)
    names = [name for name, _ in [*left_out(world.fresh), *readings(world.fresh)]]
    datasets = [name.partition("-")[0] for name in SUITE.experiments if name in NAMES]
    assert names == [
        *(f"without {dataset}" for dataset in dict.fromkeys(datasets)),
        "with round 0",
        "with untrained networks",
        "at 90%",
        "with datasets resampled",
        "with one matrix of all seeds",
    ]
    two = world.fresh.experiments[:2]
    shared = replace(world.fresh, experiments=[replace(one, dataset="same") for one in two])
    assert [name for name, _ in left_out(shared)] == [
        "without same", *(f"without {one.name}" for one in two)
    ]  # fmt: skip
    assert "with experiments as units" in dict(readings(shared))


def test_the_page_of_choices_has_every_verdict_and_its_figure(folder):
    world = gather(folder)
    page = sensitivity_page.render(world)
    assert "## Seeds 5-14\n" in page
    assert "## Seeds 0-4, exploratory\n" in page
    tries = Choices(world.fresh).over_experiments
    for one in tries:
        if one.judged.verdict != UNJUDGED:
            assert page.count(f"| {one.judged.claim} | {one.judged.verdict} |") >= 2
    alone = next(one for one in tries if one.judged.claim == "grad beats entropy in the mean")
    line = line_of(page.partition("### The figures")[2], "| grad beats entropy in the mean")
    assert len(line.split(" | ")) == len(alone.others) + 2
    assert alone.others["without svhn"].figure.replace("[", "\\[").replace("]", "\\]") in line


def test_a_choice_that_cannot_apply_is_not_counted(folder):
    """Round 0 is in no late stage, and no interval over datasets is in a count of experiments."""
    world = gather(folder)
    choices = Choices(world.fresh)
    applied = {one.judged.claim: set(one.applied) for one in choices.over_experiments}
    every = set(choices.over_experiments[0].others)
    late = "grad and BADGE have the lowest loss scores, the last three rounds"
    assert every - applied[late] == {"with round 0", "with untrained networks"}
    assert every - applied["grad usually beats entropy"] == {
        "with datasets resampled", "with one matrix of all seeds"
    }  # fmt: skip
    assert applied["On CIFAR-10 with LeNet, grad is below random"] == {"with round 0", "at 90%"}
    single = {one.judged.claim: set(one.applied) for one in choices.single}
    assert single["isolet-mlp: differences early, then the curves converge"] == {
        "with round 0", "at 90%"
    }  # fmt: skip
    assert single["pokerhand-mlp: random trails at the end"] == {"at 90%"}
    assert single["gtsrb-vgg16: k-center the least steady"] == set()
    (moved,) = [one for one in choices.over_experiments if one.judged.claim == late]
    assert (
        moved.changed or moved.told == f"the same with all {len(every) - 2} choices that can apply"
    )


def test_the_page_of_choices_begins_with_what_moves(folder):
    choices = Choices(gather(folder).fresh)
    page = sensitivity_page.render(gather(folder), choices)
    short = page.partition("## The choices")[0]
    wins = {one.judged.claim: one.changed for one in choices.wins}
    known = [
        (one.judged.claim, bool(one.changed or wins.get(one.judged.claim)))
        for one in [*choices.over_experiments, *choices.single]
        if one.judged.verdict != UNJUDGED
    ]
    moved, same = short.split("| claim that stays |")
    assert f"Of {len(known)} verdicts" in short
    for claim, moves in known:
        assert f"| {claim} |" in (moved if moves else same), claim
    # A cell says where a choice has nothing to say.
    late = "| grad is ahead of BADGE, the last three rounds |"
    read = page.partition("### Our questions: read otherwise")[2]
    assert line_of(read, late).split(" | ")[2] == "–"


def test_what_cannot_be_judged_says_why(tmp_path):
    """Seeds that were seen before are here, and none that decide."""
    (tmp_path / "judging.toml").write_text('seeds = "5-14"\nexploratory = "0-4"\n')
    fresh = [row for name in NAMES[:5] for row in of_seeds(name, range(5, 15), {"grad": 0.03})]
    seen = [row for name in NAMES for row in of_seeds(name, range(5), {"grad": 0.03})]
    seen += of_seeds("cifar10-vgg16", range(5), {"grad": 0.03}, 9)
    (tmp_path / "fresh").mkdir()
    export.write(fresh, "csv", tmp_path / "fresh" / "a.csv")
    export.write(seen, "csv", tmp_path / "b.csv")
    page = reproduction.render(gather(tmp_path))
    why = "only seeds 0-4 are here, seen before the rule was written"
    assert f"| **cannot be judged**: {why}; exploratory: " in line_of(page, "| **Figure 4 (d)**")
    assert "| **cannot be judged**: no run of it is here; exploratory: cannot be judged |" in (
        line_of(page, "| **Figure 4 (f)**")
    )
    assert f": {why}\n" in page.partition("## 1 ")[0]
    assert why in claims.page.render(gather(tmp_path))


def test_a_caption_says_what_is_not_in_the_figure(folder):
    claims.publish(folder)
    page = (folder / "REPRODUCTION.md").read_text()
    (by_dataset,) = [line for line in page.splitlines() if line.startswith("*Figure 9, ours:")]
    assert "The panel of cinic10 is empty." in by_dataset
    assert "Not in the others: cifar10-vgg16, cifar10-resnet18, svhn-vgg16" in by_dataset
    assert "stl10" not in by_dataset
    (curves,) = [line for line in page.splitlines() if line.startswith("*Figure 3, ours:")]
    assert "The panel of 20newsgroups-mlp is empty." in curves
    (rounds,) = [line for line in page.splitlines() if line.startswith("*Figure 5, ours:")]
    assert "Of 6 of the 18 experiments: " in rounds


def test_a_setting_that_is_not_the_papers_is_seen(folder):
    """Of studies too: by the options that they were run with."""
    result = picks()
    world = replace(gather(folder), studies={"geometry": result})
    (item,) = [
        item
        for section in contents.contents().section
        for item in section.item
        if item.study == "geometry"
    ]
    assert stated.as_stated(world, item)[1] == "differs in batches"
    whole = replace(result, options=replace(result.options, batches=(10, 20, 40)))
    world = replace(world, studies={"geometry": whole})
    assert stated.as_stated(world, item)[1] == "as the paper says"
    assert stated.as_stated(replace(world, studies={}), item)[1] == "the study is not here"


def test_code_that_is_not_there_is_refused():
    assert contents.source("askance:df_scores") == "src/askance/gradients/discrepancy.py"
    with pytest.raises(SpecError, match=r"paper.toml names 'askance:nothing', which is not there"):
        contents.source("askance:nothing")


def test_the_papers_numbers_are_counted_through():
    """Every figure, table and equation of the paper, once and in its order."""
    numbers = [item.number for section in contents.contents().section for item in section.item]
    whole = " ".join(numbers)
    figures = [n for n in numbers if n in {f"Figure {k}" for k in range(1, 10)}]
    assert sorted(set(figures)) == [f"Figure {k}" for k in range(1, 10)]
    assert [n for n in numbers if n.startswith("Table")] == ["Table 1", "Table 2"]
    equations = ["1,", "2", "3,", "4", "5", "6", "7", "8", "9,", "10", "11", "12,", "13", "14–16"]
    assert " ".join(n.split("Equation")[1].lstrip("s ") for n in numbers if "Equation" in n) == (
        " ".join(equations)
    )
    assert "Algorithm 1" in whole
    assert "Proposition A.1" in whole
    assert "Assumption 1" in whole
