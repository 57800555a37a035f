"""Stream a Parquet pool from disk: rows a second against a plain read of the same columns, and memory.

python benchmarks/pools.py                      # 10,000,000 rows; some 6 GB in a temporary folder
python benchmarks/pools.py --rows 500000 --turns 2 --out /tmp/pools

Every measurement is a process of its own; reads and selections take turns, and the file is in the page
cache for both. The read is the fastest of three plain ways: pyarrow's dataset scanner, one file after
the other with Arrow's own threads, and a thread a core with a file each.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
from measuring import clocked, machine, parser, peak_memory, run_script, save

FEATURES, CLASSES, LABELED = 128, 10, 1_000
BLOCK, FILES = 65_536, 10
COLUMNS = {"grad": ["features", "logits"], "entropy": ["logits"]}
READS = ("scanner", "files", "threads")


def generate(folder: Path, rows: int) -> None:
    """The pool in ten files and a labelled set, made a block at a time."""
    draws = np.random.default_rng(0)
    head = draws.normal(size=(FEATURES, CLASSES)).astype(np.float32) / FEATURES**0.5

    def table(count: int) -> pa.Table:
        features = draws.standard_normal((count, FEATURES), dtype=np.float32)
        columns = {"features": features, "logits": features @ head}
        return pa.table({name: _lists(matrix) for name, matrix in columns.items()})

    (folder / "pool").mkdir(parents=True)
    (folder / "labeled").mkdir()
    for number, part in enumerate(np.array_split(np.arange(rows), FILES)):
        path = folder / "pool" / f"part-{number:03d}.parquet"
        with pq.ParquetWriter(path, table(1).schema, use_dictionary=False) as writer:
            for start in range(0, len(part), BLOCK):
                writer.write_table(table(min(BLOCK, len(part) - start)), row_group_size=BLOCK)
    labels = pa.array(draws.integers(0, CLASSES, LABELED))
    labeled = table(LABELED).append_column("label", labels)
    pq.write_table(labeled, folder / "labeled" / "labeled.parquet")


def _lists(matrix: np.ndarray) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(matrix.reshape(-1)), matrix.shape[1])


def read(folder: Path, columns: list[str], way: str) -> int:
    """Every row of those columns, looked at by nobody."""
    if way == "scanner":
        batches = pyarrow.dataset.dataset(folder / "pool").to_batches(columns=columns)
        return sum(batch.num_rows for batch in batches)
    paths = sorted((folder / "pool").iterdir())
    if way == "threads":
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return sum(pool.map(lambda path: _rows(path, columns, False), paths))
    return sum(_rows(path, columns, True) for path in paths)


def _rows(path: Path, columns: list[str], threads: bool) -> int:
    batches = pq.ParquetFile(path).iter_batches(BLOCK, columns=columns, use_threads=threads)
    return sum(batch.num_rows for batch in batches)


def select(folder: Path, rule: str, n: int) -> int:
    from askance.pools import Naming, open_source, select_from
    from askance.pools.resume import forget

    columns = {"features": ("features",), "logits": ("logits",)}
    pool = open_source(str(folder / "pool"), Naming(**columns))
    labeled = open_source(str(folder / "labeled"), Naming(**columns, label="label"), labeled=True)
    picks = select_from(pool, n, labeled=labeled, strategy=rule, resume=folder / "resume")
    forget(folder / "resume")
    assert len(set(picks.ids)) == n
    return picks.read.rows


def measured(folder: Path, what: str, rule: str, n: int) -> None:
    """One measurement, as a line of JSON; imports are not timed."""
    import askance.pools  # noqa: F401

    seconds, rows = clocked(
        lambda: select(folder, rule, n) if what == "select" else read(folder, COLUMNS[rule], what)
    )
    print(json.dumps({"rows": rows, "seconds": seconds, "peak": peak_memory()}))


def warm(folder: Path) -> int:
    """Read every byte once, so that the page cache is the same for all."""
    size = 0
    for path in sorted((folder / "pool").iterdir()):
        with path.open("rb") as file:
            while chunk := file.read(1 << 24):
                size += len(chunk)
    return size


def turns(folder: Path, rule: str, n: int, count: int) -> dict[str, list[dict[str, float]]]:
    """Reads and selections one after the other, `count` times."""
    runs: dict[str, list[dict[str, float]]] = {what: [] for what in (*READS, "select")}
    for turn in range(count):
        for what in runs:
            warm(folder)
            last = run_script(__file__, "--measure", what, rule, "--folder", folder, "--n", n)
            runs[what].append(last)
            print(
                f"{rule} turn {turn + 1}: {what} {last['rows'] / last['seconds']:,.0f} rows/s",
                flush=True,
            )
    return runs


def summary(turns: dict[str, list[dict[str, float]]]) -> dict[str, object]:
    rates = {what: [m["rows"] / m["seconds"] for m in runs] for what, runs in turns.items()}
    best = max(READS, key=lambda way: median(rates[way]))
    return {
        "read": best,
        "read_rows_per_second": median(rates[best]),
        "select_rows_per_second": median(rates["select"]),
        "share": median(rates["select"]) / median(rates[best]),
        "shares": [
            mine / theirs for mine, theirs in zip(rates["select"], rates[best], strict=True)
        ],
        "peak_bytes": max(run["peak"] for run in turns["select"]),
        "rates": rates,
    }


def page(result: dict) -> str:
    lines = [
        "# Streaming a pool from Parquet",
        "",
        f"{result['rows']:,} rows, {FEATURES} features and {CLASSES} classes precomputed (float32 "
        f"lists, {result['bytes'] / 1e9:.1f} GB, {FILES} files), n = {result['n']:,}, {LABELED:,} "
        f"labelled points. {result['turns']} turns, each a process of its own, file in the page "
        "cache; medians.",
        "",
        f"{result['machine']}; {result['versions']}. Command: `{result['command']}`",
        "",
        "| rule | columns | plain read, rows/s | `select_from`, rows/s | share (by turn) | memory |",
        "|---|---|---|---|---|---|",
    ]
    for rule, one in result["rules"].items():
        shares = ", ".join(f"{share:.0%}" for share in one["shares"])
        lines.append(
            f"| `{rule}` | {', '.join(COLUMNS[rule])} | {one['read_rows_per_second']:,.0f} "
            f"({one['read']}) | {one['select_rows_per_second']:,.0f} | "
            f"**{one['share']:.0%}** ({shares}) | {one['peak_bytes'] / 2**20:,.0f} MiB |"
        )
    lines += [
        "",
        "The read is the fastest of pyarrow's dataset scanner, one file after the other, and a thread "
        "a core with a file each. Memory is the select process's largest resident set, interpreter, "
        "torch and all.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--rows", type=int, default=10_000_000)
    arguments.add_argument("--n", type=int, default=1_000)
    arguments.add_argument("--turns", type=int, default=3)
    arguments.add_argument("--out", type=Path, default=Path("results/pools"))
    arguments.add_argument(
        "--folder", type=Path, help="Where the pool is, or is to be made and kept."
    )
    arguments.add_argument("--measure", nargs=2, metavar=("WHAT", "RULE"), help=argparse.SUPPRESS)
    options = arguments.parse_args()
    if options.measure:
        measured(options.folder, *options.measure, options.n)
        return
    with tempfile.TemporaryDirectory(prefix="askance-pools-") as temporary:
        folder = options.folder or Path(temporary) / "made"
        if not (folder / "pool").exists():
            generate(folder, options.rows)
        rules = {rule: turns(folder, rule, options.n, options.turns) for rule in COLUMNS}
        size = warm(folder)
    here = machine("torch", "pyarrow")
    versions = {"Python": here["versions"].pop("python"), **here["versions"]}
    result = {
        "rows": int(rules["grad"]["select"][0]["rows"]),
        "n": options.n,
        "turns": options.turns,
        "bytes": size,
        "machine": f"{here['cores']} cores of {here['cpu']}",
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
        "command": f"python benchmarks/pools.py --rows {options.rows} --turns {options.turns}",
        "rules": {rule: summary(turns) for rule, turns in rules.items()},
    }
    save(options.out / "pools.json", result, page(result), "pools.md")
    print(page(result))


if __name__ == "__main__":
    main()
