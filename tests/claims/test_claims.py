"""A claim is confirmed, denied or left open by its numbers, and by nothing else."""

from base64 import b64encode

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance import claims, studies
from askance.bench import export
from askance.bench.stats.penalty import penalty
from askance.bench.stats.resample import Interval, mean_interval
from askance.bench.stats.table import PAPER
from askance.claims import measures, panels, stored, studied
from askance.claims.evidence import SUITE, Evidence
from askance.claims.judge import CONFIRMED, DENIED, OPEN, verdict
from askance.claims.page import MARK, render
from askance.cli import main
from askance.errors import StoreError
from askance.figures import paper, style
from askance.figures.curves import learning_curves
from askance.report.facts import Facts
from askance.studies.lab import Lab
from tests.report import worlds
from tests.stats.worlds import experiment, noise, rows
from tests.studies.tiny import OPTIONS

RULES = (*PAPER, "powergrad", "gradnorm", "grad-spread")
NAMES = ("svhn-lenet", "cifar10-lenet", "stl10-lenet", "gtsrb-lenet", "isolet-mlp", "pokerhand-mlp")


def evidence(tmp_path, lifts=None, names=NAMES, rules=RULES, results=None, rounds=8):
    """Made-up experiments of the suite, in which each rule is lifted by its own amount."""
    table = [
        row
        for seed, name in enumerate(names)
        for row in rows(
            noise(rules, rounds=rounds, seed=seed, lifts=lifts, spread=0.004),
            name=name,
            dataset=name.split("-")[0],
            model=name.split("-")[1],
        )
    ]
    return Evidence(tmp_path, Facts([str(tmp_path)], table, []), results or {})


def verdicts(found):
    return {one.claim: one.verdict for one in found}


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
        ((np.nan, np.nan), 0, OPEN),
        ((-np.inf, np.inf), 0, OPEN),
    ],
)
def test_the_rule(ends, limit, said):
    assert verdict(Interval(0.2, *ends, 5), limit) == said


def test_nothing_measured_is_nothing_shown():
    assert verdict(None) == OPEN


def test_a_made_up_winner_confirms_and_a_made_up_loser_denies(tmp_path):
    up = {"grad": 0.05, "badge": 0.05, "kcenter": 0.02}
    found = verdicts(stored.overall(evidence(tmp_path, up)))
    assert found["grad usually beats entropy"] == CONFIRMED
    assert found["grad and BADGE have the lowest loss scores"] == CONFIRMED
    assert found["random and entropy have the highest loss scores"] == CONFIRMED
    down = {"grad": -0.05, "badge": -0.05}
    found = verdicts(stored.overall(evidence(tmp_path, down)))
    assert set(found.values()) >= {DENIED}
    assert found["grad usually beats entropy"] == DENIED
    assert found["grad and BADGE have the lowest loss scores"] == DENIED


def test_rules_that_are_all_alike_confirm_and_deny_nothing_of_the_paper(tmp_path):
    found = verdicts(stored.overall(evidence(tmp_path)))
    assert found.pop("grad is competitive with BADGE: at most half a point behind") == CONFIRMED
    assert set(found.values()) == {OPEN}


def test_our_questions(tmp_path):
    lifts = {"grad": -0.03, "gradnorm": -0.03, "badge": 0.02, "powergrad": 0.02}
    found = verdicts(stored.ours(evidence(tmp_path, lifts)))
    assert found["The reference helps: grad beats gradnorm"] == OPEN
    assert found["The reference moves less than half a point, either way"] == CONFIRMED
    assert found["Sampling helps: powergrad beats grad"] == CONFIRMED
    assert found["Sampling reaches BADGE: powergrad is at most half a point behind"] == CONFIRMED
    assert found["On CIFAR-10 with LeNet, grad is below random"] == CONFIRMED
    without = verdicts(stored.ours(evidence(tmp_path, rules=PAPER, names=("svhn-lenet",))))
    assert set(without.values()) == {OPEN}


def test_panels_are_those_at_hand(tmp_path):
    found = panels.panels(evidence(tmp_path, {"kcenter": -0.05}))
    assert {one.claim.split(":")[0] for one in found} == {
        "isolet-mlp", "pokerhand-mlp", "stl10-lenet", "svhn-lenet",
    }  # fmt: skip
    assert verdicts(found)["svhn-lenet: k-center below all"] == CONFIRMED


