"""`askance run` and `askance paper run`, in this process: what they print, and with which exit code."""

import csv
import json
import re
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from askance.errors import DataError
from askance.experiments import rounds
from askance.experiments import spec as specs
from askance.experiments.packing import FILE
from askance.experiments.store import ResultStore
from askance.paper import SUITE
from tests.experiments.tiny import Askance, contents, left_behind, rounds_in

CONTROL = {chr(code) for code in range(32)} - {"\n"} | {"\x7f", "\x9b"}


def error_line(err):
    """The one line an error is told in."""
    assert err.startswith("error: ")
    assert err.count("\n") == 1, err
    return err


def test_a_run_shows_its_rules_best_first_and_its_store(askance, tiny, tmp_path):
    code, out, err = askance("run", tiny(epochs=20), "--workers", 1)
    assert code == 0
    assert "tiny: 2 seeds, 2 rounds of 10" in out
    assert "left out" not in out
    assert re.search("labels to match.*random's.*final.*accuracy", out, re.DOTALL)
    assert all(rule in out for rule in ("random", "grad", "badge", "±"))
    assert out.splitlines()[-1] == f"Store: runs/tiny/{FILE}"
    assert not CONTROL & set(out + err)
    assert "tiny" in err
    assert "100%" in err
    start = time.perf_counter()
    again, out_again, err_again = askance("run", tiny(epochs=20), "--workers", 1)
    assert (again, out_again) == (0, out)
    assert "all of it is in the store" in err_again
    assert time.perf_counter() - start < 5


def test_json_is_all_there_is_on_stdout(askance, tiny):
    code, out, err = askance("run", tiny(epochs=20), "--json", "--workers", 1, "--out", "here")
    assert (code, err) == (0, "")
    said = json.loads(out)
    assert said["rounds_left_out"] == 0
    assert (said["experiment"], said["store"]) == ("tiny", f"here/{FILE}")
    assert {rank["strategy"] for rank in said["ranking"]} == {"random", "grad", "badge"}
    means = [rank["mean_accuracy"] for rank in said["ranking"]]
    assert means == sorted(means, reverse=True)
    assert all(rank["seeds"] == 2 for rank in said["ranking"])


def test_a_run_whose_models_learned_nothing_is_not_ranked(askance, tiny):
    """Every round is flagged, and there is nothing to compare."""
    code, out, _ = askance("run", tiny(epochs=1, learning_rates=[1e-5]), "--workers", 1)
    assert code == 0
    assert "6 rounds of a seed left out for all rules" in out
    said = json.loads(askance("run", tiny(epochs=1, learning_rates=[1e-5]), "--json")[1])
    assert said["rounds_left_out"] == 6
    assert all(rank["mean_accuracy"] is None for rank in said["ranking"])


def test_options_replace_what_the_spec_says(askance, tiny):
    options = ["--strategies", "grad, margin", "--seeds", 1, "--rounds", 1]
    options += ["--precision", "float64"]
    code, _, err = askance("run", tiny(), *options, "--workers", 1, "--json")
    assert code == 0, err
    rounds = contents("runs/tiny")[0]
    expected = {(rule, 0, t) for rule in ("grad", "margin") for t in (0, 1)}
    assert set(rounds) == expected
    assert "tiny: 1 seed, 1 round of 10" in askance("run", tiny(), *options, "--workers", 1)[1]


def test_training_and_device_are_passed_on(askance, tiny):
    options = ["--training", "stacked", "--device", "cpu", "--rounds", 1, "--precision", "float64"]
    assert askance("run", tiny(), *options, "--out", "stacked", "--json")[0] == 0
    options[1] = "one"
    assert askance("run", tiny(), *options, "--out", "one", "--json", "--workers", 1)[0] == 0
    stacked, one = contents("stacked")[0], contents("one")[0]
    assert {key: values[4] for key, values in stacked.items()} == {
        key: values[4] for key, values in one.items()
    }


def test_a_process_of_its_own_says_nothing_odd_to_a_pipe(tiny, tmp_path):
    process = Askance("run", tiny(), "--workers", 1, "--out", tmp_path / "out", path=tmp_path)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert not CONTROL & set(out + err)
    assert "Store:" in out
    assert err.count("\n") <= 2
    assert "tiny" in err
    assert left_behind(process.pid) == []
    assert rounds_in(tmp_path / "out") == 18


