"""A claim is confirmed, denied or left open by its numbers, and by nothing else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from askance.experiments.statistics.penalty import penalty
from askance.experiments.statistics.resample import Interval
from askance.paper import SUITE, studies
from askance.paper.claims import across, measures, of_studies, single, stores, tables
from askance.paper.claims.case import Case
from askance.paper.claims.judge import (
    CONFIRMED,
    DENIED,
    OPEN,
    UNJUDGED,
    Measurement,
    judge,
    judged,
    verdict,
)
from askance.paper.claims.page import MARK, render
from askance.paper.studies.lab import Lab
from tests.experiments.statistics.worlds import experiment
from tests.paper.claims import worlds as made_up
from tests.paper.claims.worlds import FIVE, NAMES, verdicts
from tests.paper.studies.tiny import OPTIONS

RULES = (*FIVE, "powergrad", "gradnorm", "grad-spread")


def evidence(tmp_path, lifts=None, names=NAMES, rules=RULES, results=None):
    return made_up.evidence(tmp_path, lifts, names, rules, results)


@pytest.mark.parametrize(
    ("ends", "limit", "said"),
    [
        ((0.1, 0.3), 0, CONFIRMED),
        ((-0.3, -0.1), 0, DENIED),
        ((-0.1, 0.3), 0, OPEN),
        ((0.0, 0.3), 0, OPEN),
        ((-0.3, 0.0), 0, OPEN),
        ((-0.1, 0.3), -0.2, CONFIRMED),
        ((-0.3, -0.25), -0.2, DENIED),
        ((np.nan, np.nan), 0, UNJUDGED),
        ((-np.inf, np.inf), 0, OPEN),
    ],
)
def test_the_rule(ends, limit, said):
    assert verdict(Interval(0.2, *ends, 5), limit) == said


def test_nothing_measured_is_nothing_judged():
    told = judged("claim", Measurement("measure", n="5 seeds"))
    assert (told.verdict, told.measure) == (UNJUDGED, "measure")
    assert (told.figure, told.n) == ("–", "–")


def test_a_number_of_a_recipe_that_failed_is_shown_and_not_judged():
    interval = Interval(0.2, 0.1, 0.3, 4)
    valid, failed = (judged("c", Measurement("m", interval, valid=ok)) for ok in (True, False))
    assert (valid.verdict, failed.verdict) == (CONFIRMED, UNJUDGED)
    assert failed.figure == valid.figure == "+20.00 [10.00, 30.00]"


def test_too_few_values_are_not_judged():
    interval = Interval(0.2, 0.1, 0.3, 4)
    assert verdict(interval, least=4) == CONFIRMED
    assert verdict(interval, least=5) == UNJUDGED
    told = judged("claim", Measurement("measure", interval, "4 seeds", least=5))
    assert (told.verdict, told.measure) == (UNJUDGED, "measure; 4 of the 5 that are needed")
    assert told.figure.startswith("+20.00")  # what there is, is shown


@pytest.mark.parametrize(
    ("count", "low", "high", "n", "said"),
    [
        (5, 4, 6, 7, CONFIRMED),
        (5, 3, 6, 7, OPEN),
        (2, 0, 3, 7, DENIED),
        (3, 0, 4, 7, OPEN),
        (6, 5, 6, 8, CONFIRMED),
        (5, 4, 6, 8, OPEN),
        (4, 2, 4, 8, DENIED),  # half of them are not more than half
    ],
)
def test_usually_is_in_more_than_half(count, low, high, n, said, tmp_path, monkeypatch):
    monkeypatch.setattr(across, "how_many", lambda *_: Interval(count, low, high, n))
    usually = {"claim": across.often("grad", "entropy")}
    (told,) = judge(usually, evidence(tmp_path).case)
    assert (told.verdict, told.figure) == (said, f"{count} [{low}, {high}] of {n}")
    few = evidence(tmp_path, names=NAMES[:2]).case
    assert {one.verdict for one in judge(usually, few)} == {UNJUDGED}
    assert {one.verdict for one in judge(usually, Case([]))} == {UNJUDGED}


def test_a_made_up_winner_confirms_and_a_made_up_loser_denies(tmp_path):
    up = {"grad": 0.05, "badge": 0.05, "kcenter": 0.02}
    by_claim = verdicts(judge(stores.OVERALL, evidence(tmp_path, up).case))
    assert by_claim["grad usually beats entropy"] == CONFIRMED
    assert (
        by_claim["grad is competitive with common baselines: at most half a point behind"]
        == CONFIRMED
    )
    for when in ("all rounds", "rounds 1–3", "the last three rounds"):
        assert by_claim[f"grad and BADGE have the lowest loss scores, {when}"] == CONFIRMED
        assert by_claim[f"random and entropy have the highest loss scores, {when}"] == CONFIRMED
        assert by_claim[f"{stores.MIDDLE}, {when}"] == CONFIRMED
    down = {"grad": -0.05, "badge": -0.05}
    by_claim = verdicts(judge(stores.OVERALL, evidence(tmp_path, down).case))
    assert set(by_claim.values()) >= {DENIED}
    assert by_claim["grad usually beats entropy"] == DENIED
    assert (
        by_claim["grad is competitive with common baselines: at most half a point behind"] == DENIED
    )
    assert by_claim["grad and BADGE have the lowest loss scores, all rounds"] == DENIED


def test_rules_that_are_all_alike_confirm_and_deny_nothing_of_the_paper(tmp_path):
    by_claim = verdicts(judge(stores.OVERALL, evidence(tmp_path).case))
    for near in (
        "grad is typically competitive with BADGE: at most half a point behind",
        "grad is competitive with BADGE: at most half a point behind, in the mean",
        "grad is competitive with common baselines: at most half a point behind",
    ):
        assert by_claim.pop(near) == CONFIRMED
    assert set(by_claim.values()) == {OPEN}


def test_our_questions(tmp_path):
    lifts = {"grad": -0.03, "gradnorm": -0.03, "badge": 0.02, "powergrad": 0.02}
    by_claim = verdicts(judge(stores.OURS, evidence(tmp_path, lifts).case))
    assert by_claim["The reference helps: grad beats gradnorm"] == OPEN
    assert by_claim["The reference moves less than half a point, either way"] == CONFIRMED
    assert by_claim["Sampling helps: powergrad beats grad"] == CONFIRMED
    assert by_claim["Sampling reaches BADGE: powergrad is at most half a point behind"] == CONFIRMED
    assert by_claim["On CIFAR-10 with LeNet, grad is below random"] == CONFIRMED
    without = verdicts(
        judge(stores.OURS, evidence(tmp_path, rules=FIVE, names=("svhn-lenet",)).case)
    )
    assert set(without.values()) == {UNJUDGED}


def test_a_panel_that_is_not_at_hand_shows_nothing(tmp_path):
    claims = judge(stores.PANELS, evidence(tmp_path, {"kcenter": -0.05}).case)
    assert len(claims) == len(stores.PANELS)
    assert verdicts(claims)["svhn-lenet: k-center below all"] == CONFIRMED
    absent = [one for one in claims if one.claim.split(":")[0] not in NAMES]
    assert {one.claim.split(":")[0] for one in absent} == {
        "20newsgroups-mlp", "gtsrb-vgg16", "cifar10-vgg16", "cifar10-resnet18", "cinic10-resnet18",
    }  # fmt: skip
    assert {(one.verdict, one.figure) for one in absent} == {(UNJUDGED, "–")}


def test_every_panel_is_of_the_suite_and_of_the_papers_rules(tmp_path):
    names = tuple(dict.fromkeys(claim.split(":")[0] for claim in stores.PANELS))
    assert set(names) <= set(SUITE.experiments)
    claims = judge(stores.PANELS, evidence(tmp_path, names=names, rules=FIVE).case)
    assert len(claims) == len(stores.PANELS)
    assert all(one.figure != "–" and one.n == "5 seeds" for one in claims)
    # Without its rules nothing is measured, and nothing fails.
    lacking = judge(stores.PANELS, evidence(tmp_path, names=names, rules=("badge",)).case)
    assert {one.verdict for one in lacking} == {UNJUDGED}
    assert {one.figure for one in lacking} == {"–"}


def judged_of(tables, measure):
    return judged("claim", measure(Case([experiment(tables)]))).verdict


def ramps(**ends):
    """Curves of five seeds from an early to a late accuracy, a hair apart."""
    hair = 1e-4 * np.arange(5)[:, None]
    return {rule: np.linspace(first, last, 8) + hair for rule, (first, last) in ends.items()}


@pytest.mark.parametrize("rules", [("grad",), FIVE])
def test_rules_that_are_strong_are_near_all_not_above_them(rules):
    """One rule beside the others, and all of them beside each other."""
    flat = dict.fromkeys(FIVE, (0.5, 0.5)) | {"grad": (0.497, 0.497)}
    assert judged_of(ramps(**flat), single.near(*rules)) == CONFIRMED
    flat["badge"] = (0.503, 0.503)  # 0.6 points from grad
    assert judged_of(ramps(**flat), single.near(*rules)) == DENIED


@pytest.mark.parametrize(
    ("early", "mid", "late", "said"),
    [
        (9, 1, 1, [CONFIRMED, DENIED, DENIED]),
        (1, 9, 1, [OPEN, OPEN, CONFIRMED]),
        (1, 1, 9, [DENIED, CONFIRMED, DENIED]),
        (9, 9, 1, [CONFIRMED, DENIED, OPEN]),
        (1, 1, 1, [OPEN, OPEN, OPEN]),
    ],
)
def test_rules_are_widest_apart_where_they_are(early, mid, late, said):
    curves = {rule: np.full((5, 10), 0.5) for rule in FIVE}
    curves["grad"] += 0.01 * np.repeat([0, early, mid, late], [1, 3, 3, 3])
    looks = [("early", "late"), ("late", "early"), ("mid", "early", "late")]
    assert [judged_of(curves, single.wider(*look)) for look in looks] == said
    del curves["badge"]  # and of four rules nothing is said of five
    assert {judged_of(curves, single.wider(*look)) for look in looks} == {UNJUDGED}


@pytest.mark.parametrize("ratio", [1, 10])
def test_noise_that_falls_is_no_convergence(ratio):
    """Rules alike, noisier early than late."""
    draws, times, wrong = np.random.default_rng(0), 400, np.zeros(2)
    for _ in range(times):
        noise_ = draws.normal(size=(len(FIVE), 5, 7)) * np.repeat([1, ratio, 1], [1, 3, 3])
        interval = measures.wider(
            experiment(dict(zip(FIVE, 0.5 + 0.001 * noise_, strict=True))), "early", "late"
        )
        wrong += [interval.low > 0, interval.high < 0]
    assert (wrong / times < 0.05).all()


@given(st.integers(2, 6), st.integers(2, 5), st.integers(0, 2**32 - 1))
def test_the_variance_between_rules_is_that_of_pairs_of_seeds(seeds, rules, seed):
    accuracy = np.random.default_rng(seed).normal(size=(seeds, rules))
    pairs = [
        np.cov(accuracy[s], accuracy[t])[0, 1] for s in range(seeds) for t in range(seeds) if s != t
    ]
    assert measures.between_rules(accuracy) == pytest.approx(np.mean(pairs))


def test_two_rules_together_are_near_on_either_side():
    look = single.together("badge", "random", "late")
    for gap, said in ((0.002, CONFIRMED), (-0.002, CONFIRMED), (0.02, DENIED), (-0.02, DENIED)):
        curves = ramps(badge=(0.5, 0.5), random=(0.5 + gap, 0.5 + gap))
        curves["random"][:, :5] = 0.1  # before the last three rounds it may be anywhere
        assert judged_of(curves, look) == said


def test_a_gap_that_narrows_widens_or_stays():
    look = single.catches_up("entropy", "grad", "badge")
    leaders = {"grad": (0.4, 0.6), "badge": (0.5, 0.7)}
    assert judged_of(ramps(entropy=(0.3, 0.6), **leaders), look) == CONFIRMED
    assert judged_of(ramps(entropy=(0.4, 0.5), **leaders), look) == DENIED
    # Another's curve changes nothing: it is behind those that were named.
    assert judged_of(ramps(entropy=(0.3, 0.6), random=(0.9, 0.1), **leaders), look) == CONFIRMED


def test_a_fall_is_from_what_was_reached():
    curves = dict(ramps(**dict.fromkeys(FIVE, (0.4, 0.6))))
    curves["kcenter"] = curves["kcenter"].copy()
    curves["kcenter"][:, 4] -= 0.2
    falls_SM = measures.falls(experiment(curves))
    at = FIVE.index("kcenter")
    step = 0.2 / 7
    np.testing.assert_allclose(falls_SM[:, at], 0.2 - step)
    np.testing.assert_allclose(np.delete(falls_SM, at, axis=1), 0, atol=1e-12)
    assert judged_of(curves, single.unsteady("kcenter")) == CONFIRMED
    assert judged_of(curves, single.unsteady("grad")) == DENIED


@given(st.integers(2, 9), st.integers(1, 3), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_the_least_difference_decides_as_all_pairs_would(n, high, low, seed):
    names = [f"r{i}" for i in range(high + low)]
    upper, lower = names[:high], names[high:]
    limit = -0.3
    draws = np.random.default_rng(seed)
    values = draws.normal(draws.normal(0, 1, high + low), 1, (n, high + low))
    told, interval = measures.least(
        values, names, measures.pairs_of(upper, lower), measures.student
    )
    each = {
        f"{u} less {d}": values[:, names.index(u)] - values[:, names.index(d)]
        for u in upper
        for d in lower
    }
    assert interval.value == pytest.approx(min(one.mean() for one in each.values()))
    assert each[told.split(",")[0]].mean() == pytest.approx(interval.value)
    said = verdict(interval, limit)
    plain = [measures.student(one, 0.95) for one in each.values()]
    widened = [measures.student(one, 1 - 0.05 / len(each)) for one in each.values()]
    assert interval.low == min(one.low for one in plain)
    assert interval.high == min(one.high for one in widened)
    assert (said == CONFIRMED) == all(one.low > limit for one in plain)
    assert (said == DENIED) == any(one.high < limit for one in widened)


@pytest.mark.parametrize(("lifts", "said"), [((0, 0, 0, 0), DENIED), ((0, 9, 9, 9), CONFIRMED)])
def test_a_least_difference_of_nothing_is_misjudged_no_more_often_than_promised(lifts, said):
    """Five seeds; of the differences of four pairs all are 0, or one is and the others are large."""
    draws, times, names = np.random.default_rng(0), 1_000, ["a", *"bcde"]
    pairs = measures.pairs_of(["a"], names[1:])
    wrong = 0
    for _ in range(times):
        values = draws.normal(size=(5, 5)) - [0, *lifts]
        _, interval = measures.least(values, names, pairs, measures.student)
        wrong += verdict(interval) == said
    assert binomtest(wrong, times, 0.025, alternative="greater").pvalue > 0.01
    assert wrong > 0  # it is a rate that is promised, not silence


@given(st.floats(-2, 2), st.floats(0, 2), st.floats(0.1, 1))
def test_a_margin_less_a_size_is_that_of_every_mean_in_the_interval(value, width, margin):
    difference = measures.within(Interval(value, value - width, value + width, 5), margin)
    sizes = margin - np.abs(np.linspace(value - width, value + width, 4001))
    assert difference.low == pytest.approx(sizes.min())
    assert difference.high == pytest.approx(sizes.max(), abs=2e-3)
    assert difference.value == margin - abs(value)


def test_loss_scores_of_experiments_add_up(tmp_path):
    experiments = evidence(tmp_path, {"grad": 0.02}).experiments
    for stage in ("all", "early", "late"):
        names, loss = measures.losses(Case(experiments), stage)
        assert names == [one.name for one in experiments]
        whole = penalty(experiments, stage, methods=FIVE)
        assert np.allclose(loss.sum(axis=0), whole.loss_M)


def test_students_interval():
    interval = measures.student(np.array([1.0, 2.0, 3.0]))
    assert (round(interval.low, 3), interval.value, round(interval.high, 3)) == (-0.484, 2.0, 4.484)
    assert np.isnan(measures.student(np.array([1.0])).low)


@pytest.fixture(scope="module")
def results():
    """Every study that judges a claim, on `digits`."""
    lab = Lab()
    names = ("geometry", "shift", "contraction", "cost")
    return {name: studies.get(name).run(OPTIONS[name], lab) for name in names}


def test_studies_judge_their_claims(results, tmp_path):
    claims = of_studies.of_the_paper(results)
    assert {one.source for one in claims if one.figure != "–"} == set(results)
    assert of_studies.of_the_paper({}) == []
    page = render(evidence(tmp_path, results=results))
    assert "### cost: what does an acquisition cost?" in page
    assert "3.47 ± 0.23" in page  # the paper's own seconds, beside ours


def test_the_page_says_what_is_missing(tmp_path):
    page = render(evidence(tmp_path))
    assert page.startswith(MARK)
    assert f"{len(NAMES)} of 18 experiments" in page
    assert "Not here: 20newsgroups-mlp, gtsrb-vgg16" in page
    assert "None in this folder" in page


def test_the_gains_are_the_differences_from_random(tmp_path):
    world = evidence(tmp_path, {"grad": 0.03})
    table = tables.gain_table(world)
    assert list(table)[-1] == f"mean of {len(NAMES)} experiments"
    assert list(table["svhn-lenet"]) == ["grad", "badge", "powergrad", "entropy", "kcenter"]
    means = [table[name]["grad"].value for name in NAMES]
    assert table[f"mean of {len(NAMES)} experiments"]["grad"].value == pytest.approx(np.mean(means))


def test_one_seed_shows_the_least_difference_and_no_interval(tmp_path):
    table = {
        "random": [[0.5, 0.6, 0.7]], "entropy": [[0.5, 0.5, 0.4]], "badge": [[0.5, 0.7, 0.7]],
        "kcenter": [[0.5, 0.6, 0.6]], "grad": [[0.5, 0.6, 0.6]],
    }  # fmt: skip
    world = made_up.gathered(tmp_path, made_up.curves("svhn-lenet", table))
    (one,) = [
        p for p in judge(stores.PANELS, world.case) if p.claim == "svhn-lenet: k-center below all"
    ]
    assert (one.verdict, one.n) == (UNJUDGED, "1 seed")
    assert one.measure.startswith("mean accuracy, all rounds, entropy less kcenter")
    assert "[" not in one.figure
    # No round of one seed can be tested, which is no score of zero.
    assert measures.losses(world.case)[0] == []
    assert "0.000" not in render(world)


def test_an_unfinished_experiment_takes_nothing_from_the_others(tmp_path):
    whole = evidence(tmp_path, {"badge": 0.05})
    short = [
        row for row in whole.facts.rows
        if not (row.experiment == "svhn-lenet" and row.strategy == "grad" and row.round > 4)
    ]  # fmt: skip
    unfinished = made_up.gathered(tmp_path, short)
    claim = "grad is ahead of BADGE, the last three rounds"
    for world, n in ((whole, 6), (unfinished, 5)):
        (one,) = [c for c in judge(stores.OURS, world.case) if c.claim == claim]
        assert (one.verdict, one.n) == (DENIED, f"{n} experiments × 5 seeds")
    # And the page says what it did not compare.
    assert "not every method has two seeds in round 5, 6, 7" in render(unfinished)
    assert "Left out" not in render(whole)


def test_stages_are_compared_within_whole_seeds():
    curves = ramps(entropy=(0.3, 0.6), grad=(0.5, 0.6))
    curves["grad"] = curves["grad"].copy()
    curves["grad"][0, 1] = np.nan  # early, of one seed
    curves["grad"][1, 6] = np.nan  # late, of another
    measured = single.catches_up("entropy", "grad")(Case([experiment(curves)]))
    assert (measured.interval.n, measured.n) == (3, "3 seeds")


def test_a_page_without_random_has_no_picture_of_gains(tmp_path):
    assert "gains.png" in render(evidence(tmp_path))
    assert "gains.png" not in render(evidence(tmp_path, rules=("grad", "badge")))


@pytest.mark.parametrize(
    ("rounds", "early", "mid", "late"),
    [
        (10, [1, 2, 3], [4, 5, 6], [7, 8, 9]),
        (9, [1, 2, 3], [3, 4, 5], [6, 7, 8]),
        (3, [1, 2], [1, 2], [1, 2]),
    ],
)
def test_stages_are_three_rounds(rounds, early, mid, late):
    one = experiment({"grad": np.arange(2 * rounds).reshape(2, rounds) / 100})
    for stage, at in (("early", early), ("mid", mid), ("late", late)):
        means = one.accuracy_MST[0][:, at].mean(axis=1)
        np.testing.assert_allclose(measures.accuracies(one, stage)[:, 0], means)
