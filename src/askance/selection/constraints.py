"""Limits on what one batch of picks may hold, whatever the rule."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from askance._checks import check_whole
from askance.embedding import Embedding, concatenated, positions_array
from askance.errors import InputError, NonFiniteError, UnknownError
from askance.gradients.last_layer import pseudo_labels
from askance.picking import TopRows
from askance.picking.eligible import Groups, LimitedRows, best_eligible
from askance.picking.front import reachable
from askance.picking.similar import Similar
from askance.selection.classes import check_width
from askance.strategies import Strategy
from askance.strategies.base import Need, features_of, logits_of, picks_under_limits

PREDICTED = "predicted"
_SHOWN = 8
_AHEAD = 16


@dataclass(frozen=True, eq=False)
class GroupCodes:
    """The group of each row of a pool, by number.

    Args:
        codes: (N,) whole numbers from 0.
        names: what each stands for.
    """

    codes: NDArray[np.integer]
    names: Sequence[Any]

    @classmethod
    def of(cls, values: NDArray[Any]) -> GroupCodes:
        """Of one value for each row."""
        names, codes = np.unique(values, return_inverse=True)
        return cls(codes, names.tolist())

    def __len__(self) -> int:
        return len(self.codes)


@dataclass(frozen=True, eq=False)
class Constraints:
    """Quotas and minimums of groups, costs under a budget, and no two picks alike.

    Args:
        groups: "predicted" for the classes the model predicts, or one value for each row of the pool.
        at_most: the most picks of each group: one number, or a mapping from groups to numbers.
        at_least: the fewest picks of each group; of one number, no more than a group has.
        costs: what labelling each row of the pool costs.
        budget: what the picks together may cost.
        max_similarity: the cosine between the features of two picks stays below this.
        classes: what the predicted classes are called; numbers from 0 when None.
    """

    groups: Any = None
    at_most: int | Mapping[Any, int] | None = None
    at_least: int | Mapping[Any, int] | None = None
    costs: Any = None
    budget: float | None = None
    max_similarity: float | None = None
    classes: Sequence[Any] | None = None

    def __post_init__(self) -> None:
        limited = self.at_most is not None or self.at_least is not None
        if limited and self.groups is None:
            raise InputError(
                "at_most and at_least are for groups: pass groups='predicted', or one group for each "
                "row of the pool"
            )
        if self.groups is not None and not limited:
            raise InputError("groups alone limit nothing: pass at_most, at_least or both")
        if (self.costs is None) != (self.budget is None):
            raise InputError("costs and budget belong together: pass both, or neither")
        for name, value in (("at_most", self.at_most), ("at_least", self.at_least)):
            each = value.values() if isinstance(value, Mapping) else [value]
            for number in each:
                check_whole(name, number, 0, or_none=value is None)
        if self.budget is not None and not (_is_number(self.budget) and 0 < self.budget < math.inf):
            raise InputError(f"budget must be a finite number above 0, got {self.budget!r}")
        similar = self.max_similarity
        if similar is not None and not (_is_number(similar) and 0 < similar <= 1):
            raise InputError(f"max_similarity must be above 0 and at most 1, got {similar!r}")
        if self.groups is not None and not self._is_predicted:
            groups = self.groups
            if not isinstance(groups, GroupCodes):
                groups = GroupCodes.of(_values("groups", groups))
            object.__setattr__(self, "groups", groups)
        if self.costs is not None:
            object.__setattr__(self, "costs", _costs(self.costs))

    @classmethod
    def of(cls, **limits: Any) -> Constraints | None:
        """The limits that are given; None where none is."""
        return cls(**limits) if any(value is not None for value in limits.values()) else None

    @property
    def needs(self) -> frozenset[Need]:
        """What must be known of the pool's rows, besides what the rule needs."""
        logits: set[Need] = {"logits"} if self._is_predicted else set()
        features: set[Need] = set() if self.max_similarity is None else {"features"}
        return frozenset(logits | features)

    def digest(self) -> str:
        """What tells these limits apart from others."""
        told = [self.at_most, self.at_least, self.budget, self.max_similarity]
        hashed = blake2b(repr(told).encode(), digest_size=16)
        if isinstance(self.groups, GroupCodes):
            hashed.update(repr(self.groups.names).encode() + self.groups.codes.tobytes())
        elif self.groups is not None:
            hashed.update(PREDICTED.encode())
        if self.costs is not None:
            hashed.update(self.costs.tobytes())
        return hashed.hexdigest()

    def check_size(self, count: int) -> None:
        """Raise unless there is a group and a cost for each of `count` rows."""
        for name, values in (("groups", self.groups), ("costs", self.costs)):
            if isinstance(values, (np.ndarray, GroupCodes)) and len(values) != count:
                raise InputError(
                    f"{name} must hold one value for each row of the pool: the pool has {count} rows, "
                    f"{name} {len(values)}"
                )

    def check_rule(self, rule: Strategy) -> None:
        """Raise unless the rule can pick under limits."""
        if not picks_under_limits(rule):
            raise InputError(
                f"{rule.name} cannot pick under constraints: its pick() takes no `eligible`. Use "
                f"another rule, or see askance.strategies.Batch for what its author has to add"
            )
        if self._is_predicted and rule.multilabel:
            raise InputError(
                "groups='predicted' is for one class a point; pass one group for each row of the pool"
            )

    def limits(self, rows: Embedding, n: int) -> LimitedRows:
        """The limits on n picks among some rows of the pool."""
        groups = self._groups_of(rows, n)
        similar = None
        if self.max_similarity is not None:
            similar = Similar(features_of(rows), self.max_similarity)
        return LimitedRows(len(rows), n, groups, self._costs_of(rows), self.budget, similar)

    def reachable(
        self, rows: Embedding, scores: NDArray[np.float64], n: int, times: int = 1
    ) -> NDArray[np.int64]:
        """Which of some scored rows may be among n picks of all, ascending; `times` as many for a
        shortlist.
        """
        if self.max_similarity is not None:  # any row may be left when those before it are alike
            return np.arange(len(rows))
        groups = self._groups_of(rows, n)
        longer = replace(groups, most=times * groups.most, least=times * groups.least)
        return reachable(_order(rows, scores), longer, times * n, self._costs_of(rows))

    def best_of(
        self, rows: Embedding, scores: NDArray[np.float64], n: int
    ) -> tuple[TopRows, LimitedRows]:
        """The n best rows that the limits let through, best first, and the limits after them."""
        order = _order(rows, scores)
        # Where alikeness is the only limit, rows far down the order need not be compared with any pick.
        alone = self.groups is None and self.costs is None
        looked_at = _AHEAD * n if alone else len(order)
        while True:
            listed = order[:looked_at]
            some = rows[listed]
            limits = self.limits(some, n)
            picks = best_eligible(np.arange(len(listed)), n, limits)
            if len(picks) == n or len(listed) == len(order):
                return TopRows(some[picks], scores[listed[picks]]), limits
            looked_at *= 4

    @property
    def _is_predicted(self) -> bool:
        return isinstance(self.groups, str) and self.groups == PREDICTED

    def _costs_of(self, rows: Embedding) -> NDArray[np.float64] | None:
        if self.costs is None:
            return None
        costs: NDArray[np.float64] = self.costs[self._positions(rows)]
        return costs

    def _positions(self, rows: Embedding) -> NDArray[np.int64]:
        positions = positions_array(rows.positions)
        if len(positions):  # a stream may turn out longer than what was given for its rows
            for values in (self.groups, self.costs):
                if isinstance(values, (np.ndarray, GroupCodes)) and positions.max() >= len(values):
                    self.check_size(int(positions.max()) + 1)
        return positions

    def _groups_of(self, rows: Embedding, n: int) -> Groups:
        if self.groups is None:
            return Groups.one(len(rows), n)
        if self._is_predicted:
            logits_BC = logits_of(rows)
            check_width(self.classes, logits_BC.shape[1])
            names: Sequence[Any] = self.classes or range(logits_BC.shape[1])
            codes = pseudo_labels(logits_BC).cpu().numpy()
        else:
            names = self.groups.names
            codes = self.groups.codes[self._positions(rows)].astype(np.int64)
        most = _by_name("at_most", self.at_most, names, n)
        least = _by_name("at_least", self.at_least, names, 0)
        if not isinstance(self.at_least, Mapping):
            least = np.minimum(least, np.minimum(np.bincount(codes, minlength=len(names)), most))
        return Groups(codes, names, most, least)


