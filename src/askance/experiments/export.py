"""The tidy table: one row a run and round, from stores, from earlier exports, or from folders of them.

Rows hold no timings and no paths and come in one order, so that two exports of the same results are the
same bytes.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from askance._io.atomic import atomic_write
from askance._io.filenames import is_path
from askance.errors import StoreError
from askance.experiments import formats
from askance.experiments.formats import ResultRow
from askance.experiments.packing import FILE, PACKED, file_of
from askance.experiments.records import is_untrained
from askance.experiments.store import ResultStore

log = logging.getLogger(__name__)

PathLike = str | os.PathLike[str]


def table(paths: PathLike | Iterable[PathLike]) -> list[ResultRow]:
    """Every round of the stores and exports at `paths`, sorted by experiment, strategy, seed, round.

    A folder is searched all the way down; files in it that are no stores and have other columns than an
    export are passed over. The same row may come twice; two different rows for one round may not.
    """
    paths = listed(paths)
    rows: dict[tuple[str, str, int, int], tuple[ResultRow, Path]] = {}
    first_rows: dict[str, tuple[ResultRow, Path]] = {}  # of each experiment
    for path in paths:
        for file, read in _sources(Path(path)):
            for row in read:
                same, origin = rows.setdefault(row.key, (row, file))
                first, first_file = first_rows.setdefault(row.experiment, (row, file))
                if same != row:
                    raise StoreError(
                        f"{origin} and {file} differ in {row.experiment}, {row.strategy}, seed "
                        f"{row.seed}, round {row.round}: they are not of the same runs, so name one"
                    )
                if (first.dataset, first.model) != (row.dataset, row.model):
                    raise StoreError(
                        f"{first_file} and {file} both hold {row.experiment!r}, of {first.dataset} "
                        f"with {first.model} and of {row.dataset} with {row.model}: give one another "
                        f"name"
                    )
    if not rows:
        raise StoreError(
            f"no rounds at {', '.join(map(str, paths)) or 'no path'}: expected stores that have "
            f"finished a round, exports, or a folder of them; `askance run` makes a store"
        )
    return [rows[key][0] for key in sorted(rows)]


def listed(paths: PathLike | Iterable[PathLike]) -> list[PathLike]:
    """One path or several, as a list."""
    return [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)


def stores(paths: PathLike | Iterable[PathLike]) -> list[Path]:
    """The stores among what `table` would read at `paths`, each once, in their order."""
    files: dict[Path, Path] = {}
    for path in map(Path, listed(paths)):
        for file in [path] if path.is_file() else sorted(_stores_in(path)):
            if file.suffix not in formats.SUFFIXES:
                files.setdefault(file.resolve(), file)
    return list(files.values())


def _stores_in(folder: Path) -> set[Path]:
    return {file_of(file.parent) for name in (FILE, PACKED) for file in folder.rglob(name)}


def write(rows: Sequence[ResultRow], format: str, out: PathLike) -> None:
    """Write the rows as "csv", "parquet" or "json"; `out` is replaced at once or left as it was."""
    atomic_write(out, formats.render(rows, format))


def _sources(path: Path) -> Iterable[tuple[Path, list[ResultRow]]]:
    if path.is_file():
        yield path, formats.read(path) if path.suffix in formats.SUFFIXES else _of_store(path)
        return
    if not path.is_dir():
        raise StoreError(f"there is no store, export or folder at {path}")
    for file in sorted(file for file in path.rglob("*") if file.is_file()):
        if file.name in (FILE, PACKED):
            if file != file_of(file.parent):
                continue  # what a store was packed from is the store
            yield file, _of_store(file)
        elif file.suffix in formats.SUFFIXES:
            if formats.is_export(file):
                yield file, formats.read(file)
            else:
                log.info("%s is no export: passed over", file)


def _of_store(path: Path) -> list[ResultRow]:
    with ResultStore.read(path) as store:
        spec = store.spec
        # A path of one's own data is not for a table that others will read.
        dataset = Path(spec["dataset"]).stem if is_path(spec["dataset"]) else spec["dataset"]
        return [
            ResultRow(spec["name"], dataset, spec["model"], **_with_flag(**result))
            for result in store.results()
        ]


def _with_flag(majority: float | None, **result: Any) -> dict[str, Any]:
    """A store's result as a row has it: the share of the largest class becomes a flag."""
    if majority is None:
        return result
    flagged = is_untrained(result["train_accuracy"], majority, result["labels"])
    loss = result["train_loss"]
    return result | {"flagged": flagged, "train_loss": loss if math.isfinite(loss or 0) else None}
