"""Who is told of every round: the protocol, and what TensorBoard and MLflow kept of it."""

import json
import math

import numpy as np
import pytest
import torch
from mlflow.tracking import MlflowClient
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import askance as library
from askance.errors import AskanceError, InputError
from askance.integrations.mlflow import Mlflow
from askance.integrations.tensorboard import TensorBoard
from askance.oracles import Truth
from askance.tracking import Round
from tests.experiments.tiny import contents

X = torch.randn(60, 4, generator=torch.Generator().manual_seed(0))
ORACLE = Truth(X[:, :3].argmax(1))


class Kept:
    """The shortest tracker there is."""

    def __init__(self):
        self.facts, self.rounds = [], []

    def began(self, facts):
        self.facts.append(facts)

    def round(self, done):
        self.rounds.append(done)


def played(track, rounds=2, ask_last=True, strategy="grad", **options):
    """A loop of which we know every number."""
    for run in library.loop(
        X, ORACLE, strategy=strategy, batch=5, rounds=rounds, track=track, **options
    ):
        torch.manual_seed(run.round)
        run.log(accuracy=run.round / 10)
        run.log(loss=torch.tensor(1.0 - run.round / 10))
        if ask_last or not run.finished:
            run.ask(torch.nn.Linear(4, 3))
    return run


@pytest.mark.parametrize("ask_last", [True, False])
def test_a_loop_tells_of_every_round_once(ask_last):
    kept = Kept()
    run = played(kept, ask_last=ask_last)
    expected = {"strategy": "grad", "seed": 0, "batch": 5, "rounds": 2, "pool": 60}
    assert kept.facts == [expected]
    assert [done.round for done in kept.rounds] == [0, 1, 2]
    assert [done.labels for done in kept.rounds] == [5, 10, 15]
    assert [done.metrics["accuracy"] for done in kept.rounds] == [0.0, 0.1, 0.2]
    assert [done.last for done in kept.rounds] == [False, False, True]
    assert [done.picks.tolist() for done in kept.rounds[:2]] == [p.tolist() for p in run.picks]
    assert len(kept.rounds[0].scores) == 5
    assert kept.rounds[2].picks.size == 0
    assert {"forward", "select"} <= set(kept.rounds[0].seconds)
    run.ask(None)
    run.finish()
    assert len(kept.rounds) == 3


def test_an_embedding_in_the_models_place_is_told_too():
    kept = Kept()
    for run in library.loop(X, ORACLE, strategy="badge", batch=5, rounds=1, track=kept):
        run.ask(library.embed(torch.nn.Linear(4, 3), X))
    assert [done.labels for done in kept.rounds] == [5, 10]
    assert kept.rounds[0].picks.tolist() == run.picks[0].tolist()


def test_a_metric_is_one_number():
    run = library.loop(X, ORACLE, batch=5, rounds=1).__next__()
    with pytest.raises(InputError, match=r"a metric must be one number, loss is tensor"):
        run.log(loss=torch.ones(2))


def scalars(folder):
    events = EventAccumulator(str(folder), size_guidance={"scalars": 0}).Reload()
    return {
        tag: [(event.step, event.value) for event in events.Scalars(tag)]
        for tag in events.Tags()["scalars"]
    }


def test_tensorboard_has_the_rounds_by_labels(tmp_path):
    with TensorBoard(tmp_path / "tb") as track:
        played(track, strategy="grad")
        played(track, strategy=library.strategies.PowerGrad(beta=1.0), seed=1)
    found = scalars(tmp_path / "tb" / "grad" / "seed-0")
    assert found["accuracy"] == [(5, 0.0), (10, pytest.approx(0.1)), (15, pytest.approx(0.2))]
    assert [step for step, _ in found["score/mean"]] == [5, 10]
    assert "seconds/forward" in found
    assert scalars(tmp_path / "tb" / "powergrad" / "seed-1")["loss"][2][0] == 15
    events = EventAccumulator(str(tmp_path / "tb" / "grad" / "seed-0")).Reload()
    text = events.Tensors("facts/text_summary")[0].tensor_proto.string_val[0]
    assert json.loads(text)["batch"] == 5


def told_of(track, name, strategy, seeds=1):
    """The rounds of an experiment, as a tracker is told of them."""
    for seed in range(seeds):
        track.began({"name": name, "identity": "abc", "data": "def"})
        track.round(Round(strategy, seed, 0, 5, {"accuracy": 0.5}, last=True))


def test_events_stay_in_the_folder_of_tensorboard_each_run_in_its_own(tmp_path):
    labels = ("..", "../../x", "grad", "Grad", "a b", "a-b", "powergrad(beta=1.0)", "x" * 300)
    for name in ("..", "tiny", "Tiny"):
        with TensorBoard(tmp_path / "deep" / "tb") as track:
            for label in labels:
                told_of(track, name, label)
    runs = [path.parent for path in tmp_path.rglob("askance.json")]
    assert len({str(path).casefold() for path in runs}) == len(runs) == 3 * len(labels)
    assert all(len(path.relative_to(tmp_path / "deep" / "tb").parts) == 3 for path in runs)
    assert tmp_path / "deep" / "tb" / "tiny" / "grad" / "seed-0" in runs


def test_mlflow_finds_a_rule_again_whose_label_has_quotes(store):
    for _ in range(2):
        with Mlflow(store) as track:
            told_of(track, "tiny", "skactiveml:UncertaintySampling(method='entropy')", seeds=2)
    client = MlflowClient(tracking_uri=store)
    place = client.get_experiment_by_name("tiny").experiment_id
    assert len(client.search_runs([place])) == 2


