"""An experiment of the paper, shortened, on its own data."""

import os

import pytest

from askance import data, paper
from askance.experiments import export, spec
from askance.experiments.runner import run
from askance.experiments.store import ResultStore
from askance.experiments.summary import ranking


@pytest.mark.slow
def test_isolet_on_a_cpu(tmp_path):
    """(b, T) = (100, 9), three seeds: random's curve rises, and every rule starts where it does."""
    if data.describe("isolet").available is None:
        where = os.environ.get("ASKANCE_DATA", "not set")
        pytest.skip(
            f"isolet is not here (ASKANCE_DATA: {where}): get it with askance data fetch isolet"
        )
    assert "isolet-mlp" in paper.SUITE.experiments
    short = spec.load("isolet-mlp").override(["random", "badge"], seeds=3, rounds=9)
    run(short, tmp_path, device="cpu")
    with ResultStore.read(tmp_path) as store:
        curves = {(rule, seed): store.history(rule, seed) for rule, seed in store.runs}
        assert len(store.sweep_results()) == 10
    assert len(curves) == 6
    for seed in range(3):
        first, other = curves["random", seed][0], curves["badge", seed][0]
        assert (first.accuracy, first.loss) == (other.accuracy, other.loss)
        assert [one.labels for one in curves["random", seed]] == list(range(100, 1100, 100))
        accuracies = [one.accuracy for one in curves["random", seed]]
        assert accuracies[0] < accuracies[2] < accuracies[5] < accuracies[9]
    ranks = {rank.strategy: rank for rank in ranking(export.table(tmp_path))}
    assert ranks["random"].final_accuracy > 0.9
    assert ranks["badge"].mean_accuracy > ranks["random"].mean_accuracy
