"""The forms of the ablations are what their lines say, and a run of one is a run of the experiment."""

import json
import runpy
from pathlib import Path

import numpy as np
import pytest
import torch

from askance import Embedding, strategies
from askance.experiments import spec as specs
from askance.experiments.runner import run
from askance.experiments.store import ResultStore
from askance.strategies.base import Labeled

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "benchmarks" / "cover_ablations.py"
FOLDER = ROOT / "results" / "ablations"

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="no benchmarks/, as in an sdist")


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    return runpy.run_path(str(SCRIPT))


@pytest.fixture
def task():
    """(the pool, the labelled set) of a model of four classes."""
    generator = torch.Generator().manual_seed(0)
    pool = Embedding(
        torch.randn(60, 4, generator=generator), torch.randn(60, 5, generator=generator)
    )
    return pool, Labeled(pool[np.arange(8)], torch.arange(8) % 4, 8)


def test_each_form_differs_from_the_rule_in_what_its_line_says(script, task):
    pool, labeled = task
    forms = {name: form.build() for name, form in script["FORMS"].items()}
    base = forms["grad-cover"]
    assert base == strategies.get("grad-cover")

    def audience(rule):
        return rule.audience(pool, rule.prepare(labeled, None))

    plain = audience(base)
    squared = audience(forms["w=s2"])
    np.testing.assert_array_equal(squared.weights_M, plain.weights_M**2)
    assert (squared.sq_width, squared.covered_M.max()) == (plain.sq_width, plain.covered_M.max())
    bare = audience(forms["uncovered"])
    assert not bare.covered_M.any()
    assert plain.covered_M.all()
    assert bare.sq_width == plain.sq_width
    unit = torch.nn.functional.normalize(pool.features.double())
    expected = float(torch.pdist(unit).square().median())
    pairs = audience(forms["width=pairs"])
    assert pairs.sq_width == pytest.approx(
        expected, rel=2e-2
    )  # of an even number: torch's is lower
    nearest_M = torch.cdist(unit, unit[:8]).square().min(dim=1).values
    expected_M = torch.exp(-nearest_M / pairs.sq_width).numpy()
    np.testing.assert_allclose(pairs.covered_M, expected_M, atol=1e-12)
    shares = [audience(forms[f"width={factor}"]).sq_width / plain.sq_width for factor in (1, 9)]
    assert shares == pytest.approx([1 / 3, 3], rel=1e-3)
    for name, beta, count in (("3n,s2,w=1", 2.0, 15), ("10n,s,w=1", 1.0, 50)):
        first, wanted = forms[name].shortlisted(5)
        assert (first.beta, wanted) == (beta, count)
    assert len(set(forms.values())) == len(forms)


def test_a_run_of_a_form_is_that_of_the_experiment(script, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        'name = "mine"\ndataset = "digits"\nmodel = "linear"\nstrategies = ["grad-cover"]\nseeds = 2\n'
        "[schedule]\nbatch = 10\nrounds = 9\n[model_options]\nstrength = 0.5\n"
    )
    run(specs.load(path), tmp_path / "store", workers=1)
    with ResultStore.read(tmp_path / "store") as store:
        expected = [record.accuracy for record in store.history("grad-cover", 1)]
    accuracies, seconds = script["play"](str(path), "grad-cover", 1)
    assert accuracies == expected
    assert seconds > 0


def test_what_is_stored_is_not_run_again_and_another_experiment_is_refused(
    script, tmp_path, capsys
):
    spec = tmp_path / "mine.toml"
    spec.write_text('name = "mine"\ndataset = "digits"\nmodel = "linear"\nstrategies = ["random"]\n'
                    "[schedule]\nbatch = 10\nrounds = 9\n")  # fmt: skip
    identity = specs.load(spec).identity
    about = {"experiment": str(spec), "dataset": "digits", "identity": identity}
    runs = {form: {"0": [0.5] * 10} for form in ("random", "grad-cover")}
    file = tmp_path / f"{spec}.json"
    file.write_text(json.dumps(about | {"accuracy": runs, "seconds": {}}))
    script["measure"]([str(spec)], list(runs), 1, 1, tmp_path)
    assert "0 runs to do" in capsys.readouterr().out
    file.write_text(json.dumps(about | {"identity": "other", "accuracy": runs}))
    with pytest.raises(SystemExit, match="is of another experiment"):
        script["measure"]([str(spec)], list(runs), 1, 1, tmp_path)


@pytest.mark.skipif(not FOLDER.exists(), reason="no results/ablations yet")
def test_the_page_is_what_the_files_say(script):
    files = [json.loads((FOLDER / f"{name}.json").read_text()) for name in script["EXPERIMENTS"]]
    for stored in files:
        assert stored["accuracy"].keys() == script["FORMS"].keys()
        assert all(len(runs) == script["SEEDS"] for runs in stored["accuracy"].values())
    assert script["render"](files) == (FOLDER / "README.md").read_text(encoding="utf-8")
