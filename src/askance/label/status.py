"""What the page shows: the desk's state, questions and items as plain values for JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from askance.label import estimate, messages
from askance.label.estimate import Advice, Estimate
from askance.label.guesses import NONE
from askance.label.records import AskedQuestion, Class, Event, Guess
from askance.label.session import LabelingSession, RefusedError
from askance.label.store import FILE

TABLES = ("csv", "jsonl", "parquet")
MODELS = ("safetensors", "json")
LED = ("first", "rule")  # reasons for which the model's guess may be shown
_CURVE = 200  # points of the curve at most


def state(session: LabelingSession, annotator: str | None) -> dict[str, Any]:
    """Everything on the page but the questions."""
    with session.lock:
        annotations, rounds, items = session.annotations, session.scheduler, session.items
        right_VN, seen_VN = measured(session)
        together, agree = annotations.agreement
        name = annotator or ""
        mine = [event.kind for event in annotations.acts.get(name, {}).values()]
        aside = session.set_aside
        answered = len(annotations.answers) - sum(item in annotations.answers for item in aside)
        skipped = annotations.skipped - sum(
            item in annotations.skips and item not in annotations.answers for item in aside
        )
        return {
            "project": session.folder.resolve().name,
            "kind": items.kind,
            "data": str(items.source.path),
            "store": str(session.folder / FILE),
            "classes": [class_of(each) for each in annotations.classes],
            "counts": [
                {"class": each.id, "name": each.name, "answers": annotations.counts[each.id]}
                for each in annotations.classes
            ],
            "answered": answered,
            "answers": sum(annotations.by_annotator.values()),
            "skipped": skipped,
            "total": len(items),
            "remaining": max(0, len(items) - answered - skipped),
            "queue": rounds.queued,
            "open": len(session.open_for(name)),
            "mine": {
                "answers": annotations.by_annotator.get(name, 0),
                "skipped": mine.count("skip"),
                "can_undo": bool(mine),
            },
            "per_minute": estimate.per_minute(annotations.times.get(name, [])),
            "annotators": [
                {"name": who, "answers": count}
                for who, count in sorted(annotations.by_annotator.items())
                if count
            ],
            "default_annotator": session.options.annotator,
            "estimate": _latest(session, right_VN, seen_VN),
            "held_out": {
                "share": session.options.held_out,
                "answered": right_VN.shape[1],
                "reserved": len(session.shares.held_out),
            },
            "curve": _curve(session, right_VN, seen_VN),
            "advice": _advice(session, right_VN, seen_VN),
            "model": _model(session),
            "conflicts": len(annotations.conflicts),
            "agreement": {"items": together, "agree": agree},
            "changes": {
                **asdict(session.changes),
                "unreadable": len(rounds.unreadable),
                "text": messages.changed(session.changes),
                "trouble": session.trouble,
            },
            "exports": {
                "answers": TABLES,
                "predictions": TABLES if rounds.known is not None else [],
                "model": MODELS if rounds.versions else [],
            },
            "notes": list(messages.NOTES),
            "stamp": session.revision,
        }


def measured(session: LabelingSession) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """(V, N): of every version and held-out item with a label, whether it was right, and asked."""
    held, labels = session.shares.held_out, session.annotations.labels
    columns = [column for column, item in enumerate(held[: _fair(session)]) if item in labels]
    truth = np.asarray([labels[held[column]] for column in columns], np.int64)
    guesses = session.scheduler.held_guesses.of([held[column] for column in columns])
    return guesses == truth, guesses != NONE


def _fair(session: LabelingSession) -> int:
    all_asked = next(session.scheduler.held_left, None) is None
    annotations, held = session.annotations, session.shares.held_out
    return (
        len(held) if all_asked else estimate.fair(held, annotations.asked_held, annotations.asked)
    )


def _latest(
    session: LabelingSession, right_VN: NDArray[np.bool_], seen_VN: NDArray[np.bool_]
) -> dict[str, Any] | None:
    if not len(right_VN) or not seen_VN[-1].any():
        return None
    found = _of(right_VN[-1], seen_VN[-1])
    return {**asdict(found), "model": session.versions[-1].version}


def _of(right_N: NDArray[np.bool_], seen_N: NDArray[np.bool_]) -> Estimate:
    return estimate.wilson(int(right_N[seen_N].sum()), int(seen_N.sum()))


def _curve(
    session: LabelingSession, right_VN: NDArray[np.bool_], seen_VN: NDArray[np.bool_]
) -> list[dict[str, Any]]:
    points = []
    for version, right_N, seen_N in zip(session.versions, right_VN, seen_VN, strict=True):
        if seen_N.any():
            found = asdict(_of(right_N, seen_N))
            points.append({"answers": version.trained_on, **found, "model": version.version})
    if len(points) <= _CURVE:
        return points
    kept = np.unique(np.linspace(0, len(points) - 1, _CURVE).round().astype(int))
    return [points[place] for place in kept]


def _advice(
    session: LabelingSession, right_VN: NDArray[np.bool_], seen_VN: NDArray[np.bool_]
) -> dict[str, Any]:
    everywhere = seen_VN.all(axis=0)
    trained_on = [version.trained_on for version in session.versions]
    found: Advice = estimate.advise(trained_on, right_VN[:, everywhere])
    reserved = len(session.shares.held_out)
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


def _model(session: LabelingSession) -> dict[str, Any]:
    last = session.versions[-1] if session.versions else None
    return {
        "version": 0 if last is None else last.version,
        "training": session.scheduler.training,
        "trained_on": 0 if last is None else last.trained_on,
        "next_at": session.scheduler.due_in,
        "batch": session.options.batch,
        "name": session.options.model_for(session.items.kind),
        "strategy": session.options.strategy,
        "seconds": None if last is None else last.seconds,
        "error": session.scheduler.error,
    }


def class_of(each: Class) -> dict[str, Any]:
    return {"id": each.id, "name": each.name, "key": each.key}


def question_of(session: LabelingSession, question: AskedQuestion) -> dict[str, Any]:
    """A question as the page gets it; the guess only where it cannot spoil a measurement."""
    led = question.reason in LED
    earlier = []
    if question.reason == "disagreement":
        earlier = _answers(session, question.item)
    return {
        "id": question.id,
        "item": question.item,
        "kind": session.items.kind,
        "media": session.items.media(question.item),
        "text": _text(session, question.item),
        "reason": question.reason,
        "model": question.version,
        "guess": _guess(session, question.guess) if led else None,
        "guess_withheld": not led,
        "why": {"text": question.why, "numbers": question.numbers},
        "annotator": question.annotator,
        "asked": question.asked,
        "earlier": earlier,
    }


def _text(session: LabelingSession, item: str) -> str | None:
    """What is shown of an item; an act that was undone may bring back one that is set aside."""
    if session.items.kind == "image" or item in session.items.position:
        return session.items.text(item)
    return messages.GONE


def _guess(session: LabelingSession, guess: Guess | None) -> dict[str, Any] | None:
    if guess is None:
        return None
    name = session.annotations.classes[guess.choice].name
    return {"class": guess.choice, "name": name, "confidence": guess.confidence}


def _answers(session: LabelingSession, item: str) -> list[dict[str, Any]]:
    """Everybody's current answer."""
    return [
        {
            "annotator": who,
            "class": stack[-1].choice,
            "name": _name(session, stack[-1].choice),
            "time": stack[-1].time,
        }
        for who, stack in session.annotations.answers.get(item, {}).items()
    ]