def test_every_panel_is_of_the_suite_and_of_the_papers_rules(tmp_path):
    names = tuple(dict.fromkeys(panel.experiment for panel in panels.PANELS))
    assert set(names) <= set(SUITE)
    found = panels.panels(evidence(tmp_path, names=names, rules=PAPER))
    assert len(found) == len(panels.PANELS)
    assert all(one.figure != "–" and one.n == "5 seeds" for one in found)
    # Without its rules nothing is measured, and nothing fails.
    lacking = panels.panels(evidence(tmp_path, names=names, rules=("badge",)))
    assert {one.verdict for one in lacking} == {OPEN}
    assert {one.figure for one in lacking} == {"–"}


def judged_of(tables, look, limit=0.0):
    return verdict(look(experiment(tables))[1], limit)


def ramps(**ends):
    """Curves of five seeds from an early to a late accuracy, a hair apart."""
    hair = 1e-4 * np.arange(5)[:, None]
    return {rule: np.linspace(first, last, 8) + hair for rule, (first, last) in ends.items()}


def test_a_rule_that_is_strong_is_near_all_not_above_them():
    flat = dict.fromkeys(PAPER, (0.5, 0.5)) | {"grad": (0.497, 0.497)}
    panel = panels._strong("svhn-lenet", "grad strong", "grad")
    assert judged_of(ramps(**flat), panel.look, panel.limit) == CONFIRMED
    flat["badge"] = (0.503, 0.503)
    assert judged_of(ramps(**flat), panel.look, panel.limit) == DENIED


def test_two_rules_together_are_near_on_either_side():
    look = panels._together("badge", "random", "late")
    for gap, said in ((0.002, CONFIRMED), (-0.002, CONFIRMED), (0.02, DENIED), (-0.02, DENIED)):
        curves = ramps(badge=(0.5, 0.5), random=(0.5 + gap, 0.5 + gap))
        curves["random"][:, :5] = 0.1  # before the last three rounds it may be anywhere
        assert judged_of(curves, look) == said


def test_a_gap_that_narrows_widens_or_stays():
    look = panels._catches_up("entropy", "grad", "badge")
    leaders = {"grad": (0.4, 0.6), "badge": (0.5, 0.7)}
    assert judged_of(ramps(entropy=(0.3, 0.6), **leaders), look) == CONFIRMED
    assert judged_of(ramps(entropy=(0.4, 0.5), **leaders), look) == DENIED
    # Another's curve changes nothing: it is behind those that were named.
    assert judged_of(ramps(entropy=(0.3, 0.6), random=(0.9, 0.1), **leaders), look) == CONFIRMED


def test_a_fall_is_from_what_was_reached():
    curves = dict(ramps(**dict.fromkeys(PAPER, (0.4, 0.6))))
    curves["kcenter"] = curves["kcenter"].copy()
    curves["kcenter"][:, 4] -= 0.2
    found = measures.falls(experiment(curves))
    at = PAPER.index("kcenter")
    step = 0.2 / 7
    np.testing.assert_allclose(found[:, at], 0.2 - step)
    np.testing.assert_allclose(np.delete(found, at, axis=1), 0, atol=1e-12)
    assert judged_of(curves, panels._unsteady("kcenter")) == CONFIRMED
    assert judged_of(curves, panels._unsteady("grad")) == DENIED


