"""Which seeds decide, what stands beside them, and what cannot be judged."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from askance.cli import main
from askance.errors import StoreError
from askance.experiments import export
from askance.experiments.statistics.untrained import shared
from askance.paper.claims import of_contraction, of_studies, publish, sensitivity, stores
from askance.paper.claims.case import Case, Reading
from askance.paper.claims.evidence import Evidence, gather
from askance.paper.claims.judge import CONFIRMED, DENIED, OPEN, UNJUDGED, judge
from askance.paper.claims.judging import Judging, Unfit, read
from askance.paper.claims.page import render
from askance.paper.claims.sensitivity import Choices
from askance.paper.claims.verdicts import both
from askance.paper.studies import contraction
from askance.paper.suite import RULES, SUITE
from askance.report.facts import Facts
from tests.experiments.statistics.test_blocks import recorded
from tests.experiments.statistics.worlds import noise
from tests.paper.claims import worlds
from tests.paper.claims.worlds import NAMES, verdicts

FRESH, SEEN = tuple(range(5, 25)), tuple(range(5))
PLAN = Judging(FRESH, SEEN, 100)


def table(seen, fresh, names=NAMES, seeds=25, rounds=8):
    """Seeds 0–4 lifted in one way, those from 5 on in another."""
    made = []
    for number, name in enumerate(names):
        parts = [
            noise(RULES, seeds, rounds, number, lifts=lifts, spread=0.004)
            for lifts in (seen, fresh)
        ]
        both = {rule: np.concatenate([parts[0][rule][:5], parts[1][rule][5:]]) for rule in RULES}
        made += worlds.curves(name, both)
    return made


def evidence(rows, judging=PLAN):
    return Evidence(Path("folder"), Facts(["folder"], rows, [], SUITE), {}, judging)


USUALLY = "grad usually beats entropy"


def test_fresh_seeds_decide_and_those_seen_stand_beside(tmp_path):
    rows = table({"entropy": 0.05}, {"grad": 0.05})
    export.write(rows, "csv", tmp_path / "a.csv")
    (tmp_path / "judging.toml").write_text('seeds = "5-24"\nexploratory = "0-4"\n')
    world = gather(tmp_path)
    fresh, explored = both(world, stores.OVERALL)
    assert verdicts(fresh)[USUALLY] == CONFIRMED
    assert verdicts(explored)[USUALLY] == DENIED
    page = render(world)
    assert "**Seeds 5-24 decide.**" in page
    assert "](JUDGING.md)" not in page  # which is not there
    (line,) = [line for line in page.splitlines() if line.startswith(f"| {USUALLY} |")]
    assert line.startswith(
        f"| {USUALLY} | confirmed | 6 \\[6, 6\\] of 6 | 6 experiments × 20 seeds |"
    )
    assert "denied: 0 \\[0, 0\\] of 6, 6 experiments × 5 seeds" in line
    rows = [line for line in page.split("## The paper's claims")[1].split("\n## ")[0].splitlines()
            if line.startswith("| ") and "---" not in line][1:]  # fmt: skip
    told = " and ".join(", ".join(
        f"{sum(f'| {verdict} |' in row for row in rows)} {verdict}"
        for verdict in (CONFIRMED, DENIED, OPEN, UNJUDGED)
    ).rsplit(", ", 1))  # fmt: skip
    assert f"{len(rows)} rows: {told}." in page
    # What the tables and figures show are the seeds that decide.
    assert {row.seed for row in world.facts.rows} == set(FRESH)


def test_before_the_fresh_seeds_are_run_all_is_exploratory():
    rows = [row for row in table({"grad": 0.05}, {}) if row.seed < 5]
    world = evidence(rows)
    assert world.is_exploratory
    assert world.fresh is None
    page = render(world)
    assert "**Exploratory (seeds 0-4).**" in page
    assert "| claim | exploratory verdict |" in page
    assert f"| {USUALLY} | confirmed | 6 \\[6, 6\\] of 6 |" in page
    assert "Seeds 5-24 decide, and none of them is here yet." in page


def test_seeds_that_were_seen_stay_exploratory_when_they_are_asked_for(tmp_path):
    export.write(table({"entropy": 0.05}, {"grad": 0.05}), "csv", tmp_path / "a.csv")
    (tmp_path / "judging.toml").write_text('seeds = "5-24"\nexploratory = "0-4"\n')
    (tmp_path / "JUDGING.md").write_text("The rule.")
    page = render(gather(tmp_path, seeds=(0, 1, 2, 3)))
    assert "**Exploratory (seeds 0-3).** They were seen before they were judged." in page
    assert "The rule is that of [JUDGING.md](JUDGING.md)." in page
    assert "| claim | exploratory verdict |" in page
    other = render(gather(tmp_path, seeds=tuple(range(10, 20))))
    assert "**Seeds 10-19 decide.**" in other
    assert f"| {USUALLY} | confirmed | 6 \\[6, 6\\] of 6 | 6 experiments × 10 seeds |" in other


def test_without_a_plan_every_seed_decides_and_nothing_is_exploratory():
    rows = table({"entropy": 0.05}, {"grad": 0.05})
    world = evidence(rows, Judging())
    assert not world.is_exploratory
    assert {one.seeds for one in world.case.experiments} == {tuple(range(25))}
    assert "xploratory" not in render(world)


def test_a_large_network_decides_nothing():
    large = [row for row in table({"entropy": -0.05}, {}, ["cifar10-resnet18"]) if row.seed < 5]
    world = evidence(table({}, {"grad": 0.05}) + large)
    assert "cifar10-resnet18" not in {one.name for one in world.fresh.experiments}
    assert "cifar10-resnet18" in {one.name for one in world.explored.experiments}
    fresh, explored = both(world, stores.PANELS)
    claim = "cifar10-resnet18: entropy behind all"
    assert verdicts(fresh)[claim] == UNJUDGED
    assert verdicts(explored)[claim] == CONFIRMED
    # And is shown in the tables with the seeds it has.
    assert "| cifar10-resnet18 |" in render(world)


def test_data_that_are_not_the_papers_are_not_judged():
    rows = table({}, {"grad": 0.05})
    plan = Judging(FRESH, SEEN, 0, (Unfit("svhn-lenet", FRESH[:15], "cropped"),))
    world = evidence(rows, plan)
    (svhn,) = [one for one in world.fresh.experiments if one.name == "svhn-lenet"]
    assert svhn.seeds == FRESH[15:]
    # Five of twenty seeds are too few for it.
    (often,) = [one for one in judge(stores.OVERALL, world.case) if one.claim == USUALLY]
    assert often.n == "5 experiments × 20 seeds"
    page = render(world)
    assert "- svhn-lenet, seeds 5-19, cannot be judged: cropped." in page
    assert "- svhn-lenet: seeds 5-19 are not complete." in page


def test_four_datasets_are_too_few():
    for names, verdict in ((NAMES[:5], CONFIRMED), (NAMES[:4], UNJUDGED)):
        world = evidence(table({}, {"grad": 0.05, "badge": 0.05}, names))
        judged = verdicts(judge(stores.OVERALL, world.case))
        assert judged[USUALLY] == verdict
        assert judged["grad beats entropy in the mean"] == verdict
        assert judged["grad and BADGE have the lowest loss scores, all rounds"] == verdict


@pytest.mark.parametrize(("whole", "n"), [(10, 6), (9, 5)])
def test_half_of_the_seeds_must_be_whole(whole, n):
    rows = [
        row for row in table({}, {"grad": 0.05})
        if not (row.experiment == "svhn-lenet" and row.seed >= 5 + whole and row.round > 4)
    ]  # fmt: skip
    world = evidence(rows)
    each = {one.claim: one for one in judge(stores.OVERALL, world.case)}
    assert each[USUALLY].figure == f"{n} [{n}, {n}] of {n}"
    assert each["grad and BADGE have the lowest loss scores, all rounds"].n.startswith(f"{n} exp")
    (svhn,) = [
        c for c in judge(stores.PANELS, world.case) if c.claim == "svhn-lenet: k-center below all"
    ]
    assert (svhn.n, svhn.verdict == UNJUDGED) == (f"{whole} seeds", whole < 10)


def untrained(rounds, seeds=range(20), lift=0.05):
    """Seven rounds of twenty seeds, of which entropy's networks did not train in some."""
    flagged = {("entropy", seed, r) for seed in seeds for r in rounds}
    made = []
    for number, name in enumerate(NAMES[:5]):
        dataset, model = name.split("-")
        accuracies = noise(RULES, 20, 8, number, spread=0.004)
        for rule in ("grad", "badge"):
            accuracies[rule][:, list(rounds)] += lift
        one = recorded(accuracies, flagged, name=name, dataset=dataset, model=model)
        made.append(shared(one))
    return Case(made, Reading(20))


