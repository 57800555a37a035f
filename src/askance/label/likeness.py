"""Which items look alike: the cosine of their inputs, which a random projection makes small.

Shapes: N items; D inputs; K projected inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from askance.seeding import Draws

WIDTH = 256  # numbers that are kept of each item


@dataclass(frozen=True, eq=False)
class Likeness:
    """How items look, as vectors of length 1.

    Args:
        ids: one a row.
        vectors_NK: a row of zeros is an item that looks like none.
    """

    ids: Sequence[str]
    vectors_NK: NDArray[np.float32]

    @classmethod
    def of(cls, ids: Sequence[str], inputs_ND: NDArray[np.float32]) -> Likeness:
        """The likeness of these inputs.

        Wide ones are projected by a Gaussian matrix, which keeps cosines to about 1/√K (Johnson and
        Lindenstrauss).
        """
        narrow_NK, width = inputs_ND, inputs_ND.shape[1]
        if width > WIDTH:
            directions_DK = Draws(0).generator("likeness").normal(size=(width, WIDTH))
            narrow_NK = inputs_ND @ directions_DK.astype(np.float32)
        centred_NK = narrow_NK - narrow_NK.mean(axis=0)  # after it: the inputs may be large
        norms_N = np.linalg.norm(centred_NK, axis=1)
        scale_N = np.where(norms_N > 0, norms_N, 1.0)
        return cls(list(ids), (centred_NK / scale_N[:, None]).astype(np.float32))

    @cached_property
    def _row(self) -> dict[str, int]:
        return {item: row for row, item in enumerate(self.ids)}

    def nearest(self, item: str) -> list[str]:
        """All items, those most like this one first, itself before them; none where it is unknown."""
        row = self._row.get(item)
        if row is None:
            return []
        cosine_N = self.vectors_NK @ self.vectors_NK[row]
        cosine_N[row] = np.inf
        return [self.ids[int(other)] for other in np.argsort(-cosine_N, kind="stable")]
