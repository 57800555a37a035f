"""The stopping rules. Each looks at the models of a run so far and says why to stop, or nothing.

Shapes: N items of a fixed sample, whose labels are not needed; M held-out items with labels.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from askance._checks import check_whole
from askance.errors import InputError, KindError
from askance.stopping.measures import cohen_kappa, normal_quantile, paired_gain, wilson

Measured = Literal["predictions", "accuracy", "correct"]


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """One model of a run: how many labels it was trained on, and what is known of it.

    Args:
        labels: how many labels it was trained on.
        predictions: (N,) its class for each item of a sample that stays the same throughout the run.
        correct: (M,) whether it is right on each held-out item, the same items throughout the run.
        accuracy: on held-out items; the mean of `correct` when None.
        n: of how many held-out items `accuracy` is; M when None.
    """

    labels: int
    predictions: NDArray[Any] | None = None
    correct: NDArray[np.bool_] | None = None
    accuracy: float | None = None
    n: int | None = None

    def __post_init__(self) -> None:
        if self.correct is not None and len(self.correct) and self.accuracy is None:
            object.__setattr__(self, "accuracy", float(np.mean(self.correct)))
            object.__setattr__(self, "n", len(self.correct))


History = Sequence[Checkpoint]
StopFunction = Callable[[History], str | bool | None]


class StoppingRule(ABC):
    """The base of all rules: call one with the checkpoints of a run, oldest first.

    It gives the reason to stop, or None. `a | b` stops when either does, `a & b` when both do. A plain
    function of the checkpoints will do in place of a rule.
    """

    name: ClassVar[str]

    @property
    def needs(self) -> frozenset[Measured]:
        """What it must know of each model."""
        return frozenset()

    @abstractmethod
    def __call__(self, history: History) -> str | None:
        """Why to stop after the last checkpoint, or None."""

    def __or__(self, other: StoppingRule | StopFunction) -> StoppingRule:
        return AnyOf((self, of(other)))

    def __and__(self, other: StoppingRule | StopFunction) -> StoppingRule:
        return AllOf((self, of(other)))


@dataclass(frozen=True)
class StablePredictions(StoppingRule):
    """Stop when successive models predict alike on a sample: their mean kappa is at least `kappa`.

    The sample needs no labels, so it can be large. The mean is over the last `window` pairs of
    successive models. A higher kappa stops later. Pairs that give every item one class do not count.

    Paper: Bloodgood and Vijay-Shanker, A Method for Stopping Active Learning Based on Stabilizing
    Predictions and the Need for User-Adjustable Stopping, CoNLL 2009.

    Args:
        kappa: how alike, 1 at most.
        window: over how many pairs of successive models.
    """

    kappa: float = 0.99
    window: int = 3
    name: ClassVar[str] = "stable-predictions"

    def __post_init__(self) -> None:
        check_whole("window", self.window, 1)
        _check_number("kappa", self.kappa, 0, 1)

    @property
    def needs(self) -> frozenset[Measured]:
        """What it must know of each model."""
        return frozenset({"predictions"})

    def __call__(self, history: History) -> str | None:
        """Why to stop after the last checkpoint, or None."""
        kappas = self.recent_kappas(history)
        if len(kappas) < self.window or not np.mean(kappas) >= self.kappa:  # NaN stops nothing
            return None
        last = "model predicts" if self.window == 1 else f"{self.window} models predict"
        return (
            f"the predictions are stable: the last {last} like the one before (kappa "
            f"{np.mean(kappas):.3f}, at least {self.kappa:g})"
        )

    def recent_kappas(self, history: History) -> list[float]:
        """The kappas of the last pairs of successive models, at most `window` of them."""
        last = [_of("predictions", one, self) for one in history[-self.window - 1 :]]
        if len({len(predictions) for predictions in last}) > 1:
            raise InputError(
                "the sample must stay the same: the predictions of the last models are of "
                f"{', '.join(str(len(predictions)) for predictions in last)} items"
            )
        return [cohen_kappa(last[i], last[i + 1]) for i in range(len(last) - 1)]


@dataclass(frozen=True)
class Plateau(StoppingRule):
    """Stop when the last `over` labels raised the held-out accuracy by less than `gain`.

    The mean accuracy of the models in the last `over` labels is compared with that of as many models
    before them, and the difference is scaled to `over` labels. With few held-out items such differences
    are noise. `level` then waits until the gain is surely small: the upper end of its paired interval,
    of the last model against the one `over` labels before it, must be below `gain`. It takes about 300
    held-out items to see a gain of one point.

    Paper: the gradient-based criterion of Laws and Schütze, Stopping Criteria for Active Learning of
    Named Entity Recognition, COLING 2008. Deviations: accuracy on held-out items in place of an
    estimate from the model's own confidence, and a window in labels. The interval is Bonett and
    Price's (2012).

    Args:
        gain: in accuracy, such as 0.01 for one point.
        over: in how many labels.
        level: of the interval, such as 0.95; None compares the means.
    """

    gain: float = 0.01
    over: int = 100
    level: float | None = None
    name: ClassVar[str] = "plateau"

    def __post_init__(self) -> None:
        _check_number("gain", self.gain, 0, 1)
        check_whole("over", self.over, 1)
        if self.level is not None:
            normal_quantile(self.level)

    @property
    def needs(self) -> frozenset[Measured]:
        """What it must know of each model: its accuracy, or with a `level` each held-out item."""
        return frozenset({"accuracy" if self.level is None else "correct"})

    def __call__(self, history: History) -> str | None:
        """Why to stop after the last checkpoint, or None."""
        if self.level is not None:
            return self._surely_small(history, self.level)
        _of("accuracy", history[-1], self)
        end = history[-1].labels
        count = sum(one.labels > end - self.over for one in history)
        if len(history) < 2 * count:
            return None
        recent, before = history[-count:], history[-2 * count : -count]
        labels = np.mean([one.labels for one in recent]) - np.mean([one.labels for one in before])
        rise = _mean_accuracy(recent, self) - _mean_accuracy(before, self)
        per_over = rise * self.over / float(labels) if labels > 0 else 0.0
        if labels <= 0 or not per_over < self.gain:
            return None
        return (
            f"accuracy is at a plateau: {100 * per_over:+.2f} points in {self.over} labels, less than "
            f"{100 * self.gain:g}"
        )

    def _surely_small(self, history: History, level: float) -> str | None:
        after_M = _of("correct", history[-1], self)
        base = earlier(history, self.over)
        if base is None or not len(after_M):
            return None
        before_M = _of("correct", base, self)
        if len(before_M) != len(after_M):
            raise InputError(
                f"the held-out items must stay the same: {len(before_M)} were judged, now "
                f"{len(after_M)}"
            )
        factor = self.over / (history[-1].labels - base.labels)
        rise = paired_gain(before_M, after_M, level).times(factor)
        if not rise.high < self.gain:
            return None
        return (
            f"accuracy is at a plateau: {100 * rise.gain:+.1f} points in {self.over} labels "
            f"({100 * rise.low:+.1f} to {100 * rise.high:+.1f}), surely less than {100 * self.gain:g}"
        )


@dataclass(frozen=True)
class Budget(StoppingRule):
    """Stop when `labels` labels are there.

    Paper: what most projects do; Settles, Active Learning Literature Survey, 2009, section 7 on when to
    stop.

    Args:
        labels: how many, those of the first batch among them.
    """

    labels: int
    name: ClassVar[str] = "budget"

    def __post_init__(self) -> None:
        check_whole("labels", self.labels, 1)

    def __call__(self, history: History) -> str | None:
        """Why to stop after the last checkpoint, or None."""
        if not history or history[-1].labels < self.labels:
            return None
        return f"the budget is spent: {history[-1].labels:,} of {self.labels:,} labels"


@dataclass(frozen=True)
class TargetAccuracy(StoppingRule):
    """Stop when the held-out accuracy is `accuracy` or more: the lower end of its interval is.

    The interval holds for one look: a model that is exactly as good as the target passes one in 40
    times. Looked at after every tenth of 300 held-out answers, it passes in 6 to 11 of 100 runs
    (simulated, targets of 80 to 95%).

    Paper: Wilson, Probable Inference, the Law of Succession, and Statistical Inference, JASA 1927, for
    the interval.

    Args:
        accuracy: such as 0.95.
        level: of the two-sided interval.
    """

    accuracy: float
    level: float = 0.95
    name: ClassVar[str] = "target-accuracy"

    def __post_init__(self) -> None:
        _check_number("accuracy", self.accuracy, 0, 1)
        normal_quantile(self.level)

    @property
    def needs(self) -> frozenset[Measured]:
        """What it must know of each model."""
        return frozenset({"accuracy"})

    def __call__(self, history: History) -> str | None:
        """Why to stop after the last checkpoint, or None."""
        last = history[-1]
        accuracy = _of("accuracy", last, self)
        if not last.n:
            raise InputError("an accuracy alone has no interval: say of how many items (n) it is")
        found = wilson(accuracy * last.n, last.n, self.level)
        if found.low < self.accuracy:
            return None
        return (
            f"the target is reached: accuracy {found.accuracy:.1%}, at least {found.low:.1%} "
            f"(target {self.accuracy:.1%}, {last.n:,} held-out items)"
        )


@dataclass(frozen=True)
class StopFunctionRule(StoppingRule):
    """A plain function of the checkpoints, as a rule."""

    function: StopFunction
    name: ClassVar[str] = "function"

    def __call__(self, history: History) -> str | None:
        """Why to stop after the last checkpoint, or None."""
        said = self.function(history)
        if isinstance(said, str):
            return said or None
        return f"{getattr(self.function, '__name__', 'the function')} says so" if said else None


@dataclass(frozen=True)
class AnyOf(StoppingRule):
    """Stop when one of the rules does; `a | b` makes one."""

    rules: tuple[StoppingRule, ...]
    name: ClassVar[str] = "any"

    @property
    def needs(self) -> frozenset[Measured]:
        """What one of them must know of each model."""
        return frozenset().union(*(rule.needs for rule in self.rules))

    def __call__(self, history: History) -> str | None:
        """Why to stop after the last checkpoint, or None."""
        return next((said for rule in self.rules if (said := rule(history))), None)


@dataclass(frozen=True)
class AllOf(StoppingRule):
    """Stop when all of the rules do; `a & b` makes one."""

    rules: tuple[StoppingRule, ...]
    name: ClassVar[str] = "all"

    @property
    def needs(self) -> frozenset[Measured]:
        """What one of them must know of each model."""
        return frozenset().union(*(rule.needs for rule in self.rules))

    def __call__(self, history: History) -> str | None:
        """Why to stop after the last checkpoint, or None."""
        reasons = [rule(history) for rule in self.rules]
        return "; ".join(map(str, reasons)) if all(reasons) else None


def of(rule: StoppingRule | StopFunction) -> StoppingRule:
    """A rule as it is, or a plain function as a rule."""
    if isinstance(rule, StoppingRule):
        return rule
    if isinstance(rule, type) or not callable(rule):
        shown = f"the class {rule.__name__}" if isinstance(rule, type) else repr(rule)
        raise KindError(
            f"stop must be a rule such as askance.stopping.Budget(500), or a function of the "
            f"checkpoints, got {shown}"
        )
    return StopFunctionRule(rule)


def earlier(history: History, over: int) -> Checkpoint | None:
    """The checkpoint nearest to `over` labels before the last; None where none is half as far."""
    last = history[-1].labels
    far_enough = [one for one in history if 2 * (last - one.labels) >= over]
    return min(far_enough, key=lambda one: abs(last - over - one.labels), default=None)


def _of(what: Measured, one: Checkpoint, rule: StoppingRule) -> Any:
    value = getattr(one, what)
    if value is None:
        raise InputError(
            f"{rule.name} needs the {what} of each model, and the model of {one.labels} labels has none"
        )
    return value


def _mean_accuracy(history: History, rule: StoppingRule) -> float:
    return float(np.mean([_of("accuracy", one, rule) for one in history]))


def _check_number(name: str, value: Any, low: float, high: float) -> None:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not low < value <= high:
        raise InputError(f"{name} must be a number above {low} and at most {high}, got {value!r}")
