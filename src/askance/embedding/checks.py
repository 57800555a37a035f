"""Refuse numbers that no rule could use, and probabilities passed as logits."""

from __future__ import annotations

import torch
from torch import Tensor

from askance.errors import InputError, NonFiniteError
from askance.seeding import Positions

# Rows that are judged together: by chance, as many do not all look like probabilities.
_ENOUGH = 8
# How far from 1 the sums of probabilities may be: those of bfloat16 are off by 2⁻⁸, whatever dtype they
# have become since, and those written with a few decimals by as much.
_ROUNDED = 0.01
# The sizes whose squares, and sums and products of a few such squares, float64 holds with all digits.
_SMALLEST, _LARGEST = 1e-140, 1e140


def check_finite(name: str, matrix_BK: Tensor, positions: Positions, of: str = "pool") -> None:
    """Raise unless every entry is finite; the message counts the bad rows and names the first.

    Features must have squares that float64 can hold, too: see `check_range`.
    """
    # One fused pass decides the common case: a sum is finite only where every term is.
    bad = []
    if not torch.isfinite(matrix_BK.sum()):
        # Empty where finite entries summed past the largest number.
        bad = (~torch.isfinite(matrix_BK)).any(dim=1).nonzero().flatten().tolist()
    if bad:
        raise NonFiniteError(
            f"{name} must be finite; {len(bad)} of {len(positions)} {of} rows have NaN or infinite "
            f"{name}, the first is row {int(positions[bad[0]])}. Look at the model's output for that "
            f"input: a diverged training run, or an input that is NaN itself or not normalised, is the "
            f"usual cause"
        )
    if name == "features":
        check_range(matrix_BK, positions, of)


def check_range(
    features_BD: Tensor,
    positions: Positions,
    of: str = "pool",
    *,
    smallest: float = _SMALLEST,
    largest: float = _LARGEST,
) -> None:
    """Raise where a row of float64 features is too large or too small to be squared.

    The largest |x| of a row must be 0 or between 1e-140 and 1e140, since lengths and distances are sums
    of squares in float64. Every number of float32, float16 and bfloat16 is.
    """
    if features_BD.dtype != torch.float64:
        return
    low_B, high_B = torch.aminmax(features_BD, dim=1)
    size_B = torch.maximum(high_B, -low_B)
    # Infinity is for others to refuse.
    outside_B = ((size_B > largest) & size_B.isfinite()) | ((size_B > 0) & (size_B < smallest))
    bad = outside_B.nonzero().flatten().tolist()
    if bad:
        raise InputError(
            f"the largest |x| of a row of features must be 0 or between {smallest:.3g} and "
            f"{largest:.3g}; in {len(bad)} of {len(positions)} {of} rows it is not, the first is row "
            f"{int(positions[bad[0]])}, where it is {float(size_B[bad[0]]):.3g}. Divide all features, "
            f"of pool and labelled set, by one number that brings them between the two"
        )


class LogitsCheck:
    """Refuses probabilities that were passed as logits, as their blocks come by.

    A softmax would be taken of them again, which flattens what the model said. Rows are judged eight or
    more at a time, so that small blocks wait for the next: they are probabilities where none has an
    entry below 0 and all sum to 1. Of two standard normal logits one row in 400 does; eight do not.

    A set of fewer rows is judged at its end, by the rounding of its own dtype. Probabilities that were
    rounded more are then let through, and a lone row of two such logits is refused once in 400,000
    times, in bfloat16 once in 500; the message says what to do then.

    Args:
        of: what messages say the logits are of.
    """

    def __init__(self, of: str) -> None:
        self.of = of
        self._waiting: list[Tensor] = []
        self._judged = False

    def see(self, logits_BC: Tensor | None) -> None:
        """The next block."""
        if logits_BC is None or logits_BC.ndim != 2 or not logits_BC.is_floating_point():
            return
        if not len(logits_BC):
            return
        self._waiting.append(logits_BC)
        if sum(map(len, self._waiting)) >= _ENOUGH:
            self._judge(_ROUNDED)
            self._waiting, self._judged = [], True

    def end(self) -> None:
        """No more blocks: what is left is judged, where it is all there was."""
        if self._waiting and not self._judged:
            self._judge(max(1e-5, torch.finfo(self._waiting[0].dtype).eps))

    def _judge(self, slack: float) -> None:
        # The first row tells logits from probabilities almost always, and for next to nothing.
        first, blocks = self._waiting[0][:1], self._waiting
        if float(first.min()) < 0 or not _sum_to_one(first, slack):
            return
        if all(_sum_to_one(block, slack) for block in blocks):
            raise InputError(
                f"the logits of {self.of} look like probabilities: none is below 0 and every row sums "
                f"to 1. A rule takes a softmax itself; pass their logarithms, e.g. log(p + 1e-12). If "
                f"they are logits after all, take 1 off each of them: their softmax stays the same"
            )


def check_logits(logits_NC: Tensor, of: str) -> None:
    """Refuse probabilities that were passed as the logits of a whole set; see `LogitsCheck`."""
    check = LogitsCheck(of)
    check.see(logits_NC)
    check.end()


def _sum_to_one(rows_BC: Tensor, slack: float) -> bool:
    """Whether every row could be probabilities. A single column of ones is none."""
    if rows_BC.shape[1] < 2 or bool((rows_BC < 0).any()):
        return False
    # Summed in float32 at least: near 1 a bfloat16 sum moves in steps of 2⁻⁷.
    sums_B = rows_BC.sum(dim=1, dtype=torch.promote_types(rows_BC.dtype, torch.float32))
    return bool(((sums_B - 1).abs() < slack).all())  # which NaN is not
