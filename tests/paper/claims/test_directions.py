"""Each claim is borne out by the world it describes, and denied by its mirror image."""

import numpy as np
import pytest

from askance.paper.claims import of_studies, stores, tables
from askance.paper.claims.judge import CONFIRMED, DENIED, OPEN, UNJUDGED, judge
from tests.paper.claims import worlds
from tests.paper.claims.worlds import FIVE, NAMES, staged, verdicts

RULES = (*FIVE, "powergrad", "gradnorm", "grad-spread", "margin")


def one_of(claims, start):
    (verdict,) = {v for claim, v in verdicts(claims).items() if claim.startswith(start)}
    return verdict


@pytest.mark.parametrize(
    ("start", "up", "down"),
    [
        ("grad usually beats entropy", "grad", "entropy"),
        ("The reference helps", "grad", "gradnorm"),
        ("Spreading helps", "grad-spread", "grad"),
        ("Sampling helps: powergrad", "powergrad", "grad"),
        ("Sampling reaches BADGE", "powergrad", "badge"),
        ("Sampling beats the simple rule", "powergrad", "margin"),
        ("Sampling helps from the start", "powergrad", "random"),
        ("The top of the scores starts badly", "random", "grad"),
        ("BADGE is ahead of grad", "badge", "grad"),
        ("grad is ahead of BADGE", "grad", "badge"),
        ("On CIFAR-10 with LeNet, grad is below random", "random", "grad"),
        ("On CIFAR-10 with LeNet, powergrad", "powergrad", "badge"),
    ],
)
def test_one_rule_above_another(tmp_path, start, up, down):
    def judged(lifts):
        world = worlds.evidence(tmp_path, lifts, NAMES, RULES)
        return one_of(judge(stores.OVERALL, world.case) + judge(stores.OURS, world.case), start)

    assert judged({up: 0.03}) == CONFIRMED
    assert judged({down: 0.03}) == DENIED


def test_early_is_rounds_one_to_three_and_late_the_last_three(tmp_path):
    """Three rounds of each, no more and no fewer, and round 0 of none."""
    early, late = (
        "BADGE is ahead of grad, rounds 1–3",
        "grad is ahead of BADGE, the last three rounds",
    )

    def figures(claims):
        figure = {one.claim: one.figure for one in claims}
        return [float(figure[claim].split(" ")[0].replace("−", "-")) for claim in (early, late)]

    def judged(world):
        return judge(stores.OVERALL, world.case) + judge(stores.OURS, world.case)

    first = judged(staged(tmp_path, 0.05, 0.0, "badge"))
    assert figures(first) == pytest.approx([5, 0], abs=0.2)
    assert verdicts(first)["BADGE leads early: the lowest loss score, rounds 1–3"] == CONFIRMED
    assert figures(judged(staged(tmp_path, 0.0, 0.05, "badge"))) == pytest.approx([0, -5], abs=0.2)
    last = judged(staged(tmp_path, 0.0, 0.05, "grad"))
    assert figures(last) == pytest.approx([0, 5], abs=0.2)
    lowest = "grad alone leads late: the lowest loss score, the last three rounds"
    assert verdicts(last)[lowest] == CONFIRMED


def test_gradient_based_selection_is_said_of_both_of_its_rules(tmp_path):
    """Late, grad and BADGE: one of them alone is not what the paper says."""
    grows = "The advantage of grad and BADGE in loss scores is larger late than early"
    lowest = "grad and BADGE have the lowest loss scores, the last three rounds"

    def judged(early, late, *rules):
        by_claim = verdicts(judge(stores.OVERALL, staged(tmp_path, early, late, *rules).case))
        return [by_claim[grows], by_claim[lowest]]

    assert judged(0.0, 0.05, "grad", "badge") == [CONFIRMED, CONFIRMED]
    assert judged(0.05, 0.0, "grad", "badge") == [DENIED, OPEN]
    assert judged(0.0, 0.05, "grad")[1] == OPEN  # BADGE is level with the others


def test_usually_is_counted_and_one_large_difference_decides_nothing(tmp_path):
    """grad is above entropy in five experiments of six by a little, and far below it in one."""
    table = []
    for seed, name in enumerate(NAMES):
        lift = -0.4 if name == "stl10-lenet" else 0.02
        made = worlds.noise(FIVE, rounds=8, seed=seed, lifts={"grad": lift}, spread=0.004)
        table += worlds.curves(name, made)
    by_claim = {
        one.claim: one for one in judge(stores.OVERALL, worlds.gathered(tmp_path, table).case)
    }
    often, mean = (
        by_claim[f"grad {what}"] for what in ("usually beats entropy", "beats entropy in the mean")
    )
    assert (often.verdict, often.figure) == (CONFIRMED, "5 [5, 5] of 6")
    assert often.measure.endswith("significantly above in 5, below in 1")
    assert mean.verdict == OPEN
    assert mean.figure.startswith("−")


def test_alike_is_within_half_a_point(tmp_path):
    start = "The reference moves less than half a point"
    for lift, verdict in ((0.003, CONFIRMED), (-0.003, CONFIRMED), (0.01, DENIED), (-0.01, DENIED)):
        claims = judge(
            stores.OURS, worlds.evidence(tmp_path, {"gradnorm": lift}, NAMES, RULES).case
        )
        assert one_of(claims, start) == verdict