def test_rounds_in_which_a_network_did_not_train_say_nothing():
    rounds = (1, 2, 3)
    judged = verdicts(judge(stores.OVERALL, untrained(rounds)))
    assert judged[USUALLY] == OPEN  # all that grad has ahead is in those rounds
    assert judged["BADGE is ahead of grad, rounds 1–3"] == UNJUDGED
    assert judged["BADGE leads early: the lowest loss score, rounds 1–3"] == UNJUDGED
    kept = verdicts(judge(stores.OVERALL, untrained((), lift=0)))
    assert kept["BADGE is ahead of grad, rounds 1–3"] == OPEN


def test_with_less_than_half_of_its_rounds_a_seed_is_not_judged():
    few = judge(stores.OVERALL, untrained((1, 2, 3, 4)))  # three of seven are left
    late = "the last three rounds"  # they are there
    assert {one.verdict for one in few if late not in one.claim} == {UNJUDGED}
    assert UNJUDGED not in {one.verdict for one in few if late in one.claim}
    some = judge(stores.OVERALL, untrained((1, 2, 3, 4), seeds=range(8)))
    (often,) = [one for one in some if one.claim == USUALLY]
    assert often.n == "5 experiments × 12 seeds"


def test_what_is_left_out_is_on_the_page():
    world = evidence(table({}, {}))
    blind = "Training accuracy was not recorded, so that no round is left out: "
    assert f"- {blind}isolet-mlp, pokerhand-mlp, stl10-lenet, svhn-lenet" in render(world)
    vars(world)["fresh"] = untrained((1, 2))  # the cached property
    page = render(world)
    assert blind not in page
    line = "40 rounds of 160 left out for every rule of the seed: a network did not train."
    assert f"- svhn-lenet: {line}" in page


