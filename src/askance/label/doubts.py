"""Why a model asks about an item, as somebody who labels would say it: what it hesitates between, and
whether anything like it has been answered.

Shapes: N items; C classes; D inputs; P picks; L answered items; S sampled items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_SAMPLE = 500  # items that tell how near to an answered one the others are
_UNLIKE = 0.1  # the share of items that are called unlike all that were answered
_CLOSE = 0.3  # a lead of the first class over the second that is no certainty
_SURE = 0.9


@dataclass(frozen=True)
class Doubt:
    """What a model thinks of an item that it asks about.

    Args:
        classes: the two it finds most likely, the likelier first; one where there is no other.
        probabilities: of these.
        unlike: whether hardly anything like it has been answered.
    """

    classes: tuple[int, ...]
    probabilities: tuple[float, ...]
    unlike: bool

    def text(self, names: Sequence[str]) -> str:
        """The doubt in a sentence; it does not say which class the model finds likelier."""
        sentences = []
        lead = self.probabilities[0] - sum(self.probabilities[1:])
        if len(self.classes) > 1 and lead < _CLOSE:
            one, other = (names[number] for number in sorted(self.classes))
            sentences.append(f"The model hesitates between {one} and {other}.")
        if self.unlike:
            sentences.append("Hardly anything like it has been answered yet.")
        if sentences:
            return " ".join(sentences)
        if self.probabilities[0] < _SURE:
            return "The model is not sure of this one."
        return "The model is rather sure of this one; your answer tells whether it is right."


def doubts(
    probs_PC: NDArray[np.floating],
    picked_PD: NDArray[np.floating],
    answered_LD: NDArray[np.floating],
    sample_SD: NDArray[np.floating],
) -> list[Doubt]:
    """The doubt about each pick.

    An item is unlike all that were answered where its nearest answered item, by the cosine, is farther
    than that of nine in ten of the sampled items.

    Args:
        probs_PC: the model's probabilities.
        picked_PD: inputs of the picks.
        answered_LD: inputs of the answered items.
        sample_SD: inputs of other items.
    """
    near_P, near_S = nearest_cosine(picked_PD, answered_LD), nearest_cosine(sample_SD, answered_LD)
    limit = np.quantile(near_S, _UNLIKE) if len(near_S) else -np.inf
    likeliest_PK = np.argsort(-probs_PC, axis=1, kind="stable")[:, :2]
    return [
        Doubt(tuple(map(int, top_K)), tuple(map(float, probs_C[top_K])), bool(near < limit))
        for top_K, probs_C, near in zip(likeliest_PK, probs_PC, near_P, strict=True)
    ]


def nearest_cosine(
    rows_ND: NDArray[np.floating], others_LD: NDArray[np.floating]
) -> NDArray[np.floating]:
    """The largest cosine of each row with any of the others; 0 with a row of zeros."""
    return (_unit(rows_ND) @ _unit(others_LD).T).max(axis=1)


def _unit(rows_ND: NDArray[np.floating]) -> NDArray[np.floating]:
    norms_N = np.linalg.norm(rows_ND, axis=1)
    return rows_ND / np.where(norms_N > 0, norms_N, 1.0)[:, None]


def sampled(candidates_N: NDArray[np.int64], draws: np.random.Generator) -> NDArray[np.int64]:
    """Some of these rows, to compare with."""
    n = min(_SAMPLE, len(candidates_N))
    return draws.choice(candidates_N, n, replace=False)
