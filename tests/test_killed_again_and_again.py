"""A selection and an encoding that are killed at any moment, over and over, end as unbroken ones do."""

import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from tests.fences import ROOT

# For every line it reads, another process that does a job; one import of everything for all of them.
CHILDREN = """
import os, sys, time
from pathlib import Path
import numpy as np
import torch
torch.set_num_threads(1)
from askance.encoders import FunctionEncoder, encode
from askance.pools import LocalEngine, ParquetSource, select_from
from tests.pools import worlds

TEXTS = [f"text {n}" for n in range(400)]

def lengths(texts):
    time.sleep(0.002)
    return [[len(text), sum(text.encode()) / 7] for text in texts]

def encoding(folder, out):
    encoder = FunctionEncoder(lengths, "text", "lengths 1")
    made = encode(encoder, TEXTS, cache=folder / "cache", batch_size=8)
    save(out, np.asarray(made.features))

def selecting(folder, out):
    source = ParquetSource.open(str(folder / "pool"), worlds.VECTORS)
    picked = select_from(
        source, 12, strategy="badge", engine=LocalEngine(1), resume=folder / "pass", seed=3
    )
    save(out, np.asarray([picked.indices, picked.scores]))

def save(out, array):
    part = out.with_suffix(".part.npy")
    np.save(part, array)
    part.replace(out)

for line in sys.stdin:
    job, folder, out = line.split()
    pid = os.fork()
    if pid == 0:
        os.write(1, f"{os.getpid()}\\n".encode())
        globals()[job](Path(folder), Path(out))
        os._exit(0)
    sys.stdin.readline()  # till then its pid is its own
    code = os.waitpid(pid, 0)[1]
    os.write(1, f"{code}\\n".encode())
"""


@pytest.fixture(scope="module")
def parent():
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)]),
    }
    with subprocess.Popen(
        [sys.executable, "-c", CHILDREN],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
    ) as process:  # fmt: skip
        yield process
        process.stdin.close()


def ended(parent, job, folder, out, seconds=None):
    """How a child ended that did this job, or was killed after so many seconds."""
    print(job, folder, out, file=parent.stdin, flush=True)
    pid = int(parent.stdout.readline())
    if seconds is not None:
        time.sleep(seconds)
        os.kill(pid, signal.SIGKILL)
    print("reap", file=parent.stdin, flush=True)
    return os.waitstatus_to_exitcode(int(parent.stdout.readline()))


@pytest.mark.parametrize("job", ["selecting", "encoding"])
@pytest.mark.parametrize(
    "kills", [4, pytest.param(120, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])]
)
def test_killed_again_and_again(tmp_path, parent, job, kills):
    from tests.pools import worlds

    def folder(name):
        made = tmp_path / name
        made.mkdir()
        if job == "selecting":
            worlds.write(made / "pool", worlds.embedding(4_000), [200] * 20)
        return made

    whole = tmp_path / "whole.npy"
    assert ended(parent, job, folder("whole"), whole) == 0
    began = time.monotonic()
    assert ended(parent, job, folder("again"), tmp_path / "again.npy") == 0
    took = time.monotonic() - began
    draws, killed, ends = random.Random(0), 0, 0
    while killed < kills:
        here, out = folder(f"broken {ends}".replace(" ", "-")), tmp_path / f"{ends}.npy"
        while not out.exists() and killed < kills:
            code = ended(parent, job, here, out, draws.uniform(0, took))
            assert code in (0, -signal.SIGKILL)
            killed += code != 0
        if not out.exists():
            assert ended(parent, job, here, out) == 0
        np.testing.assert_array_equal(np.load(out), np.load(whole))
        ends += 1