def _name(session: LabelingSession, choice: int | None) -> str | None:
    return None if choice is None else session.annotations.classes[choice].name


def history(session: LabelingSession, item: str) -> dict[str, Any]:
    """All that was ever asked and said about one item.

    A held-out item's guess is shown only once it has an answer.
    """
    with session.lock:
        here = item in session.items.position
        if not here and item not in session.annotations.asked:
            raise RefusedError("not-found", f"there is no item {item!r}")
        asked = [q for q in session.annotations.questions.values() if q.item == item]
        numbers = {question.id: question for question in asked}
        acts = [event for event in session.annotations.events.values() if event.question in numbers]
        rows = [_asked(session, q) for q in asked] + [_acted(session, event) for event in acts]
        return {
            "item": item,
            "kind": session.items.kind,
            "media": session.items.media(item) if here else None,
            "text": session.items.text(item),
            "held_out": item in session.shares.held_out,
            "missing": not here,
            "answers": _answers(session, item),
            "history": sorted(rows, key=lambda row: (row["time"], row["kind"] != "asked")),
        }


def _asked(session: LabelingSession, question: AskedQuestion) -> dict[str, Any]:
    shown = question.reason in LED or question.item in session.annotations.answers
    return {
        "kind": "asked",
        "id": question.id,
        "annotator": question.annotator,
        "time": question.asked,
        "class": None,
        "name": None,
        "reason": question.reason,
        "model": question.version,
        "guess": _guess(session, question.guess) if shown else None,
        "why": question.why,
    }


def _acted(session: LabelingSession, event: Event) -> dict[str, Any]:
    return {
        "kind": event.kind,
        "id": event.id,
        "annotator": event.annotator,
        "time": event.time,
        "class": event.choice,
        "name": _name(session, event.choice),
        "reason": None,
        "model": None,
        "guess": None,
        "why": None,
    }
