"""A server that is killed again and again, and the clients that go on answering."""

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid

import httpx

# For every line it reads, another process that serves; one import of everything for all of them. Each
# line is said in one system call, since who speaks may be killed.
SERVERS = """
import os, sys
from pathlib import Path
from askance.label import ItemSource, LabelingOptions, open_session
from askance.label.server import serving
import askance.label.app, uvicorn, time, torch
torch.set_num_threads(1)
folder, port, batch = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        options = LabelingOptions(
            batch=batch, ahead=2, held_out=0.1, epochs=1, worker="here", annotator="a"
        )
        source = ItemSource(folder / "items.parquet", features="vector", id="name")
        session = open_session(folder / "project", source, ["a", "b", "c"], options)
        with serving(session, port=port) as url:
            os.write(1, f"{os.getpid()}\\n".encode())
            time.sleep(3600)
    os.waitpid(pid, 0)
    os.write(1, b"dead\\n")
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Servers:
    """One server at a time, each of which can be killed."""

    def __init__(self, folder, batch):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.parent = subprocess.Popen(
            [sys.executable, "-c", SERVERS, str(folder), str(self.port), str(batch)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = None

    def start(self):
        print("go", file=self.parent.stdin, flush=True)
        self.pid = int(self._heard())

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        assert self._heard() == "dead"

    def _heard(self):
        line = self.parent.stdout.readline()
        assert line.endswith("\n"), f"the servers' parent has ended, saying {line!r}"
        return line.strip()

    def close(self):
        self.kill()
        self.parent.stdin.close()
        self.parent.wait(30)
        self.parent.stdout.close()


class Client(threading.Thread):
    """An annotator who repeats every act until it is acknowledged, and remembers what was."""

    def __init__(self, url, name, answers, stop):
        super().__init__(daemon=True)
        self.url, self.who, self.wanted, self.stop = url, name, answers, stop
        self.kept = {}  # token → (item, class)
        self.problem = None

    def run(self):
        try:
            with httpx.Client(base_url=self.url, timeout=10) as client:
                while len(self.kept) < self.wanted and not self.stop.is_set():
                    params = {"annotator": self.who, "n": 2}
                    batch = self._until(lambda p=params: client.get("/api/questions", params=p))
                    if not batch["questions"]:
                        assert not batch["finished"]
                        time.sleep(0.05)
                    for question in batch["questions"]:
                        self._answer(client, question)
        except Exception as error:
            self.problem = error

    def _answer(self, client, question):
        token = uuid.uuid4().hex
        choice = sum(question["item"].encode()) % 3
        body = {"question": question["id"], "class": choice, "annotator": self.who, "token": token}
        told = self._until(lambda: client.post("/api/answers", json=body))
        self.kept[token] = (told["item"], told["class"])

    def _until(self, call):
        while not self.stop.is_set():
            with contextlib.suppress(httpx.TransportError):
                reply = call()
                assert reply.status_code == 200, reply.text
                return reply.json()
            time.sleep(0.02)
        raise RuntimeError("stopped")


def storm(folder, *, clients, answers, kills, batch, seed, limit):
    """Who was told what: token → (item, class), and how often the server was killed."""
    servers = Servers(folder, batch)
    stop = threading.Event()
    people = [Client(servers.url, f"person {i}", answers, stop) for i in range(clients)]
    moments = random.Random(seed)
    servers.start()
    try:
        end = time.monotonic() + limit
        for person in people:
            person.start()
        done = 0
        total = clients * answers
        # A kill comes when a share of all answers is in, at an unforeseen moment.
        marks = sorted(moments.uniform(0.05, 0.95) * total for _ in range(kills))
        while any(person.is_alive() for person in people):
            assert time.monotonic() < end, "the storm took too long"
            if done < kills and sum(len(p.kept) for p in people) >= marks[done]:
                time.sleep(moments.uniform(0, 0.05))
                servers.kill()
                servers.start()
                done += 1
            time.sleep(0.005)
    finally:
        stop.set()
        servers.close()
    for person in people:
        assert person.problem is None, person.problem
    return {token: told for person in people for token, told in person.kept.items()}, done
