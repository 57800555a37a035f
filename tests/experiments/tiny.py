"""Experiments that take a second, and the processes that run them."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from PIL import Image

from askance.errors import StoreError
from askance.experiments.runner import run
from askance.experiments.store import ResultStore

NET = """
from torch import nn

def net(shape, classes, width=8):
    inputs = 1
    for side in shape:
        inputs *= side
    return nn.Sequential(
        nn.Flatten(), nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, classes)
    )
"""


def written(folder, tail="", **changes):
    """The path of a spec in `folder`, beside the module of its network, which must be on the path."""
    (folder / "tiny_net.py").write_text(NET)
    values = {
        "name": '"tiny"',
        "dataset": '"digits"',
        "model": '"tiny_net:net"',
        "strategies": '["random", "grad", "badge"]',
        "seeds": 2,
        "precision": '"float32"',
        "batch": 10,
        "rounds": 2,
        "epochs": 2,
        "learning_rates": "[0.05, 0.1]",
    } | changes
    tables = {"schedule": ("batch", "rounds"), "recipe": ("epochs", "learning_rates")}
    inside = [key for keys in tables.values() for key in keys]
    lines = [f"{key} = {value}" for key, value in values.items() if key not in inside]
    for table, keys in tables.items():
        lines += [f"[{table}]", *(f"{key} = {values[key]}" for key in keys)]
    path = folder / "tiny.toml"
    path.write_text("\n".join(lines) + "\n" + tail)
    return path


def pictures(folder):
    """A dataset that a process reads without the seconds that scikit-learn, and so `digits`, takes."""
    root, draws = folder / "pictures", np.random.default_rng(0)
    for label in range(4):
        (root / str(label)).mkdir(parents=True, exist_ok=True)
        for i in range(60):
            pixels = draws.normal(50 + 50 * label, 50, (8, 8)).clip(0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(root / str(label) / f"{i}.png")
    return f'"{root}"'


def play(spec, folder, **options):
    return run(spec, folder, device="cpu", **{"workers": 1, **options})


def contents(folder):
    """Everything a store says of its results: no clocks, no memory."""
    with ResultStore.read(folder) as store:
        rounds = {
            (one.strategy, one.seed, one.round): (
                one.labels,
                one.accuracy,
                repr(one.loss),
                one.learning_rate,
                one.picks.tolist(),
                None if one.scores is None else one.scores.tolist(),
            )
            for one in store.rounds()
        }
        initial = {run: store.initial(*run).tolist() for run in store.runs}
        sweep = [(one.learning_rate, one.seed, one.accuracy) for one in store.sweep_results()]
        return rounds, initial, sweep, store.learning_rate()


class Askance(subprocess.Popen):
    """An `askance` in a session of its own, so that its workers can be found when it is gone."""

    def __init__(self, *arguments, path):
        command = [sys.executable, "-m", "askance", *map(str, arguments)]
        super().__init__(command, env=environment(path), start_new_session=True, **PIPES)

    def wait_for_workers(self, count=2):
        self._until(lambda: len(family(self.pid)) >= count)

    def wait_for_rounds(self, folder, count=1):
        self._until(lambda: rounds_in(folder) >= count)

    def _until(self, happened, patience=60):
        until = time.monotonic() + patience
        while not happened():
            assert self.poll() is None, self.communicate()
            assert time.monotonic() < until
            time.sleep(0.01)


PIPES = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE) | {"text": True}

NURSERY = """
import json, os, sys
import askance.experiments.summary  # what a run imports late
from askance.cli import main
print("ready", flush=True)
for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os._exit(main(json.loads(line)))
    print(pid, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


class Nursery:
    """Runs `askance` again and again, one at a time, with the seconds of its imports spent once."""

    def __init__(self, path):
        command = [sys.executable, "-c", NURSERY]
        self.words = (path / "words").open("w+")  # a pipe that nobody reads would fill up
        pipes = PIPES | {"stderr": self.words}
        self.parent = subprocess.Popen(command, env=environment(path), **pipes)
        assert self.parent.stdout.readline() == "ready\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.parent.communicate()
        self.words.seek(0)
        self.said = self.words.read()
        self.words.close()

    def start(self, *arguments):
        """The process id of a new one, which leads a session."""
        print(json.dumps(list(map(str, arguments))), file=self.parent.stdin, flush=True)
        return int(self.parent.stdout.readline())

    def wait(self):
        """The exit code of the last one."""
        return int(self.parent.stdout.readline())


def environment(path):
    """This process's, in which the modules of `path` can be imported."""
    known = os.environ.get("PYTHONPATH")
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(path), *([known] if known else [])])}


def family(leader):
    """The living processes of a session but its leader and multiprocessing's janitor."""
    processes = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            command = (folder / "cmdline").read_text()
        except OSError:  # it has just ended
            continue
        if int(session) == leader and state != "Z" and "resource_tracker" not in command:
            processes.append(int(folder.name))
    return [pid for pid in processes if pid != leader]


def left_behind(leader, patience=120):
    """Those of a dead leader's session that are alive when they have had the time to die.

    A worker that was just started finds out when its imports are done: seconds, on a busy machine many.
    """
    until = time.monotonic() + patience
    # Asked once a turn: the janitor, about to end, has no command line left that tells it apart.
    while (alive := family(leader)) and time.monotonic() < until:
        time.sleep(0.05)
    return alive


def rounds_in(folder):
    if not (Path(folder) / "store.sqlite").is_file():
        return 0
    try:
        with ResultStore.read(folder) as store:
            return len(store.rounds())
    except StoreError:  # made, and nothing in it yet
        return 0
