"""The labelled set of a streamed question: a parallel sum where the rule needs no more than that.

For `grad` and its kin n·ḡ_L = Σ a ⊗ [h; 1] over the labelled points, so each labelled shard gives one
(C, D + 1) matrix and a count, and the labelled set may be as large as the pool. Matrices are added in
the order of the shards, in float64, so that the sum does not depend on who was done first.
"""

from __future__ import annotations

from typing import Any

import torch

from askance.embedding import check_finite
from askance.embedding.sources import as_labels
from askance.errors import LabelError
from askance.gradients.discrepancy import LastLayerReference
from askance.pools.engine import Engine
from askance.pools.scorer import Gatherer, GradientSummer, Reader, joined
from askance.seeding import Draws
from askance.strategies import Grad, Labeled, Strategy


def reference_of(rule: Strategy, labeled: Reader | None, engine: Engine, draws: Draws) -> Any:
    """What the labelled set boils down to for this rule."""
    if "labeled" not in rule.needs:
        return rule.prepare(None, None)
    if labeled is None:
        raise LabelError(
            f"{rule.name} compares the pool with the labelled set, and there is none; give one, or use "
            f"a rule that needs no labels, such as 'entropy'"
        )
    source = labeled.source
    if "labels" not in source.holds:
        raise LabelError(
            f"{source.address}: a labelled set needs labels; name their column or file"
        )
    grad = summed_by(rule)
    if grad is not None:
        assert not callable(grad.loss)
        return _summed(GradientSummer(labeled, grad.bias, grad.loss), engine)
    return rule.prepare(_gathered(rule, labeled, engine, draws), None)


def summed_by(rule: Strategy) -> Grad | None:
    """The `grad` whose reference is a plain sum over the labelled points, where there is one."""
    grad = rule if isinstance(rule, Grad) else getattr(rule, "grad", None)
    if not isinstance(grad, Grad) or callable(grad.loss):
        return None
    return grad if grad.parameters == "last" and grad.reference_size is None else None


def _summed(job: GradientSummer, engine: Engine) -> LastLayerReference:
    done = {shard.index: sums for shard, sums in engine.map(job, job.reader.source.shards)}
    parts = [sums for _, sums in sorted(done.items()) if sums is not None]
    if not parts:
        raise LabelError(f"{job.reader.source.address}: the labelled set is empty")
    total = torch.zeros_like(parts[0].total)
    for part in parts:
        total += part.total
    count = sum(part.count for part in parts)
    return LastLayerReference(total / count, count, job.bias, job.loss)


def _gathered(rule: Strategy, labeled: Reader, engine: Engine, draws: Draws) -> Labeled:
    done = {
        shard.index: part for shard, part in engine.map(Gatherer(labeled), labeled.source.shards)
    }
    parts = [part for _, part in sorted(done.items()) if part is not None]
    if not parts:
        raise LabelError(f"{labeled.source.address}: the labelled set is empty")
    whole = joined(parts)
    for name, matrix in whole.block.matrices.items():
        check_finite(name, matrix, whole.block.positions, of="labelled")
    labels = as_labels(whole.labels, whole.count)
    rows = rule.reference_points(whole.count, draws)
    if rows is None:
        return Labeled(whole.block, labels, whole.count)
    index = torch.from_numpy(rows)
    return Labeled(whole.block[rows].renumbered(), labels[index], whole.count)