@pytest.mark.parametrize(
    ("name", "says", "lifts"),
    [
        ("cifar10-resnet18", "entropy behind all", {"entropy": -0.05}),
        ("cifar10-resnet18", "grad marginally ahead of all", {"grad": 0.05}),
        ("svhn-lenet", "k-center below all", {"kcenter": -0.05}),
        ("pokerhand-mlp", "random trails at the end", {"random": -0.05}),
        ("stl10-lenet", "BADGE the strongest early", {"badge": 0.05}),
        ("cifar10-vgg16", "grad, BADGE and k-center above entropy", {"entropy": -0.05}),
        ("svhn-lenet", "BADGE and grad above random and entropy", {"badge": 0.05, "grad": 0.05}),
    ],
)
def test_curves_that_are_as_the_paper_says(tmp_path, name, says, lifts):
    mirrored = {rule: -lift for rule, lift in lifts.items()}
    for world, verdict in ((lifts, CONFIRMED), (mirrored, DENIED)):
        claims = judge(stores.PANELS, worlds.evidence(tmp_path, world, [name], FIVE).case)
        assert verdicts(claims)[f"{name}: {says}"] == verdict


def test_wins_losses_and_stars_are_told_apart(tmp_path):
    world = worlds.evidence(tmp_path, {"grad": 0.05, "badge": -0.05}, NAMES, FIVE)
    (pair,) = [
        one
        for one in judge(stores.OVERALL, world.case)
        if one.claim == "grad usually beats entropy"
    ]
    assert pair.measure.endswith("significantly above in 6, below in 0")
    text = "\n".join(tables.sections(world))
    (grad,) = [line for line in text.splitlines() if line.startswith("| grad | +")]
    (badge,) = [line for line in text.splitlines() if line.startswith("| badge | −")]
    assert [cell.strip() for cell in grad.split("|")][3:5] == ["6", "0"]
    assert [cell.strip() for cell in badge.split("|")][3:5] == ["0", "6"]
    points = text.split("## Points above random")[1].split("\n## ")[0]
    (row,) = [line for line in points.splitlines() if line.startswith("| svhn")]
    cells = dict(zip(("name", *FIVE), [c.strip() for c in row.split("|")][1:-1], strict=True))
    assert cells["grad"].endswith("\\*")
    assert cells["badge"].endswith("\\*")
    assert not cells["kcenter"].endswith("\\*")


def test_where_picks_lie():
    by_claim = verdicts(of_studies.of_the_paper({"geometry": worlds.picks()}))
    assert set(by_claim.values()) == {CONFIRMED}
    mirrored = worlds.picks(entropy=1.5, grad=1.2, reach=1.3)
    assert set(verdicts(of_studies.of_the_paper({"geometry": mirrored})).values()) == {DENIED}
    # Nothing is said of a rule that was not asked.
    assert of_studies.of_the_paper({"geometry": worlds.picks(rules=("grad",))}) == []


def test_scores_out_of_distribution():
    assert set(verdicts(of_studies.of_the_paper({"shift": worlds.shifted(0.8)})).values()) == {
        CONFIRMED
    }
    assert set(verdicts(of_studies.of_the_paper({"shift": worlds.shifted(0.2)})).values()) == {
        DENIED
    }


def test_discrepancy_over_training():
    def german(norms):
        by_claim = verdicts(of_studies.of_the_paper({"contraction": worlds.trained(norms)}))
        absent = {verdict for claim, verdict in by_claim.items() if "german" not in claim}
        assert absent == {UNJUDGED}
        return [verdict for claim, verdict in by_claim.items() if "german" in claim]

    falling = worlds.falling()
    assert german(falling) == [CONFIRMED, CONFIRMED, CONFIRMED]
    assert german(falling[::-1]) == [DENIED, DENIED, DENIED]
    jagged = falling * np.where(np.arange(len(falling)) % 10 == 5, 1.5, 1.0)
    assert german(jagged)[:2] == [CONFIRMED, CONFIRMED]  # it rises now and then


PAPERS = {"entropy": 1.0, "grad": 2.0, "badge": 3.0, "kcenter": 4.0}


def test_seconds():
    plain = verdicts(of_studies.of_the_paper({"cost": worlds.timed(PAPERS)}))
    faster = {claim: verdict for claim, verdict in plain.items() if "faster" in claim}
    assert len(faster) == 6
    assert set(faster.values()) == {CONFIRMED}
    reverse = dict(zip(PAPERS, reversed(PAPERS.values()), strict=True))
    turned = verdicts(of_studies.of_the_paper({"cost": worlds.timed(reverse)}))
    assert {v for claim, v in turned.items() if "faster" in claim} == {DENIED}
    # The labelled set's pass counts where it is said to, and only there.
    passed = verdicts(of_studies.of_the_paper({"cost": worlds.timed(PAPERS, {"grad": 50.0})}))
    counted = ", the labelled set's pass counted: lenet"
    assert passed["grad is faster than badge: lenet"] == CONFIRMED
    assert passed[f"grad is faster than badge{counted}"] == DENIED


@pytest.mark.parametrize(("grows", "verdict"), [(0.01, CONFIRMED), (-0.01, DENIED)])
def test_seconds_that_grow_with_the_labelled_set(grows, verdict):
    by_claim = verdicts(of_studies.of_the_paper({"cost": worlds.timed(PAPERS, grows=grows)}))
    assert by_claim["k-center takes longer as the labelled set grows: lenet"] == verdict


def test_sampling_may_cost_a_tenth_more():
    def apart_and_whole(milliseconds, **labeled):
        rules = {"entropy": 0.0, "powergrad": milliseconds}
        return list(verdicts(of_studies.of_ours({"cost": worlds.timed(rules, labeled)})).values())

    assert apart_and_whole(9.0) == [CONFIRMED, CONFIRMED]  # beside a pass over the pool of 100
    assert apart_and_whole(11.0) == [DENIED, DENIED]
    assert apart_and_whole(5.0, powergrad=8.0) == [CONFIRMED, DENIED]
    assert of_studies.of_ours({}) == []
    assert of_studies.of_ours({"cost": worlds.timed(PAPERS)}) == []
