"""A file of answers, row by row: CSV, TSV, JSONL, a JSON list or Parquet.

A row that cannot be an answer is reported with its place; nothing about it is guessed. Where rows
cannot be told apart (a quote that is never closed) or a column is missing, the whole file is refused.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from askance.errors import DataError, InputError
from askance.label.ingest import ExternalAnswer, Refusal, excerpt

ROLES = ("id", "label", "annotator", "time", "skipped")
_NEEDED = ("id", "label")
# What a project exports has an item's majority in `label`; who said what is in `class`.
_EXPORTED = {"id": "item", "label": "class", "annotator": "annotator", "time": "answered"}
_LONGEST_CELL = 2**31 - 1
_YES, _NO = ("true", "yes", "1"), ("false", "no", "0")

# From the names of a file's columns to which column has which role.
Choose = Callable[[Sequence[str]], dict[str, str]]


class AnswerRow(NamedTuple):
    """A row's place, and its values by role; or what is wrong with all of it."""

    where: str
    values: Mapping[str, Any] = {}
    wrong: str | None = None


@dataclass
class AnswerFile:
    """What was in a file.

    Args:
        answers: answers and skips, well formed or not: `ingest` looks at them.
        left: places of rows that have no answer yet.
        refused: rows that can be no answer.
    """

    answers: list[ExternalAnswer] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)


def read_answers(
    path: Path,
    annotator: str,
    columns: Mapping[str, str] | None = None,
    *,
    skip_empty: bool = False,
) -> AnswerFile:
    """The answers in a file.

    Args:
        path: its ending says what it is.
        annotator: who says what no row's annotator says.
        columns: names of columns by role (`ROLES`), where they differ from the usual.
        skip_empty: whether an empty label is a skip, rather than an answer still to come.
    """
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise DataError(f"{path.name}: expected {', '.join(_READERS)}, got {path.suffix!r}")
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    answer_file, rows = AnswerFile(), 0
    try:
        for row in reader(path, lambda names: _chosen(path.name, names, columns or {})):
            rows += 1
            _add(answer_file, row, annotator, skip_empty)
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read ({error})") from error
    if not rows:
        raise DataError(f"{path.name}: no rows; expected one for each answer")
    return answer_file


def _chosen(where: str, names: Sequence[str], named: Mapping[str, str]) -> dict[str, str]:
    usual = {role: role for role in ROLES}
    if "id" not in names and set(_EXPORTED.values()) <= set(names):
        usual |= _EXPORTED
    chosen = {}
    for role in ROLES:
        name = named.get(role, usual[role])
        if names.count(name) > 1:
            raise DataError(f"{where}: there are {names.count(name)} columns {name!r}; keep one")
        if name in names:
            chosen[role] = name
        elif role in named or role in _NEEDED:
            there = ", ".join(map(excerpt, names)) or "none"
            raise DataError(
                f"{where}: no column {excerpt(name)!r} for the {role}; it has {there}: add it, or name "
                f"another with --{role}{'-column' * (role == 'annotator')}"
            )
    return chosen


# From a row to an answer


def _add(answer_file: AnswerFile, row: AnswerRow, annotator: str, skip_empty: bool) -> None:
    item = row.values.get("id")
    try:
        if row.wrong is not None:
            raise InputError(row.wrong)
        answer = _answer(row, annotator)
        skipped = _flag(row.values.get("skipped"))
        if skipped and answer.label is not None:
            raise InputError(
                f"it is skipped and labelled {excerpt(answer.label)!r}; say one of them"
            )
        if skipped or answer.label is not None or skip_empty:
            answer_file.answers.append(answer)
        else:
            answer_file.left.append(row.where)
    except InputError as error:
        answer_file.refused.append(
            Refusal(row.where, "" if item is None else excerpt(item), str(error))
        )


def _answer(row: AnswerRow, annotator: str) -> ExternalAnswer:
    item = _text(row.values.get("id"), "id")
    if item is None:
        raise InputError("the id is empty")
    label = _text(row.values.get("label"), "label")
    who = _text(row.values.get("annotator"), "annotator") or annotator
    time = row.values.get("time")
    time = time.isoformat() if isinstance(time, date) else _text(time, "time")
    return ExternalAnswer(item, label, who, time, row.where)


