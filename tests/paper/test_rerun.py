"""An experiment run again agrees with the one published, and the comparison would say if it did not."""

import json
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from askance.errors import StoreError
from askance.experiments.packing import FILE, file_of, unpack
from askance.experiments.spec import hash_of
from askance.experiments.store import ResultStore
from askance.paper import rerun
from askance.paper.suite import RULES

ROOT = Path(__file__).parents[2]
STORED = Path("results/paper/svhn-lenet")
# What was run again, and which of it came out otherwise.
RERUNS = {"svhn-lenet": (RULES, []), "stl10-lenet": (("random", "grad"), ["grad"])}
SEEDS, ROUNDS = 5, 9
PNG = b"\x89PNG"

pytestmark = pytest.mark.skipif(not (ROOT / STORED).exists(), reason="no results/, as in an sdist")


@pytest.fixture
def doctored(tmp_path):
    """A function: a copy of the published store, changed by these statements, its spec by these."""

    def make(*statements, folder="copy", **changes):
        made = tmp_path / folder
        made.mkdir()
        shutil.copy(file_of(ROOT / STORED), made)
        unpack(made)
        with sqlite3.connect(made / FILE) as db:
            for statement in statements:
                db.execute(statement)
            (known,) = db.execute("SELECT spec FROM experiment").fetchone()
            spec = json.loads(known) | changes
            db.execute(
                "UPDATE experiment SET spec = ?, hash = ?", [json.dumps(spec), hash_of(spec)]
            )
        db.close()
        return made

    return make


def alone(*rules):
    """Statements that leave the runs of these rules."""
    others = f"strategy NOT IN ({', '.join(map(repr, rules))})"
    return [f"DELETE FROM {table} WHERE {others}" for table in ("round", "run")]


@pytest.fixture(scope="module", params=RERUNS)
def comparison(request):
    """What is published of the second runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)  # the page quotes the folders as they were given
        yield rerun.compare(STORED.with_name(request.param), Path("results/again", request.param))


def test_the_page_is_what_the_stores_say(comparison):
    folder = ROOT / comparison.again.path.parent
    assert (folder / "README.md").read_text(encoding="utf-8") == rerun.page(comparison)
    assert (folder / "again.png").read_bytes().startswith(PNG)


def test_what_is_within_the_spread_is_what_the_pages_say(comparison):
    rules, outside = RERUNS[comparison.again.name]
    assert tuple(rule.name for rule in comparison.rules) == rules
    assert [rule.name for rule in comparison.rules if not rule.within] == outside
    # Whatever a test of single rounds says, most means are among the stored seeds.
    assert all(rule.between > 0.8 and rule.inside(2) == 1 for rule in comparison.rules)


def test_it_was_run_again_and_not_copied(comparison):
    assert comparison.stored.info["created"] < comparison.again.info["created"]
    both = (comparison.stored, comparison.again)
    stored, again = ({record.seconds["train"] for record in one.records} for one in both)
    assert not stored & again


def test_a_store_agrees_with_itself():
    comparison = rerun.compare(ROOT / STORED, file_of(ROOT / STORED))
    assert comparison.within
    for rule in comparison.rules:
        assert not rule.moved_T.any()
        assert rule.between == rule.inside(1) == rule.inside(2) == 1
        assert (rule.identical, rule.shared_S.tolist()) == (SEEDS, [1] * SEEDS)


def test_seeds_in_another_order_have_the_same_means_and_other_runs(doctored):
    made = doctored("UPDATE round SET seed = seed + 10", "UPDATE round SET seed = 14 - seed")
    comparison = rerun.compare(ROOT / STORED, made)
    assert comparison.within
    for rule in comparison.rules:
        np.testing.assert_allclose(rule.moved_T, 0, atol=1e-12)
        assert rule.identical == 1  # the middle one
        assert rule.shared_S.max() == 1
        assert rule.shared_S.min() < 0.5


@pytest.mark.parametrize("points", [-3, 3])
def test_a_shifted_curve_is_outside_and_no_other(doctored, points):
    made = doctored(
        f"UPDATE round SET accuracy = accuracy + {points / 100} WHERE strategy = 'grad'"
    )
    comparison = rerun.compare(ROOT / STORED, made)
    assert [rule.name for rule in comparison.rules if not rule.within] == ["grad"]
    (grad,) = (rule for rule in comparison.rules if rule.name == "grad")
    np.testing.assert_allclose(100 * grad.moved_T, points)
    assert grad.won_T.all()  # every seed by the same: t is infinite
    assert grad.identical == 0


def test_the_command_writes_what_it_says_and_fails_where_a_curve_is_outside(
    doctored, tmp_path, capsys
):
    made = doctored(
        *alone("entropy", "grad"),
        "UPDATE round SET accuracy = accuracy - 0.03 WHERE strategy = 'grad'",
        strategies=[{"name": "entropy"}, {"name": "grad"}],
    )
    assert rerun.main([str(ROOT / STORED), str(made), "--out", str(tmp_path / "out")]) == 1
    written = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert capsys.readouterr().out == written
    assert "**Outside the seeds' spread: `grad`, of 2 curves.**" in written
    verdicts = [line.split(" | ")[::12] for line in written.splitlines() if line.startswith("| `")]
    assert verdicts == [["| `entropy`", "yes |"], ["| `grad`", "no |"]]
    assert (tmp_path / "out" / "again.png").read_bytes().startswith(PNG)


def test_noise_as_large_as_the_seeds_spread_is_judged_by_range_alone(doctored):
    """Out of the seeds' range in five rounds of nine, though no test tells the two apart."""
    sign = "(CASE seed % 2 WHEN 0 THEN 1 ELSE -1 END)"
    noisy = f"accuracy - 0.08 + 0.12 * {sign}"
    made = doctored(f"UPDATE round SET accuracy = {noisy} WHERE strategy = 'badge' AND round > 3")
    comparison = rerun.compare(ROOT / STORED, made)
    (badge,) = (rule for rule in comparison.rules if rule.name == "badge")
    assert not badge.differs_T.any()
    assert badge.between == 4 / ROUNDS
    assert not badge.within


