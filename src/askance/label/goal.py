"""A project's goal: so many answers, or an accuracy; how far it is, and how long it takes.

The goal is kept in `goal.json` in the project's folder. It changes nothing but what the page says.
"""

from __future__ import annotations

import json
import logging
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from askance._checks import check_whole
from askance._io.atomic import atomic_write
from askance.errors import InputError
from askance.stopping import Budget, Checkpoint, Estimate, TargetAccuracy, wilson

log = logging.getLogger(__name__)

FILE = "goal.json"
GoalKind = Literal["answers", "accuracy"]


@dataclass(frozen=True)
class Goal:
    """When to stop: at `value` answers, or once the accuracy is at least `value`.

    Args:
        kind: "answers", or "accuracy" on held-out answers: the lower end of its 95% interval.
        value: a whole number of answers, or an accuracy between 0 and 1.
    """

    kind: GoalKind
    value: float

    def __post_init__(self) -> None:
        if self.kind not in ("answers", "accuracy"):
            raise InputError(f"a goal is of 'answers' or 'accuracy', got {self.kind!r}")
        if self.kind == "answers":
            whole = float(self.value).is_integer()
            check_whole("a goal of answers", int(self.value) if whole else self.value, 1)
        elif not 0 < self.value < 1:
            raise InputError(f"a goal of accuracy is above 0% and below 100%, got {self.value:.0%}")

    @classmethod
    def parse(cls, text: str) -> Goal:
        """From "500" or "95%".

        Example:
            >>> Goal.parse("95%")
            Goal(kind='accuracy', value=0.95)
        """
        number = text.strip().removesuffix("%").strip()
        try:
            value = float(number)
        except ValueError:
            raise InputError(
                f'a goal is a number of answers such as "500", or an accuracy such as "95%", got '
                f"{text!r}"
            ) from None
        return cls("accuracy", value / 100) if text.strip().endswith("%") else cls("answers", value)


@dataclass(frozen=True)
class GoalProgress:
    """How far a goal is.

    Args:
        reached: whether a stopping rule says so.
        share: of the way, 0 to 1.
        text: in words.
        answers_left: how many more it takes at least, where that can be said.
    """

    reached: bool
    share: float
    text: str
    answers_left: int | None = None


def load(folder: Path) -> Goal | None:
    """The goal of a project; None where there is none."""
    try:
        return Goal(**json.loads((folder / FILE).read_text()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        log.warning("%s is left out: %s", folder / FILE, error)
        return None


def save(folder: Path, goal: Goal | None) -> None:
    """Keep the goal of a project, or that it has none."""
    if goal is None:
        (folder / FILE).unlink(missing_ok=True)
    else:
        atomic_write(folder / FILE, json.dumps(asdict(goal)).encode())


def progress(
    goal: Goal, answers: int, estimate: Estimate | None, share: float, reserved: int
) -> GoalProgress:
    """How far a goal is.

    Args:
        goal: the goal.
        answers: items that are answered.
        estimate: of the newest model on held-out answers.
        share: of questions that are about held-out items.
        reserved: how many items are held out.
    """
    if goal.kind == "answers":
        left = max(0, int(goal.value) - answers)
        reached = bool(Budget(int(goal.value))([Checkpoint(answers)]))
        text = f"{answers:,} of {goal.value:,.0f} answers."
        return GoalProgress(reached, min(1.0, answers / goal.value), text, left)
    if not reserved:
        return GoalProgress(False, 0.0, "No items are held out, so accuracy is not measured here.")
    if estimate is None:
        text = "Not measured yet: it takes a model, and answers to held-out questions."
        return GoalProgress(False, 0.0, text)
    rule = TargetAccuracy(goal.value)
    if rule([Checkpoint(answers, accuracy=estimate.accuracy, n=estimate.n)]):
        return GoalProgress(True, 1.0, f"Reached: at least {_floor(estimate.low)}.", 0)
    far = min(1.0, estimate.low / goal.value)
    text = f"At least {_floor(estimate.low)} so far."
    needed = _needed(estimate.accuracy, goal.value, estimate.n)
    if needed is None:
        now = f"{estimate.accuracy:.0%} of {estimate.n} held-out answers are guessed right"
        return GoalProgress(False, far, f"{text} The model must get better first: {now}.")
    if needed > reserved:
        text += (
            f" To be sure takes {needed} held-out answers, and {reserved} items are held out. A new "
            f"project with a larger --held-out could tell."
        )
        return GoalProgress(False, far, text)
    left = -int(-(needed - estimate.n) // share) if share else needed - estimate.n
    text += f" If the model stays as good, {needed - estimate.n} more held-out answers show it."
    return GoalProgress(False, far, text, left)


def _needed(accuracy: float, target: float, n: int) -> int | None:
    """How many held-out answers show the target, were the model right on this share of them."""
    if accuracy <= target:
        return None
    high = n
    while wilson(accuracy * high, high).low < target:
        high *= 2
    low = n
    while low < high:
        middle = (low + high) // 2
        if wilson(accuracy * middle, middle).low >= target:
            high = middle
        else:
            low = middle + 1
    return low


def _floor(share: float) -> str:
    """A percentage that says no more than is known."""
    return f"{int(100 * share + 1e-9)}%"