class ConstrainedTop:
    """What n picks under limits may reach of a stream of blocks; `times` as much for a shortlist."""

    def __init__(self, constraints: Constraints, n: int, times: int = 1) -> None:
        self.constraints, self.n, self.times = constraints, n, times
        self._parts: list[Embedding] = []
        self._scores: list[NDArray[np.float64]] = []
        self._waiting, self._thin_at = 0, 4 * n + 4096

    def push(self, rows: Embedding, scores_B: torch.Tensor) -> None:
        """Offer the rows of a block."""
        self._parts.append(rows)
        self._scores.append(scores_B.double().cpu().numpy())
        self._waiting += len(rows)
        if self._waiting > self._thin_at:
            self._thin_out()
            self._thin_at = 2 * self._waiting + 4096

    def result(self) -> TopRows:
        """Every row that may be picked, in the order of the pool."""
        if not self._waiting:
            return TopRows.empty()
        self._thin_out()
        return TopRows(self._parts[0], self._scores[0])

    def _thin_out(self) -> None:
        rows, scores = concatenated(self._parts), np.concatenate(self._scores)
        kept = self.constraints.reachable(rows, scores, self.n, self.times)
        if len(kept) < len(rows):
            rows, scores = rows[kept], scores[kept]
        self._parts, self._scores, self._waiting = [rows], [scores], len(rows)