def test_two_loops_into_one_tensorboard_are_both_kept(tmp_path):
    with TensorBoard(tmp_path) as track:
        played(track)
        played(track, rounds=1)
    assert [step for step, _ in scalars(tmp_path / "grad" / "seed-0")["round"]] == [
        5,
        10,
        15,
        5,
        10,
    ]


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    return f"file:{tmp_path / 'mlruns'}"


def runs_of(uri, name):
    client = MlflowClient(tracking_uri=uri)
    place = client.get_experiment_by_name(name).experiment_id
    found = {}
    for run in client.search_runs([place]):
        found[run.data.params["strategy"], int(run.data.params["seed"])] = run
    return client, found


def history(client, run, name):
    kept = client.get_metric_history(run.info.run_id, name)
    return sorted((metric.step, metric.value) for metric in kept)


def test_mlflow_has_the_rounds_by_labels(store):
    with Mlflow(store, experiment="mine") as track:
        played(track)
    client, runs = runs_of(store, "mine")
    run = runs["grad", 0]
    assert run.info.status == "FINISHED"
    assert run.data.params["batch"] == "5"
    assert history(client, run, "accuracy") == [(5, 0.0), (10, 0.1), (15, 0.2)]
    assert [step for step, _ in history(client, run, "score/mean")] == [5, 10]


def test_an_unfinished_mlflow_run_is_marked_so(store):
    with Mlflow(store) as track:
        for run in library.loop(X, ORACLE, strategy="grad", batch=5, rounds=2, track=track):
            run.ask(torch.nn.Linear(4, 3))
            break
    client, runs = runs_of(store, "askance")
    assert runs["grad", 0].info.status == "KILLED"
    assert history(client, runs["grad", 0], "round") == [(5, 0.0)]


def test_numbers_that_are_none_are_kept(store, tmp_path):
    """A run that diverged says so."""
    both = Mlflow(store), TensorBoard(tmp_path / "tb")
    for track in both:
        for run in library.loop(X, ORACLE, strategy="random", batch=5, rounds=0, track=track):
            run.log(loss=math.nan)
    client, runs = runs_of(store, "askance")
    assert math.isnan(history(client, runs["random", 0], "loss")[0][1])
    assert math.isnan(scalars(tmp_path / "tb" / "random" / "seed-0")["loss"][0][1])


def test_an_experiment_is_tracked_and_gone_on_with(tiny, askance, store, tmp_path):
    """Resumed with more seeds: what a tracker has is not told twice, what it lacks is."""
    spec = tiny(strategies='["random", "grad"]', seeds=1, learning_rates="[0.1]")
    common = ("run", spec, "--out", tmp_path / "out", "--workers", 1, "--json")
    code, _, err = askance(*common, "--track", f"tensorboard:{tmp_path / 'tb'}")
    assert code == 0, err
    both = ("--track", f"tensorboard:{tmp_path / 'tb'}", "--track", f"mlflow:{store}")
    code, _, err = askance(*common, "--seeds", 2, "--extend", *both)
    assert code == 0, err
    code, _, err = askance(*common, "--seeds", 2, *both)
    assert code == 0, err
    rounds, *_ = contents(tmp_path / "out")
    client, runs = runs_of(store, "tiny")
    assert set(runs) == {(rule, seed) for rule in ("random", "grad") for seed in (0, 1)}
    for (rule, seed), run in runs.items():
        stored = [rounds[rule, seed, number][:2] for number in range(3)]
        assert history(client, run, "accuracy") == stored
        assert run.info.status == "FINISHED"
        assert run.data.params["schedule.batch"] == "10"
        kept = scalars(tmp_path / "tb" / "tiny" / rule / f"seed-{seed}")
        assert np.allclose(kept["accuracy"], stored)
        assert "seconds/train" in kept


def test_another_experiment_of_the_same_name_is_not_mixed_in(tiny, askance, tmp_path):
    track = ("--track", f"tensorboard:{tmp_path / 'tb'}", "--workers", 1, "--json")
    spec = tiny(strategies='["random"]', seeds=1, rounds=0, learning_rates="[0.1]")
    assert askance("run", spec, "--out", tmp_path / "one", *track)[0] == 0
    spec = tiny(strategies='["random"]', seeds=1, rounds=0, learning_rates="[0.2]")
    code, _, err = askance("run", spec, "--out", tmp_path / "two", *track)
    assert code == 2
    assert "another experiment of this name" in err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tensorbord:x", "did you mean 'tensorboard'"),
        ("tensorboard", "says no place"),
        ("mlflow:nowhere://x", "MLflow cannot be reached at 'nowhere://x'"),
    ],
)
def test_a_tracker_that_cannot_be_is_said_before_anything_runs(
    tiny, askance, tmp_path, text, message
):
    code, _, err = askance("run", tiny(), "--out", tmp_path / "out", "--track", text)
    assert code == 2
    assert message in err.replace("\n", " ")
    assert not (tmp_path / "out").exists()


def test_what_is_not_installed_names_its_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "tensorboard", None)
    with pytest.raises(AskanceError, match=r'pip install "askance\[tensorboard\]"'):
        TensorBoard("x")
    monkeypatch.setitem(__import__("sys").modules, "mlflow.tracking", None)
    with pytest.raises(AskanceError, match=r'pip install "askance\[mlflow\]"'):
        Mlflow("x")