# What is wrong with what was asked for: 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "digit"], "unknown experiment 'digit': did you mean 'digits'? known: 20news"),
        (["run", "isolet"], "did you mean 'isolet-mlp'"),
        (["run", "nowhere.toml"], "cannot read nowhere.toml: No such file"),
        (["run", "."], "cannot read .: Is a directory"),
        (["run", "--strategies", "gard"], "unknown strategy 'gard': did you mean 'grad'"),
        (["run", "--strategies", ""], "the name of a rule, got ''"),
        (["run", "--strategies", "grad,grad"], "the strategy 'grad' is there twice"),
        (["run", "--precision", "fp8"], "one of float32, tf32, bf16, float64"),
        (["run", "--training", "both"], "training must be one of auto, one, "),
        (["run", "--device", "tpu9000"], "the device 'tpu9000' cannot be used here"),
        pytest.param(
            ["run", "--device", "cuda"],
            "the device 'cuda' cannot be used here",
            marks=pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here"),
        ),
        (
            ["run", "--seeds", "0"],
            'seeds must be a whole number ≥ 1, or which seeds as in "5-24", got 0',
        ),
        (["run", "--seeds", "x"], "'x' is no seed and no range; write seeds such as 5-24"),
        (["run", "--seeds", "9-5"], "'9-5' falls; write 5-9"),
        (["run", "--rounds", "1000"], "the pool of digits has 1,295; lower"),
        (["run", "isolet-mlp", "--data-dir", "nowhere"], "no such folder: nowhere"),
        (["paper", "run", "digit"], "unknown experiment 'digit'"),
        (["list", "modles"], "unknown kind 'modles': did you mean 'models'"),
        (["data", "fetch", "digit"], "unknown dataset 'digit': did you mean 'digits'"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(askance, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    code, out, err = askance(*arguments)
    assert (code, out) == (2, "")
    assert words in error_line(err)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("changes", "tail", "words"),
    [
        ({"seeds": "= 3"}, "", "tiny.toml, line 5, column 9: not valid TOML: Invalid value"),
        ({"epoch": 3}, "", "line 7: unknown key 'epoch'; did you mean 'epochs', in [rec"),
        ({"model": '"nowhere_at_all:net"'}, "", "could not be imported"),
        ({"model": '"tiny_net:nut"'}, "", "has no 'nut'"),
        ({"dataset": '"./nowhere"'}, "", "nowhere: no such folder or file"),
        ({}, "[model_options]\nheight = 3\n", "has no option 'height'; its options: width"),
        ({}, '[oracle]\nkind = "nosy"\nrate = 0.1\n', "line 14: unknown oracle 'nosy': did you"),
        (
            {},
            '[oracle]\nkind = "noisy"\nrte = 0.1\n',
            "line 15: unknown option of the oracle 'noisy'",
        ),
        ({}, '[oracle]\nkind = "noisy"\nrate = 1.5\n', "line 15: rate must be a probability"),
        ({}, '[oracle]\nkind = "noisy"\n', "line 14: the oracle 'noisy' needs rate"),
        (
            {},
            '[oracle]\nkind = "truth"\nrate = 0.5\n',
            "line 15: unknown option of the oracle 'truth'",
        ),
        ({}, '[oracle]\nkind = "costly"\nlow = 3\nhigh = 1\n', "needs 0 ≤ low ≤ high"),
        ({}, '[oracle]\nkind = "noisy"\nrate = 0.1\nseed = 0.5\n', "line 16: the oracle's seed"),
    ],
)
def test_a_wrong_spec_is_one_line_and_exit_code_2(askance, tiny, tmp_path, changes, tail, words):
    code, out, err = askance("run", tiny(tail, **changes), "--workers", 1)
    assert (code, out) == (2, "")
    assert words in error_line(err)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    "arguments",
    [["run", "--no-such"], ["run", "a", "b"], ["walk"], ["export"], ["run", "--workers", "0"],
     ["paper", "run"]],
)  # fmt: skip
def test_arguments_that_cannot_be(askance, arguments):
    code, out, err = askance(*arguments)
    assert (code, out) == (2, "")
    assert "Traceback" not in err
    assert "Error" in err


