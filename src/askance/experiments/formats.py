"""A row of the tidy table, and the files it is written to and read from."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeGuard

from askance.errors import StoreError, UnknownError

FORMATS = ("csv", "parquet", "json")
SUFFIXES = tuple(f".{name}" for name in FORMATS)


@dataclass(frozen=True)
class ResultRow:
    """One round of one run.

    Args:
        train_loss, train_accuracy: of the network on its own labelled set. None where they were not
            recorded; the loss also where it is not finite.
        flagged: whether the network counts as untrained, by `records.is_untrained`.
        balanced_accuracy, macro_f1: on the test split, see `askance.training.Score`. Both are None
            where they were not recorded.
    """

    experiment: str
    dataset: str
    model: str
    strategy: str
    seed: int
    round: int
    labels: int
    accuracy: float
    train_loss: float | None = None
    train_accuracy: float | None = None
    flagged: bool | None = None
    balanced_accuracy: float | None = None
    macro_f1: float | None = None

    @property
    def key(self) -> tuple[str, str, int, int]:
        """Names the row: a table has one row for each key."""
        return self.experiment, self.strategy, self.seed, self.round


COLUMNS = tuple(field.name for field in fields(ResultRow))
_TEXTS, _INTEGERS = COLUMNS[:4], COLUMNS[4:7]
_LATER = COLUMNS[
    8:
]  # training, then means by class: an older export ends before one of these groups
_LAYOUTS = (COLUMNS, COLUMNS[:11], COLUMNS[:8])


def render(rows: Sequence[ResultRow], format: str) -> bytes:
    """The rows as a file's content; every float is read back as the same float."""
    if format == "csv":
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(map(_csv_value, asdict(row).values()) for row in rows)
        return text.getvalue().encode()
    if format == "json":
        lines = ",\n".join(json.dumps(asdict(row), ensure_ascii=False) for row in rows)
        return f"[\n{lines}\n]\n".encode()
    if format == "parquet":
        return _parquet(rows)
    raise UnknownError.of("format", format, FORMATS)


def read(path: Path) -> list[ResultRow]:
    """The rows of an export, each checked."""
    with _explained(path):
        _check_columns(str(path), _columns(path))
        return [_row(f"{path}, {where}", values) for where, values in _records(path)]


def is_export(path: Path) -> bool:
    """Whether a file has an export's columns, whatever its rows are."""
    try:
        with _explained(path):
            return tuple(_columns(path)) in _LAYOUTS
    except StoreError:
        return False


def _columns(path: Path) -> list[str]:
    if path.suffix == ".csv":
        with path.open(encoding="utf-8-sig", newline="") as file:
            return next(csv.reader(file), [])
    if path.suffix == ".json":
        records = json.loads(path.read_text(encoding="utf-8"))
        first = records[0] if isinstance(records, list) and records else None
        return list(first) if isinstance(first, dict) else []
    from pyarrow import parquet

    return parquet.read_schema(path).names


