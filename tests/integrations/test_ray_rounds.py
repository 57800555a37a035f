"""An experiment's rounds in actors of a Ray cluster: the store of a run on this machine."""

import os
import time

import pytest

from askance.cli import main
from askance.errors import AskanceError, InputError
from askance.experiments import export
from askance.experiments import spec as specs
from askance.experiments.runner import RunObserver, run
from askance.integrations.ray_rounds import RayCluster
from tests.experiments.tiny import contents, written
from tests.integrations.conftest import ROOM


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    return lambda tail="", **changes: specs.load(written(tmp_path, tail, **changes))


def exported(folder):
    export.write(export.table(folder), "csv", folder / "table.csv")
    return (folder / "table.csv").read_bytes()


def assert_same_store(one, other):
    assert contents(one) == contents(other)
    assert exported(one) == exported(other)


class After(RunObserver):
    """Does something once, after so many commits."""

    def __init__(self, commits, act):
        self.left, self.act, self.points = commits, act, 0

    def epoch(self, epoch, points):
        self.points += points

    def began(self, spec, dataset, how, total, done):
        self.total, self.how = total, how

    def swept(self, rate, seed, accuracy):
        self.stored(None)

    def stored(self, record):
        self.left -= 1
        if self.left == 0:
            self.act()


DEADLY = """
import os, signal
from pathlib import Path

DRIVER = {driver}
FOLDER = Path({folder!r})
harmless = net

def net(shape, classes, width=8):
    if os.getpid() != DRIVER:
        with (FOLDER / "built").open("ab") as log:  # one byte a network, of all workers together
            log.write(b".")
        if (FOLDER / "built").stat().st_size in (3, 8):
            os.kill(os.getpid(), signal.SIGKILL)
    return harmless(shape, classes, width)
"""


def test_actors_fill_the_store_as_processes_do_though_two_are_killed(cluster, tiny, tmp_path):
    spec = tiny()
    run(spec, tmp_path / "here", device="cpu", workers=1)
    with (tmp_path / "tiny_net.py").open("a") as net:
        net.write(DEADLY.format(driver=os.getpid(), folder=str(tmp_path)))
    watch = After(1, lambda: None)
    run(spec, tmp_path / "ray", cluster=RayCluster(), observers=[watch])
    assert (tmp_path / "built").stat().st_size > 8
    assert_same_store(tmp_path / "ray", tmp_path / "here")
    assert watch.points == watch.total
    assert watch.how == "3 at a time"


@pytest.mark.slow
def test_a_machine_that_goes_in_the_middle_changes_nothing(cluster, tiny, tmp_path):
    spec = tiny(epochs=30)
    run(spec, tmp_path / "here", device="cpu", workers=1)
    extra = cluster.add_node(**ROOM)
    watch = After(8, lambda: cluster.remove_node(extra, allow_graceful=False))
    run(spec, tmp_path / "ray", cluster=RayCluster(), observers=[watch])
    assert watch.left < 0
    assert_same_store(tmp_path / "ray", tmp_path / "here")


def test_an_error_in_an_actor_comes_back_as_itself_and_nothing_runs_on(cluster, tiny, tmp_path):
    spec = tiny('[oracle]\nkind = "abstaining"\nrate = 1\n', learning_rates="[0.1]", seeds=1)
    with pytest.raises(InputError, match=r"^[^\n]*at least one labelled row[^\n]*$") as caught:
        run(spec, tmp_path / "out", cluster=RayCluster())
    assert type(caught.value) is InputError
    assert free_in_the_end(3)


def free_in_the_end(cores, patience=30):
    """Whether all of the cluster's cores are soon nobody's."""
    import ray

    until = time.monotonic() + patience
    while (free := ray.available_resources().get("CPU")) != cores and time.monotonic() < until:
        time.sleep(0.1)
    return free == cores