def test_a_range_of_seeds_into_a_store_that_has_others(askance, tiny):
    """Only what is asked for is run: the other seeds of the other rules stay away."""
    spec = tiny(strategies='["random", "grad"]', seeds=1, rounds=1)
    assert askance("run", spec, "--workers", 1)[0] == 0
    more = ["--strategies", "random", "--seeds", "5-6", "--workers", 1]
    assert askance("run", spec, *more)[0] == 3
    assert askance("run", spec, *more, "--extend", "--lean")[0] == 0
    (path,) = Path("runs").glob("*/store.sqlite")
    with ResultStore.read(path) as store:
        assert store.runs == [("random", 0), ("random", 5), ("random", 6), ("grad", 0)]
        assert set(store.progress().values()) == {2}
        assert store.spec["seeds"] == "0,5-6"
        whole = {(r.seed, r.round): bool(r.seconds and r.peak_mb) for r in store.rounds()}
        scored = {(r.seed, r.round): r.scores is not None for r in store.rounds()}
        assert all(0 <= r.balanced_accuracy <= 1 and 0 <= r.macro_f1 <= 1 for r in store.rounds())
    assert whole == {(s, r): s == 0 for s in (0, 5, 6) for r in (0, 1)}
    assert scored == {(s, r): s == 0 and r == 0 for s in (0, 5, 6) for r in (0, 1)}


def test_help_and_version(askance):
    for command in ([], ["run"], ["paper", "run"], ["data"]):
        code, out, _ = askance(*command, "--help")
        assert code == 0
        assert "Usage" in out
    assert "Exit codes: 0 done" in " ".join(askance("--help")[1].split())
    assert askance("--version")[1].startswith("askance ")


# What is wrong with the store: 3


@pytest.mark.parametrize(
    ("changes", "options", "words"),
    [
        ({"rounds": 3}, [], "schedule.rounds: 2 → 3"),
        ({"epochs": 5}, [], "recipe.epochs: 2 → 5"),
        ({}, ["--seeds", "3"], "seeds: 2 → 3"),
        ({}, ["--strategies", "random,margin"], "strategies: badge, grad, random → margin, random"),
        ({}, ["--rounds", "1", "--extend"], "schedule.rounds: 2 → 1"),
    ],
)
def test_another_experiment_is_refused(askance, tiny, tmp_path, changes, options, words):
    ResultStore.open("out", specs.load(tiny())).close()
    before = (tmp_path / "out" / FILE).read_bytes()
    code, out, err = askance("run", tiny(**changes), "--out", "out", "--workers", 1, *options)
    assert (code, out) == (3, "")
    assert words in err
    assert "Traceback" not in err
    assert ("--extend" in err) == (not changes and "--rounds" not in options)
    assert (tmp_path / "out" / FILE).read_bytes() == before


def test_extend_on_the_command_line(askance, tiny):
    assert askance("run", tiny(), "--strategies", "random", "--seeds", 1, "--workers", 1)[0] == 0
    old = contents("runs/tiny")[0]
    assert askance("run", tiny(), "--strategies", "random", "--workers", 1, "--extend")[0] == 0
    new = contents("runs/tiny")[0]
    assert len(new) == 6
    assert {key: new[key] for key in old} == old


def test_a_folder_that_cannot_be_one(askance, tiny, tmp_path):
    (tmp_path / "file").write_text("mine")
    for out in ("file", "file/below", "/proc/nowhere"):
        code, _, err = askance("run", tiny(), "--out", out, "--workers", 1)
        assert code == 3
        assert "cannot be opened or written" in error_line(err)
    assert (tmp_path / "file").read_text() == "mine"


def test_a_damaged_store(askance, tiny, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / FILE).write_text("this is not SQLite, and long enough to look at" * 9)
    code, _, err = askance("run", tiny(), "--out", "out", "--workers", 1)
    assert code == 3
    assert "no askance store, or a damaged one" in error_line(err)


# A user's own