def _text(value: Any, role: str) -> str | None:
    """A cell as a text; None for an empty one."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise InputError(f"the {role} must be a text or a whole number, got {excerpt(value)}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InputError(f"the {role} is not UTF-8; save the file as UTF-8") from None
    # Spaces may belong to an identifier and to nothing else.
    return (value if role == "id" else value.strip()) or None


def _flag(value: Any) -> bool:
    text = str(value).strip().lower() if isinstance(value, (str, int)) else value
    if text in _YES:
        return True
    if text in (*_NO, "", None) or (isinstance(text, float) and math.isnan(text)):
        return False
    raise InputError(f"skipped must be true or false, got {excerpt(value)}")


# From a file to rows


def _table(path: Path, choose: Choose) -> Iterator[AnswerRow]:
    text = _content(path).decode(errors="surrogateescape")  # of a bad cell its row alone is refused
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    before = csv.field_size_limit(_LONGEST_CELL)
    try:
        # Strict: an unclosed quote would swallow the rows after it.
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        header = next(reader, None)
        if header is None:
            raise DataError(f"{path.name}: it is empty; expected a header with id and label")
        place = {role: header.index(name) for role, name in choose(header).items()}
        line = reader.line_num + 1
        for cells in reader:
            where, line = f"line {line}", reader.line_num + 1
            if not cells:
                continue
            if len(cells) == len(header):
                yield AnswerRow(where, {role: cells[at] for role, at in place.items()})
            else:
                first = cells[place["id"]] if place["id"] < len(cells) else None
                wrong = f"expected {len(header)} cells, got {len(cells)}; is a quote missing?"
                yield AnswerRow(where, {"id": first}, wrong)
    except csv.Error as error:
        raise DataError(
            f"{path.name}: line {reader.line_num}: rows cannot be told apart ({error}); a cell with "
            f'quotes in it is written "like ""this"""'
        ) from error
    finally:
        csv.field_size_limit(before)


def _lines(path: Path, choose: Choose) -> Iterator[AnswerRow]:
    lines = enumerate(_content(path).split(b"\n"), start=1)
    return _objects([(f"line {n}", _loaded(line)) for n, line in lines if line.strip()], choose)


def _list(path: Path, choose: Choose) -> Iterator[AnswerRow]:
    entries = _loaded(_content(path))
    if isinstance(entries, InputError):
        raise DataError(f"{path.name}: {entries}")
    if not isinstance(entries, list):
        raise DataError(
            f"{path.name}: expected a list of objects, got {excerpt(entries)}; with one a line it "
            f"is .jsonl"
        )
    return _objects([(f"entry {n}", entry) for n, entry in enumerate(entries, start=1)], choose)


def _loaded(text: bytes) -> Any:
    """What the text says in JSON, or what is wrong with it."""
    try:
        return json.loads(text.decode(), object_pairs_hook=_unique)
    except UnicodeDecodeError:
        return InputError("not UTF-8; save the file as UTF-8")
    except (ValueError, RecursionError) as error:
        return InputError(f"not JSON ({error})")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entry = dict(pairs)
    if len(entry) != len(pairs):
        raise ValueError("a key is there twice")
    return entry


def _objects(entries: Sequence[tuple[str, Any]], choose: Choose) -> Iterator[AnswerRow]:
    """Rows by role; a key that any object has is a column."""
    objects = [entry for _, entry in entries if isinstance(entry, dict)]
    # With no object there are no columns to choose from; each row is reported.
    chosen = choose(list(dict.fromkeys(chain(*objects)))) if objects else {}
    for where, entry in entries:
        if isinstance(entry, dict):
            yield AnswerRow(where, {role: entry.get(name) for role, name in chosen.items()})
        elif isinstance(entry, InputError):
            yield AnswerRow(where, wrong=str(entry))
        else:
            wrong = f'expected an object like {{"id": …, "label": …}}, got {excerpt(entry)}'
            yield AnswerRow(where, wrong=wrong)


def _parquet(path: Path, choose: Choose) -> Iterator[AnswerRow]:
    with pq.ParquetFile(path) as file:
        chosen = choose(file.schema_arrow.names)
        table = file.read(columns=list(dict.fromkeys(chosen.values())))
    cells = {role: _cells(table.column(name)) for role, name in chosen.items()}
    for number, values in enumerate(zip(*cells.values(), strict=True), start=1):
        yield AnswerRow(f"row {number}", dict(zip(cells, values, strict=True)))


def _cells(column: Any) -> list[Any]:
    kind = column.type
    if pa.types.is_timestamp(kind):
        column = column.cast(
            pa.timestamp("us", kind.tz), safe=False
        )  # Python's datetime ends there
    try:
        return list(column.to_pylist())
    except UnicodeDecodeError:
        raw = column.cast(pa.large_binary()).to_pylist()
        return [None if cell is None else cell.decode(errors="surrogateescape") for cell in raw]


def _content(path: Path) -> bytes:
    content = path.read_bytes()
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(f"{path.name}: it is UTF-16; save it as UTF-8")
    return content.removeprefix(b"\xef\xbb\xbf")


_READERS: dict[str, Callable[[Path, Choose], Iterator[AnswerRow]]] = {
    ".csv": _table,
    ".tsv": _table,
    ".jsonl": _lines,
    ".json": _list,
    ".parquet": _parquet,
}
