"""What the formulas of docs/scale.md are fed with: rates, bytes and round trips, measured.

    python benchmarks/scale.py            # writes results/scale/scale.json; some minutes
    python benchmarks/scale.py --only scoring,latency

Everything here runs in this process on one thread, but for `latency`, which starts a Ray cluster of
three nodes on this machine.
"""

from __future__ import annotations

import logging
import pickle
import platform
import statistics
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import torch
from kmeans_parallel import Gradients, kmeans_parallel, nearest
from measuring import RESULTS, clocked, load, parser, save
from workloads import Spec, build

import askance
from askance.embedding import Listed
from askance.experiments.machine import hardware
from askance.picking import TopRows
from askance.picking.kcenter import kcenter
from askance.picking.kmeanspp import kmeanspp
from askance.picking.points import feature_points, gradient_points
from askance.picking.shard import kcenter_shard, kmeanspp_shard
from askance.picking.sharded import LocalShards, sharded_kcenter, sharded_kmeanspp
from askance.pools import ShardResult
from askance.seeding import Draws
from askance.selection.selection import ReadCounts

RULES = ("random", "entropy", "gradnorm", "grad")


def timed(call: Callable[[], Any], least: float = 1.0) -> float:
    """Median seconds of calls that take `least` together, the first not counted."""
    call()
    times: list[float] = []
    while sum(times) < least or len(times) < 3:
        times.append(clocked(call)[0])
    return statistics.median(times)


def scoring() -> Iterator[dict[str, Any]]:
    """Rows a second of pointwise rules over embeddings in memory, on one thread."""
    for D, C in ((128, 10), (512, 100)):
        N = min(200_000, int(4e7 / (D + C)))
        h = torch.randn(N, D).relu_()
        pool = askance.Embedding(torch.randn(N, C), h)
        labeled = (
            askance.Embedding(torch.randn(1000, C), torch.randn(1000, D)),
            torch.arange(1000) % C,
        )
        bare = timed(lambda h=h, D=D, C=C: h @ torch.ones(D, C))
        for rule in RULES:
            seconds = timed(
                lambda pool=pool, labeled=labeled, rule=rule: _picked(labeled, pool, rule)
            )
            yield {
                "rule": rule, "N": N, "D": D, "C": C, "rows_per_s": N / seconds, "seconds": seconds,
                "of_one_product": seconds / bare, "product_gflops": 2 * N * D * C / bare / 1e9,
            }  # fmt: skip


def _picked(labeled: Any, pool: Any, rule: str) -> Any:
    return askance.select(None, labeled, pool, 1000, strategy=rule)


def leaders() -> Iterator[dict[str, Any]]:
    """Bytes of a shard's answer to a pointwise rule, as it travels."""
    for n, D, C in ((100, 128, 10), (1000, 128, 10), (1000, 512, 100), (10_000, 128, 10)):
        ids = Listed([f"part-{row % 100:05d}.parquet:{row * 97}" for row in range(n)])
        rows = askance.Embedding(torch.rand(n, C), torch.rand(n, D), np.arange(n), ids)
        some = ShardResult(TopRows(rows, np.linspace(1, 0, n)), ReadCounts(n))
        size = len(pickle.dumps(some))
        yield {"n": n, "D": D, "C": C, "bytes": size, "per_row": size / n}


class Timed(LocalShards):
    """Shards one after the other, with the time each trip would take if they ran side by side."""

    def __init__(self, shards: Any) -> None:
        super().__init__(shards)
        self.busiest = self.together = 0.0

    def fronts(self, news: Any, width: int) -> Any:
        answers, times = {}, []
        for which, update in news.items():
            seconds, answers[which] = clocked(
                lambda w=which, u=update: self.shards[w].front(u, width)
            )
            times.append(seconds)
        self.busiest += max(times)
        self.together += sum(times)
        return answers


def shards() -> Iterator[dict[str, Any]]:
    """Round trips, bytes and seconds of sharded badge and kcenter as shards get more."""
    for name, spec in (
        ("25k, b 500", Spec(25_000, 256, 10, 500)),
        ("100k, b 1000", Spec(100_000, 256, 10, 1_000)),
        ("25k, D 512, C 100", Spec(25_000, 512, 100, 500)),
    ):
        work, _ = build(spec)
        n, N = spec.picks, spec.pool
        z, h = torch.from_numpy(work.logits), torch.from_numpy(work.features)
        labeled = torch.from_numpy(work.labeled_features)
        clocks = Draws(0).exponential("badge", range(N))
        alone = {
            "badge": clocked(lambda z=z, h=h, n=n, c=clocks: kmeanspp(gradient_points(z, h), n, c)),
            "kcenter": clocked(
                lambda h=h, n=n, labeled=labeled: kcenter(feature_points(h), labeled, n)
            ),
        }
        for W, (rule, (seconds, picks)) in product((1, 4, 16, 64), alone.items()):
            row, rows = _sharded(rule, W, z, h, labeled, clocks, n)
            same = rows == picks.rows.tolist()
            sizes = {"pool": name, "rule": rule, "N": N, "n": n, "W": W, "same_picks": same}
            yield {**sizes, "alone_s": seconds, **row}


