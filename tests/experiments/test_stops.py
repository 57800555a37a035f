"""Where stopping rules would have stopped, in the TOML, in the store and on the screen."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from askance.cli import app
from askance.errors import SpecError
from askance.experiments import spec as specs
from askance.experiments.runner import run
from askance.experiments.spec import Spec
from askance.experiments.stop_spec import StopSpec
from askance.experiments.stops import stops
from askance.experiments.store import ResultStore
from askance.stopping import Checkpoint, Plateau, StablePredictions, cohen_kappa
from tests.fences import ROOT

STOP = ["stable-predictions", {"name": "plateau", "gain": 0.05, "over": 20}]
BUDGET = {"name": "budget", "labels": 40}


def linear(stop=(), rounds=6):
    data = {
        "name": "stops",
        "dataset": "digits",
        "model": "linear",
        "strategies": ["random", "margin"],
        "seeds": 2,
        "schedule": {"batch": 20, "rounds": rounds},
    }
    return Spec.from_dict(data | ({"stop": list(stop)} if stop else {}))


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stops")
    wanted = linear([*STOP, BUDGET])
    run(wanted, folder, workers=1)
    return folder, wanted


def test_stopping_rules_change_no_hash():
    plain, with_stop = linear(), linear(STOP)
    assert with_stop.stop != ()
    assert plain.hash == with_stop.hash
    assert plain.identity == with_stop.identity
    assert "stop" not in plain.to_dict()
    assert Spec.from_dict(with_stop.to_dict()) == with_stop
    assert with_stop.override(seeds=3).stop == with_stop.stop


def test_the_hash_of_every_shipped_spec_is_that_of_its_store():
    for store in (ROOT / "results" / "pretrained").glob("*/store.sqlite.gz"):
        with ResultStore.read(store) as opened:
            assert specs.hash_of(opened.spec) == opened.hash, store


def test_each_rule_stops_where_it_says(ran):
    folder, wanted = ran
    found = {(one.stop, one.strategy): one for one in stops(folder, wanted.stop)}
    assert len(found) == 6
    with ResultStore.read(folder) as store:
        items = int(store.facts["test"])
        runs = {run: store.history(*run) for run in store.runs}
        predicted = {run: store.predictions(*run) for run in store.runs}
    for strategy in ("random", "margin"):
        budget = found["budget(labels=40)", strategy]
        assert (budget.seeds, budget.stopped, budget.labels) == (2, 2, 40)
        assert budget.accuracy == pytest.approx(
            np.mean([runs[strategy, seed][1].accuracy for seed in range(2)])
        )
        for label, rule in [
            ("stable-predictions", StablePredictions()),
            ("plateau(gain=0.05, over=20)", Plateau(gain=0.05, over=20)),
        ]:
            labels = []
            for seed in range(2):
                history = [
                    Checkpoint(
                        one.labels, predicted[strategy, seed][one.round], None, one.accuracy, items
                    )
                    for one in runs[strategy, seed]
                ]
                at = [i for i in range(len(history) - 1) if rule(history[: i + 1])]
                labels.append(history[at[0] if at else -1].labels)
            assert found[label, strategy].labels == np.mean(labels)
        final = np.mean([runs[strategy, seed][-1].accuracy for seed in range(2)])
        assert found["stable-predictions", strategy].final_accuracy == pytest.approx(final)


def test_predictions_are_those_of_the_rounds_model(ran):
    """They are of a sample of the test split: as accurate as the round, and more alike later."""
    folder, _ = ran
    with ResultStore.read(folder) as store:
        predicted = store.predictions("margin", 0)
        assert sorted(predicted) == [one.round for one in store.history("margin", 0)]
        sizes = {len(classes) for classes in predicted.values()}
        assert sizes == {min(2000, int(store.facts["test"]))}
    first, last = (cohen_kappa(predicted[i], predicted[i + 1]) for i in (0, 5))
    assert first < last < 1


def test_rules_can_be_added_to_a_finished_store(tmp_path):
    run(linear(rounds=2), tmp_path, workers=1)
    with ResultStore.read(tmp_path) as store:
        assert store.predictions("margin", 0) == {}
    later = linear([BUDGET, *STOP, {"name": "target-accuracy", "accuracy": 0.5}], rounds=2)
    run(later, tmp_path, workers=1)  # nothing is left to run, and nothing differs
    found = {(one.stop, one.strategy): one for one in stops(tmp_path, later.stop)}
    assert found["budget(labels=40)", "margin"].stopped == 2
    assert "predictions were not stored" in found["stable-predictions", "margin"].unknown
    assert found["target-accuracy(accuracy=0.5)", "margin"].unknown == ""


def test_the_command_shows_where_each_would_have_stopped(ran):
    folder, wanted = ran
    path = folder / "stops.toml"
    path.write_text(
        'name = "stops"\ndataset = "digits"\nmodel = "linear"\nstrategies = ["random", "margin"]\n'
        'seeds = 2\nstop = [{name = "budget", labels = 40}, "stable-predictions"]\n'
        "[schedule]\nbatch = 20\nrounds = 6\n"
    )
    assert specs.load(path).hash == wanted.hash
    command = ["run", str(path), "--out", str(folder)]
    shown = CliRunner().invoke(app, command)
    assert shown.exit_code == 0, shown.output
    assert "Where stopping rules stop" in shown.output
    assert "2 of 2" in shown.output
    said = CliRunner().invoke(app, [*command, "--json"])
    listed = json.loads(said.stdout)["stops"]
    assert [one["stop"] for one in listed] == ["budget(labels=40)"] * 2 + ["stable-predictions"] * 2


@pytest.mark.parametrize(
    ("stop", "said"),
    [
        (["plateu"], "unknown stopping rule 'plateu': did you mean 'plateau'"),
        ([{"name": "budget"}], "its options are labels"),
        ([{"name": "plateau", "window": 3}], "unknown option of plateau 'window'"),
        ([{"name": "plateau", "gain": "a lot"}], "gain must be a number above 0"),
        ([{"name": "plateau", "level": 0.95}], "keeps the accuracy of each round: leave level out"),
        (["plateau", "plateau"], "the stopping rule 'plateau' is there twice"),
        ([3], "stopping rule's name, or a table"),
        ("plateau", "must be a list of stopping rules"),
    ],
)
def test_rules_that_cannot_be_meant_are_refused(stop, said):
    data = linear().to_dict() | {"stop": stop}
    with pytest.raises(SpecError, match=said):
        Spec.from_dict(data)


def test_a_rule_is_one_however_it_is_written():
    of_name, of_table = linear(["plateau"]), linear([{"name": "plateau"}])
    assert of_name.stop == of_table.stop == (StopSpec("plateau"),)
