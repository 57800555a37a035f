"""What a claim is judged on: some experiments, and how they are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from askance.experiments.statistics.paired import ALPHA
from askance.experiments.statistics.resample import LEVEL
from askance.experiments.statistics.table import ExperimentResults

LEAST_SEEDS = 3  # fewer have no interval worth its name
LEAST_DATASETS = 5


@dataclass(frozen=True)
class Reading:
    """The rule of `results/paper/JUDGING.md`, by default; anything else is shown beside it.

    Args:
        seeds: how many seeds were to judge; at least half of them must count.
        level: of every interval.
        first: the first round that is counted.
        flagged: whether rounds in which a network did not train are counted.
        resample: whether datasets are resampled, in place of Student's interval.
        block: seeds of one penalty matrix; None for all there are.
        datasets: of how many, at least, experiments must be.
        one_sided: whether a win in a round is a one-sided test, in the direction of the pair's mean.
        corrected: whether the tests of a round are corrected over its pairs.
        clustered: whether datasets are the units of an interval over experiments; each experiment is
            one where they are not.
    """

    seeds: int = 0
    level: float = LEVEL
    first: int = 1
    flagged: bool = False
    resample: bool = False
    block: int | None = 5
    datasets: int = LEAST_DATASETS
    one_sided: bool = False
    corrected: bool = True
    clustered: bool = True

    @property
    def alpha(self) -> float:
        """Below it a two-sided p is a win: a one-sided p is half of it."""
        return 2 * ALPHA if self.one_sided else ALPHA

    @property
    def least_seeds(self) -> int:
        """How many seeds of an experiment must count."""
        return max(LEAST_SEEDS, -(-self.seeds // 2))

    @property
    def least_blocks(self) -> int:
        """How many penalty matrices of an experiment must count."""
        blocks = self.seeds // self.block if self.block else 1
        return max(1, -(-blocks // 2))


PLAIN = Reading()


@dataclass(frozen=True)
class Case:
    """What claims are judged on.

    Args:
        experiments: those that judge, each with the seeds that do.
        reading: how they are read.
    """

    experiments: Sequence[ExperimentResults]
    reading: Reading = PLAIN

    def datasets(self, names: Sequence[str]) -> list[str]:
        """The dataset of each of some experiments."""
        dataset = {one.name: one.dataset for one in self.experiments}
        return [dataset[name] for name in names]


P = ParamSpec("P")
R = TypeVar("R")


def case_later(
    function: Callable[Concatenate[Case, P], R],
) -> Callable[P, Callable[[Case], R]]:
    """Turn a function of a case and more into one of what is more; what it returns takes the case."""

    @wraps(function)
    def with_arguments(*args: P.args, **kwargs: P.kwargs) -> Callable[[Case], R]:
        return lambda case: function(case, *args, **kwargs)

    return with_arguments