def _sharded(
    rule: str, W: int, z: Any, h: Any, labeled: Any, clocks: Any, n: int
) -> tuple[dict[str, Any], list[int]]:
    """What n picks from W shards take, and the picks."""

    def shard(p: np.ndarray) -> Any:
        if rule == "badge":
            return kmeanspp_shard(gradient_points(z[p], h[p]), p, n, clocks[p])
        return kcenter_shard(feature_points(h[p]), p, n, labeled)

    pick = sharded_kmeanspp if rule == "badge" else sharded_kcenter
    parts = np.array_split(np.arange(len(h)), W)
    made, held = clocked(lambda: Timed([shard(p) for p in parts]))
    whole, outcome = clocked(lambda: pick(held, n))
    seconds = {"made_s": made, "busiest_s": held.busiest, "shards_s": held.together}
    seconds["driver_s"] = whole - held.together
    return {**vars(outcome.traffic), **seconds}, outcome.picks.rows.tolist()


def rival(seeds: int = 3) -> Iterator[dict[str, Any]]:
    """Sharded clocks against k-means|| on one pool: potential, round trips, bytes, pairs, seconds."""
    W = 16
    for name, spec in (
        ("trained", Spec(20_000, 256, 10, 300)),
        ("copies", Spec(20_000, 256, 10, 300, copies=50)),
    ):
        work, _ = build(spec)
        n, N = spec.picks, spec.pool
        z, h = torch.from_numpy(work.logits), torch.from_numpy(work.features)
        parts = np.array_split(np.arange(N), W)
        whole = Gradients.of(z, h)

        def potential(rows: Any, whole: Gradients = whole) -> float:
            return float(nearest(whole, whole.at(torch.from_numpy(rows)))[0].double().sum())

        for seed in range(seeds):
            clocks = Draws(seed).exponential("badge", range(N))
            held = Timed(
                [kmeanspp_shard(gradient_points(z[p], h[p]), p, n, clocks[p]) for p in parts]
            )
            seconds, outcome = clocked(lambda held=held, n=n: sharded_kmeanspp(held, n))
            traffic, sum_sq = outcome.traffic, potential(outcome.picks.rows)
            yield {
                "pool": name, "method": "clocks", "seed": seed, "potential": sum_sq,
                "trips": traffic.trips, "bytes": traffic.sent + traffic.received,
                "seconds": seconds, "busiest_s": held.busiest,
            }  # fmt: skip
            for rounds in (2, 5):
                shards = [whole.at(torch.from_numpy(p)) for p in parts]
                seconds, (rows, cost) = clocked(
                    lambda shards=shards, rounds=rounds: kmeans_parallel(shards, n, seed, rounds)  # noqa: B023
                )
                yield {
                    "pool": name, "method": f"k-means||, {rounds} rounds", "seed": seed,
                    "potential": potential(rows), "trips": cost.trips, "bytes": cost.bytes,
                    "seconds": seconds, "pairs": cost.pairs, "candidates": cost.candidates,
                }  # fmt: skip
            some = Draws(seed).generator("random").choice(N, n, replace=False)
            yield {"pool": name, "method": "random", "seed": seed, "potential": potential(some)}


def latency() -> Iterator[dict[str, Any]]:
    """Seconds of one round trip to W Ray actors on three nodes of this machine."""
    import ray
    from ray.cluster_utils import Cluster

    class Echo:
        def say(self, what: Any) -> Any:
            return what

    room = {"num_cpus": 1, "object_store_memory": 80 << 20}
    cluster = Cluster(initialize_head=True, head_node_args={**room, "include_dashboard": False})
    for _ in range(2):
        cluster.add_node(**room)
    ray.init(cluster.address, log_to_driver=False, logging_level=logging.ERROR)
    try:
        for W in (1, 3, 6):
            actors = [ray.remote(num_cpus=0)(Echo).remote() for _ in range(W)]
            for size in (100, 50_000):
                what = b"x" * size

                def trip(actors: Any = actors, what: bytes = what) -> Any:
                    return ray.get([actor.say.remote(what) for actor in actors])

                yield {"W": W, "bytes": size, "seconds": timed(trip, 3.0)}
            for actor in actors:
                ray.kill(actor)
    finally:
        ray.shutdown()
        cluster.shutdown()


PARTS = {f.__name__: f for f in (scoring, leaders, shards, rival, latency)}


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--only", default=",".join(PARTS))
    options = arguments.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    path = RESULTS / "scale" / "scale.json"
    results = load(path)
    versions = {"python": platform.python_version(), "torch": torch.__version__}
    for name in options.only.split(","):
        results[name] = []
        for row in PARTS[name]():
            print(row, flush=True)
            results[name].append(row)
        results["machine"] = {**hardware(), **versions}
        save(path, results)


if __name__ == "__main__":
    main()
