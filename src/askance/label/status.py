"""What the page shows: the desk's state, questions and items as plain values for JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from askance.label import estimate, words
from askance.label.desk import Desk, RefusedError
from askance.label.estimate import Advice, Estimate
from askance.label.guesses import NONE
from askance.label.records import Class, Event, Guess, Question
from askance.label.store import FILE

TABLES = ("csv", "jsonl", "parquet")
MODELS = ("safetensors", "json")
LED = ("first", "rule")  # reasons for which the model's guess may be shown
_CURVE = 200  # points of the curve at most


def state(desk: Desk, annotator: str | None) -> dict[str, Any]:
    """Everything on the page but the questions."""
    with desk.turn:
        book, rounds, items = desk.book, desk.rounds, desk.items
        right_VN, seen_VN = measured(desk)
        together, agree = book.agreement
        name = annotator or ""
        mine = [event.kind for event in book.acts.get(name, {}).values()]
        aside = desk.set_aside
        answered = len(book.answers) - sum(item in book.answers for item in aside)
        skipped = book.skipped - sum(
            item in book.skips and item not in book.answers for item in aside
        )
        return {
            "project": desk.folder.resolve().name,
            "kind": items.kind,
            "data": str(items.source.path),
            "store": str(desk.folder / FILE),
            "classes": [class_of(each) for each in book.classes],
            "counts": [
                {"class": each.id, "name": each.name, "answers": book.counts[each.id]}
                for each in book.classes
            ],
            "answered": answered,
            "answers": sum(book.by_annotator.values()),
            "skipped": skipped,
            "total": len(items),
            "remaining": max(0, len(items) - answered - skipped),
            "queue": rounds.queued,
            "open": len(desk.open_for(name)),
            "mine": {
                "answers": book.by_annotator.get(name, 0),
                "skipped": mine.count("skip"),
                "can_undo": bool(mine),
            },
            "per_minute": estimate.per_minute(book.times.get(name, [])),
            "annotators": [
                {"name": who, "answers": count}
                for who, count in sorted(book.by_annotator.items())
                if count
            ],
            "default_annotator": desk.options.annotator,
            "estimate": _latest(desk, right_VN, seen_VN),
            "held_out": {
                "share": desk.options.held_out,
                "answered": right_VN.shape[1],
                "reserved": len(desk.shares.held_out),
            },
            "curve": _curve(desk, right_VN, seen_VN),
            "advice": _advice(desk, right_VN, seen_VN),
            "model": _model(desk),
            "conflicts": len(book.conflicts),
            "agreement": {"items": together, "agree": agree},
            "changes": {
                **asdict(desk.changes),
                "unreadable": len(rounds.unreadable),
                "text": words.changed(desk.changes),
                "trouble": desk.trouble,
            },
            "exports": {
                "answers": TABLES,
                "predictions": TABLES if rounds.known is not None else [],
                "model": MODELS if rounds.versions else [],
            },
            "notes": list(words.NOTES),
            "stamp": desk.stamp,
        }


def measured(desk: Desk) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """(V, N): of every version and held-out item with a label, whether it was right, and asked."""
    held, labels = desk.shares.held_out, desk.book.labels
    columns = [column for column, item in enumerate(held[: _fair(desk)]) if item in labels]
    truth = np.asarray([labels[held[column]] for column in columns], np.int64)
    guesses = desk.rounds.held_guesses.of([held[column] for column in columns])
    return guesses == truth, guesses != NONE


def _fair(desk: Desk) -> int:
    all_asked = next(desk.rounds.held_left, None) is None
    book, held = desk.book, desk.shares.held_out
    return len(held) if all_asked else estimate.fair(held, book.asked_held, book.asked)


def _latest(
    desk: Desk, right_VN: NDArray[np.bool_], seen_VN: NDArray[np.bool_]
) -> dict[str, Any] | None:
    if not len(right_VN) or not seen_VN[-1].any():
        return None
    found = _of(right_VN[-1], seen_VN[-1])
    return {**asdict(found), "model": desk.versions[-1].version}


def _of(right_N: NDArray[np.bool_], seen_N: NDArray[np.bool_]) -> Estimate:
    return estimate.wilson(int(right_N[seen_N].sum()), int(seen_N.sum()))


def _curve(
    desk: Desk, right_VN: NDArray[np.bool_], seen_VN: NDArray[np.bool_]
) -> list[dict[str, Any]]:
    points = []
    for version, right_N, seen_N in zip(desk.versions, right_VN, seen_VN, strict=True):
        if seen_N.any():
            found = asdict(_of(right_N, seen_N))
            points.append({"answers": version.trained_on, **found, "model": version.version})
    if len(points) <= _CURVE:
        return points
    kept = np.unique(np.linspace(0, len(points) - 1, _CURVE).round().astype(int))
    return [points[place] for place in kept]


def _advice(desk: Desk, right_VN: NDArray[np.bool_], seen_VN: NDArray[np.bool_]) -> dict[str, Any]:
    everywhere = seen_VN.all(axis=0)
    trained_on = [version.trained_on for version in desk.versions]
    found: Advice = estimate.advise(trained_on, right_VN[:, everywhere])
    reserved = len(desk.shares.held_out)
    if reserved < estimate.ENOUGH:
        text = (
            f"{reserved or 'No'} items are held out, which is too few to measure what more answers "
            f"bring; {estimate.ENOUGH} would do."
        )
        found = Advice(text, None, False)
    gain = found.per_100
    return {
        "text": found.text,
        "gain_per_100": None if gain is None else gain.gain,
        "low": None if gain is None else gain.low,
        "high": None if gain is None else gain.high,
        "stop": found.stop,
    }


def _model(desk: Desk) -> dict[str, Any]:
    last = desk.versions[-1] if desk.versions else None
    return {
        "version": 0 if last is None else last.version,
        "training": desk.rounds.training,
        "trained_on": 0 if last is None else last.trained_on,
        "next_at": desk.rounds.due_in,
        "batch": desk.options.batch,
        "name": desk.options.model_for(desk.items.kind),
        "strategy": desk.options.strategy,
        "seconds": None if last is None else last.seconds,
        "error": desk.rounds.error,
    }


def class_of(each: Class) -> dict[str, Any]:
    return {"id": each.id, "name": each.name, "key": each.key}


def question_of(desk: Desk, question: Question) -> dict[str, Any]:
    """A question as the page gets it; the guess only where it cannot spoil a measurement."""
    led = question.reason in LED
    earlier = []
    if question.reason == "disagreement":
        earlier = _answers(desk, question.item)
    return {
        "id": question.id,
        "item": question.item,
        "kind": desk.items.kind,
        "media": desk.items.media(question.item),
        "text": _text(desk, question.item),
        "reason": question.reason,
        "model": question.version,
        "guess": _guess(desk, question.guess) if led else None,
        "guess_withheld": not led,
        "why": {"text": question.why, "numbers": question.numbers},
        "annotator": question.annotator,
        "asked": question.asked,
        "earlier": earlier,
    }


def _text(desk: Desk, item: str) -> str | None:
    """What is shown of an item; an act that was undone may bring back one that is set aside."""
    if desk.items.kind == "image" or item in desk.items.position:
        return desk.items.text(item)
    return words.GONE


def _guess(desk: Desk, guess: Guess | None) -> dict[str, Any] | None:
    if guess is None:
        return None
    name = desk.book.classes[guess.choice].name
    return {"class": guess.choice, "name": name, "confidence": guess.confidence}


def _answers(desk: Desk, item: str) -> list[dict[str, Any]]:
    """Everybody's current answer."""
    return [
        {
            "annotator": who,
            "class": stack[-1].choice,
            "name": _name(desk, stack[-1].choice),
            "time": stack[-1].time,
        }
        for who, stack in desk.book.answers.get(item, {}).items()
    ]


