"""One Ray cluster of three machines for all tests of this folder: three nodes, one core each.

And the command line in this process, as its own tests have it.
"""

import logging
import os
import time
import warnings
from pathlib import Path

import pytest

from tests.cli.conftest import askance, tiny
from tests.integrations.studio import api, command, url

__all__ = ["api", "askance", "command", "tiny", "url"]

MIB = 1 << 20
ROOM = {"num_cpus": 1, "object_store_memory": 80 * MIB}


def pytest_collection_modifyitems(items):
    """Ray leaves sockets and files to the garbage collector, and says so; those warnings alone pass."""
    for item in items:
        if Path(__file__).parent in Path(item.fspath).parents:
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"))


@pytest.fixture(scope="session")
def cluster():
    ray = pytest.importorskip(
        "ray", reason="*** NO RAY: no cluster test was run; install askance[cluster]"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ray.cluster_utils import Cluster

        # Ray's workers are nice by 15, and starve beside the tests of another process.
        head = {**ROOM, "include_dashboard": False, "_system_config": {"worker_niceness": 0}}
        made = Cluster(initialize_head=True, head_node_args=head)
        for _ in range(2):
            made.add_node(**ROOM)
        ray.init(
            made.address, log_to_driver=False, logging_level=logging.ERROR, configure_logging=False
        )
        made.wait_for_nodes()
    assert len(nodes(ray)) == 3
    yield made
    session = ray._private.worker.global_worker.node.get_session_dir_path()
    ray.shutdown()
    made.shutdown()
    assert left_behind(session) == []


def nodes(ray):
    return [node for node in ray.nodes() if node["Alive"]]


def left_behind(session, patience=30):
    """Processes of a cluster's session that are alive when they have had the time to die."""
    until = time.monotonic() + patience
    while (found := naming(session)) and time.monotonic() < until:
        time.sleep(0.2)
    return found


def naming(text):
    """Command lines of other living processes that hold `text`: (pid, words)."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it has just ended
            continue
        if text in words and int(folder.name) != os.getpid():
            found.append((int(folder.name), words.strip()))
    return found
