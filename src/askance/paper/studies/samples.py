"""S of one draw, its subsets S_J, and the network that starts: what two studies train on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from askance.data import Dataset
from askance.errors import InputError
from askance.paper.studies.paths import PreparedPoints, Weights, narrowed, weights_of
from askance.seeding import Draws
from askance.training import Build


@dataclass(frozen=True, eq=False)
class DrawnSample:
    """S of one draw, and where its network starts.

    Args:
        inputs: (L, D) its points, with the columns that are not always zero.
        labels: (L,).
        start: the initial weights; those of the other columns are left out.
        subsets: the rows of each S_J, by its share of S.
    """

    draws: Draws
    inputs: Tensor
    labels: Tensor
    start: Weights
    subsets: dict[float, Tensor]

    @classmethod
    def of(
        cls,
        dataset: Dataset,
        build: Build,
        draws: Draws,
        *,
        points: int,
        shares: Iterable[float],
        device: torch.device,
    ) -> DrawnSample:
        """Draw S, an S_J of every share, and the initial weights."""
        x, y = (part.to(device) for part in draw_points(dataset, points, draws))
        x_LD = x.flatten(1)
        columns = x_LD.ne(0).any(dim=0).nonzero().flatten()
        first_HD, *others = weights_of(build(draws).to(device))
        subsets = {share: _subset(points, share, draws) for share in sorted(set(shares))}
        return cls(draws, x_LD[:, columns], y, [first_HD[:, columns], *others], subsets)

    @cached_property
    def points(self) -> PreparedPoints:
        """The points, prepared for discrepancies."""
        return PreparedPoints(self.inputs, self.labels)

    def double(self) -> DrawnSample:
        """The same problem in float64."""
        start = [weight.double() for weight in self.start]
        return replace(self, inputs=self.inputs.double(), start=start)

    def narrowed(self) -> DrawnSample:
        """The same problem with no more columns than points, for an optimiser in `ROTATABLE`."""
        if self.inputs.shape[1] <= self.inputs.shape[0]:
            return self
        inputs, start = narrowed(self.inputs, self.start)
        return replace(self, inputs=inputs, start=start)


def draw_points(dataset: Dataset, count: int, draws: Draws) -> tuple[Tensor, Tensor]:
    """`count` rows of all splits: nothing is tested here, and German has just 1,000."""
    splits = dataset.train, dataset.val, dataset.test
    ends = np.cumsum([len(split) for split in splits])
    if count > ends[-1]:
        raise InputError(f"{dataset.name} has {ends[-1]} rows, the study wants {count}")
    rows = np.sort(draws.generator("S").choice(ends[-1], count, replace=False))
    parts = [
        (split, torch.from_numpy(some - (end - len(split))))
        for split, some, end in zip(
            splits, np.split(rows, np.searchsorted(rows, ends[:-1])), ends, strict=True
        )
    ]
    inputs = torch.cat([split.inputs[some] for split, some in parts])
    return inputs, torch.cat([split.labels[some] for split, some in parts])


def _subset(points: int, share: float, draws: Draws) -> Tensor:
    count = round(share * points)
    if not 0 < count < points:
        raise InputError(f"S_J must have fewer points than S, got {count} of {points}")
    return torch.from_numpy(draws.generator("S_J").choice(points, count, replace=False))