def _name(desk: Desk, choice: int | None) -> str | None:
    return None if choice is None else desk.book.classes[choice].name


def history(desk: Desk, item: str) -> dict[str, Any]:
    """All that was ever asked and said about one item.

    A held-out item's guess is shown only once it has an answer.
    """
    with desk.turn:
        here = item in desk.items.position
        if not here and item not in desk.book.asked:
            raise RefusedError("not-found", f"there is no item {item!r}")
        asked = [q for q in desk.book.questions.values() if q.item == item]
        numbers = {question.id: question for question in asked}
        acts = [event for event in desk.book.events.values() if event.question in numbers]
        rows = [_asked(desk, q) for q in asked] + [_acted(desk, event) for event in acts]
        return {
            "item": item,
            "kind": desk.items.kind,
            "media": desk.items.media(item) if here else None,
            "text": desk.items.text(item),
            "held_out": item in desk.shares.held_out,
            "missing": not here,
            "answers": _answers(desk, item),
            "history": sorted(rows, key=lambda row: (row["time"], row["kind"] != "asked")),
        }


def _asked(desk: Desk, question: Question) -> dict[str, Any]:
    shown = question.reason in LED or question.item in desk.book.answers
    return {
        "kind": "asked",
        "id": question.id,
        "annotator": question.annotator,
        "time": question.asked,
        "class": None,
        "name": None,
        "reason": question.reason,
        "model": question.version,
        "guess": _guess(desk, question.guess) if shown else None,
        "why": question.why,
    }


def _acted(desk: Desk, event: Event) -> dict[str, Any]:
    return {
        "kind": event.kind,
        "id": event.id,
        "annotator": event.annotator,
        "time": event.time,
        "class": event.choice,
        "name": _name(desk, event.choice),
        "reason": None,
        "model": None,
        "guess": None,
        "why": None,
    }
