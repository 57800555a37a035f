"""Throughput of an encoder here, as a share of a bare forward loop over batches that are ready.

    python benchmarks/encoding.py pets efficientnet-lite0
    python benchmarks/encoding.py trec minilm --items 256

Three ways over the same items and the same batches, again and again in turns, so that whatever else the
machine does meets all alike: `bare` calls the encoder on tensors that were loaded before the clock
starts; `encode` is `askance.encoders.encode` with an empty cache on disk (files read and decoded, texts
tokenized, digests, commits); `pool` reads the items as a Parquet pool of `askance select --encoder`
does. A share is bare's seconds over the other's, in the same turn: by the clock, and of processor time,
which other processes do not lengthen. Their cost is the same where all cores are busy; where one is
idle, items are prepared on it and the clock's share is the higher one.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from measuring import clocked, machine, parser

from askance import data
from askance.encoders import Encoder, FeatureCache, encode, get
from askance.pools import Naming, open_source
from askance.pools.encoded import CachedEncoder, FeatureSource

GOAL = 0.85  # of the bare loop


def items_of(dataset: str, count: int) -> list[Any]:
    """Different items of a dataset's pool, as they are stored: texts, or image files."""
    raw = data.load(dataset, download=False).raw
    if count > len(raw):
        raise SystemExit(f"{dataset} has {len(raw)} items in its pool, {count} were asked for")
    stored = [raw.source[int(row)] for row in raw.rows]
    some = list(dict.fromkeys(stored))[:count]
    if not isinstance(some[0], (str, bytes)):
        raise SystemExit(f"{dataset} has arrays of pixels; name a dataset of texts or image files")
    return some


def ready_batches(encoder: Encoder, items: list[Any]) -> list[Any]:
    """The batches that `encode` makes, as the model takes them: texts of one length together."""
    order = sorted(items, key=len) if encoder.kind == "text" else items
    size = encoder.batch_size
    return [
        encoder.prepare([encoder.load(item) for item in order[start : start + size]]).inputs
        for start in range(0, len(order), size)
    ]


def bare(encoder: Encoder, batches: list[Any]) -> None:
    """The forward pass and nothing else."""
    with torch.inference_mode():
        for inputs in batches:
            encoder.features(inputs).float().numpy()


def encoded(encoder: Encoder, items: list[Any], folder: Path) -> None:
    """Items to features, all of them new to the cache."""
    with FeatureCache(encoder, folder) as cache:
        done = encode(encoder, items, cache=cache, device="cpu")
    assert done.computed == len(items)


def pooled(encoder: Encoder, address: Path, column: str, folder: Path) -> None:
    """The pass over a Parquet pool that encodes it."""
    naming = Naming(text="item") if column == "text" else Naming(image="item")
    with FeatureCache(encoder, folder) as cache:
        by = CachedEncoder(encoder, cache, None, "cpu")
        source = FeatureSource.of(open_source(str(address), naming), by)
        for shard in source.shards:
            for _ in source.read(shard, 1 << 16, frozenset({"features"})):
                pass


@dataclass(frozen=True)
class Seconds:
    """What a call took by the clock, and of all processors together."""

    clock: float
    processor: float

    @property
    def shown(self) -> str:
        return f"{self.clock:.1f} s ({self.processor:.1f})"


def timed(call: Callable[[], None]) -> Seconds:
    """The seconds of one call."""
    start = time.process_time()
    clock, _ = clocked(call)
    return Seconds(clock, time.process_time() - start)


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("dataset")
    arguments.add_argument("encoder")
    arguments.add_argument("--items", type=int, default=128, help="of a turn")
    arguments.add_argument("--turns", type=int, default=7)
    options = arguments.parse_args()
    encoder = get(options.encoder)
    items = items_of(options.dataset, options.items)
    batches = ready_batches(encoder, items)
    with tempfile.TemporaryDirectory() as scratch:
        pool = Path(scratch) / "pool.parquet"
        pq.write_table(pa.table({"item": items}), pool)
        ways: dict[str, Callable[[Path], None]] = {
            "bare": lambda _: bare(encoder, batches),
            "encode": lambda folder: encoded(encoder, items, folder),
            "pool": lambda folder: pooled(encoder, pool, encoder.kind, folder),
        }
        bare(encoder, batches[:1])  # what is made once
        turns: list[dict[str, Seconds]] = []
        for turn in range(options.turns):
            names = [*ways][turn % 3 :] + [*ways][: turn % 3]
            calls = {name: partial(ways[name], Path(scratch) / f"{turn}-{name}") for name in names}
            turns.append({name: timed(call) for name, call in calls.items()})
            print({name: turns[-1][name].shown for name in ways}, flush=True)
    result = {"dataset": options.dataset, "encoder": options.encoder, "items": options.items}
    result |= {"turns": options.turns, "threads": torch.get_num_threads(), **machine("torch")}
    print(json.dumps(result | summary(turns)))


def summary(turns: list[dict[str, Seconds]]) -> dict[str, Any]:
    """The median share of the bare loop's throughput, its range, and whether the goal is met."""
    shares: dict[str, Any] = {}
    for name in ("encode", "pool"):
        for kind in ("clock", "processor"):
            each = [getattr(turn["bare"], kind) / getattr(turn[name], kind) for turn in turns]
            middle = statistics.median(each)
            shares[f"{name}, {kind}"] = {
                "share": round(middle, 3),
                "range": [round(min(each), 3), round(max(each), 3)],
                "met": middle >= GOAL,
            }
    return shares


if __name__ == "__main__":
    main()
