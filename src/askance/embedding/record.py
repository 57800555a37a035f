"""The two records that flow through the house: `Embedding` and `Block`.

Shape key, here and everywhere: N pool points, L labelled points, C classes, D features, B rows of a
block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from askance.errors import InputError, NonFiniteError
from askance.seeding import Positions


@dataclass(frozen=True, eq=False)
class Embedding:
    """What a model says of N points: its head's outputs and what the head was given.

    Args:
        logits: (N, C), the outputs of the last linear layer.
        features: (N, D), its inputs. The dtype is kept.

    Either may be left out for rules that do not need it.

    Example:
        >>> import askance, torch
        >>> pool = askance.Embedding(logits=torch.randn(8, 3), features=torch.randn(8, 5))
        >>> len(pool), pool.classes
        (8, 3)
    """

    logits: Tensor | None = None
    features: Tensor | None = None

    def __post_init__(self) -> None:
        if self.logits is None and self.features is None:
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

    def __len__(self) -> int:
        return len(self._any)

    def __getitem__(self, rows: Any) -> Embedding:
        """The embedding of some rows (a slice, an index array or a mask)."""
        if isinstance(rows, np.ndarray):
            rows = torch.as_tensor(rows, device=self.device)
        return Embedding(
            logits=None if self.logits is None else self.logits[rows],
            features=None if self.features is None else self.features[rows],
        )

    @property
    def _any(self) -> Tensor:
        some = self.logits if self.logits is not None else self.features
        assert some is not None
        return some

    @property
    def device(self) -> torch.device:
        return self._any.device

    @property
    def classes(self) -> int | None:
        """C, where there are logits."""
        return None if self.logits is None else self.logits.shape[1]

    def to(self, device: torch.device | str) -> Embedding:
        """The same embedding on another device."""
        return Embedding(
            logits=None if self.logits is None else self.logits.to(device),
            features=None if self.features is None else self.features.to(device),
        )

    def blocks(self, rows: int) -> Iterator[Block]:
        """Consecutive views of at most `rows` rows."""
        for start in range(0, len(self), rows):
            view = slice(start, start + rows)
            yield Block(
                positions=range(start, min(start + rows, len(self))),
                logits=None if self.logits is None else self.logits[view],
                features=None if self.features is None else self.features[view],
            )


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows of a pool and where they stand in it.

    Args:
        positions: the pool index of each row; per-row draws are keyed by it.
        logits: (B, C).
        features: (B, D).
        inputs: what the model was given, kept only for rules that need gradients beyond the head.
    """

    positions: Positions
    logits: Tensor | None = None
    features: Tensor | None = None
    inputs: Any = None

    def __len__(self) -> int:
        return len(self.positions)


def check_finite(name: str, matrix_BK: Tensor, positions: Positions, of: str = "pool") -> None:
    """Raise unless every entry is finite; the message counts the bad rows and names the first."""
    # One fused pass decides the common case: a sum is finite only where every term is.
    if torch.isfinite(matrix_BK.sum()):
        return
    bad = (~torch.isfinite(matrix_BK)).any(dim=1).nonzero().flatten().tolist()
    if bad:  # empty where finite entries summed past the largest number
        raise NonFiniteError(
            f"{name} must be finite; {len(bad)} of {len(positions)} {of} rows have NaN or infinite "
            f"{name}, the first is row {int(positions[bad[0]])}. Look at the model's output for that "
            f"input: a diverged training run, or an input that is NaN itself or not normalised, is the "
            f"usual cause"
        )


def _matrix(name: str, value: Any) -> Tensor:
    if not isinstance(value, Tensor):
        array = np.asarray(value)
        if array.dtype.kind not in "biuf":
            raise InputError(f"{name} must be an array of numbers, got {type(value).__name__}")
        shared = array.flags.writeable and all(stride >= 0 for stride in array.strides)
        value = torch.as_tensor(array if shared else array.copy())
    if value.ndim != 2:
        raise InputError(
            f"{name} must be a matrix with one row for each point, got shape {tuple(value.shape)}"
        )
    if not value.is_floating_point():
        raise InputError(f"{name} must be floating point, got {value.dtype}")
    if value.shape[1] == 0:
        raise InputError(f"{name} must have at least one column, got shape {tuple(value.shape)}")
    return value.detach()
