"""A/A: where every method is the same noise, a win is false, and there are few enough of them."""

import numpy as np
import pytest
from scipy import stats

from askance.experiments.statistics.paired import pairwise
from askance.experiments.statistics.penalty import wins
from askance.experiments.statistics.table import ExperimentResults
from tests.experiments.statistics.worlds import FIVE

STORES, SEEDS, ROUNDS = 1000, 5, 11


@pytest.mark.parametrize("test_points", [None, 10_000, 360])
def test_false_wins_are_at_most_alpha(test_points):
    """A thousand stores of one truth: seeds differ, rounds rise, and no method is better.

    The share of rounds with any win is the family-wise error under the complete null, which
    Benjamini–Hochberg keeps at α; counted accuracies of a test set of some size have ties.
    """
    draws = np.random.default_rng(20)
    curve = np.linspace(0.5, 0.9, ROUNDS)
    labels = np.broadcast_to(10.0 * np.arange(1, ROUNDS + 1), (len(FIVE), SEEDS, ROUNDS))
    false = counted = 0
    for _ in range(STORES):
        seed_effect = draws.normal(0, 0.02, (1, SEEDS, 1))
        accuracy = curve + seed_effect + draws.normal(0, 0.015, labels.shape)
        accuracy[:, :, 0] = accuracy[:1, :, 0]
        if test_points:
            accuracy = np.round(accuracy * test_points) / test_points
        seeds, rounds = tuple(range(SEEDS)), tuple(range(ROUNDS))
        one = ExperimentResults("aa", "none", "none", FIVE, seeds, rounds, labels, accuracy)
        _, won_TMM = wins(one)
        false += int(won_TMM.any(axis=(1, 2)).sum())
        counted += len(won_TMM)
    assert counted == STORES * (ROUNDS - 1)
    most = stats.binom.ppf(0.975, counted, 0.05)
    assert false <= most, f"{false} of {counted} rounds have a false win, at most {most:.0f} may"
    assert false > 0.01 * counted  # and the tests are not asleep


def test_false_verdicts_are_at_most_alpha():
    """The same of whole curves: areas whose seeds differ and whose methods do not."""
    draws = np.random.default_rng(21)
    areas = 0.8 + draws.normal(0, 0.02, (STORES, 1, SEEDS))
    areas = areas + draws.normal(0, 0.01, (STORES, len(FIVE), SEEDS))
    false = int(pairwise(areas).wins(len(FIVE)).any(axis=(1, 2)).sum())
    assert false <= stats.binom.ppf(0.975, STORES, 0.05)
