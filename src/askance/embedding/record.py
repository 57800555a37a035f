"""`Embedding`: rows of a pool, with everything that is known of them.

Shape key, here and everywhere: N pool points, L labelled points, C classes, D features, B rows of a
block.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from askance.embedding import sources
from askance.embedding.ids import Ids, Listed
from askance.errors import InputError
from askance.seeding import Positions


@dataclass(frozen=True, eq=False)
class Embedding:
    """What a model says of N points: its head's outputs and what the head was given.

    Args:
        logits: (N, C), the outputs of the last linear layer.
        features: (N, D), its inputs. The dtype is kept.
        positions: where each row stands in its pool; a row's random draws depend on it. 0 to N − 1
            when None.
        ids: the rows' identifiers, where the pool has them; a list of texts will do.
        inputs: what the model was given; only for rules that need gradients beyond the head.
        labels: (N,) classes, or (N, C) zeros and ones; of a labelled set only.
        members: (N, M, C), the logits of M models. Logits of shape (M, N, C), one model's after the
            other's, are taken as such; `logits` are then the logarithm of their mean probabilities.

    Logits or features may be left out for rules that do not need them.

    Example:
        >>> import askance, torch
        >>> pool = askance.Embedding(logits=torch.randn(8, 3), features=torch.randn(8, 5))
        >>> len(pool), pool.classes
        (8, 3)
    """

    logits: Tensor | None = None
    features: Tensor | None = None
    positions: Positions = None  # type: ignore[assignment]
    ids: Ids | None = None
    inputs: Any = None
    labels: Tensor | None = None
    members: Tensor | None = None

    def __post_init__(self) -> None:
        positions: Positions | None = self.positions
        self._take_members()
        if self.logits is None and self.features is None and positions is None:
            raise InputError(
                "an Embedding needs logits (N, C), features (N, D) or both; got neither"
            )
        for name in ("logits", "features"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, _matrix(name, value))
        if self.logits is not None and self.features is not None:
            if len(self.logits) != len(self.features):
                raise InputError(
                    f"logits and features must have one row for each point; "
                    f"got {len(self.logits)} rows of logits and {len(self.features)} of features"
                )
            if self.logits.device != self.features.device:
                raise InputError(
                    f"logits and features must be on one device; "
                    f"got {self.logits.device} and {self.features.device}"
                )
        ids: Any = self.ids
        if isinstance(ids, (list, tuple, np.ndarray)):
            object.__setattr__(self, "ids", Listed([str(name) for name in ids]))
        rows = next((len(matrix) for matrix in self.matrices.values()), None)
        if positions is None:
            object.__setattr__(self, "positions", range(rows or 0))
        elif rows is not None and rows != len(positions):
            raise InputError(f"{rows} rows need as many positions, got {len(positions)}")
        if self.ids is not None and len(self.ids) != len(self):
            raise InputError(f"{len(self)} rows need as many identifiers, got {len(self.ids)}")

    def _take_members(self) -> None:
        """Members' logits from logits (M, N, C), and logits from members'."""
        if self.members is None and self.logits is not None and np.ndim(self.logits) == 3:
            object.__setattr__(self, "members", _numbers("logits", self.logits).transpose(0, 1))
            object.__setattr__(self, "logits", None)
        if self.members is None:
            return
        members_NMC = _numbers("members", self.members)
        if members_NMC.ndim != 3 or 0 in members_NMC.shape[1:]:
            raise InputError(
                f"members must be (N, M, C), logits of M models and C classes for each point; got "
                f"shape {tuple(members_NMC.shape)}"
            )
        object.__setattr__(self, "members", members_NMC)
        if self.logits is None:
            log_p_NMC = members_NMC.float() if members_NMC.itemsize < 4 else members_NMC
            log_p_NMC = log_p_NMC.log_softmax(dim=2)
            mean_NC = log_p_NMC.logsumexp(dim=1) - math.log(members_NMC.shape[1])
            object.__setattr__(self, "logits", mean_NC.to(members_NMC.dtype))

    @classmethod
    def empty(cls) -> Embedding:
        """No rows at all."""
        return cls(positions=np.empty(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.positions)

    def __getitem__(self, rows: Any) -> Embedding:
        """The embedding of some rows (a slice, an index array or a mask), at their positions."""
        index: Any = rows
        positions: Positions
        if isinstance(rows, slice):
            positions = self.positions[rows]
        else:
            array = rows.cpu().numpy() if isinstance(rows, Tensor) else np.asarray(rows)
            rows = np.flatnonzero(array) if array.dtype == bool else np.array(array, np.int64)
            index = torch.from_numpy(rows).to(self.device)
            positions = positions_array(self.positions)[rows]
        ids = None
        if self.ids is not None:
            ids = Listed(self.ids.take(np.arange(len(self))[rows]))
        return Embedding(
            logits=None if self.logits is None else self.logits[index],
            features=None if self.features is None else self.features[index],
            positions=positions,
            ids=ids,
            inputs=None if self.inputs is None else sources.rows_of(self.inputs, index),
            labels=None if self.labels is None else self.labels[index],
            members=None if self.members is None else self.members[index],
        )

    @property
    def matrices(self) -> dict[str, Tensor]:
        """Logits and features, those there are, by name."""
        both = {"logits": self.logits, "features": self.features}
        return {name: matrix for name, matrix in both.items() if matrix is not None}

    @property
    def device(self) -> torch.device:
        """Where the numbers are; the CPU where there are none."""
        return next((m.device for m in self.matrices.values()), torch.device("cpu"))

    @property
    def classes(self) -> int | None:
        """C, where there are logits."""
        return None if self.logits is None else self.logits.shape[1]

    def to(self, device: torch.device | str) -> Embedding:
        """The same rows on another device."""
        labels = None if self.labels is None else self.labels.to(device)
        return replace(self.mapped(lambda matrix: matrix.to(device)), labels=labels)

    def mapped(self, change: Callable[[Tensor], Tensor]) -> Embedding:
        """The same rows with `change` done to their logits, members' logits too, and features."""
        logits, features, members = (
            None if m is None else change(m) for m in (self.logits, self.features, self.members)
        )
        return replace(self, logits=logits, features=features, members=members)

    def renumbered(self) -> Embedding:
        """The same rows at positions 0 to N − 1."""
        return replace(self, positions=range(len(self)))

    def blocks(self, rows: int) -> Iterator[Embedding]:
        """Consecutive views of at most `rows` rows."""
        for start in range(0, len(self), rows):
            yield self[start : start + rows]


