"""Verdicts that rest on wins, under other readings of what a win is: from the stores, with no new runs.

The paper leaves room in how its penalty matrices are made. It may have counted round 0. Its t-tests may
be one-sided. Its correction may be over other tests, or missing. Here every claim that is judged by
loss scores is judged again under each of these readings, alone and together. The limits, the blocks of
five seeds and the intervals over experiments stay as they are.

One-sided is read as one test a pair, in the direction of its mean. Had the paper tested both directions
of every pair, 20 tests a round, and corrected over all of them, its wins would be those of the
two-sided tests: the smaller p of a pair is half as large, and twice as many tests are corrected for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from askance.experiments.statistics.penalty import STAGES
from askance.paper.claims.case import Case
from askance.paper.claims.judge import Claims, JudgedClaim, judged
from askance.paper.claims.measures import losses
from askance.paper.claims.stores import OURS, OVERALL
from askance.paper.suite import RULES
from askance.report.formatting import number
from askance.report.markdown import table

# What is read otherwise, by name: fields of a `Reading`.
READINGS: Mapping[str, Mapping[str, Any]] = {
    "round 0 counted": {"first": 0},
    "one-sided": {"one_sided": True},
    "uncorrected": {"corrected": False},
    "one-sided, uncorrected": {"one_sided": True, "corrected": False},
    "all three": {"first": 0, "one_sided": True, "corrected": False},
}
ABOUT = (
    "Claims that are judged by loss scores, with another reading of what a win is: round 0 counted (no "
    "rule wins it, and the early rounds are then 0–2); one-sided tests, each in the direction of the "
    "pair's mean; no correction over the ten pairs of a round; the last two together; all three. "
    "One-sided tests of both directions of every pair, corrected over all 20, give the same wins as "
    "two-sided ones. The verdict as judged stands."
)


@dataclass(frozen=True)
class ClaimUnderReadings:
    """A claim that rests on wins, as judged and under every other reading.

    Args:
        judged: by the rule of `results/paper/JUDGING.md`.
        others: by the name of the reading, in the order of `READINGS`.
    """

    judged: JudgedClaim
    others: dict[str, JudgedClaim]

    @property
    def changed(self) -> dict[str, str]:
        """The verdict under those readings that change it."""
        before = self.judged.verdict
        return {name: one.verdict for name, one in self.others.items() if one.verdict != before}


def cases(case: Case) -> dict[str, Case]:
    """The same experiments under each of `READINGS`, by its name."""
    return {
        name: replace(case, reading=replace(case.reading, **fields))
        for name, fields in READINGS.items()
    }


def resting_on_wins(case: Case, claims: Claims | None = None) -> list[ClaimUnderReadings]:
    """Every claim that is judged by loss scores, under every reading, in the order of the claims.

    Args:
        case: what decides, such as `gather(folder).case`.
        claims: those asked about; the paper's over its suite, and our own, when left out.
    """
    told = []
    others = cases(case)
    for claim, measure in ({**OVERALL, **OURS} if claims is None else claims).items():
        measured = measure(case)
        if measured.of_wins:
            there = {name: judged(claim, measure(other)) for name, other in others.items()}
            told.append(ClaimUnderReadings(judged(claim, measured), there))
    return told


def verdict_table(case: Case, claims: Claims | None = None) -> str:
    """One row a claim: its verdict and figure as judged, and under every other reading."""
    rows = [
        [one.judged.claim, *map(_cell, (one.judged, *one.others.values()))]
        for one in resting_on_wins(case, claims)
    ]
    columns = ["claim", "as judged", *READINGS]
    return table(columns, rows, left=len(columns))


def _cell(one: JudgedClaim) -> str:
    return one.verdict if one.figure == "–" else f"{one.verdict}: {one.figure}"


def loss_table(case: Case) -> str:
    """One row a rule and stage: its mean loss score an experiment, as judged and otherwise."""
    views = {"as judged": case, **cases(case)}
    rows = []
    for stage in STAGES.values():
        means = [losses(view, stage)[1] for view in views.values()]
        for place, rule in enumerate(RULES):
            cells = [
                number(float(each.mean(axis=0)[place]), 3) if len(each) else "–" for each in means
            ]
            rows.append([stage, rule, *cells])
    return table(["rounds", "rule", *views], rows, left=2)


def win_shares(case: Case) -> dict[str, float]:
    """By reading the share of tests that are wins, over experiments, rounds and the ten pairs of rules.

    A rule's loss score is the mean of M entries of its column, and every pair has two entries. So the
    M loss scores add up to the number of wins a round, over M.
    """
    pairs = len(RULES) * (len(RULES) - 1) / 2
    shares = {}
    for name, view in {"as judged": case, **cases(case)}.items():
        _, loss_EM = losses(view)
        total = float(loss_EM.sum(axis=1).mean()) * len(RULES) if len(loss_EM) else np.nan
        shares[name] = total / pairs
    return shares


def section(case: Case) -> str:
    """What was read otherwise, the verdicts, and the loss scores behind them."""
    wins = "; ".join(
        f"{name} {number(100 * share, 1)}%" for name, share in win_shares(case).items()
    )
    return "\n\n".join(
        [
            ABOUT,
            verdict_table(case),
            f"Tests that are wins, of all experiments, rounds and pairs: {wins}.",
            loss_table(case),
        ]
    )
