"""The kernel of a coverage: float32 bounds on it for any rows, and two ways to keep some of it.

    k(x, e) = exp(−‖ĥ_x − ĥ_e‖² / σ²)

for candidates x and evaluation rows e, ĥ the features at unit length. Shapes: N candidates, B of a
block; M evaluation rows; D features; E entries of the kernel.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from askance.picking.near import low_unit_rows
from askance.picking.points import Floats, Rows
from askance.picking.topk import smallest

ENTRY_BYTES = 6
# Of so many entries each column's rows are known too, at 8 bytes each.
_INDEXED = 1 << 21


class KernelBounds:
    """Upper bounds on k(x, e) in float32 on the candidates' device, for any of the candidates.

    Args:
        features_ND: the candidates, at any length.
        unit_MD: the evaluation rows, at unit length.
        sq_width: σ².
    """

    def __init__(self, features_ND: Tensor, unit_MD: Floats, sq_width: float) -> None:
        self.features, self.device = features_ND, features_ND.device
        scale = 1.0 / sq_width
        self.unit_DM = torch.from_numpy(unit_MD).to(self.device, torch.float32).T
        self.scale = 2.0 * scale
        # A float32 product of unit rows is off by D·2⁻²⁴ at most; the lengths and the sums make up the
        # rest, twice over.
        slack = (unit_MD.shape[1] + 16) * 2.0**-23
        self.wide = self.scale * slack > 1.0
        sq_M = torch.from_numpy((unit_MD**2).sum(axis=1))
        offset_M = self.scale * (slack - (1.0 + sq_M) / 2) + 2.0**-20
        self.offset_M = offset_M.to(self.device, torch.float32)

    def rows(self, view: slice | Tensor) -> Tensor:
        """Upper bounds on k(x, e) of some candidates with every evaluation row, (B, M)."""
        unit_BD = low_unit_rows(self.features[view])
        empty_B1 = ~unit_BD.any(dim=1, keepdim=True)
        unit_BD.mul_(self.scale)
        kernel_BM = torch.addmm(self.offset_M, unit_BD, self.unit_DM)
        if empty_B1.any():
            kernel_BM += (self.scale / 2) * empty_B1
        if self.wide:
            kernel_BM.clamp_(max=2.0**-20)
        return kernel_BM.exp_()


class KernelSlots:
    """Kernel rows of the candidates with the largest bounds, as many as there is room for.

    Args:
        bound: (N,) the candidates' bounds.
        M: how many evaluation rows.
        room: how many rows at most.
        device: where the rows are kept.
    """

    def __init__(self, bound: Floats, M: int, room: int, device: torch.device) -> None:
        room = min(len(bound), room)
        self.bound = bound
        self.kernel = torch.empty(room, M, dtype=torch.float32, device=device)
        self.owner, self.slot = np.full(room, -1), np.full(len(bound), -1)

    def has(self, rows: Rows) -> NDArray[np.bool_]:
        """Which candidates' rows are kept."""
        return self.slot[rows] >= 0

    def of(self, rows: Rows) -> Tensor:
        """The kernel rows of candidates that are kept."""
        return self.kernel[torch.from_numpy(self.slot[rows]).to(self.kernel.device)]

    def add(self, rows: Rows, kernel_BM: Tensor) -> None:
        """Keep those of these rows whose bounds are larger than those of rows that are kept."""
        value = np.where(self.owner >= 0, self.bound[self.owner], -np.inf)
        count = min(len(rows), len(value))
        slots, _ = smallest(value, count)
        slots = slots[np.argsort(value[slots], kind="stable")]
        order = np.argsort(-self.bound[rows], kind="stable")[:count]
        better = self.bound[rows[order]] > value[slots]
        slots, order = slots[better], order[better]
        out = self.owner[slots]
        self.slot[out[out >= 0]] = -1
        self.owner[slots], self.slot[rows[order]] = rows[order], slots
        into, places = (torch.from_numpy(each).to(kernel_BM.device) for each in (slots, order))
        self.kernel[into] = kernel_BM[places]


class KernelEntries:
    """The kernel of all candidates where it is above the starting coverage; the rest adds nothing.

    Args:
        N: how many candidates there are.
        M: how many evaluation rows.
        room: how many entries are kept at most.
    """

    def __init__(self, N: int, M: int, room: int) -> None:
        self.columns = np.empty(room, np.uint16 if M <= 1 << 16 else np.int32)
        self.kernel = np.empty(room, np.float32)
        self.start, self.count, self.used = np.full(N, -1), np.zeros(N, dtype=np.int64), 0
        self.M = M
        self._by_column: tuple[Rows, Rows] | None = None  # each column's rows, and where it begins

    def has(self, rows: Rows) -> NDArray[np.bool_]:
        """Which candidates' rows are kept: all, but where there were more entries than expected."""
        return self.start[rows] >= 0

    def touching(self, columns: Rows) -> Rows | None:
        """The rows with an entry in one of these columns; None where that is not known."""
        if self.used > _INDEXED or (self.start < 0).any():
            return None
        if self._by_column is None:
            ascending = np.argsort(self.start, kind="stable")
            owners = np.repeat(ascending, self.count[ascending])
            columns_E = self.columns[: self.used]
            edges = np.append(0, np.cumsum(np.bincount(columns_E, minlength=self.M)))
            self._by_column = owners[np.argsort(columns_E, kind="stable")], edges
        owners, edges = self._by_column
        parts = [owners[edges[column] : edges[column + 1]] for column in columns.tolist()]
        return np.concatenate([owners[:0], *parts])

    def of(self, rows: Rows) -> tuple[Rows, Rows, Floats]:
        """Each row's number of entries, and all their columns and values, row after row."""
        counts = self.count[rows]
        if len(rows) == 1:
            places: slice | Rows = slice(self.start[rows[0]], self.start[rows[0]] + counts[0])
        else:
            offsets = np.repeat(self.start[rows] - (np.cumsum(counts) - counts), counts)
            places = np.arange(len(offsets)) + offsets
        return counts, self.columns[places].astype(np.int64), self.kernel[places].astype(np.float64)

    def add(self, rows: Rows, kernel_BM: Tensor, covered_M: Tensor) -> None:
        """Keep the entries of some more rows that are above the coverage."""
        row_K, column_K = (kernel_BM > covered_M).nonzero(as_tuple=True)
        counts = np.bincount(row_K.cpu().numpy(), minlength=len(rows))
        if self.used + len(row_K) > len(self.columns):
            return
        view = slice(self.used, self.used + len(row_K))
        self.columns[view] = column_K.cpu().numpy()
        self.kernel[view] = kernel_BM[row_K, column_K].cpu().numpy()
        self.start[rows] = self.used + np.cumsum(counts) - counts
        self.count[rows] = counts
        self.used = view.stop