def test_the_numbers_are_those_of_scipy(doctored):
    made = doctored("UPDATE round SET accuracy = accuracy + 0.001 * seed * seed - 0.002 * round")
    comparison = rerun.compare(ROOT / STORED, made)
    with ResultStore.read(ROOT / STORED) as store:
        stored = {(r.strategy, r.seed, r.round): r.accuracy for r in store.rounds()}
    with ResultStore.read(made) as store:
        other = {(r.strategy, r.seed, r.round): r.accuracy for r in store.rounds()}
    p = np.empty((ROUNDS, len(comparison.rules)))
    for place, rule in enumerate(comparison.rules):
        for number in range(ROUNDS):
            a, b = (
                np.array([of[rule.name, seed, number] for seed in range(SEEDS)])
                for of in (stored, other)
            )
            p[number, place] = stats.ttest_rel(a, b).pvalue
            assert rule.moved_T[number] == pytest.approx(b.mean() - a.mean(), abs=1e-12)
            assert rule.std_T[number] == pytest.approx(a.std(ddof=1))
    won = np.stack([stats.false_discovery_control(row) < 0.05 for row in p])
    differs = (stats.false_discovery_control(p.ravel()) < 0.05).reshape(p.shape)
    assert won.any()
    np.testing.assert_array_equal(np.stack([rule.won_T for rule in comparison.rules], axis=1), won)
    np.testing.assert_array_equal(
        np.stack([r.differs_T for r in comparison.rules], axis=1), differs
    )


def test_chance_is_what_it_is_said_to_be():
    words = rerun.page(rerun.compare(ROOT / STORED, ROOT / STORED))
    ten = np.random.default_rng(0).standard_normal((2, 200_000, SEEDS))
    mean, (low, high) = ten[1].mean(axis=1), (ten[0].min(axis=1), ten[0].max(axis=1))
    away = np.abs(mean - ten[0].mean(axis=1)) / ten[0].std(axis=1, ddof=1)
    shares = [((mean < low) | (mean > high)).mean(), (away > 1).mean(), (away > 2).mean()]
    said = "others {:.0%} of the time, out of one std {:.0%}, out of two {:.0%}".format(*shares)
    assert said in words


@pytest.mark.parametrize(
    ("statement", "changes", "message"),
    [
        ("SELECT 1", {"seeds": 4}, "seeds: 5 → 4"),
        ("SELECT 1", {"schedule": {"batch": 400, "rounds": 8}}, "schedule.batch: 500 → 400"),
        ("SELECT 1", {"precision": "float32"}, 'precision: "tf32" → "float32"'),
        ("UPDATE experiment SET fingerprint = 'other'", {}, "data: e6.* → other"),
        ("DELETE FROM round WHERE round = 8 AND seed = 1", {}, "10 of 50 runs are not finished"),
    ],
)
def test_what_is_not_the_same_experiment_is_refused(doctored, statement, changes, message):
    with pytest.raises(StoreError, match=message):
        rerun.compare(ROOT / STORED, doctored(statement, **changes))


def test_another_experiment_is_refused_on_the_command_line(capsys, tmp_path):
    arguments = [str(ROOT / STORED), str(ROOT / "results/paper/stl10-lenet")]
    with pytest.raises(SystemExit) as stop:
        rerun.main([*arguments, "--out", str(tmp_path / "out")])
    assert stop.value.code == 2
    assert 'dataset: "svhn" → "stl10"' in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_one_store_is_compared_with_one(doctored, tmp_path):
    with pytest.raises(StoreError, match="nowhere"):
        rerun.compare(tmp_path / "nowhere", ROOT / STORED)
    folder = doctored(folder="one").parent
    doctored(folder="two")
    with pytest.raises(StoreError, match="2 stores of 1 experiments"):
        rerun.compare(folder, ROOT / STORED)


def test_rules_in_both_are_compared_and_there_must_be_one(doctored):
    grad = doctored(*alone("grad"), strategies=[{"name": "grad"}], folder="grad")
    egl = doctored(*alone("egl"), strategies=[{"name": "egl"}], folder="egl")
    assert [rule.name for rule in rerun.compare(ROOT / STORED, egl).rules] == ["egl"]
    assert [rule.name for rule in rerun.compare(egl, ROOT / STORED).rules] == ["egl"]
    with pytest.raises(StoreError, match=r"no rule is in both stores: grad in .*, egl in "):
        rerun.compare(grad, egl)


def test_one_seed_has_no_spread(doctored):
    made = doctored("DELETE FROM round WHERE seed > 0", "DELETE FROM run WHERE seed > 0", seeds=1)
    with pytest.raises(StoreError, match="a spread needs at least two"):
        rerun.compare(made, made)
