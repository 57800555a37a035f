"""k-means|| over shards of last-layer gradients: the rival of sharded clocks, for comparison alone.

Bahmani, Moseley, Vattani, Kumar & Vassilvitskii, *Scalable k-means++*, 2012, Algorithm 2: in each of r
rounds every point becomes a candidate with probability ℓ·d²/φ; candidates are weighted by the points
nearest to them, and weighted k-means++ picks n of them. It needs 2 r + 2 round trips whatever n is.
Its picks are not D² samples, and depend on r and ℓ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from askance.gradients.last_layer import pseudo_residuals
from askance.seeding import Draws


@dataclass
class Gradients:
    """Some points a ⊗ h."""

    a: Tensor
    h: Tensor

    @classmethod
    def of(cls, logits: Tensor, features: Tensor) -> Gradients:
        return cls(pseudo_residuals(logits.double(), "cross-entropy").float(), features)

    def __len__(self) -> int:
        return len(self.h)

    def at(self, rows: Tensor) -> Gradients:
        return Gradients(self.a[rows], self.h[rows])

    @property
    def sq_norms(self) -> Tensor:
        return self.a.square().sum(1) * self.h.square().sum(1)

    def sq_dists(self, others: Gradients) -> Tensor:
        inner = (self.h @ others.h.T) * (self.a @ others.a.T)
        return (self.sq_norms[:, None] + others.sq_norms - 2 * inner).clamp_min_(0)


def nearest(points: Gradients, centres: Gradients, block: int = 8192) -> tuple[Tensor, Tensor]:
    """Each point's squared distance to the nearest centre, and which it is."""
    parts = [
        points.at(torch.arange(s, min(s + block, len(points)))).sq_dists(centres).min(dim=1)
        for s in range(0, len(points), block)
    ]
    return torch.cat([p.values for p in parts]), torch.cat([p.indices for p in parts])


@dataclass
class Cost:
    """What it took."""

    trips: int = 0
    bytes: int = 0
    pairs: int = 0
    candidates: int = 0


def kmeans_parallel(
    shards: list[Gradients], n: int, seed: int, rounds: int = 5, oversampling: float = 2.0
) -> tuple[np.ndarray, Cost]:
    """n rows of the shards one after the other, and the cost of finding them."""
    rng = Draws(seed).generator("kmeans-parallel")
    row = 4 * (shards[0].a.shape[1] + shards[0].h.shape[1])
    starts = np.cumsum([0, *map(len, shards)])
    cost = Cost(trips=1, bytes=len(shards) * row)
    norms = torch.cat([shard.sq_norms for shard in shards])
    chosen = [int(norms.argmax())]
    everything = Gradients(torch.cat([s.a for s in shards]), torch.cat([s.h for s in shards]))
    new = everything.at(torch.tensor(chosen))
    d2 = [torch.full((len(shard),), torch.inf) for shard in shards]
    for _ in range(rounds):
        for sq_dists, shard in zip(d2, shards, strict=True):
            torch.minimum(sq_dists, nearest(shard, new)[0], out=sq_dists)
        cost.pairs += len(new) * len(everything)
        cost.bytes += len(shards) * (len(new) * row + 8)
        potential = float(sum(sq_dists.double().sum() for sq_dists in d2))
        drawn = []
        for sq_dists, start in zip(d2, starts, strict=False):
            chance = (oversampling * n * sq_dists.double() / potential).numpy()
            drawn.append(start + np.flatnonzero(rng.random(len(sq_dists)) < chance))
        cost.trips += 2
        rows = np.concatenate(drawn)
        cost.bytes += len(shards) * 8 + len(rows) * row
        chosen += rows.tolist()
        new = everything.at(torch.from_numpy(rows))
    candidates = everything.at(torch.tensor(chosen))
    which = torch.cat([nearest(shard, candidates)[1] for shard in shards])
    cost.pairs += len(candidates) * len(everything)
    cost.bytes += len(shards) * (len(new) * row + 8 * len(candidates))
    cost.trips += 1
    cost.candidates = len(chosen)
    weights = torch.bincount(which, minlength=len(chosen)).double()
    return np.array(chosen)[_weighted(candidates, weights, n, rng)], cost


def _weighted(points: Gradients, weights: Tensor, n: int, rng: np.random.Generator) -> np.ndarray:
    """Weighted k-means++ among the candidates, from the first of them."""
    rows = [0]
    d2 = points.sq_dists(points.at(torch.tensor([0])))[:, 0].double()
    while len(rows) < min(n, len(points)):
        law = (weights * d2).numpy()
        rows.append(int(rng.choice(len(law), p=law / law.sum())))
        new = points.sq_dists(points.at(torch.tensor(rows[-1:])))[:, 0].double()
        d2 = torch.minimum(d2, new)
        d2[rows] = 0.0
    return np.array(rows)
