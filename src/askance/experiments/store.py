"""The results of one experiment, in one SQLite file. The store is the truth.

A round of a run is one transaction: it is there, whole, or it is not. A store holds one experiment, is
written by one process at a time, and may be read by any number while it is written.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from askance._io import sqlite
from askance._io.lock import Lock
from askance.errors import StoreError
from askance.experiments import packing, schema
from askance.experiments.machine import Machine, code_version
from askance.experiments.packing import FILE, LOCK, PACKED
from askance.experiments.records import (
    POSITIONS,
    Origin,
    RoundRecord,
    SweepResult,
    packed,
    read_json,
    rows,
    unpacked,
)
from askance.experiments.seeds import as_written, seed_ranges, seeds_of
from askance.experiments.spec import EXTENSIBLE, Spec, differences, hash_of
from askance.experiments.strategy_spec import label_of


class ResultStore:
    """One experiment's store. `ResultStore.open` opens it to write, `ResultStore.read` to read.

    Close it, or use it in a `with` statement.
    """

    def __init__(self, path: Path, db: sqlite.Connection, lock: Lock | None) -> None:
        self.path = path
        self._db = db
        self._lock = lock

    @classmethod
    def open(
        cls,
        folder: str | os.PathLike[str],
        spec: Spec,
        *,
        extend: bool = False,
        origin: Origin | None = None,
    ) -> ResultStore:
        """Open the store of `spec` in `folder` for writing; it is created where there is none.

        A store of another spec or origin is refused, and left as it was. With `extend`, one that
        differs in strategies or seeds alone takes up the new ones; nothing is removed.
        """
        path = Path(folder) / FILE
        with sqlite.explained(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = Lock(path.with_name(LOCK))
        try:
            with sqlite.explained(path):
                packing.unpack(path.parent)
                store = cls(path, schema.writer(path), lock)
            try:
                store._take_up(spec, extend, origin)
            except BaseException:
                store._db.close()
                raise
        except BaseException:
            lock.release()
            raise
        return store

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> ResultStore:
        """Open a store for reading, by its folder or its file. Another process may be writing it."""
        path = Path(path)
        path = packing.file_of(path) if path.is_dir() else path
        if not path.is_file():
            raise StoreError(f"there is no store at {path}; expected a folder that holds {FILE}")
        with sqlite.explained(path):
            read = packing.reader if path.name == PACKED else schema.reader
            return cls(path, read(path), None)

    def close(self) -> None:
        """Close the file and release its lock; a second time does nothing."""
        self._db.close()
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> ResultStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # What the experiment is

    @property
    def spec(self) -> dict[str, Any]:
        """The stored spec as a dict; `Spec.from_dict` checks and makes it one."""
        row = self._experiment
        spec = read_json(row["spec"])
        try:
            sound = hash_of(spec) == row["hash"]
        except Exception:  # whatever an altered spec makes of it
            sound = False
        if not sound:
            raise StoreError(
                f"{self.path} is damaged: its spec is not what was written; restore a copy"
            )
        return spec

    @property
    def hash(self) -> str:
        """The hash of the stored spec."""
        return self._experiment["hash"]

    @property
    def info(self) -> dict[str, Any]:
        """hash, code, created, learning_rate, and the data's fingerprint, source and subset."""
        row = self._experiment
        return {key: row[key] for key in row.keys() if key not in ("id", "spec")}  # noqa: SIM118

    @property
    def facts(self) -> dict[str, str]:
        """The sizes of the data, and `file`, the spec's own; empty where they were not kept."""
        if not self._query("SELECT name FROM sqlite_schema WHERE name = 'fact'"):
            return {}
        return {row["name"]: row["value"] for row in self._query("SELECT * FROM fact")}

    @property
    def runs(self) -> list[tuple[str, int]]:
        """Every (strategy label, seed) that was asked for, strategy by strategy.

        Where a store was extended, these may be fewer than its spec's strategies times its seeds.
        """
        order = {label_of(entry): place for place, entry in enumerate(self.spec["strategies"])}
        asked = [
            (row["strategy"], row["seed"]) for row in self._query("SELECT strategy, seed FROM run")
        ]
        return sorted(asked, key=lambda run: (order[run[0]], run[1]))

    def note_machine(self, machine: Machine) -> None:
        """Store what this process runs on."""
        with self._transaction():
            self._insert("machine", {"started": _now(), **vars(machine)})

    def machines(self) -> list[dict[str, Any]]:
        """What each process that wrote ran on, first to last."""
        rows = map(dict, self._query("SELECT * FROM machine ORDER BY id"))
        return [
            row | {key: read_json(row[key]) for key in ("hardware", "packages")} for row in rows
        ]

    # The learning rate

    def learning_rate(self) -> float | None:
        """The learning rate that was chosen; None before that."""
        return self._experiment["learning_rate"]

    def set_learning_rate(self, rate: float) -> None:
        """Store the rate that was chosen; another one is an error afterwards."""
        with self._transaction():
            stored = self.learning_rate()
            self._check_rate(rate)
            if stored not in (None, rate):
                raise StoreError(
                    f"{self.path}: the learning rate is {stored}, it cannot become {rate}"
                )
            self._db.execute("UPDATE experiment SET learning_rate = ?", (rate,))

    def add_sweep(self, result: SweepResult) -> None:
        """Commit what one learning rate of the sweep came to."""
        rate = result.learning_rate
        with self._transaction():
            self._check_rate(rate)
            self._insert("sweep", vars(result), f"sweep of {rate}, seed {result.seed}")

    def sweep_results(self) -> list[SweepResult]:
        """What each learning rate of the sweep came to, by rate and seed."""
        return [
            SweepResult(**dict(row))
            for row in self._query("SELECT * FROM sweep ORDER BY learning_rate, seed")
        ]

    # The runs and their rounds

    def start_run(self, strategy: str, seed: int, initial: object) -> None:
        """Store the rows that a run starts from; a second call must give the same rows in order."""
        what = f"{strategy}, seed {seed}"
        wanted = rows(initial, f"{what}: initial rows")
        with self._transaction():
            self._check_run(strategy, seed)
            stored = self.initial(strategy, seed)
            if stored is None:
                row = {"strategy": strategy, "seed": seed, "initial": packed(wanted, POSITIONS)}
                self._insert("run", row, what)
            elif not np.array_equal(stored, wanted):
                raise StoreError(f"{self.path}: {what} started from other rows; it cannot go on")

    def initial(self, strategy: str, seed: int) -> NDArray[np.int64] | None:
        """The rows a run started from; None for one that has not."""
        sql = "SELECT initial FROM run WHERE strategy = ? AND seed = ?"
        runs = self._query(sql, (strategy, seed))
        return unpacked(runs[0]["initial"], POSITIONS) if runs else None

    def add_round(self, record: RoundRecord) -> None:
        """Commit the next round of a run; it is on the disk when this returns."""
        key = (record.strategy, record.seed)
        what = f"{record.strategy}, seed {record.seed}, round {record.round}"
        with self._transaction():
            self._check_run(*key)
            if self.initial(*key) is None:
                raise StoreError(f"{what}: call start_run first")
            (done,) = self._one("SELECT count(*) FROM round WHERE strategy = ? AND seed = ?", key)
            if record.round != done:
                why = "is stored already" if 0 <= record.round < done else "leaves a gap"
                raise StoreError(f"{self.path}: {what} {why}; the next one is round {done}")
            last = self.spec["schedule"]["rounds"]
            if record.round > last:
                raise StoreError(f"{what}: the experiment ends with round {last}")
            if record.round == last and len(record.picks):
                raise StoreError(f"{what}: the last round picks nothing, got {len(record.picks)}")
            self._insert("round", {**record.to_row(), "committed": _now()}, what)
            if record.predictions is not None:
                self._db.execute(schema.PREDICTIONS)
                row = {"strategy": record.strategy, "seed": record.seed, "round": record.round}
                classes = packed(record.predictions, POSITIONS)
                self._insert("prediction", {**row, "classes": classes}, what)

    def predictions(self, strategy: str, seed: int) -> dict[int, NDArray[np.int64]]:
        """What the model of each round of a run predicts of a sample of the test split; empty where it
        was not recorded."""
        if not self._query("SELECT 1 FROM sqlite_master WHERE name = 'prediction'"):
            return {}
        sql = "SELECT round, classes FROM prediction WHERE strategy = ? AND seed = ?"
        rows = self._query(sql, (strategy, seed))
        return {row["round"]: unpacked(row["classes"], POSITIONS) for row in rows}

    def progress(self) -> dict[tuple[str, int], int]:
        """Rounds done, 0 to rounds + 1, of every run that was asked for."""
        sql = "SELECT strategy, seed, count(*) AS done FROM round GROUP BY strategy, seed"
        done = {(row["strategy"], row["seed"]): row["done"] for row in self._query(sql)}
        return {run: done.get(run, 0) for run in self.runs}

    def history(self, strategy: str, seed: int) -> list[RoundRecord]:
        """A run's rounds, first to last."""
        sql = "SELECT * FROM round WHERE strategy = ? AND seed = ? ORDER BY round"
        return [RoundRecord.from_row(row) for row in self._query(sql, (strategy, seed))]

    def rounds(self) -> list[RoundRecord]:
        """Every round of every run, by strategy, seed and round, as of one moment."""
        sql = "SELECT * FROM round ORDER BY strategy, seed, round"
        return [RoundRecord.from_row(row) for row in self._query(sql)]

    def results(self) -> list[dict[str, Any]]:
        """How well every round did, in the same order: strategy, seed, round, labels, accuracy, and the
        columns of `schema.LATER`, None where they were not recorded.

        `rounds` has all of it; to unpack the picks takes most of its time.
        """
        with sqlite.explained(self.path):
            there = schema.columns_of_rounds(self._db)
        later = [name if name in there else f"NULL AS {name}" for name in schema.LATER]
        columns = ", ".join(["strategy, seed, round, labels, accuracy", *later])
        sql = f"SELECT {columns} FROM round ORDER BY strategy, seed, round"
        return [dict(row) for row in self._query(sql)]

    def _take_up(self, spec: Spec, extend: bool, origin: Origin | None) -> None:
        """Write `spec` and `origin` into a new store; in another, check that they are the same."""
        with self._transaction():
            if sqlite.is_empty(self._db):
                schema.create(self._db)
                row = {"spec": spec.to_dict(), "hash": spec.hash}
                self._insert("experiment", {**row, "code": code_version(), "created": _now()})
            else:
                schema.upgrade(self._db)
                self._take_up_spec(spec, extend)
            if origin is not None:
                self._take_up_data(origin)
                self._take_up_network(origin.network)
                self._note_facts(origin)

    def _take_up_spec(self, spec: Spec, extend: bool) -> None:
        stored = self.spec
        differ = differences(stored, spec.to_dict())
        if not differ:
            return
        more = set(differ) <= set(EXTENSIBLE)
        if not (more and extend):
            listed = "".join(f"\n  {line}" for line in differ.values())
            advice = "take them together with --extend, or " if more else ""
            raise StoreError(
                f"{self.path} holds another experiment (stored → asked):{listed}\n"
                f"{advice}write to another folder with --out"
            )
        union = _union(stored, spec.to_dict())
        row = {"spec": json.dumps(union), "hash": hash_of(union)}
        self._db.execute("UPDATE experiment SET spec = :spec, hash = :hash", row)

    def _take_up_data(self, origin: Origin) -> None:
        stored = self._experiment
        if stored["fingerprint"] is None:
            self._db.execute(
                "UPDATE experiment SET fingerprint = ?, source = ?, subset = ?",
                (origin.fingerprint, origin.source, origin.subset),
            )
        elif stored["fingerprint"] != origin.fingerprint:
            raise StoreError(
                f"{self.path} was made with other data: {stored['source']} "
                f"(fingerprint {stored['fingerprint']}), now {origin.source} "
                f"({origin.fingerprint}); use that data, or write to another folder"
            )

    def _take_up_network(self, parts: Sequence[str]) -> None:
        self._db.execute(schema.NETWORK)
        stored = [row["part"] for row in self._query("SELECT part FROM network ORDER BY line")]
        if not stored:
            self._db.executemany("INSERT INTO network (part) VALUES (?)", [(p,) for p in parts])
            return
        for was, now in zip_longest(stored, parts, fillvalue="nothing more"):
            if was != now:
                raise StoreError(
                    f"{self.path} was made with another network of this name: there {was}, now "
                    f"{now}; use that network, or write to another folder"
                )

    def _note_facts(self, origin: Origin) -> None:
        """The sizes, and where the spec's file lies now, as seen from the store: both may move."""
        known = {name: str(size) for name, size in origin.sizes.items()}
        if origin.file is not None:
            try:
                known["file"] = os.path.relpath(origin.file, self.path.parent)
            except ValueError:  # on another drive
                known["file"] = origin.file
        if known.items() <= self.facts.items():  # a finished store stays as it is
            return
        self._db.execute(schema.FACTS)
        self._db.executemany("INSERT OR REPLACE INTO fact VALUES (?, ?)", known.items())

    @property
    def _experiment(self) -> sqlite3.Row:
        return self._one("SELECT * FROM experiment")

    def _check_run(self, strategy: str, seed: int) -> None:
        spec = self.spec
        labels = list(map(label_of, spec["strategies"]))
        if strategy not in labels or seed not in seeds_of(spec["seeds"]):
            raise StoreError(
                f"{self.path} has no run {strategy!r}, seed {seed}: its strategies are "
                f"{', '.join(labels)}, its seeds {seed_ranges(seeds_of(spec['seeds']))}"
            )

    def _check_rate(self, rate: float) -> None:
        rates = self.spec["recipe"]["learning_rates"]
        if rate not in rates:
            raise StoreError(f"{self.path}: {rate} is none of the spec's learning rates {rates}")

    def _query(self, sql: str, values: tuple[Any, ...] = ()) -> list[sqlite3.Row]:
        with sqlite.explained(self.path):
            return self._db.execute(sql, values).fetchall()

    def _one(self, sql: str, values: tuple[Any, ...] = ()) -> sqlite3.Row:
        return self._query(sql, values)[0]

    def _insert(self, table: str, row: dict[str, Any], what: str = "") -> None:
        """Add a row; what is a mapping is stored as JSON."""
        sql = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})"
        values = [json.dumps(v) if isinstance(v, Mapping) else v for v in row.values()]
        try:
            self._db.execute(sql, values)
        except (sqlite3.IntegrityError, sqlite3.InterfaceError) as error:
            raise StoreError(f"{self.path}: {what or table} cannot be stored: {error}") from error

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        if self._lock is None:
            raise StoreError(
                f"{self.path} was opened to be read; open it with ResultStore.open to write"
            )
        with sqlite.transaction(self._db, self.path):
            yield


def _union(stored: dict[str, Any], asked: dict[str, Any]) -> dict[str, Any]:
    labels = set(map(label_of, stored["strategies"]))
    new = [entry for entry in asked["strategies"] if label_of(entry) not in labels]
    return {
        **stored,
        "strategies": stored["strategies"] + new,
        "seeds": as_written({*seeds_of(stored["seeds"]), *seeds_of(asked["seeds"])}),
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
