"""Which rows of a pool may still be picked, under limits on what a batch holds.

One mechanism for every rule. A rule that picks row after row asks for the best row of those in `mask`,
and calls `take` for it, which says which rows have just left. Rows only ever leave, so a picker that
keeps bounds sets the bounds of these rows to infinity, and the rest of its bounds stays true.

Why rows only leave. A full group stays full. Where every pick that is left is owed to the minimum of
some group, each pick lowers both numbers by one. With B the budget that is left, R the least that the
picks owed can cost and r_g the dearest of those of group g, a row may cost B − R + r_g in a group that
is owed picks, and B − R elsewhere. A pick lowers both limits by what it costs above the cheapest.

Shapes: N rows of the pool, G groups, D features.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from askance.errors import InputError
from askance.picking.similar import Similar

Rows = NDArray[np.int64]
Floats = NDArray[np.float64]

# A sum of costs that rounding has put this share of the budget above it is still within it.
_ROUNDED = 1e-9
# So many rows in the order of scores are looked at for the next eligible one.
_AHEAD = 4096


@dataclass(frozen=True, eq=False)
class Groups:
    """The group of each row, and how many picks each group may and must have.

    Args:
        codes: (N,) from 0 to G − 1.
        names: what messages call the groups.
        most: (G,) the most picks of each.
        least: (G,) the fewest picks of each.
    """

    codes: Rows
    names: Sequence[Any]
    most: Rows
    least: Rows

    @classmethod
    def one(cls, count: int, n: int) -> Groups:
        """All rows in one group without limits."""
        codes, none = np.zeros(count, dtype=np.int64), np.zeros(1, dtype=np.int64)
        return cls(codes, ["all"], none + n, none)


class Eligible(ABC):
    """The rows that may still be picked, pick after pick."""

    @property
    @abstractmethod
    def mask(self) -> NDArray[np.bool_]:
        """(N,) which rows may be picked now. To be read, not written."""

    @abstractmethod
    def take(self, row: int) -> Rows:
        """Count a row as picked; the other rows that leave with it, ascending."""

    @abstractmethod
    def fork(self) -> Eligible:
        """The same state, to try picks on that this one does not count."""

    def among(self, rows: Rows) -> Eligible:
        """The same limits for a picker that is given these rows alone and numbers them from 0."""
        return EligibleAmong(self, rows)


class EligibleAmong(Eligible):
    """Some rows of a pool under the limits of all of it."""

    def __init__(self, whole: Eligible, rows: Rows) -> None:
        self._whole, self._rows = whole, rows

    @property
    def mask(self) -> NDArray[np.bool_]:
        return self._whole.mask[self._rows]

    def take(self, row: int) -> Rows:
        gone = self._whole.take(int(self._rows[row]))
        return np.flatnonzero(np.isin(self._rows, gone))

    def fork(self) -> Eligible:
        return EligibleAmong(self._whole.fork(), self._rows)


class LimitedRows(Eligible):
    """A pool under limits: on groups, on what the picks cost, on how alike they are.

    Args:
        count: N.
        n: how many picks at most.
        groups: the rows' groups and their limits.
        costs: (N,) what labelling each row costs.
        budget: what all picks together may cost.
        similar: which rows may not be picked together.

    Raises:
        InputError: where the limits cannot be met, whatever is picked.
    """

    def __init__(
        self,
        count: int,
        n: int,
        groups: Groups | None = None,
        costs: Floats | None = None,
        budget: float | None = None,
        similar: Similar | None = None,
    ) -> None:
        self.n, self.taken = n, list[int]()
        self._mask: NDArray[np.bool_] = np.ones(count, dtype=bool)
        self.groups = groups or Groups.one(count, n)
        self.room, self.owed = self.groups.most.copy(), self.groups.least.copy()
        self.costs, self.budget, self.similar = costs, budget, similar
        self.spent = 0.0
        self.short: dict[Any, int] = {}
        """Groups whose minimum can no longer be met, and how many picks each lacks."""
        self._check_possible()
        self._leave(self.room[self.groups.codes] == 0)
        self._close()

    @property
    def mask(self) -> NDArray[np.bool_]:
        return self._mask

    def fork(self) -> LimitedRows:
        twin = copy(self)
        twin.taken, twin.short = self.taken.copy(), self.short.copy()
        twin._mask, twin.room, twin.owed = self._mask.copy(), self.room.copy(), self.owed.copy()
        return twin

    def notes(self) -> tuple[str, ...]:
        """In words, what the limits came to."""
        notes = []
        if len(self.taken) < self.n:
            notes.append(
                f"{len(self.taken)} of {self.n} points picked: the constraints let no other one through"
            )
        if self.budget is not None:
            notes.append(f"the picks cost {self.spent:g} of a budget of {self.budget:g}")
        if self.short:
            each = ", ".join(f"{name!r} by {number}" for name, number in self.short.items())
            notes.append(f"groups with fewer picks than at_least asks for: {each}")
        return tuple(notes)

    def take(self, row: int) -> Rows:
        if not self._mask[row]:
            raise InputError(f"row {row} may not be picked: it was picked before or has left")
        before = self._mask.copy()
        code = self.groups.codes[row]
        self.taken.append(row)
        self._mask[row] = before[row] = False
        self.room[code] -= 1
        self.owed[code] = max(0, self.owed[code] - 1)
        if self.costs is not None:
            self.spent += float(self.costs[row])
        if not self.room[code]:
            self._leave(self.groups.codes == code)
        if self.similar is not None:
            self._leave(self.similar.to(row))
        self._close()
        return np.flatnonzero(before & ~self._mask)

    def _leave(self, rows: NDArray[np.bool_]) -> None:
        self._mask &= ~rows

    def _close(self) -> None:
        """Let the rows go that the picks owed, or the budget, leave no place for."""
        while True:
            self._forgive()
            left, owed = self.n - len(self.taken), int(self.owed.sum())
            if left and owed >= left:
                self._leave(self.owed[self.groups.codes] == 0)
            if self.costs is None or self.budget is None:
                return
            reserved, dearest = self._reserved()
            free = self.budget * (1 + _ROUNDED) - self.spent - reserved
            self._leave(self.costs > (free + dearest)[self.groups.codes])
            self._forgive()
            if int(self.owed.sum()) == owed:
                return

    def _reserved(self) -> tuple[float, Floats]:
        """The least that the picks owed can cost, and the dearest of them in each group."""
        assert self.costs is not None
        dearest, reserved = np.zeros(len(self.owed)), 0.0
        for code in np.flatnonzero(self.owed).tolist():
            costs = self.costs[self._mask & (self.groups.codes == code)]
            cheapest = np.sort(costs)[: self.owed[code]]
            reserved += float(cheapest.sum())
            dearest[code] = cheapest[-1] if len(cheapest) else 0.0
        return reserved, dearest

    def _forgive(self) -> None:
        """Owe no more than there is: rows that are similar to picks leave, whatever is owed."""
        if self.similar is None:
            return
        for code in np.flatnonzero(self.owed).tolist():
            there = int(np.count_nonzero(self._mask & (self.groups.codes == code)))
            if there < self.owed[code]:
                name = self.groups.names[code]
                self.short[name] = self.short.get(name, 0) + int(self.owed[code]) - there
                self.owed[code] = there

    def _check_possible(self) -> None:
        """Raise where the limits contradict each other or the pool."""
        sizes = np.bincount(self.groups.codes, minlength=len(self.room))
        names = self.groups.names
        for code in np.flatnonzero(self.owed).tolist():
            there = min(int(sizes[code]), int(self.room[code]))
            if there < self.owed[code]:
                limit = "at_most lets" if there < sizes[code] else "the pool has"
                raise InputError(
                    f"at_least asks for {self.owed[code]} of group {names[code]!r}, {limit} "
                    f"{there}; ask for at most {there}"
                )
        if self.owed.sum() > self.n:
            raise InputError(
                f"at_least asks for {self.owed.sum()} points in all, n is {self.n}; raise n, or "
                f"ask for fewer of each group"
            )
        possible = int(np.minimum(sizes, self.room).sum())
        if possible < self.n and (self.room < self.n).any():
            raise InputError(
                f"n = {self.n} points were asked for, at_most leaves {possible}; raise at_most, or ask "
                f"for fewer"
            )
        if self.costs is not None and self.budget is not None:
            self._mask &= self.room[self.groups.codes] > 0
            reserved, _ = self._reserved()
            if reserved > self.budget * (1 + _ROUNDED):
                raise InputError(
                    f"the cheapest points that at_least asks for cost {reserved:g}, the budget is "
                    f"{self.budget:g}; raise it, or ask for fewer"
                )
            if not (self.costs <= self.budget * (1 + _ROUNDED)).any():
                raise InputError(
                    f"no point costs as little as the budget, {self.budget:g}; the cheapest costs "
                    f"{self.costs.min(initial=np.inf):g}"
                )


def best_eligible(order: Rows, n: int, eligible: Eligible) -> Rows:
    """n picks of a rule that scores each row by itself: always the first eligible row in `order`."""
    at, picks = 0, list[int]()
    while len(picks) < n and at < len(order):
        ahead = np.flatnonzero(eligible.mask[order[at : at + _AHEAD]])
        if not len(ahead):
            at += _AHEAD
            continue
        at += int(ahead[0]) + 1
        picks.append(int(order[at - 1]))
        eligible.take(picks[-1])
    return np.array(picks, dtype=np.int64)
