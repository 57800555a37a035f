"""What leaves a project: answers, predictions for the rest of the pool, the model."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

from askance.errors import UnknownError
from askance.label.accuracy import held_out_results
from askance.label.bundle import header_of
from askance.label.session import LabelingSession, RefusedError

TABLES = ("csv", "jsonl", "parquet")
MODELS = ("safetensors", "json")
TYPES = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/jsonl",
    "parquet": "application/vnd.apache.parquet",
    "safetensors": "application/octet-stream",
    "json": "application/json",
}

_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what spreadsheets compute, or run

ANSWERS = {
    "item": "string", "annotator": "string", "class": "string", "class_id": "int64",
    "answered": "string", "label": "string", "held_out": "bool", "question": "int64",
    "asked": "string", "reason": "string", "why": "string", "model": "int64", "guess": "string",
    "confidence": "float64", "event": "int64", "name": "string",
}  # fmt: skip
PREDICTIONS = {
    "item": "string", "class": "string", "class_id": "int64", "confidence": "float64",
    "model": "int64", "name": "string",
}  # fmt: skip


def export(
    session: LabelingSession,
    what: str,
    format: str,
    *,
    fresh: bool = True,
    spreadsheet: bool = False,
) -> bytes:
    """A file's content. A model, and what it predicts, is first trained on the last answers too.

    `answers`: one row for every item and annotator with an answer that stands; `label` is what the
    item's annotators come to, empty for a tie; `name` is where the item is in the data now, empty where
    it is missing. `predictions`: one row for every item without an answer.
    `model`: the weights with everything needed to use them, or what the file says of itself. With
    `fresh` False they are of the newest model as it is.

    A CSV for a `spreadsheet` has an apostrophe before texts that would be formulas there.
    """
    if fresh and what in ("model", "predictions"):
        session.scheduler.catch_up()
    if what == "model":
        return _model(session, format)
    if format not in TABLES:
        raise UnknownError.of("format", format, TABLES)
    if what == "answers":
        with session.lock:
            rows = _answers(session)
        return rendered(rows, ANSWERS, format, spreadsheet=spreadsheet)
    if what == "predictions":
        with session.lock:
            rows = _predictions(session)
        return rendered(rows, PREDICTIONS, format, spreadsheet=spreadsheet)
    raise UnknownError.of("export", what, ("answers", "predictions", "model"))


def _answers(session: LabelingSession) -> list[dict[str, Any]]:
    annotations, held = session.annotations, set(session.split.held_out)
    names = [each.name for each in annotations.classes]
    rows = []
    for item, by_annotator in annotations.answers.items():
        label = annotations.labels.get(item)
        for annotator, stack in by_annotator.items():
            event = stack[-1]
            assert event.choice is not None
            question = annotations.questions[event.question]
            guess = question.guess
            rows.append(
                {
                    "item": item,
                    "annotator": annotator,
                    "class": names[event.choice],
                    "class_id": event.choice,
                    "answered": event.time,
                    "label": None if label is None else names[label],
                    "held_out": item in held,
                    "question": question.id,
                    "asked": question.asked,
                    "reason": question.reason,
                    "why": question.why,
                    "model": question.version,
                    "guess": None if guess is None else names[guess.choice],
                    "confidence": None if guess is None else guess.confidence,
                    "event": event.id,
                    "name": session.items.name(item),
                }
            )
    return rows


def _predictions(session: LabelingSession) -> list[dict[str, Any]]:
    guesses = session.training.guesses
    if guesses is None:
        raise _no_model()
    names = [each.name for each in session.annotations.classes]
    answered, unreadable = session.annotations.answers, session.training.unreadable
    return [
        {
            "item": item,
            "class": names[guess.choice],
            "class_id": guess.choice,
            "confidence": guess.confidence,
            "model": guesses.version,
            "name": session.items.name(item),
        }
        for item in session.items.ids
        if item not in answered and item not in unreadable
        if (guess := guesses.guess(item)) is not None
    ]


def _model(session: LabelingSession, format: str) -> bytes:
    if format not in MODELS:
        raise UnknownError.of("format", format, MODELS)
    with session.lock:
        path = session.scheduler.model_file
        if path is None or not path.exists():
            raise _no_model()
        if format == "safetensors":
            return path.read_bytes()
        card = header_of(path)
        results = held_out_results(session.view(), session.training)
    guessed_N = results.guessed_VN[-1]
    card["held_out"] = {
        "n": int(guessed_N.sum()),
        "right": int(results.right_VN[-1][guessed_N].sum()),
    }
    return (json.dumps(card, ensure_ascii=False, indent=1) + "\n").encode()


def _no_model() -> RefusedError:
    return RefusedError("conflict", "there is no model yet; answer a batch of questions first")


def rendered(
    rows: Sequence[Mapping[str, Any]],
    columns: Mapping[str, str],
    format: str,
    *,
    spreadsheet: bool = False,
) -> bytes:
    """Rows as a file's content."""
    if format == "csv":
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, list(columns), lineterminator="\n")
        writer.writeheader()
        writer.writerows(map(_without_formulas, rows) if spreadsheet else rows)
        return text.getvalue().encode()
    if format == "jsonl":
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    import pyarrow as pa
    from pyarrow import parquet

    types = {
        "string": pa.string(),
        "int64": pa.int64(),
        "float64": pa.float64(),
        "bool": pa.bool_(),
    }
    schema = pa.schema([(name, types[kind]) for name, kind in columns.items()])
    content = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(list(rows), schema), content)
    return content.getvalue()


def _without_formulas(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
        for name, value in row.items()
    }