@pytest.mark.slow
def test_a_network_that_kills_every_worker_is_an_error_not_a_loop(cluster, tiny, tmp_path):
    spec = tiny(learning_rates="[0.1]", seeds=1)
    with (tmp_path / "tiny_net.py").open("a") as net:
        net.write(
            DEADLY.format(driver=os.getpid(), folder=str(tmp_path)).replace("(3, 8)", "range(99)")
        )
    with pytest.raises(AskanceError, match="lost 3 workers and no round was played between"):
        run(spec, tmp_path / "out", cluster=RayCluster())
    assert 3 <= (tmp_path / "built").stat().st_size < 9
    assert free_in_the_end(3)


@pytest.mark.slow
def test_a_run_that_is_stopped_goes_on_wherever(cluster, tiny, tmp_path):
    spec = tiny()

    def stop():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(spec, tmp_path / "both", cluster=RayCluster(), observers=[After(9, stop)])
    assert 0 < len(contents(tmp_path / "both")[0]) < 18
    assert free_in_the_end(3)
    run(spec, tmp_path / "both", device="cpu", workers=1)
    run(spec, tmp_path / "here", device="cpu", workers=1)
    assert_same_store(tmp_path / "both", tmp_path / "here")


@pytest.mark.slow
def test_stacks_are_shared_out_and_cover_every_run(cluster, tiny, tmp_path):
    spec = tiny()
    run(spec, tmp_path / "ray", cluster=RayCluster(), training="stacked")
    run(spec, tmp_path / "here", device="cpu", training="stacked")
    rounds, _, sweep, rate = contents(tmp_path / "ray")
    assert set(rounds) == set(contents(tmp_path / "here")[0])
    assert (len(sweep), rate) == (
        len(contents(tmp_path / "here")[2]),
        contents(tmp_path / "here")[3],
    )


@pytest.mark.slow
def test_the_command_runs_on_a_cluster(cluster, tiny, tmp_path, capsys):
    tiny(seeds=1)
    spec = str(tmp_path / "tiny.toml")
    where = ["--engine", "ray", "--address", cluster.address]
    assert main(["run", spec, "--out", str(tmp_path / "ray"), *where, "--json"]) == 0
    assert main(["run", spec, "--out", str(tmp_path / "here"), "--device", "cpu", "--json"]) == 0
    assert_same_store(tmp_path / "ray", tmp_path / "here")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--engine", "rya"], "did you mean 'ray'"),
        (["--address", "10.0.0.1:6379"], "are for --engine ray"),
        (["--gpus", "0.5"], "are for --engine ray"),
    ],
)
def test_options_that_cannot_be(options, words, capsys):
    assert main(["run", "digits", *options]) == 2
    assert words in " ".join(capsys.readouterr().err.split())


def test_a_crew_has_a_share_of_a_gpu_or_whole_ones():
    with pytest.raises(InputError, match="a share of one"):
        RayCluster(gpus=1.5)
    assert RayCluster(gpus=0.25).device.type == "cuda"
    assert RayCluster().device.type == "cpu"


def test_features_of_an_encoder_travel_with_the_experiment(cluster, tmp_path, monkeypatch):
    monkeypatch.setenv("ASKANCE_CACHE", str(tmp_path / "cache"))
    lines = [f"{'cat dog' if i % 2 else 'bank loan'} {i},{'ab'[i % 2]}" for i in range(100)]
    (tmp_path / "texts.csv").write_text("body,label\n" + "\n".join(lines))
    spec = specs.Spec.from_dict(
        {
            "dataset": str(tmp_path / "texts.csv"),
            "text": "body",
            "encoder": "tests.experiments.test_encoders:of_texts",
            "strategies": ["random", "margin"],
            "seeds": 2,
            "schedule": {"batch": 5, "rounds": 2},
        }
    )
    run(spec, tmp_path / "here", device="cpu", workers=1)
    run(spec, tmp_path / "ray", cluster=RayCluster())
    assert_same_store(tmp_path / "ray", tmp_path / "here")