def test_what_would_change_is_told_and_changes_nothing():
    case = untrained((1, 2, 3))
    tries = Choices(case).over_experiments
    usually = next(one for one in tries if one.judged.claim == USUALLY)
    assert usually.judged.verdict == OPEN
    assert "with untrained networks" in usually.changed[CONFIRMED]
    text = sensitivity.section(tries)
    assert f"| {USUALLY} | not shown | confirmed with untrained networks" in text
    alike = evidence(table({}, {"grad": 0.05, "badge": 0.05, "kcenter": 0.02})).case
    assert USUALLY not in sensitivity.section(Choices(alike).over_experiments)


def test_one_dataset_can_be_what_a_mean_hangs_on():
    rows = table({}, {"grad": 0.01}, NAMES[1:]) + table({}, {"grad": -0.2}, NAMES[:1])
    tries = Choices(evidence(rows).case).over_experiments
    mean = next(one for one in tries if one.judged.claim == "grad beats entropy in the mean")
    assert (mean.judged.verdict, mean.changed[CONFIRMED]) == (OPEN, ["without svhn"])


def test_studies_decide_with_draws_that_were_not_seen():
    result = worlds.shifted(0.8)
    claim = "DF scores are larger out of distribution"
    for start, kinds in ((0, [CONFIRMED, None]), (100, [UNJUDGED, CONFIRMED])):
        world = Evidence(
            "f", Facts(["f"], table({}, {}), []), {"shift": result}, Judging(FRESH, SEEN, start)
        )
        fresh, explored = both(world, {}, of_studies.of_the_paper)
        assert [verdicts(fresh).get(claim), verdicts(explored).get(claim)] == kinds


def test_a_network_that_did_not_train_says_nothing_of_its_discrepancy():
    idle = worlds.trained(worlds.falling(), loss=(3.0, 2.98))
    german = [
        one for one in of_studies.of_the_paper({"contraction": idle}) if "german" in one.claim
    ]
    assert {one.verdict for one in german} == {UNJUDGED}
    assert all("did not train" in one.measure and one.figure != "–" for one in german)


def test_a_grid_confirms_where_all_of_its_cells_agree():
    falling = worlds.falling()
    rising = falling[::-1]

    def decreases(*norms):
        claims = of_studies.of_the_paper({"contraction": worlds.trained(*norms)})
        return next(one for one in claims if one.claim == "DF decreases over training: german")

    assert decreases(falling, falling).verdict == CONFIRMED
    assert decreases(rising, rising).verdict == DENIED
    mixed = decreases(falling, rising, falling)
    assert (mixed.verdict, mixed.figure) == (OPEN, "2 confirmed, 1 denied")
    assert mixed.n == "3 cells of 5 draws"


