"""The penalty matrix: against its twin, and where the winners are known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from askance.experiments.statistics.penalty import penalty, views, wins
from askance.experiments.statistics.suite import Suite
from askance.experiments.statistics.table import experiments
from tests.experiments.statistics.worlds import FIVE, experiment, noise, rows
from tests.naive import statistics


def naive(tables, rounds):
    """The twin takes dictionaries."""
    return statistics.penalty_matrix(
        {
            method: {
                s: {r: a for r, a in enumerate(run) if np.isfinite(a)}
                for s, run in enumerate(table)
            }
            for method, table in tables.items()
        },
        rounds,
    )


@given(
    st.integers(2, 5), st.integers(2, 5), st.integers(2, 6), st.integers(0, 2**32 - 1),
    st.sampled_from([0.0, 0.15]), st.booleans(),
)  # fmt: skip
@settings(max_examples=60)
def test_matches_the_loops(methods, seeds, rounds, seed, missing, coarse):
    draws = np.random.default_rng(seed)
    names = FIVE[:methods]
    lifts = dict(zip(names, draws.uniform(0, 0.06, methods), strict=True))
    tables = noise(names, seeds, rounds, seed, lifts)
    for table in tables.values():
        if coarse:  # ties are common
            table[:] = np.round(table, 1)
        table[draws.uniform(size=table.shape) < missing] = np.nan
        table[0, 0] = 0.5  # a row each, so that every method is there
    one = experiment(tables)
    for stage, expected in (
        ("all", range(1, rounds)),
        ("early", range(1, min(rounds, 4))),
    ):
        summed = penalty([one], stage)
        assert summed.methods == tuple(names)
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(summed.matrix_MM, _quietly(tables, expected), atol=1e-12)


def _quietly(tables, rounds):
    import warnings

    with warnings.catch_warnings():  # scipy warns of differences that are all the same
        warnings.simplefilter("ignore")
        return naive(tables, rounds)


def test_known_winners():
    tables = noise(FIVE, seeds=5, rounds=6, lifts={"grad": 0.3, "badge": 0.15}, spread=0.005)
    summed = penalty([experiment(tables)])
    matrix = dict(zip(summed.methods, summed.matrix_MM, strict=True))
    column = {method: i for i, method in enumerate(summed.methods)}
    assert summed.rounds == 5
    assert all(matrix["grad"][column[other]] == 1 for other in FIVE if other != "grad")
    assert all(matrix["badge"][column[o]] == 1 for o in ("random", "entropy", "kcenter"))
    assert matrix["badge"][column["grad"]] == 0
    loss = dict(zip(summed.methods, summed.loss_M, strict=True))
    assert loss["grad"] == 0
    assert loss["badge"] == pytest.approx(1 / 5)  # beaten by one of five, its own zero included
    assert loss["random"] >= 2 / 5


def test_a_win_in_one_round_of_four_is_a_quarter():
    low = np.tile([0.5, 0.5, 0.5, 0.5, 0.5], (3, 1)) + np.array([[0.0], [0.1], [0.2]])
    high = low.copy()
    high[:, 2] += [0.10, 0.101, 0.099]
    summed = penalty([experiment({"random": low, "grad": high})])
    assert summed.matrix_MM.tolist() == [[0, 0], [0.25, 0]]
    assert summed.loss_M.tolist() == [0.125, 0]


def test_round_0_is_not_counted():
    low, high = np.full((3, 2), 0.5), np.full((3, 2), 0.5)
    high[:, 0] += [0.1, 0.2, 0.15]
    summed = penalty([experiment({"random": low, "grad": high})])
    assert summed.rounds == 1
    assert not summed.matrix_MM.any()


def test_ties_are_no_wins():
    table = np.random.default_rng(0).uniform(size=(5, 4))
    summed = penalty([experiment({"random": table, "grad": table})])
    assert not summed.matrix_MM.any()
    assert summed.infinite == 0


def test_a_pair_without_variance_is_a_win_and_is_told():
    table = np.random.default_rng(0).uniform(0, 0.5, size=(5, 4))
    summed = penalty([experiment({"random": table, "grad": table + 0.01})])
    assert summed.matrix_MM.tolist() == [[0, 0], [1, 0]]
    assert summed.infinite == 3


def test_early_and_late_rounds():
    rounds = 9  # 0 to 8
    low = np.random.default_rng(0).uniform(0.4, 0.5, (5, rounds))
    high = low + np.random.default_rng(1).uniform(-1e-3, 1e-3, (5, rounds))
    high[:, 1:3] += 0.1  # two of the early ones
    high[:, 8] += 0.1  # one of the late ones
    one = experiment({"random": low, "grad": high})
    assert penalty([one], "early").matrix_MM[1, 0] == pytest.approx(2 / 3)
    assert penalty([one], "late").matrix_MM[1, 0] == pytest.approx(1 / 3)
    assert penalty([one], "all").matrix_MM[1, 0] == pytest.approx(3 / 8)
    assert penalty([one], "early").rounds == penalty([one], "late").rounds == 3


def test_missing_rounds_are_told_and_count_for_those_who_have_them():
    tables = noise(("random", "entropy", "grad"), rounds=5, lifts={"grad": 0.3}, spread=0.005)
    tables["entropy"][1:, 3:] = np.nan  # one seed goes on
    summed = penalty([experiment(tables)])
    assert summed.rounds == 4
    assert summed.matrix_MM[2].tolist() == [1, 0.5, 0]
    assert len(summed.left_out) == 2
    assert "random and entropy" in summed.left_out[0]
    assert "round 3, 4" in summed.left_out[0]


def test_a_round_nobody_shares_is_not_counted():
    tables = noise(("random", "grad"), rounds=5, lifts={"grad": 0.3}, spread=0.005)
    tables["grad"][:, 4] = np.nan
    assert penalty([experiment(tables)]).matrix_MM.tolist() == [[0, 0], [1, 0]]
    assert penalty([experiment(tables)]).rounds == 3
    nothing = penalty([experiment({"random": [[0.5, 0.6]], "grad": [[0.5, 0.7]]})])
    assert nothing.rounds == 0
    assert "no round" in nothing.left_out[-1]


def test_experiments_add_up_whatever_their_rounds():
    short = rows(noise(("random", "grad"), rounds=3, lifts={"grad": 0.3}, spread=0.005), name="a")
    long = rows(noise(("random", "grad"), rounds=9, lifts={"grad": 0.3}, spread=0.005), name="b")
    other = rows(noise(("random", "badge"), rounds=9), name="c")
    summed = penalty(experiments(short + long + other))
    at = {method: i for i, method in enumerate(summed.methods)}
    assert summed.matrix_MM[at["grad"], at["random"]] == 2
    assert summed.experiments_MM[at["grad"], at["random"]] == 2
    assert summed.experiments_MM[at["grad"], at["badge"]] == 0


def test_a_matrix_is_corrected_for_its_own_pairs():
    draws = np.random.default_rng(0)
    tables = noise(("random", "grad"), rounds=2, lifts={"grad": 0.02}, spread=0.008, seed=3)
    alone = penalty([experiment(tables)], methods=FIVE)
    tables |= {f"other-{i}": draws.uniform(size=(5, 2)) for i in range(12)}
    beside = penalty([experiment(tables)], methods=FIVE)
    np.testing.assert_array_equal(alone.matrix_MM, beside.matrix_MM)
    assert beside.methods == ("random", "grad")
    assert len(penalty([experiment(tables)]).methods) == 14


def test_views_come_in_the_order_of_the_suite():
    results = experiments(
        [
            row
            for name, data, model in (
                ("a", "cinic10", "vgg16"), ("b", "svhn", "lenet"), ("c", "cifar10", "resnet18"),
                ("d", "isolet", "mlp"),
            )
            for row in rows(noise(("random", "grad")), name=name, dataset=data, model=model)
        ]
    )  # fmt: skip
    assert list(views(results)) == ["All rounds", "Early: rounds 1–3", "Late: last three rounds"]
    suite = Suite(backbones=("lenet", "vgg16"), datasets=("svhn", "cinic10", "gtsrb"))
    assert list(views(results, "backbone", suite)) == ["lenet", "vgg16", "mlp", "resnet18"]
    assert list(views(results, "dataset", suite)) == ["svhn", "cinic10", "cifar10", "isolet"]
    assert list(views(results, "dataset")) == ["cifar10", "cinic10", "isolet", "svhn"]
    total = sum(view.matrix_MM for view in views(results, "dataset").values())
    np.testing.assert_allclose(total, views(results)["All rounds"].matrix_MM)


def test_wins_by_round():
    tables = noise(("random", "grad"), rounds=3, lifts={"grad": 0.3}, spread=0.005)
    rounds, won = wins(experiment(tables))
    assert rounds == (1, 2)
    assert won[:, 1, 0].all()
    assert not won[:, 0, 1].any()
