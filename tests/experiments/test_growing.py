"""A store that was begun: what may be added to it, and what it refuses to go on with."""

import sqlite3
import sys
from dataclasses import replace

import pytest

from askance.errors import StoreError
from askance.experiments import export, formats
from askance.experiments.packing import FILE
from askance.experiments.store import ResultStore
from tests.experiments.tiny import contents, play


def test_extend_adds_runs_and_leaves_the_old_rows_alone(tiny, tmp_path):
    out = tmp_path / "out"
    play(tiny(strategies='["random", "grad"]', seeds=1), out)
    old, old_initial, old_sweep, rate = contents(out)
    with ResultStore.read(out) as store:
        rows = store._query("SELECT * FROM round ORDER BY strategy, seed, round")
    more = tiny(strategies='["badge", "grad", "random"]', seeds=2)
    with pytest.raises(StoreError, match=r"seeds: 1 → 2(.|\n)*--extend"):
        play(more, out)
    play(more, out, extend=True)
    new, new_initial, new_sweep, new_rate = contents(out)
    assert len(new) == 18
    assert {key: new[key] for key in old} == old
    assert {key: new_initial[key] for key in old_initial} == old_initial
    assert (new_sweep, new_rate) == (old_sweep, rate)
    with ResultStore.read(out) as store:
        kept = store._query(
            "SELECT * FROM round WHERE seed = 0 AND strategy IN ('random', 'grad') "
            "ORDER BY strategy, seed, round"
        )
    assert [tuple(row) for row in kept] == [tuple(row) for row in rows]
    play(more, tmp_path / "at once")
    assert contents(tmp_path / "at once") == contents(out)
    text = formats.render(export.table(out), "csv")
    assert text == formats.render(export.table(tmp_path / "at once"), "csv")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rounds": 3}, r"schedule.rounds: 2 → 3"),
        ({"batch": 9}, r"schedule.batch: 10 → 9"),
        ({"epochs": 3}, r"recipe.epochs: 2 → 3"),
        ({"seeds": 3}, r"seeds: 2 → 3"),
        ({"strategies": '["random"]'}, r"strategies: badge, grad, random → random"),
        ({"precision": '"float64"'}, r'precision: "float32" → "float64"'),
        ({"tail": "[model_options]\nwidth = 9\n"}, r"model_options.width: none → 9"),
        ({"tail": '[oracle]\nkind = "noisy"\nrate = 0.5\n'}, r'oracle.kind: "truth" → "noisy"'),
    ],
)
def test_another_spec_is_refused_and_the_store_untouched(tiny, tmp_path, change, words):
    out = tmp_path / "out"
    ResultStore.open(out, tiny()).close()
    before = (out / FILE).read_bytes()
    with pytest.raises(StoreError, match=words):
        play(tiny(**change), out)
    assert (out / FILE).read_bytes() == before
    assert [path.name for path in out.iterdir()] == [FILE]


def test_other_data_is_refused(tiny, tmp_path):
    """A table whose rows have changed since is another experiment, whatever its name says."""
    table = tmp_path / "mine.csv"
    rows = [f"{i % 7},{i % 5},{'ab'[i % 2]}" for i in range(100)]
    table.write_text("x,y,label\n" + "\n".join(rows))
    spec = tiny(dataset='"./mine.csv"', label='"label"', rounds=1, seeds=1)
    play(spec, tmp_path / "out")
    table.write_text("x,y,label\n" + "\n".join(["9,9,a", *rows[1:]]))
    with pytest.raises(StoreError, match="was made with other data"):
        play(spec, tmp_path / "out")


@pytest.mark.parametrize(
    ("was", "now", "words"),
    [
        (
            "width=8",
            "width=16",
            r"there 1.weight has shape \(8, 64\), now 1.weight has shape \(16, 64\)",
        ),
        ("nn.ReLU", "nn.Sigmoid", "there 2 is a ReLU, now 2 is a Sigmoid"),
        ("nn.ReLU(), nn.L", "nn.ReLU(), nn.ReLU(), nn.L", "there 3 is a Linear, now 3 is a ReLU"),
    ],
)
def test_another_network_of_the_same_name_is_refused(tiny, tmp_path, monkeypatch, was, now, words):
    spec = tiny(rounds=1, seeds=1)
    play(spec, tmp_path / "out")
    module = tmp_path / "tiny_net.py"
    module.write_text(module.read_text().replace(was, now))
    monkeypatch.delitem(sys.modules, "tiny_net")
    before = contents(tmp_path / "out")
    with pytest.raises(StoreError, match=words):
        play(replace(spec, seeds=2), tmp_path / "out", extend=True)
    assert contents(tmp_path / "out") == before


def test_a_store_of_before_networks_were_kept_goes_on(tiny, tmp_path):
    play(tiny(rounds=1, seeds=1), tmp_path / "out")
    with sqlite3.connect(tmp_path / "out" / FILE) as db:
        db.execute("DROP TABLE network")
    db.close()
    play(tiny(rounds=1, seeds=2), tmp_path / "out", extend=True)
    with ResultStore.read(tmp_path / "out") as store:
        assert len(list(store.rounds())) == 12