def _order(rows: Embedding, scores: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.lexsort((positions_array(rows.positions), -scores))


def _by_name(
    what: str, limit: int | Mapping[Any, int] | None, names: Sequence[Any], none: int
) -> NDArray[np.int64]:
    """(G,) the limit of each group; `none` where it has none."""
    if not isinstance(limit, Mapping):
        return np.full(len(names), none if limit is None else limit, dtype=np.int64)
    numbers = np.full(len(names), none, dtype=np.int64)
    place = {name: code for code, name in enumerate(names)}
    for name, number in limit.items():
        if name not in place:
            raise UnknownError(
                f"{what} names the group {name!r}, which the pool does not have; it has "
                f"{', '.join(map(repr, names[:_SHOWN]))}{', …' if len(names) > _SHOWN else ''}"
            )
        numbers[place[name]] = number
    return numbers


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _values(name: str, values: Any) -> NDArray[Any]:
    """One value for each row, as an array that can be sorted."""
    array = values.cpu().numpy() if isinstance(values, torch.Tensor) else np.asarray(values)
    if array.ndim != 1:
        raise InputError(
            f"{name} must be 'predicted' or hold one value for each row of the pool, got "
            f"{values!r}" if array.ndim == 0 else
            f"{name} must hold one value for each row of the pool, got shape {array.shape}"
        )  # fmt: skip
    if array.dtype == object or isinstance(values, (list, tuple)):
        each = values if isinstance(values, (list, tuple)) else array.tolist()
        texts = sum(isinstance(value, str) for value in each)
        if texts not in (0, len(each)):
            raise InputError(
                f"{name} must be all texts or all numbers; {texts} of {len(each)} are texts"
            )
        array = np.array(list(each)) if array.dtype == object else array
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise NonFiniteError(f"{name} must be finite, {(~np.isfinite(array)).sum()} are not")
    if array.dtype.kind not in "biufSU":
        raise InputError(f"{name} must hold numbers or texts, got {array.dtype}")
    return array


def _costs(values: Any) -> NDArray[np.float64]:
    array = _values("costs", values)
    if array.dtype.kind not in "biuf" or (array < 0).any():
        raise InputError("costs must hold numbers that are not negative, one for each row")
    return array.astype(np.float64)
