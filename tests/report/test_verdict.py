"""The verdict claims what the tests say, and no more."""

import re

import numpy as np
import pytest

from askance.experiments.statistics.curves import curves
from askance.report.overall import verdict
from askance.report.verdict import against
from tests.experiments.statistics.worlds import experiment, noise


def of(tables, **options):
    return verdict([curves(experiment(tables, **options))])


def text(result):
    return " ".join([result.headline, *result.sentences])


def test_a_clear_winner():
    result = of(noise(("random", "entropy", "grad"), lifts={"grad": 0.2}, spread=0.01))
    assert result.headline.startswith("Active learning helped: grad beats random by")
    assert "n = 5 seeds" in text(result)
    assert "after correcting for 3 pairs" in text(result)
    assert "fewer" in text(result)
    assert "four times in five" in text(result)
    assert "95% interval" in result.tiles[0].detail


def test_noise_is_called_noise():
    result = of(noise(("random", "entropy", "grad"), seed=5))
    assert result.headline.startswith("It is not clear that active learning helped: no rule is")
    assert "beats" not in text(result)


def test_random_may_come_first():
    result = of(noise(("random", "entropy"), lifts={"entropy": -0.1}, spread=0.01))
    assert result.headline == "Active learning did not help: no rule did better than random."
    assert "entropy" in text(result)


def test_the_leader_need_not_be_the_one_who_is_sure():
    draws = np.random.default_rng(0)
    random = 0.5 + draws.normal(0, 0.001, (5, 4))
    steady = random + 0.05 + draws.normal(0, 0.001, (5, 4))
    wild = random + np.array([0.4, -0.1, 0.3, -0.1, 0.1])[:, None]
    result = of({"random": random, "badge": steady, "grad": wild})
    assert result.headline == (
        "Active learning helped: badge is significantly better than random. grad leads, but not "
        "significantly."
    )
    assert "badge (+" in text(result)


def test_who_is_worse_is_told():
    result = of(
        noise(("random", "entropy", "grad"), lifts={"grad": 0.2, "entropy": -0.2}, spread=0.01)
    )
    assert "Significantly worse than random: entropy (−" in text(result)


def test_without_random_the_two_best_are_compared():
    result = of(noise(("badge", "grad"), lifts={"grad": 0.2}, spread=0.01))
    assert result.headline.startswith("grad beats badge")


@pytest.mark.parametrize("seeds", [1, 2, 3, 4])
def test_few_seeds_are_too_few_for_more_than_who_leads(seeds):
    result = of(noise(("random", "grad"), seeds=seeds, lifts={"grad": 0.2}))
    counted = f"{seeds} seed" + "s" * (seeds > 1)
    assert result.headline.startswith(
        f"Too few seeds to say whether active learning helped: with {counted}, grad leads random by"
    )
    assert "--seeds 5 --extend" in text(result)
    words = text(result) + " ".join(tile.label + tile.detail for tile in result.tiles)
    for claim in ("95%", "p = ", "p <", "true difference", "effect size", "∞", "significant"):
        assert claim not in words


def test_few_seeds_without_random_or_with_random_ahead_are_too_few_too():
    result = of(noise(("badge", "grad"), seeds=2, lifts={"grad": 0.2}))
    assert result.headline.startswith(
        "Too few seeds to say which rule is better: with 2 seeds, grad"
    )
    result = of(noise(("random", "grad"), seeds=2, lifts={"grad": -0.2}))
    assert result.headline.endswith("with 2 seeds, no rule did better than random.")


@pytest.mark.parametrize(
    ("spread", "said"), [(0.1, "and one of"), (0.4, "none at all"), (3, "no true")]
)
def test_no_difference_above_100_points_is_called_findable(spread, said):
    draws = np.random.default_rng(0)
    random = 0.5 + draws.normal(0, 0.01, (5, 4))
    swing = spread * np.array([1, -1, 1, -1, 0.5])[:, None]
    rules = {f"rule{i}": random + swing / (i + 1) for i in range(5)}
    (sentence,) = [one for one in of({"random": random, **rules}).sentences if "four times" in one]
    assert said in sentence
    assert all(float(number) < 100 for number in re.findall(r"[\d.]+(?= points|(?= under))", sentence)
               ) or "so much that" in sentence  # fmt: skip


