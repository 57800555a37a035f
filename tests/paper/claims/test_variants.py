"""Verdicts that rest on wins, under other readings of what a win is."""

from itertools import product

import numpy as np
import pytest

from askance.paper.claims import stores, variants
from askance.paper.claims.case import Case, Reading
from askance.paper.claims.judge import CONFIRMED, OPEN, UNJUDGED
from askance.paper.claims.measures import losses
from askance.paper.suite import RULES
from tests.experiments.statistics.worlds import experiment, noise
from tests.naive.statistics import winning_pairs
from tests.paper.claims.worlds import evidence, staged

GROWS = "The advantage of grad and BADGE in loss scores is larger late than early"
LOWEST = "grad and BADGE have the lowest loss scores, all rounds"


def test_the_claims_are_those_of_loss_scores_and_no_others(tmp_path):
    told = [one.judged.claim for one in variants.resting_on_wins(evidence(tmp_path, {}).case)]
    assert told == [one for one in (*stores.OVERALL, *stores.OURS) if "loss score" in one]
    assert len(told) == 12
    assert variants.resting_on_wins(Case([]))[0].judged.verdict == UNJUDGED  # and none goes missing


def worked(tables, first, one_sided, corrected):
    """Loss scores of one experiment by hand: {rule: (S, T)}, from a first round on."""
    rounds = range(first, len(tables["grad"][0]))
    lost = dict.fromkeys(RULES, 0.0)
    for number in rounds:
        now = {rule: [run[number] for run in tables[rule]] for rule in RULES}
        for _, loser in winning_pairs(now, one_sided=one_sided, corrected=corrected):
            lost[loser] += 1 / len(rounds) / len(RULES)
    return [lost[rule] for rule in RULES]


@pytest.mark.parametrize(
    ("first", "one_sided", "corrected"), list(product((0, 1), (False, True), (False, True)))
)
def test_loss_scores_are_those_of_the_naive_twin(first, one_sided, corrected):
    lifts = {"grad": 0.012, "badge": 0.018, "entropy": -0.01}
    tables = noise(RULES, rounds=9, seed=3, lifts=lifts)
    one = experiment(tables, name="svhn-lenet", dataset="svhn", model="lenet")
    reading = Reading(first=first, one_sided=one_sided, corrected=corrected)
    _, loss_EM = losses(Case([one], reading))
    np.testing.assert_allclose(loss_EM[0], worked(tables, first, one_sided, corrected))
    shares = variants.win_shares(Case([one], reading))
    assert shares["as judged"] == pytest.approx(loss_EM[0].sum() * 5 / 10)


def test_each_weaker_test_has_more_wins_and_round_0_has_none(tmp_path):
    shares = variants.win_shares(evidence(tmp_path, {"grad": 0.003}, rounds=9).case)
    judged = shares["as judged"]
    assert judged < shares["one-sided"] < shares["one-sided, uncorrected"]
    assert judged < shares["uncorrected"]
    assert shares["round 0 counted"] == pytest.approx(judged * 8 / 9)
    assert shares["all three"] == pytest.approx(shares["one-sided, uncorrected"] * 8 / 9)


def test_a_verdict_that_hangs_on_the_test_is_told(tmp_path):
    # Rules that lead by so little that corrected two-sided tests of five seeds seldom see it.
    case = evidence(tmp_path, {"grad": 0.0035, "badge": 0.0035}, rounds=9).case
    (lowest,) = [one for one in variants.resting_on_wins(case) if one.judged.claim == LOWEST]
    assert lowest.judged.verdict == OPEN
    assert lowest.changed["one-sided, uncorrected"] == CONFIRMED
    row = next(r for r in variants.verdict_table(case).splitlines() if r.startswith(f"| {LOWEST}"))
    assert row.count(" | ") == 1 + len(variants.READINGS)
    assert row.split(" | ")[1].startswith("not shown: ")


def test_a_verdict_that_hangs_on_nothing_is_the_same_under_all(tmp_path):
    case = staged(tmp_path, 0.0, 0.05, "grad", "badge").case
    (grows,) = [one for one in variants.resting_on_wins(case) if one.judged.claim == GROWS]
    assert grows.judged.verdict == CONFIRMED
    assert grows.changed == {}
    assert set(grows.others) == set(variants.READINGS)


def test_the_section_has_a_row_for_every_claim_and_every_rule_and_stage(tmp_path):
    page = variants.section(evidence(tmp_path, {}).case)
    assert page.startswith(variants.ABOUT)
    assert page.count("| entropy |") == 3
    assert "as judged" in page
    assert variants.loss_table(Case([])).count("| –") == 3 * 5 * (1 + len(variants.READINGS))
    assert all(np.isnan(share) for share in variants.win_shares(Case([])).values())