def concatenated(parts: Sequence[Embedding]) -> Embedding:
    """The rows of several embeddings, one after the other; with what all of them have."""
    if not parts:
        raise InputError("the data must hold at least one point, it is empty")
    if len(parts) == 1:  # nothing to copy
        return parts[0]

    def column(name: str) -> list[Any] | None:
        values = [getattr(part, name) for part in parts]
        return None if any(value is None for value in values) else values

    matrices = {name: column(name) for name in ("logits", "features", "labels", "members")}
    inputs, ids = column("inputs"), column("ids")
    return Embedding(
        **{name: torch.cat(values) for name, values in matrices.items() if values is not None},
        positions=_joined([part.positions for part in parts]),
        inputs=None if inputs is None else sources.joined(inputs),
        ids=None if ids is None else Listed([name for own in ids for name in texts(own)]),
    )


def texts(ids: Ids) -> tuple[str, ...]:
    """All of the identifiers."""
    return tuple(ids.take(np.arange(len(ids))))


def _joined(parts: Sequence[Positions]) -> Positions:
    """Positions one after the other; a range where they follow each other."""
    ranges = [part for part in parts if isinstance(part, range) and part.step == 1]
    pairs = pairwise(ranges)
    if len(ranges) == len(parts) and all(left.stop == right.start for left, right in pairs):
        return range(ranges[0].start, ranges[-1].stop)
    return np.concatenate([positions_array(part) for part in parts])


def positions_array(positions: Positions) -> NDArray[np.int64]:
    """Positions as an array. NumPy itself would go through a range number by number."""
    if isinstance(positions, range):
        return np.arange(positions.start, positions.stop, positions.step)
    return np.asarray(positions, dtype=np.int64)


def _numbers(name: str, value: Any) -> Tensor:
    """An array of floating-point numbers, without a gradient."""
    if not isinstance(value, Tensor):
        array = np.asarray(value)
        if array.dtype.kind not in "biuf":
            raise InputError(f"{name} must be an array of numbers, got {type(value).__name__}")
        value = sources.as_tensor(array)
    if value.ndim > 1 and not value.is_floating_point():
        raise InputError(f"{name} must be floating point, got {value.dtype}")
    return value.detach()


def _matrix(name: str, value: Any) -> Tensor:
    value = _numbers(name, value)
    if value.ndim != 2:
        raise InputError(
            f"{name} must be a matrix with one row for each point, got shape {tuple(value.shape)}"
        )
    if value.shape[1] == 0:
        raise InputError(f"{name} must have at least one column, got shape {tuple(value.shape)}")
    return value
