"""Areas, labels saved, effect sizes and their intervals."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from askance.experiments.statistics.curves import (
    areas,
    compare_areas,
    curves,
    difference,
    effect_size,
    labels_saved,
    labels_to,
)
from askance.experiments.statistics.ranks import profile
from askance.experiments.statistics.resample import interval, mean_interval, resamples
from askance.experiments.statistics.untrained import flags, leave_out
from askance.experiments.summary import left_out, ranking
from askance.report.facts import Facts
from tests.experiments.statistics.test_blocks import recorded
from tests.experiments.statistics.worlds import experiment, noise, rows
from tests.naive.statistics import area_without_holes


def test_area_by_hand():
    labels, accuracy = np.array([10.0, 20.0, 40.0]), np.array([0.2, 0.4, 0.8])
    # (10·0.3 + 20·0.6)/30
    assert areas(labels, accuracy) == pytest.approx(0.5)
    assert areas(labels, np.full(3, 0.7)) == pytest.approx(0.7)
    assert areas(labels[:1], accuracy[:1]) == pytest.approx(0.2)


def test_labels_to_a_goal_by_hand():
    labels = np.array([10.0, 20.0, 30.0, 40.0])
    accuracy = np.array([0.2, 0.4, 0.3, 0.6])
    goals = np.array([0.1, 0.3, 0.4, 0.5, 0.7])
    needed = labels_to(np.tile(labels, (5, 1)), np.tile(accuracy, (5, 1)), goals)
    np.testing.assert_allclose(needed, [10, 15, 20, 30 + 20 / 3, np.inf])


def test_labels_saved_by_hand():
    # Random is at 0.6 after 40 labels; grad after 25, halfway between 20 (0.5) and 30 (0.7).
    random, grad = [0.3, 0.4, 0.5, 0.6], [0.3, 0.5, 0.7, 0.7]
    one = curves(experiment({"random": [random] * 3, "grad": [grad] * 3}))
    saved = labels_saved(one, "grad")
    assert (saved.value, saved.low, saved.high) == pytest.approx((15, 15, 15))
    assert labels_saved(one, "random").value == 0


def test_labels_saved_where_the_goal_is_never_reached():
    one = curves(experiment({"random": [[0.3, 0.9]] * 3, "grad": [[0.3, 0.5]] * 3}))
    assert labels_saved(one, "grad").value == -np.inf
    assert labels_saved(curves(experiment({"grad": [[0.3, 0.5]] * 3})), "grad") is None


def test_labels_saved_of_a_faster_curve_are_found_within_their_interval():
    draws = np.random.default_rng(0)
    x = np.arange(10)
    random = 0.5 + 0.04 * x + draws.normal(0, 0.004, (5, 10))
    grad = np.minimum(0.5 + 0.08 * x, 0.9) + draws.normal(0, 0.004, (5, 10))
    saved = labels_saved(curves(experiment({"random": random, "grad": grad})), "grad")
    assert saved.low <= 45 <= saved.high  # 0.86 after 4.5 batches, not after 9
    assert saved.high - saved.low < 15


def test_bootstrap_is_exact_for_few_seeds():
    assert resamples(3).shape == (27, 3)
    assert len(np.unique(resamples(5), axis=0)) == 5**5
    drawn = resamples(9)
    assert drawn.shape == (10_000, 9)
    np.testing.assert_array_equal(drawn, resamples(9))
    assert drawn.mean() == pytest.approx(4, abs=0.05)


def test_an_interval_needs_two_seeds():
    mean = mean_interval(np.array([0.3]))
    assert mean.value == 0.3
    assert np.isnan([mean.low, mean.high]).all()


def test_an_interval_reaches_further_than_the_plain_percentiles():
    values = np.array([0.01, 0.02, 0.03, 0.05, 0.08])
    mean = mean_interval(values)
    plain = np.quantile(values[resamples(5)].mean(axis=1), [0.025, 0.975])
    assert values.min() <= mean.low < plain[0] < plain[1] < mean.high <= values.max()


@pytest.mark.parametrize(("n", "least"), [(3, 0.70), (5, 0.89), (10, 0.90)])
def test_the_interval_holds_the_truth_nearly_as_often_as_it_says(n, least):
    """Normal differences: 95% is promised; with five seeds no bootstrap goes beyond their range."""
    draws = np.random.default_rng(0)
    held = 0
    for _ in range(400):
        mean = mean_interval(draws.normal(0.3, 1.0, n))
        held += mean.low <= 0.3 <= mean.high
    assert least <= held / 400 <= 0.985


def test_an_interval_may_be_open():
    statistic = np.append(np.full(50, -np.inf), np.arange(50.0))
    bounds = interval(10.0, statistic, 5)
    assert bounds.low == -np.inf
    assert bounds.high == 49


@pytest.mark.parametrize(
    ("mean", "std", "n", "expected"),
    [(2.0, 1.0, 5, 2 * (1 - 3 / 15)), (0.0, 0.0, 5, 0.0), (1.0, 0.0, 5, np.inf),
     (-1.0, 0.0, 5, -np.inf), (2.0, 1.0, 3, 2 * (1 - 3 / 7)), (2.0, 1.0, 2, np.nan),
     (1.0, 0.0, 2, np.nan), (1.0, np.nan, 1, np.nan)],
)  # fmt: skip
def test_effect_size(mean, std, n, expected):
    assert effect_size(mean, std, n) == pytest.approx(expected, nan_ok=True)


def test_effect_size_corrects_what_few_seeds_overstate():
    draws = np.random.default_rng(0).normal(1.0, 1.0, (20_000, 5))
    effects = [effect_size(d.mean(), d.std(ddof=1), 5) for d in draws]
    assert np.mean(effects) == pytest.approx(1.0, abs=0.03)  # Cohen's own is 1.25 on average


def test_differences_of_areas_are_tested_in_pairs():
    tables = noise(("random", "entropy", "grad"), lifts={"grad": 0.02})
    one = curves(experiment(tables))
    d = difference(one, "grad", "random")
    a, b = one.area_MS[one.methods.index("grad")], one.area_MS[one.methods.index("random")]
    assert d.p == pytest.approx(stats.ttest_rel(a, b).pvalue)
    p = [
        stats.ttest_rel(one.area_MS[i], one.area_MS[j]).pvalue for i, j in ((0, 1), (0, 2), (1, 2))
    ]
    assert d.adjusted == pytest.approx(stats.false_discovery_control(p)[1])
    assert d.mean.value == pytest.approx((a - b).mean())
    assert d.better == (a > b).sum()
    back = difference(one, "random", "grad")
    assert back.mean.value == pytest.approx(-d.mean.value)
    assert back.adjusted == d.adjusted
    assert compare_areas(one).p.shape == (3,)


def test_curves_are_cut_to_what_all_have_and_it_is_told():
    tables = noise(("random", "grad"), seeds=4, rounds=5)
    tables["grad"][:3, 4] = np.nan  # one seed alone goes to the end
    tables["random"][2, 2:] = np.nan
    one = curves(experiment(tables))
    assert one.rounds == (0, 1, 2, 3)
    assert one.common("random", "grad").tolist() == [True, True, False, True]
    assert np.isnan(one.area_MS[0, 2])
    assert any("round 4" in text for text in one.left_out)
    assert any("random, seed 2" in text for text in one.left_out)
    assert difference(one, "grad", "random").mean.n == 3


def test_ranking_is_by_mean_area():
    one = curves(experiment(noise(("random", "grad", "badge"), lifts={"grad": 0.1, "badge": 0.05})))
    assert one.ranking() == ["grad", "badge", "random"]


@settings(deadline=None)
@given(st.data())
def test_the_table_of_a_run_and_the_report_have_the_same_numbers(data):
    """Whatever networks did not train: their rounds are left out of both, for all rules of the seed."""
    seeds, rounds = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 5))
    tables = noise(("random", "grad", "badge"), seeds, rounds, lifts={"grad": 0.1})
    flagged = data.draw(
        st.sets(st.tuples(st.sampled_from(list(tables)), st.integers(0, 3), st.integers(0, 4)))
    )
    made = [
        replace(row, flagged=(row.strategy, row.seed, row.round) in flagged) for row in rows(tables)
    ]
    report = Facts([], made, [])
    (one,) = report.curves
    ranked = ranking(made)
    assert [rank.strategy for rank in ranked] == one.ranking()
    assert left_out(made) == flags(*report.every_round).sum()
    for rank in ranked:
        row = one.methods.index(rank.strategy)
        area_S = one.area_MS[row][np.isfinite(one.area_MS[row])]
        ends = one.accuracy_MST[row, :, -1] if one.rounds else np.empty(0)
        ends = ends[np.isfinite(ends)]
        assert rank.seeds == len(area_S)
        assert rank.mean_accuracy == (pytest.approx(area_S.mean()) if len(area_S) else None)
        assert rank.final_accuracy == (pytest.approx(ends.mean()) if len(ends) else None)


def test_a_run_that_did_not_train_is_not_ranked_above_one_that_did():
    """Of one seed's three rounds two are flagged in one rule: the seed counts for no rule."""
    tables = noise(("random", "grad"), seeds=2, rounds=3)
    made = [
        replace(row, flagged=(row.strategy, row.seed) == ("grad", 1) and row.round < 2)
        for row in rows(tables)
    ]
    assert left_out(made) == 2
    assert {rank.strategy: rank.seeds for rank in ranking(made)} == {"random": 1, "grad": 1}
    whole = {rank.strategy: rank for rank in ranking(row for row in made if row.seed == 0)}
    assert all(rank == whole[rank.strategy] for rank in ranking(made))