def test_one_rule_alone_is_compared_with_nothing():
    assert "nothing to compare" in of(noise(("grad",))).headline


@pytest.mark.parametrize("seeds", [1, 2, 5])
@pytest.mark.parametrize("methods", [("random", "badge", "grad"), ("badge", "grad")])
def test_before_anything_is_chosen_rules_cannot_differ(methods, seeds):
    result = of(noise(methods, seeds=seeds, rounds=1), name="new")
    assert result.headline == (
        "Nothing that a rule chose has been trained on yet, so rules cannot differ."
    )
    assert "In new all rules have round 0 alone" in text(result)
    assert not result.tiles
    assert "0.0" not in text(result)


def test_a_rule_ahead_of_the_others_is_not_compared_yet():
    tables = noise(("random", "grad"), rounds=2)
    tables["random"][:, 1] = np.nan
    result = of(tables)
    assert result.headline.startswith("Rules cannot differ yet: not all of them")
    assert not against(curves(experiment(tables)))


def test_experiments_that_have_not_begun_are_left_out_of_the_sum():
    def made(name, seed, rounds):
        return curves(
            experiment(
                noise(("random", "grad"), seed=seed, rounds=rounds, lifts={"grad": 0.1}), name=name
            )
        )

    old, new = [made(f"old{i}", i, 4) for i in range(3)], [made(f"new{i}", i, 1) for i in range(2)]
    both, alone = verdict([*old, *new]), verdict(old)
    assert "Left out: new0 and new1, of which all rules have round 0 alone" in text(both)
    assert both.headline == alone.headline
    assert [one for one in both.sentences if "Left out" not in one] == alone.sentences
    assert verdict(new).headline.startswith("Nothing that a rule chose has been trained on yet")
    assert verdict([old[0], new[0]]).headline == (
        "One experiment alone has gone beyond round 0: there is nothing to sum up."
    )


def several(count, lifts, methods=("random", "entropy", "grad"), spread=0.01):
    return verdict(
        [
            curves(experiment(noise(methods, seed=i, lifts=lifts, spread=spread), name=f"e{i}"))
            for i in range(count)
        ]
    )


def test_over_many_experiments():
    result = several(8, {"grad": 0.1})
    assert result.headline.startswith(
        "Active learning helped: grad ranks first over 8 experiments and beats random"
    )
    assert "8 of 8" in text(result)
    assert "Friedman" in text(result)


def test_few_experiments_cannot_carry_a_claim():
    result = several(3, {"grad": 0.1})
    assert "not significantly above random" in result.headline
    assert "cannot give a p below 0.250" in text(result)
    assert "better than random in 3 of 3" in text(result)


def test_many_experiments_of_noise():
    result = several(8, {}, spread=0.05)
    assert "beats" not in result.headline


def test_the_power_over_experiments_is_that_of_those_with_a_test():
    one = curves(experiment(noise(("random", "grad"), seeds=1), name="a"))
    rest = [curves(experiment(noise(("random", "grad"), seed=i), name=f"e{i}")) for i in range(2)]
    assert "With 5 seeds a test within an experiment finds" in text(verdict([one, *rest]))


def test_experiments_with_nothing_in_common():
    one = curves(experiment(noise(("random", "grad")), name="a"))
    two = curves(experiment(noise(("badge", "kcenter")), name="b"))
    assert "too few rules in common" in verdict([one, two]).headline


def test_rules_without_a_seed_in_common_are_not_compared():
    tables = noise(("random", "grad"), seeds=4)
    tables["random"][2:], tables["grad"][:2] = np.nan, np.nan
    result = of(tables)
    assert "have no seed in common" in result.headline


def test_nothing_is_shown_as_a_number_that_is_none():
    for methods in (("random", "grad"), ("random", "badge", "grad"), ("badge", "grad")):
        result = [several(2, {}, methods)]
        for seeds in (1, 2, 5):
            tables = noise(methods, seeds=seeds, rounds=3)
            tables["grad"][0, 2:] = np.nan
            result.append(of(tables))
        for one in result:
            assert "nan" not in text(one)
            assert "–" not in text(one)
