"""Class-stratified sampling: as many labels of each class as can be had."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from askance.embedding import Embedding, Evaluation
from askance.gradients.last_layer import pseudo_labels
from askance.picking import Picks
from askance.picking.eligible import Eligible, LimitedRows
from askance.picking.points import Floats
from askance.seeding import Draws
from askance.strategies.base import Batch, Labeled, Need, logits_of


@dataclass(frozen=True)
class Strata(Batch):
    """Each pick is drawn uniformly from the predicted class that has the fewest labels so far.

    A class's labels are those of the labelled set and the picks predicted to be of it: stratified
    sampling with the model's answers as strata, for pools in which some classes are rare. A class of
    which no point is predicted gives none. The score of a pick is minus the number of labels that its
    class had.

    Reference:
        ours; stratified sampling is in Cochran, *Sampling Techniques*, 1977, with strata that are
        known, where these are predicted.
    """

    name: ClassVar[str] = "strata"
    because: ClassVar[str] = "it was drawn from the predicted class with the fewest labels"
    cost: ClassVar[str] = "N·C"
    needs = frozenset[Need]({"logits", "labeled"})
    random = True
    multilabel = False

    def prepare(self, labeled: Labeled | None, model: Evaluation | None) -> NDArray[np.int64]:
        """The labels of the labelled set."""
        assert labeled is not None
        return labeled.labels.cpu().numpy()

    def pick(
        self,
        pool: Embedding,
        n: int,
        reference: Any,
        draws: Draws,
        eligible: Eligible | None = None,
    ) -> Picks:
        logits_NC = logits_of(pool)
        counts_C = np.bincount(reference, minlength=logits_NC.shape[1])
        keys_N = draws.uniform(self.name, pool.positions)
        predicted_N = pseudo_labels(logits_NC).cpu().numpy()
        eligible = eligible or LimitedRows(len(pool), n)
        return fill_up(predicted_N, counts_C, keys_N, n, eligible)


def fill_up(
    class_N: NDArray[np.int64],
    counts_C: NDArray[np.int64],
    keys_N: Floats,
    n: int,
    eligible: Eligible,
) -> Picks:
    """n rows, each of the class with the fewest so far that has one left; the smallest key first."""
    counts_C = counts_C.copy()
    classes = [np.flatnonzero(class_N == c) for c in range(len(counts_C))]
    waiting = [iter(rows[keys_N[rows].argsort(kind="stable")].tolist()) for rows in classes]
    rows: list[int] = []
    scores: list[float] = []
    while len(rows) < n:
        for c in np.argsort(counts_C, kind="stable").tolist():
            # Rows only ever leave, so one that is passed over is never looked at again.
            row = next((row for row in waiting[c] if eligible.mask[row]), None)
            if row is not None:
                break
        else:
            break
        eligible.take(row)
        rows.append(row)
        scores.append(-float(counts_C[c]))
        counts_C[c] += 1
    return Picks(np.array(rows, dtype=np.int64), np.array(scores))
