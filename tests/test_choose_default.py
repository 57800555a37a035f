"""The default rule is what the stores say, by results/default/CHOOSING.md."""

import importlib
import json
from dataclasses import replace

import numpy as np
import pytest

from askance import strategies
from askance.experiments.formats import ResultRow
from askance.experiments.records import Origin, RoundRecord
from askance.experiments.spec import Spec
from askance.experiments.statistics.table import experiments
from askance.experiments.store import ResultStore
from askance.strategies import defaults
from tests.fences import ROOT
from tests.naive import default as naive

RESULTS = ROOT / "results"

pytestmark = pytest.mark.skipif(not RESULTS.exists(), reason="no results/, as in an sdist")


@pytest.fixture
def choose(monkeypatch):
    """The script as a module, and the module that it decides with."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("choose_default")


@pytest.fixture
def decision(choose):
    return importlib.import_module("default_decision")


def test_the_page_and_the_table_are_what_the_stores_say(choose, decision):
    """Until the stores are there, nothing is said to be decided."""
    page, table = RESULTS / "default" / "README.md", ROOT / "src/askance/strategies/defaults.json"
    try:
        made = decision.decide(decision.read(RESULTS))
    except decision.NotReadyError:
        assert not page.exists()
        assert not defaults.evidence().decided
        return
    assert choose.shipped(made) == table.read_text(encoding="utf-8")
    beside = decision.read_beside(RESULTS)
    assert choose.page(made, beside) == page.read_text(encoding="utf-8")


def test_what_is_compared_is_what_was_written_down(decision):
    told = (RESULTS / "default" / "CHOOSING.md").read_text(encoding="utf-8")
    compared = told.partition("The candidates are ")[2].partition(", with their default")[0]
    assert set(decision.CANDIDATES) == set(
        compared.replace("`", "")
        .replace(" and", ",")
        .replace("\n", " ")
        .replace(", ,", ",")
        .split(", ")
    ) - {""}
    (_network, encoder) = decision.TRACKS
    row = next(line for line in told.splitlines() if line.startswith("| a pretrained encoder"))
    assert all(f"`{name}`" in row for name in encoder.names)
    assert row.endswith("| 15–24 |")


# --- made-up worlds -------------------------------------------------------------------------------

NAMES = {"network": {"one": "a", "two": "b", "twin": "b"}, "encoder": {"three": "c", "four": "d"}}


def world(seed, rules, spread=0.02, seeds=6, rounds=5, untrained=0.03):
    """{(experiment, rule, seed, round): (accuracy, untrained)}; rules differ by chance."""
    draws = np.random.default_rng(seed)
    lifts = {rule: draws.normal(0, 0.02) for rule in rules}
    return {
        (name, rule, s, t): (
            float(0.5 + 0.05 * t + lift + draws.normal(0, spread)),
            bool(draws.random() < untrained and t > 0),
        )
        for names in NAMES.values()
        for name in names
        for rule, lift in {"random": 0.0, **lifts}.items()
        for s in range(seeds)
        for t in range(rounds)
    }


def results(rows):
    """By track, as the stores give them."""
    found = {}
    for track, names in NAMES.items():
        table = [
            ResultRow(e, names[e], "mlp", rule, s, t, 10 * (t + 1), accuracy, flagged=bad)
            for (e, rule, s, t), (accuracy, bad) in rows.items()
            if e in names
        ]
        found[track] = experiments(table)
    return found


@pytest.mark.parametrize("spread", [0.005, 0.03, 0.1])
@pytest.mark.parametrize("seed", range(4))
def test_the_decision_is_that_of_the_words(decision, seed, spread):
    rows = world(seed, decision.CANDIDATES, spread)
    made = decision.decide(results(rows))
    order, out, gains = naive.decide(rows, NAMES, decision.CANDIDATES)
    assert made.order == order
    assert {rule: set(names) for rule, names in made.out.items()} == out
    for track, each in gains.items():
        assert made.mean[track] == pytest.approx(each)
    streams = ("grad", "grad-cover-shortlist", "margin", "powergrad", "powermargin")
    assert made.streaming == next(rule for rule in order if rule in streams)
    assert made.of_probabilities == next(r for r in order if r in ("margin", "powermargin"))


def test_the_worlds_have_rules_that_are_out_and_rules_that_stay(decision):
    """So that the comparison above has something to compare."""
    outs = [
        len(naive.decide(world(seed, decision.CANDIDATES, 0.005), NAMES, decision.CANDIDATES)[1])
        for seed in range(4)
    ]
    assert min(outs) < len(decision.CANDIDATES)
    assert max(outs) > 1


def lifted(lifts, seeds=6):
    """A world without chance but for a little noise that is the same on every track."""
    rows = {}
    for track, names in NAMES.items():
        for name in names:
            for rule, lift in {"random": (0, 0), **lifts}.items():
                for s in range(seeds):
                    for t in range(4):
                        more = lift[track == "encoder"] + 0.001 * ((s * 7 + t * 3) % 5 - 2) * (
                            rule != "random"
                        )
                        rows[name, rule, s, t] = (0.5 + more, False)
    return rows


def all_at(decision, **lifts):
    base = {
        rule: (0.01 + 0.0001 * k, 0.01 + 0.0001 * k) for k, rule in enumerate(decision.CANDIDATES)
    }
    return base | {name.replace("_", "-"): lift for name, lift in lifts.items()}


def test_of_the_same_mean_rank_the_pretrained_track_decides(decision):
    lifts = all_at(decision, badge=(0.09, 0.05), uherding=(0.05, 0.09))
    assert decision.decide(results(lifted(lifts))).order[:2] == ["uherding", "badge"]
    lifts = all_at(decision, badge=(0.05, 0.09), uherding=(0.09, 0.05))
    assert decision.decide(results(lifted(lifts))).order[:2] == ["badge", "uherding"]


def test_a_rule_that_harms_anywhere_is_out_and_takes_no_rank(decision):
    lifts = all_at(decision, grad=(0.5, -0.05), badge=(0.09, 0.05), uherding=(0.08, 0.06))
    made = decision.decide(results(lifted(lifts)))
    assert {rule: {*names} for rule, names in made.out.items()} == {"grad": {"three", "four"}}
    assert made.order[-1] == "grad"
    assert made.ranks["badge"] == [1, 2]


def test_if_none_is_left_the_fewest_harms_win_and_the_page_says_so(choose, decision):
    lifts = dict.fromkeys(decision.CANDIDATES, (-0.05, -0.05))
    lifts["margin"] = (-0.4, 0.05)
    made = decision.decide(results(lifted(lifts)))
    assert made.winner == "margin"
    assert len(made.out) == 11
    assert "No rule is left" in choose.page(made)


@pytest.mark.parametrize("winner", ["badge", "uherding", "grad-cover", "margin", "powergrad"])
def test_whatever_wins_the_page_and_the_table_say_it(choose, decision, monkeypatch, winner):
    monkeypatch.setattr(choose.data, "describe", lambda _name: type("D", (), {"classes": 4}))
    lifts = all_at(decision, **{winner.replace("-", "_"): (0.1, 0.1)})
    made = decision.decide(results(lifted(lifts)))
    text = choose.page(made)
    assert f"| features, logits and labels | `{winner}` |" in text
    assert "# What holds" in text
    told = json.loads(choose.shipped(made))
    assert told["decided"]
    assert told["order"] == made.order
    assert told["order"][0] == winner
    assert [each["name"] for each in told["tracks"]] == ["network", "encoder"]
    (first, *_) = told["experiments"]
    assert first["per_class"][0] == [5.0, 5.0]
    assert set(first["gains"]) == set(decision.CANDIDATES)


def test_the_bar_is_told_as_it_is(choose, decision):
    lifts = all_at(decision, uherding=(0.10, 0.10))
    made = decision.decide(results(lifted(lifts)))
    bar, behind, ahead = choose.claims(made)
    assert "`uherding` is ahead of `badge` and `margin` by three points" in bar
    assert "is nowhere significantly behind `badge`, and ahead of it in" in behind
    assert "`uherding` itself" in ahead
    lifts = all_at(decision, grad_cover=(0.03, 0.02), badge=(0.04, 0.01))
    bar, behind, ahead = choose.claims(decision.decide(results(lifted(lifts))))
    assert "`grad-cover` is **not** ahead" in bar
    assert "is significantly behind `badge` in one, twin and two" in behind
    assert "`grad-cover` is significantly ahead of `uherding` in" in ahead


# --- stores ---------------------------------------------------------------------------------------


def spec_of(name, rules, rates=(0.01,), **changes):
    told = {
        "name": name, "dataset": "digits", "model": "mlp", "strategies": list(rules), "seeds": "5-7",
        "schedule": {"batch": 4, "rounds": 3}, "recipe": {"epochs": 1, "learning_rates": list(rates)},
    }  # fmt: skip
    return Spec.from_dict(told | changes)


def fill(folder, spec, rate=0.01, start=100, rounds=4):
    origin = Origin("f" * 32, "made up", None, (), {}, None)
    with ResultStore.open(folder, spec, origin=origin) as store:
        store._db.execute("PRAGMA synchronous = OFF")  # a disk may be slow
        store.set_learning_rate(rate)
        for label, _, seed in spec.runs():
            store.start_run(label, seed, [start + seed, start + 20, start + 40, start + 60])
            for t in range(rounds):
                place = strategies.names().index(label)
                right = 0.5 + 0.01 * place + 0.01 * ((seed * 7 + t * place) % 5)
                picks = [] if t == 3 else [4 * t, 4 * t + 1, 4 * t + 2, 4 * t + 3]
                store.add_round(RoundRecord(label, seed, t, 4 * (t + 1), right, 1.0, rate, picks))


@pytest.fixture
def folder(choose, decision, monkeypatch, tmp_path):
    """A folder of results as small as can be, which decides."""
    network, encoder = decision.TRACKS
    tracks = (
        replace(network, names=("little",), seeds=(5, 6, 7)),
        replace(encoder, names=("coded",), seeds=(5, 6, 7)),
    )
    monkeypatch.setattr(decision, "TRACKS", tracks)
    monkeypatch.setattr(choose, "TRACKS", tracks)
    there = ("random", "badge", "grad", "kcenter", "powergrad")
    others = [rule for rule in decision.COMPARED if rule not in there]
    swept = (0.01, 0.1)
    fill(tmp_path / "paper/seeds-5-24/little", spec_of("little", there, swept))
    fill(tmp_path / "default/small/little", spec_of("little", others))
    fill(tmp_path / "default/pretrained/coded", spec_of("coded", decision.COMPARED))
    return tmp_path


def run(choose, folder, monkeypatch, capsys):
    package = folder / "package"
    package.mkdir(exist_ok=True)
    monkeypatch.setattr(choose.strategies, "__file__", str(package / "__init__.py"))
    monkeypatch.setattr(choose.sys, "argv", ["choose_default.py", str(folder)])
    return choose.main(), capsys.readouterr().out


def written(folder):
    return sorted(p.name for p in (*folder.glob("default/README.md"), *folder.glob("package/*")))


def test_one_command_decides_and_writes(choose, folder, monkeypatch, capsys):
    code, out = run(choose, folder, monkeypatch, capsys)
    assert code == 0, out
    assert written(folder) == ["README.md", "defaults.json"]
    told = json.loads((folder / "package" / "defaults.json").read_text())
    assert out.startswith(f"{told['order'][0]}; of those that stream")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("no store", "default/small/little: there is no store"),
        ("no seed", "coded, seeds 7: rounds are missing of random, badge"),
        ("half a run", "little, seeds 5-7: rounds are missing of grad-cover"),
        ("other rate", "differ: their learning rates are 0.01 and 0.02"),
        ("other schedule", "differ: schedule.batch: 4 → 5"),
        ("other start", "differ: their first labels on the seeds 5-7"),
    ],
)
def test_what_is_missing_is_said_and_nothing_is_written(
    choose, decision, folder, monkeypatch, capsys, change, told
):
    import shutil

    there = ("random", "badge", "grad", "kcenter", "powergrad")
    others = [rule for rule in decision.COMPARED if rule not in there]
    small = folder / "default/small/little"
    if change == "no seed":
        small = folder / "default/pretrained/coded"
    shutil.rmtree(small)
    if change == "no seed":
        fill(small, spec_of("coded", decision.COMPARED, seeds="5-6"))
    elif change == "half a run":
        fill(small, spec_of("little", others), rounds=3)
    elif change == "other rate":
        fill(small, spec_of("little", others, (0.02,)), rate=0.02)
    elif change == "other schedule":
        fill(small, spec_of("little", others, schedule={"batch": 5, "rounds": 3}))
    elif change == "other start":
        fill(small, spec_of("little", others), start=101)
    code, out = run(choose, folder, monkeypatch, capsys)
    assert code == 1
    assert out.startswith("Nothing is written")
    assert told in out
    assert written(folder) == []