def test_a_grid_leaves_out_what_did_not_train():
    falling, rising = worlds.falling(), worlds.falling()[::-1]
    made = worlds.trained(falling, rising)
    half_idle = replace(
        made,
        paths=tuple(
            replace(one, loss=(3.0, 2.8)) if one.choice.optimiser == "sgd" else one
            for one in made.paths
        ),
    )
    claim = of_contraction.claims(half_idle)[0]
    assert (claim.verdict, claim.figure) == (CONFIRMED, "1 confirmed, 1 cannot be judged")
    cells = of_contraction.judged_cells(half_idle)
    assert [one.verdicts["falls"].verdict for one in cells] == [CONFIRMED, UNJUDGED]


def test_the_studys_table_has_the_verdicts_of_the_claims():
    falling = worlds.falling()
    made = worlds.trained(falling, falling[::-1], np.resize([1.0, 1.2], 150))
    table = contraction.table(made)
    for one, row in zip(of_contraction.judged_cells(made), table.rows, strict=True):
        shown = dict(zip(table.columns, row, strict=True))
        for word, claim in one.verdicts.items():
            assert shown[word] == f"{claim.verdict}, {claim.figure}"
    assert {
        claim.verdict
        for one in of_contraction.judged_cells(made)
        for claim in one.verdicts.values()
    } == {CONFIRMED, DENIED, OPEN}


def test_the_plan_is_read_from_its_file(tmp_path):
    assert read(tmp_path) == Judging()
    (tmp_path / "judging.toml").write_text(
        'seeds = "5-7"\nexploratory = "0,1"\nstudies = 3\n'
        '[[unfit]]\nexperiment = "svhn-lenet"\nseeds = "0-4"\nwhy = "cropped"\n'
    )
    assert read(tmp_path) == Judging((5, 6, 7), (0, 1), 3, (Unfit("svhn-lenet", SEEN, "cropped"),))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('exploratory = "0-4"', "expected the seeds that decide"),
        ('seeds = "7-5"', "line 1: .*falls"),
        ("seeds = 5", 'seeds must be text such as "5-24", got 5'),
        ('seeds = "5"\nstudies = true', "line 2: studies must be a whole number, got True"),
        ('seeds = "5"\nseed = 3', "unknown key 'seed'; did you mean 'seeds'"),
        ('seeds = "5"\nunfit = [1]', "unfit.0 must be a table"),
        (
            'seeds = "5"\n[[unfit]]\nexperiment = "a"\nwhy = "b"',
            "'unfit.0.seeds' is missing; expected text such as",
        ),
        ("seeds = ", "Invalid value"),
    ],
)
def test_a_plan_that_says_something_else_is_refused(tmp_path, text, message):
    (tmp_path / "judging.toml").write_text(text)
    with pytest.raises(StoreError, match=message) as error:
        read(tmp_path)
    assert "judging.toml" in str(error.value)


def test_seeds_on_the_command_line(tmp_path, capsys):
    export.write(table({"entropy": 0.05}, {"grad": 0.05}, seeds=15), "csv", tmp_path / "a.csv")
    out = ["--out", str(tmp_path / "r.md")]
    assert main(["report", str(tmp_path / "a.csv"), "--seeds", "0-4", *out]) == 0
    page = (tmp_path / "r.md").read_text()
    assert "5 seeds" in page
    assert "15 seeds" not in page
    assert main(["report", str(tmp_path / "a.csv"), "--seeds", "90-99", *out]) == 3
    assert "no run has the seeds 90-99; there are 0-14" in capsys.readouterr().err
    assert main(["report", str(tmp_path / "a.csv"), "--seeds", "9-5", *out]) == 2
    assert "write 5-9" in capsys.readouterr().err


def test_a_folder_is_published_for_some_seeds(tmp_path):
    export.write(
        table({"entropy": 0.05}, {"grad": 0.05}, NAMES[:5], 25, 4), "csv", tmp_path / "a.csv"
    )
    publish(tmp_path, seeds=FRESH)
    page = (tmp_path / "RESULTS.md").read_text()
    assert f"| {USUALLY} | confirmed |" in page
    assert "Of matrices of five seeds each" in page
    assert (tmp_path / "figures" / "blocks-penalty-rounds.svg").is_file()
    publish(tmp_path, seeds=SEEN)
    page = (tmp_path / "RESULTS.md").read_text()
    assert f"| {USUALLY} | denied |" in page
    assert "The same of matrices of five seeds each" not in page
