"""Naive twin of `askance.picking.eligible`: whether a row may be picked, by trying every way to go on.

A row may be picked after some picks when quotas and budget let it, and some set of further rows, of
those left, makes up what is owed to every minimum within n picks, the quotas and the budget.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations


def keeps(rows, groups, most, costs, budget):
    """Whether some picks keep the quotas and the budget."""
    for group in set(groups):
        if sum(groups[row] == group for row in rows) > most.get(group, len(groups)):
            return False
    return sum(costs[row] for row in rows) <= budget


def lacks(rows, groups, least):
    """How many picks are owed to the minimums, all together."""
    counts = {group: sum(groups[row] == group for row in rows) for group in least}
    return sum(max(0, number - counts[group]) for group, number in least.items())


def possible(rows: Sequence[int], n, groups, most, least, costs, budget) -> bool:
    """Whether these picks can be gone on with so that every limit is kept."""
    if not keeps(rows, groups, most, costs, budget):
        return False
    owed = lacks(rows, groups, least)
    if owed > n - len(rows):
        return False
    left = [row for row in range(len(groups)) if row not in rows]
    for more in combinations(left, owed):
        every = [*rows, *more]
        if keeps(every, groups, most, costs, budget) and not lacks(every, groups, least):
            return True
    return False


def greedy(
    n: int,
    score: Callable[[list[int], int], float],
    groups: Sequence[int],
    most: dict[int, int],
    least: dict[int, int],
    costs: Sequence[int],
    budget: int,
    similar: Callable[[int, int], bool] = lambda row, other: False,
) -> list[int]:
    """n times the first row of highest score(picks so far, row) among those that may be picked."""
    picks: list[int] = []
    while len(picks) < n:
        best = None
        for row in range(len(groups)):
            if row in picks or any(similar(pick, row) for pick in picks):
                continue
            if not possible([*picks, row], n, groups, most, least, costs, budget):
                continue
            if best is None or score(picks, row) > score(picks, best):
                best = row
        if best is None:
            break
        picks.append(best)
    return picks
