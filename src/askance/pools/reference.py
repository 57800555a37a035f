"""The labelled set of a streamed question: a parallel sum where the rule needs no more than that.

For `grad` and its kin n·ḡ_L = Σ a ⊗ [h; 1] over the labelled points, so each labelled shard gives one
(C, D + 1) matrix and a count, and the labelled set may be as large as the pool. Matrices are added in
the order of the shards, in float64, so that the sum does not depend on who was done first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from askance.embedding import Embedding, check_finite, concatenated
from askance.embedding.sources import as_labels
from askance.errors import LabelError
from askance.gradients.discrepancy import LastLayerReference
from askance.gradients.last_layer import LossName, check_labels, gradient_matrix, residuals
from askance.pools.engine import Engine
from askance.pools.reader import Reader, ShardJob, ShardRows
from askance.pools.source import Part, Parts
from askance.seeding import Draws
from askance.selection.clock import Clock
from askance.selection.inputs import reference_rows
from askance.strategies import Grad, Strategy
from askance.strategies.coverage import CoversPool

T = TypeVar("T")


def reference_of(
    rule: Strategy, labeled: Reader | None, engine: Engine, draws: Draws
) -> tuple[Any, Embedding | None]:
    """What the labelled set boils down to for this rule, and an embedding as wide as its rows."""
    if "labeled" not in rule.uses or (labeled is None and "labeled" in rule.optional):
        return rule.prepare(None, None), None
    if labeled is None:
        raise LabelError(
            f"{rule.name} compares the pool with the labelled set, and there is none; give one, or use "
            f"a rule that needs no labels, such as 'maxherding'"
        )
    source = labeled.source
    if "labels" not in source.holds:
        raise LabelError(
            f"{source.address}: a labelled set needs labels; name their column or file"
        )
    parts: Parts = frozenset[Part]({"logits", "features", "labels"})
    grad = summed_by(rule)
    if grad is not None:
        assert not callable(grad.loss)
        sums = _each(ShardJob(labeled, parts, SumGradients(grad.bias, grad.loss)), engine)
        total = torch.zeros_like(sums[0].total)
        for part in sums:
            total += part.total
        count = sum(part.count for part in sums)
        return LastLayerReference(total / count, count, grad.bias, grad.loss), sums[0].like
    if labeled.model is None:
        parts &= source.holds
    whole = concatenated(_each(ShardJob(labeled, parts, gathered), engine))
    assert whole.labels is not None
    whole = replace(whole, labels=as_labels(whole.labels, len(whole)))
    rows = reference_rows(whole, len(whole), rule.reference_points(len(whole), draws))
    return rule.prepare(rows, None), rows.block


def summed_by(rule: Strategy) -> Grad | None:
    """The `grad` whose reference is a plain sum over the labelled points, where there is one."""
    if isinstance(rule, CoversPool):  # which looks at every labelled point
        return None
    grad = rule if isinstance(rule, Grad) else getattr(rule, "grad", None)
    if not isinstance(grad, Grad) or callable(grad.loss):
        return None
    return grad if grad.parameters == "last" and grad.reference_size is None else None


def _each(job: ShardJob[T | None], engine: Engine) -> list[T]:
    """What was made of each labelled shard that holds a row, in the order of the shards."""
    done = {
        shard.index: result.value for shard, result in engine.map(job, job.reader.source.shards)
    }
    values = [value for _, value in sorted(done.items()) if value is not None]
    if not values:
        raise LabelError(f"{job.reader.source.address}: the labelled set is empty")
    return values


@dataclass(frozen=True, eq=False)
class GradientSum:
    """Σ a ⊗ [h; 1] over a labelled shard in float64, over how many points, and none of its rows."""

    total: Tensor
    count: int
    like: Embedding


@dataclass(frozen=True, eq=False)
class SumGradients:
    """One labelled shard's share of n·ḡ_L: a job's work."""

    bias: bool
    loss: LossName

    def __call__(self, rows: ShardRows, clock: Clock) -> GradientSum | None:
        share: GradientSum | None = None
        for block in rows:
            assert block.logits is not None
            assert block.features is not None
            assert block.labels is not None
            for name, matrix in block.matrices.items():
                check_finite(name, matrix, block.positions, of="labelled")
            labels = block.labels.to(block.device)
            check_labels(labels, block.logits, self.loss)
            a_BC = residuals(block.logits.double(), labels, self.loss)
            total = gradient_matrix(a_BC, block.features, self.bias).cpu()
            if share is None:
                like = replace(block, ids=None)[:0].to("cpu")
                share = GradientSum(total, len(block), like)
            else:
                share = GradientSum(share.total + total, share.count + len(block), share.like)
        return share


def gathered(rows: ShardRows, clock: Clock) -> Embedding | None:
    """A labelled shard's whole embedding and labels, for rules that look at each labelled point."""
    blocks = [replace(block, ids=None).to("cpu") for block in rows]
    return concatenated(blocks) if blocks else None