def test_an_image_folder_of_ones_own(askance, tiny, tmp_path):
    draws = np.random.default_rng(0)
    for label, name in enumerate(["cats [big]", "dogs"]):
        folder = tmp_path / "pets" / name
        folder.mkdir(parents=True)
        for i in range(30):
            pixels = draws.integers(0, 128, (12, 10, 3), dtype=np.uint8) + 127 * label
            Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{i}.png")
    path = tiny(dataset='"./pets"', batch=5, rounds=2)
    code, _, err = askance("run", path, "--workers", 1)
    assert code == 0, err
    rounds = contents("runs/tiny")[0]
    assert len(rounds) == 18
    assert rounds["random", 0, 2][1] > 0.9
    code, out, _ = askance("export", "runs/tiny")
    assert {row["dataset"] for row in csv.DictReader(out.splitlines())} == {"pets"}
    assert str(tmp_path) not in out


def test_a_table_and_a_shipped_network(askance, tiny, tmp_path):
    rows = [f"{i % 13},{(i * 7) % 11},{'yes' if i % 13 > 6 else 'no'}" for i in range(120)]
    (tmp_path / "mine.csv").write_text("a,b,answer\n" + "\n".join(rows))
    path = tiny(dataset='"mine.csv"', label='"answer"', model='"mlp"', batch=5, seeds=1)
    code, _, err = askance("run", path, "--workers", 1, "--json")
    assert code == 0, err
    assert len(contents("runs/tiny")[0]) == 9
    code, _, err = askance("run", tiny(dataset='"mine.csv"', label='"answre"'), "--out", "other")
    assert code == 2
    assert "answre" in error_line(err)


def test_options_of_a_network_of_ones_own(askance, tiny):
    path = tiny("[model_options]\nwidth = 3\n", seeds=1, rounds=0)
    assert askance("run", path, "--workers", 1)[0] == 0
    assert askance("run", tiny(seeds=1, rounds=0), "--out", "other", "--workers", 1)[0] == 0
    assert contents("runs/tiny")[0] != contents("other")[0]


def test_a_network_without_a_head_is_refused_before_it_is_trained(askance, tiny, tmp_path):
    (tmp_path / "headless.py").write_text(
        "import torch\n\n\ndef net(shape, classes):\n"
        "    line = torch.nn.Unflatten(1, (1, shape[0])), torch.nn.Conv1d(1, classes, shape[0])\n"
        "    return torch.nn.Sequential(torch.nn.Flatten(), *line, torch.nn.Flatten())\n"
    )
    rows = "".join(f"{row},{row % 5},{row % 2}\n" for row in range(120))
    (tmp_path / "mine.csv").write_text("a,b,label\n" + rows)
    path = tiny(dataset='"mine.csv"', model='"headless:net"')
    code, _, err = askance("run", path, "--workers", 1, "--out", "headless")
    assert code == 2
    assert "no nn.Linear layer" in error_line(err)
    assert not (tmp_path / "headless").exists()


# Several


def test_the_paper_command_gives_every_experiment_a_store(askance, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = ["--seeds", 1, "--rounds", 0, "--strategies", "random", "--json", "--workers", 1]
    code, out, err = askance("paper", "run", "digits", "digits", *options)
    assert (code, err) == (0, "")
    assert json.loads(out)["experiment"] == "digits"
    assert rounds_in("runs/digits") == 1


def test_all_are_the_experiments_of_the_suite(askance, monkeypatch):
    played = []
    monkeypatch.setattr(
        "askance.cli.paper._play_all", lambda specs, *rest: played.extend(s.name for s in specs)
    )
    assert askance("paper", "run", "digits", "all", "svhn-lenet")[0] == 0
    assert played == [*sorted(SUITE.experiments), "digits"]


def test_the_paper_command_goes_on_without_data_that_cannot_be_had(askance, tmp_path, monkeypatch):
    load = rounds.data.load

    def only_digits(name, *rest, **options):
        if name != "digits":
            raise DataError(f"{name} cannot be had")
        return load(name, *rest, **options)

    monkeypatch.setattr(rounds.data, "load", only_digits)
    monkeypatch.chdir(tmp_path)
    options = ["--seeds", 1, "--rounds", 0, "--strategies", "random", "--workers", 1]
    code, out, err = askance("paper", "run", "isolet-mlp", "digits", *options)
    assert code == 2
    assert "isolet-mlp was left out: isolet cannot be had" in err
    assert "Not run for want of data: isolet-mlp" in err
    assert "Store: runs/digits" in out
    code, out, err = askance("paper", "run", "isolet-mlp", *options)
    assert (code, out) == (2, "")