def _records(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each record and the line or row it is in."""
    if path.suffix == ".csv":
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = csv.reader(file, strict=True)
            columns = next(lines)
            for values in lines:
                where = f"line {lines.line_num}"
                yield where, _csv_record(f"{path}, {where}", columns, values)
    elif path.suffix == ".json":
        for index, record in enumerate(json.loads(path.read_text(encoding="utf-8")), start=1):
            _check_columns(f"{path}, row {index}", list(record) if isinstance(record, dict) else [])
            yield f"row {index}", record
    else:
        from pyarrow import parquet

        for index, record in enumerate(parquet.read_table(path).to_pylist(), start=1):
            yield f"row {index}", record


def _csv_record(where: str, columns: Sequence[str], values: Sequence[str]) -> dict[str, Any]:
    if len(values) != len(columns):
        raise StoreError(
            f"{where}: {len(values)} values, expected {len(columns)}: {', '.join(columns)}"
        )
    texts = dict(zip(columns, values, strict=True))
    return {column: t if column in _TEXTS else _number(t) for column, t in texts.items()}


def _csv_value(value: object) -> object:
    return str(value).lower() if isinstance(value, bool) else value


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}") from error
    except StoreError:
        raise
    except (ValueError, RecursionError) as error:  # of the decoder, of JSON, of Arrow
        raise StoreError(f"{path} is no {path.suffix[1:]} file: {error}") from error
    except csv.Error as error:
        raise StoreError(f"{path} is no csv file: {error}") from error


def _parquet(rows: Sequence[ResultRow]) -> bytes:
    import pyarrow
    from pyarrow import parquet

    types = [pyarrow.string()] * 4 + [pyarrow.int64()] * 3 + [pyarrow.float64()] * 3
    types += [pyarrow.bool_(), pyarrow.float64(), pyarrow.float64()]
    schema = pyarrow.schema(list(zip(COLUMNS, types, strict=True)))
    content = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist([asdict(row) for row in rows], schema), content)
    return content.getvalue()


def _check_columns(where: str, columns: Sequence[str]) -> None:
    if tuple(columns) in _LAYOUTS:
        return
    missing = [name for name in COLUMNS if name not in columns]
    extra = [name for name in columns if name not in COLUMNS]
    said = f"; missing: {', '.join(missing)}" if missing else ""
    said += f"; unknown: {', '.join(extra)}" if extra else ""
    raise StoreError(
        f"{where}: expected exactly the columns {', '.join(COLUMNS)}, in that order{said}"
    )


def _is_name(text: str) -> bool:
    """Whether a text is not empty and can be encoded: JSON can hold half of a character."""
    return text != "" and text.encode(errors="ignore").decode() == text


def _number(text: str) -> int | float | str | bool | None:
    """A CSV value as a number, a bool or None; any other text stays, for its column to refuse."""
    if text in _WORDS:
        return _WORDS[text]
    if re.fullmatch(r"[0-9]{1,18}", text):
        return int(text)
    return float(text) if re.fullmatch(r"[0-9]+\.?[0-9]*(e[-+]?[0-9]+)?", text, re.I) else text


_WORDS = {"": None, "true": True, "false": False}


def _row(where: str, values: Mapping[str, Any]) -> ResultRow:
    def need(column: str, expected: str, holds: bool) -> None:
        if not holds:
            raise StoreError(
                f"{where}, column {column}: expected {expected}, got {values[column]!r}"
            )

    for column in _TEXTS:
        need(column, "a name", isinstance(values[column], str) and _is_name(values[column]))
    for column in _INTEGERS:
        value = values[column]
        least = 1 if column == "labels" else 0
        whole = isinstance(value, int) and not isinstance(value, bool)
        need(column, f"a whole number ≥ {least}", whole and value >= least)
    values = {**dict.fromkeys(_LATER), **values}
    need("accuracy", "a number in [0, 1]", _is_share(values["accuracy"]))
    accuracy, loss = values["train_accuracy"], values["train_loss"]
    recorded = accuracy is not None
    need("train_accuracy", "a number in [0, 1], or nothing", not recorded or _is_share(accuracy))
    fits = loss is None or (recorded and _is_number(loss) and 0 <= loss < math.inf)
    need("train_loss", "a finite number ≥ 0 where there is a train_accuracy, or nothing", fits)
    flag = values["flagged"]
    need("flagged", "true or false where there is a train_accuracy, else nothing",
         isinstance(flag, bool) if recorded else flag is None)  # fmt: skip
    both = [values[name] for name in ("balanced_accuracy", "macro_f1")]
    need("macro_f1", "a number in [0, 1] beside a balanced_accuracy in [0, 1], or neither",
         both == [None, None] or all(map(_is_share, both)))  # fmt: skip
    floats = ("accuracy", "train_loss", "train_accuracy", "balanced_accuracy", "macro_f1")
    numbers = {name: None if values[name] is None else float(values[name]) for name in floats}
    return ResultRow(**{**values, **numbers})


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_share(value: object) -> bool:
    return _is_number(value) and 0 <= value <= 1
