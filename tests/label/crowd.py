"""People who label while others hold half-open connections: how long the replies to people take.

python -m tests.label.crowd [--connections 1500] [--people 20] [--seconds 60]
"""

import argparse
import multiprocessing
import socket
import statistics
import sys
import tempfile
import threading
import time
import uuid
from contextlib import suppress
from pathlib import Path

import httpx

from tests.label.storm import Servers
from tests.label.worlds import features_file

THINK = 0.5  # seconds between an answer and the next


def half_open(port, count, stop, made):
    """Keep so many connections open that begin a request and never end it."""
    clients = []
    while not stop.is_set():
        if len(clients) >= count:
            time.sleep(0.25)
            clients = [client for client in clients if not _ended(client)]
            continue
        with suppress(OSError):
            client = socket.create_connection(("127.0.0.1", port), timeout=1)
            client.sendall(b"POST /api/answers HTTP/1.1\r\nHost: ")
            clients.append(client)
            made.value += 1
    for client in clients:
        client.close()


def _ended(client):
    client.setblocking(False)
    try:
        gone = client.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        gone = True
    client.close()
    return gone


class Labeller(threading.Thread):
    """Answers with pauses, and notes how long each reply took; a lost connection is tried again."""

    def __init__(self, url, name, stop):
        super().__init__(daemon=True)
        self.url, self.who, self.stop = url, name, stop
        self.took, self.answered, self.again = [], 0, 0

    def run(self):
        with httpx.Client(base_url=self.url, timeout=30) as client:
            while not self.stop.is_set():
                params = {"annotator": self.who, "n": 1}
                batch = self._timed(lambda p=params: client.get("/api/questions", params=p))
                for question in batch["questions"]:
                    body = {
                        "question": question["id"],
                        "class": 0,
                        "annotator": self.who,
                        "token": uuid.uuid4().hex,
                    }
                    self._timed(lambda b=body: client.post("/api/answers", json=b))
                    self.answered += 1
                self.stop.wait(THINK)

    def _timed(self, call):
        began = time.perf_counter()
        while True:
            try:
                reply = call()
                break
            except httpx.TransportError:
                self.again += 1
        self.took.append(time.perf_counter() - began)
        assert reply.status_code == 200, reply.text
        return reply.json()


def crowd(folder, connections, people, seconds):
    """The people afterwards, and how many connections were made."""
    features_file(folder, n=int(people * seconds * 4))
    servers = Servers(folder, batch=100_000)
    context = multiprocessing.get_context("spawn")
    stop, made = context.Event(), context.Value("i", 0)
    servers.start()
    try:
        attack = context.Process(target=half_open, args=(servers.port, connections, stop, made))
        labellers = [Labeller(servers.url, f"person {i}", stop) for i in range(people)]
        attack.start()
        time.sleep(10)  # all of them are made first
        for each in labellers:
            each.start()
        time.sleep(seconds)
        stop.set()
        for each in [attack, *labellers]:
            each.join(60)
            assert not each.is_alive()
    finally:
        servers.close()
    return labellers, made.value


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--connections", type=int, default=1500)
    parser.add_argument("--people", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        people, made = crowd(Path(folder), given.connections, given.people, given.seconds)
    took = sorted(each for person in people for each in person.took)
    cuts = statistics.quantiles(took, n=1000)
    sys.stdout.write(
        f"{given.people} people, {sum(p.answered for p in people):,} answers, {len(took):,} requests, "
        f"{sum(p.again for p in people)} sent again; {made:,} half-open connections made\n"
        f"median {statistics.median(took) * 1000:.0f} ms, p99 {cuts[989] * 1000:.0f} ms, "
        f"most {took[-1] * 1000:.0f} ms\n"
    )


if __name__ == "__main__":
    main()
