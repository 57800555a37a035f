"""Which rows of a scored pool may be among n picks under limits, so that the others need not be kept.

Rows are taken from the highest score down. Of a group that may have m picks, only its m best rows can
be picked, and those that its minimum may need; of the rows that any group has room for, the n best.
Where rows cost something, a row is passed over only for what it costs. It then cannot be picked if n
rows (m of its group) come before it and cost no more: whenever it could be afforded, so could they.
"""

from __future__ import annotations

from heapq import heappush, heapreplace

import numpy as np
from numpy.typing import NDArray

from askance.picking.eligible import Groups

Rows = NDArray[np.int64]
Floats = NDArray[np.float64]


def reachable(order: Rows, groups: Groups, n: int, costs: Floats | None = None) -> Rows:
    """The rows that n picks in this order may reach, ascending.

    Args:
        order: (M,) all rows, the highest score first.
        groups: the group of each row, with its limits.
        n: how many picks at most.
        costs: (M,) what each row costs; None where that is no limit.
    """
    codes = groups.codes[order]
    if costs is not None:
        return np.sort(order[_reachable_at_a_cost(codes, costs[order], groups, n)])
    rank = _rank_in_group(codes, len(groups.most))
    has_room = rank < groups.most[codes]
    kept = (has_room & (np.cumsum(has_room) <= n)) | (rank < groups.least[codes])
    return np.sort(order[kept])


def _rank_in_group(codes: Rows, count: int) -> Rows:
    """How many rows of the same group come before each row."""
    by_group = np.argsort(codes, kind="stable")
    starts = np.cumsum(np.bincount(codes, minlength=count)) - np.bincount(codes, minlength=count)
    rank = np.empty(len(codes), dtype=np.int64)
    rank[by_group] = np.arange(len(codes)) - starts[codes[by_group]]
    return rank


def _reachable_at_a_cost(codes: Rows, costs: Floats, groups: Groups, n: int) -> NDArray[np.bool_]:
    """Which rows have few enough rows before them that cost no more."""
    unlimited = bool((groups.most >= n).all())
    within = groups.least if unlimited else np.maximum(np.minimum(groups.most, n), groups.least)
    whole = _Cheapest(n)
    of_group = [_Cheapest(int(most)) for most in within]
    kept = np.empty(len(codes), dtype=bool)
    for place, (code, cost) in enumerate(zip(codes.tolist(), costs.tolist(), strict=True)):
        in_group = of_group[code].offer(cost)
        kept[place] = (whole.offer(cost) and unlimited) or in_group
    return kept


class _Cheapest:
    """The `count` lowest costs so far, of which the highest is at hand."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._heap: list[float] = []

    def offer(self, cost: float) -> bool:
        """Whether fewer than `count` earlier costs are no higher than this one."""
        if len(self._heap) < self.count:
            heappush(self._heap, -cost)
            return True
        if not self.count or cost >= -self._heap[0]:
            return False
        heapreplace(self._heap, -cost)
        return True