@given(st.data())
def test_an_area_passes_over_the_rounds_that_are_not_there(data):
    rounds, curves_ = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 4))
    draws = np.random.default_rng(data.draw(st.integers(0, 9999)))
    labels = np.tile(np.cumsum(draws.integers(1, 50, rounds)).astype(float), (curves_, 1))
    accuracy = draws.random((curves_, rounds))
    accuracy[draws.random((curves_, rounds)) < 0.4] = np.nan
    made = areas(labels, accuracy)
    for x, y, area in zip(labels, accuracy, made, strict=True):
        if np.isnan(y).all():
            assert np.isnan(area)
        else:
            assert area == pytest.approx(area_without_holes(x, y), abs=1e-12)


def test_a_round_without_a_trained_network_is_left_out_for_every_rule_of_the_seed():
    tables = noise(("random", "grad"), seeds=4, rounds=6, lifts={"grad": 0.02})
    tables["grad"][1, 2] = 0.1  # did not train
    one = recorded(tables, {("grad", 1, 2)})
    kept = curves(one)
    assert kept.rounds == tuple(range(6))
    assert kept.left_out == ()
    assert np.isnan(kept.accuracy_MST[:, 1, 2]).all()  # of random too
    assert np.isfinite(kept.accuracy_MST).sum() == 2 * 4 * 6 - 2
    x = [10.0 * (r + 1) for r in range(6)]
    for m, rule in enumerate(one.methods):
        run = list(tables[rule][1])
        run[2] = np.nan
        assert kept.area_MS[m, 1] == pytest.approx(area_without_holes(x, run))
    # The same whether the round was taken out before or not.
    gone = curves(leave_out(one))
    np.testing.assert_array_equal(gone.area_MS, kept.area_MS)
    assert gone.left_out == ()
    assert difference(kept, "grad", "random").mean.value > 0.01
    assert difference(kept, "grad", "random").mean.n == 4
    labels, accuracy = kept.together("random", "grad")
    assert labels.shape == (2, 4, 5)  # the round is out for all seeds where curves are averaged
    assert np.isfinite(accuracy).all()
    assert np.isfinite(labels_saved(kept, "grad").value)
    assert profile([kept]).problems == 4


def test_a_seed_whose_networks_mostly_did_not_train_is_left_out():
    tables = noise(("random", "grad"), seeds=4, rounds=6)
    flagged = {("random", 0, r) for r in range(4)} | {("grad", s, 5) for s in range(4)}
    kept = curves(recorded(tables, flagged))
    assert kept.rounds == (0, 1, 2, 3, 4)  # nobody is left in the last
    assert kept.left_out == (
        "made: seed 0: in more than half of its rounds a network did not train",
    )
    assert np.isnan(kept.area_MS[:, 0]).all()
    assert np.isfinite(kept.area_MS[:, 1:]).all()