@given(st.integers(2, 9), st.integers(1, 3), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_the_worst_pair_decides_as_all_pairs_would(n, high, low, seed):
    names = [f"r{i}" for i in range(high + low)]
    upper, lower = names[:high], names[high:]
    limit = -0.3
    draws = np.random.default_rng(seed)
    values = draws.normal(draws.normal(0, 1, high + low), 1, (n, high + low))
    pair = measures.worst(values, names, measures.pairs_of(upper, lower), limit)
    level = 1 - 0.05 / (high * low)
    every = [
        mean_interval(values[:, names.index(u)] - values[:, names.index(d)], level)
        for u in upper
        for d in lower
    ]
    said = verdict(pair.found, limit)
    assert (said == CONFIRMED) == all(one.low > limit for one in every)
    assert (said == DENIED) == any(one.high < limit for one in every)
    assert pair.pairs == len(every)


def test_loss_scores_of_experiments_add_up(tmp_path):
    found = evidence(tmp_path, {"grad": 0.02}).experiments
    for stage in ("all", "early", "late"):
        names, loss = measures.losses(found, stage)
        assert names == [one.name for one in found]
        whole = penalty(found, stage, methods=PAPER)
        assert np.allclose(loss.sum(axis=0), whole.loss_M)


def test_students_interval():
    found = measures.student(np.array([1.0, 2.0, 3.0]))
    assert (round(found.low, 3), found.value, round(found.high, 3)) == (-0.484, 2.0, 4.484)
    assert np.isnan(measures.student(np.array([1.0])).low)


@pytest.fixture(scope="module")
def results():
    """Every study that judges a claim, on `digits`."""
    lab = Lab.at("cpu", None, None)
    names = ("geometry", "shift", "contraction", "cost")
    return {name: studies.get(name).run(OPTIONS[name], lab) for name in names}


def test_studies_judge_their_claims(results, tmp_path):
    found = studied.studied(results)
    assert {one.source for one in found} == set(results)
    assert all(one.verdict in (CONFIRMED, DENIED, OPEN) for one in found)
    assert any("clumped" in one.claim for one in found)
    assert studied.studied({}) == []
    page = render(evidence(tmp_path, results=results))
    assert "### cost: what does an acquisition cost?" in page
    assert "3.47 ± 0.23" in page  # the paper's own seconds, beside ours


def test_the_page_says_what_is_missing(tmp_path):
    page = render(evidence(tmp_path))
    assert page.startswith(MARK)
    assert f"{len(NAMES)} of the paper's 18 experiments" in page
    assert "Not here: 20newsgroups-mlp, gtsrb-vgg16" in page
    assert "None in this folder" in page


@pytest.fixture
def folder(tmp_path):
    """Two small stores under names of the suite."""
    for seed, name in enumerate(("cifar10-lenet", "svhn-lenet")):
        wanted = worlds.spec(("random", "grad"), seeds=2, rounds=2, name=name, model="mlp")
        worlds.store(tmp_path / name, wanted, {"grad": 0.1}, seed, subset="half of it")
    return tmp_path


def test_publishing_writes_the_page_and_every_figure(folder, capsys, monkeypatch):
    # Those that the report alone has are left blank: the folder's are what is looked at.
    monkeypatch.setattr("askance.report.comparisons.draw_penalty", lambda views: style.new(1, 1))
    drawn = []
    monkeypatch.setattr(
        paper, "learning_curves", lambda one: drawn.append(one.name) or learning_curves(one)
    )
    (folder / "notes.txt").write_text("## Subsets\n\nOnly half.\n")
    assert main(["report", str(folder), "--out", str(folder / "r.html"), "--publish"]) == 0
    page = (folder / "RESULTS.md").read_text()
    assert "half of it" in page
    assert page.endswith("## Subsets\n\nOnly half.\n")
    pictures = {path.name for path in (folder / "figures").iterdir()}
    assert {"gains.png", "curves-cifar10-lenet.svg", "paper-penalty-rounds.svg"} <= pictures
    assert [name for name in pictures if name.endswith("png")] == ["gains.png"]
    assert drawn == ["cifar10-lenet", "svhn-lenet"]  # once, for the page and the folder
    for name in ("curves-svhn-lenet", "timing-cifar10-lenet", "profile", "ranks"):
        picture = (folder / "figures" / f"{name}.svg").read_bytes()
        assert b64encode(picture).decode() in (folder / "r.html").read_text()
    before = {path: path.read_bytes() for path in (folder / "figures").iterdir()}
    (folder / "figures" / "gains.png").unlink()
    capsys.readouterr()
    assert main(["report", str(folder), "--out", str(folder / "r.html")]) == 0  # by itself, again
    assert "Published: " in capsys.readouterr().out
    claims.publish(folder)  # and the same from what it reads itself
    assert (folder / "RESULTS.md").read_text() == page
    assert {path: path.read_bytes() for path in (folder / "figures").iterdir()} == before


def test_a_page_of_someone_elses_is_left_alone(folder):
    (folder / "RESULTS.md").write_text("mine")
    with pytest.raises(StoreError, match="not written by askance"):
        claims.publish(folder)
    assert not claims.is_published(folder)
    assert (folder / "RESULTS.md").read_text() == "mine"


def test_what_cannot_be_published(tmp_path):
    with pytest.raises(StoreError, match="is no folder"):
        claims.publish(tmp_path / "none")
    export.write(rows(noise(("random", "grad"))), "csv", tmp_path / "a.csv")
    with pytest.raises(StoreError, match="none of the paper's experiments"):
        claims.publish(tmp_path)


def test_the_gains_are_the_differences_from_random(tmp_path):
    found = evidence(tmp_path, {"grad": 0.03})
    table = claims.gain_table(found)
    assert list(table)[-1] == f"mean of {len(NAMES)} experiments"
    assert list(table["svhn-lenet"]) == ["grad", "badge", "powergrad", "entropy", "kcenter"]
    means = [table[name]["grad"].value for name in NAMES]
    assert table[f"mean of {len(NAMES)} experiments"]["grad"].value == pytest.approx(np.mean(means))
