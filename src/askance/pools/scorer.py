"""What is done to one shard: score its rows, or add up its gradients, or write down its embedding.

Every job is a frozen, picklable record with one method, `opened()`, which builds the model once and
gives a function from a shard to its result. An engine needs to know no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from askance.embedding import Embedding, Evaluation, LogitsCheck, check_finite
from askance.embedding.guard import full_precision
from askance.errors import AskanceError, InputError, ShardError
from askance.gradients.discrepancy import LastLayerReference
from askance.gradients.last_layer import (
    LossName,
    check_labels,
    gradient_matrix,
    residuals,
)
from askance.pools.ids import Rows
from askance.pools.leaders import Front, Leaders, Skipped, nobody
from askance.pools.recipe import Recipe
from askance.pools.source import Parts, PoolBlock, Shard, Source
from askance.seeding import Draws
from askance.selection.checks import check_scores
from askance.selection.inputs import checked
from askance.strategies import Labeled, Pointwise, Strategy

OnError = Literal["raise", "skip"]

# Rows of a block whose embedding is stored: calls are cheap, and it is some 9 MB at 128 features, near
# what a CPU's cache holds.
STORED_ROWS = 1 << 14
FORWARD_ROWS = 256


@dataclass(frozen=True, eq=False)
class Reader:
    """A source's rows as embeddings: stored ones, or the model's.

    Args:
        source: where the rows are.
        recipe: how to come by the model; None where the embedding is stored.
        head: the model's last linear layer; found when None.
        device: where to compute; the CPU, or the model's own, when None.
        batch_size: rows of a block; of a forward pass, where there is a model.
        on_error: whether a row that cannot be read is an error, or skipped.
    """

    source: Source
    recipe: Recipe | None = None
    head: str | None = None
    device: str | None = None
    batch_size: int | None = None
    on_error: OnError = "raise"

    @contextmanager
    def opened(
        self, needs: Parts
    ) -> Iterator[Callable[[Shard], Iterator[tuple[PoolBlock, Embedding]]]]:
        """A function that reads a shard; `needs` are the parts a rule looks at."""
        with ExitStack() as stack:
            model = None
            embedded = needs & {"logits", "features"}
            if self.recipe is not None and embedded:
                model = stack.enter_context(Evaluation(self.recipe.build(), self.head, self.device))
            wanted: Parts = needs & {"labels"} | (embedded if model is None else {"inputs"})
            missing = wanted - self.source.holds
            if missing:
                raise InputError(_lacking(self.source, missing, model is not None))
            size = self.batch_size or (STORED_ROWS if model is None else FORWARD_ROWS)
            yield lambda shard: self._blocks(shard, size, wanted, model)

    def _blocks(
        self, shard: Shard, size: int, wanted: Parts, model: Evaluation | None
    ) -> Iterator[tuple[PoolBlock, Embedding]]:
        stored = LogitsCheck(shard.name)
        for rows in self.source.read(shard, size, wanted):
            if rows.bad and self.on_error == "raise":
                raise ShardError(
                    f"{rows.bad[0]}; correct or remove it, or skip what cannot be read"
                )
            if not len(rows):
                yield rows, Embedding(positions=rows.positions)
            elif model is not None:
                logits, features = _answer(model, rows.inputs, shard)
                if len(logits) != len(rows):
                    raise InputError(
                        f"{shard.name}: the model gave {len(logits)} rows of logits for {len(rows)} "
                        f"points; it must give one for each"
                    )
                yield rows, Embedding(logits, features, rows.positions)
            else:
                stored.see(rows.logits)
                logits, features = _on(rows.logits, self.device), _on(rows.features, self.device)
                yield rows, Embedding(logits, features, rows.positions)
        stored.end()


def _answer(model: Evaluation, inputs: Any, shard: Shard) -> tuple[torch.Tensor, torch.Tensor]:
    try:
        return model(model.prepare(inputs))
    except AskanceError:
        raise
    except Exception as error:
        told = "; ".join([str(error).strip(), *getattr(error, "__notes__", ())])
        raise InputError(
            f"{shard.name}: the model cannot take these rows ({type(error).__name__}: {told}); are "
            f"the columns, the transform and the image size those it was trained with?"
        ) from error


def _on(matrix: Any, device: str | None) -> Any:
    return matrix if matrix is None or device is None else matrix.to(device)


def _lacking(source: Source, missing: Parts, model: bool) -> str:
    what = " and ".join(sorted(missing))
    has = ", ".join(sorted(source.holds)) or "nothing but identifiers"
    hint = "" if model else "; name the column that holds them, or give a model that makes them"
    return f"{source.address}: its rows have no {what}, they have {has}{hint}"


@dataclass(frozen=True, eq=False)
class ShardScorer:
    """The n best rows of a shard by a pointwise rule.

    Args:
        reader: the pool.
        rule: what scores.
        reference: what `rule.prepare` made of the labelled set.
        n: how many rows at most.
        draws: the randomness; per-row draws are keyed by global position.
        excluded: identifiers that are not to be picked.
        barred: global positions that are not to be picked, ascending.
        hash_ids: whether to give 64 bits of every identifier back.
    """

    reader: Reader
    rule: Pointwise
    reference: Any
    n: int
    draws: Draws = field(default_factory=Draws)
    excluded: frozenset[str] = frozenset()
    barred: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    hash_ids: bool = False

    @contextmanager
    def opened(self) -> Iterator[Callable[[Shard], Leaders]]:
        with self.reader.opened(embedded_parts(self.rule)) as read:
            yield lambda shard: self._leaders(shard, read)

    def _leaders(self, shard: Shard, read: Any) -> Leaders:
        front, rows, excluded = Front(self.n), 0, 0
        bad: list[Skipped] = []
        hashes = [np.empty(0, dtype=np.uint64)]
        try:
            for given, block in read(shard):
                bad += [Skipped(what, 1, False) for what in given.bad]
                rows += len(given)
                if self.hash_ids:
                    hashes.append(given.ids.hashes())
                if len(given):
                    free = self._free(given)
                    excluded += 0 if free is None else len(given) - len(free)
                    front.push(block, self._scores(block), given.ids, free)
        except ShardError as error:
            if self.reader.on_error == "raise":
                raise
            return nobody((Skipped(str(error), shard.rows, True),))
        best = front.best()
        return Leaders(
            best.scores, best.positions, best.ids, best.logits, best.features,
            rows=rows, excluded=excluded, skipped=tuple(bad),
            hashes=np.concatenate(hashes) if self.hash_ids else None,
        )  # fmt: skip

    def _scores(self, block: Embedding) -> torch.Tensor:
        check_width(block, self.reference)
        (block,) = checked(iter([block]), self.rule, None)
        device = None if block.logits is None else block.logits.device
        with full_precision(device), torch.no_grad():
            scores = self.rule.score(block, self.reference, self.draws)
        check_scores(self.rule, scores, block)
        return scores

    def _free(self, rows: PoolBlock) -> Rows | None:
        """The block's rows that may be picked; None for all of them."""
        taken = rows.ids.find(self.excluded) if self.excluded else np.empty(0, dtype=np.int64)
        if len(self.barred):
            positions = np.asarray(rows.positions, dtype=np.int64)
            taken = np.union1d(taken, np.flatnonzero(np.isin(positions, self.barred)))
        return np.setdiff1d(np.arange(len(rows)), taken) if len(taken) else None


def embedded_parts(rule: Strategy) -> Parts:
    """What a rule looks at of a pool's rows."""
    if "inputs" in rule.needs:
        raise InputError(
            f"{rule.name} with these options differentiates the model itself; a pool that is read in "
            f"shards is scored by its head alone: leave parameters='last', or use askance.select"
        )
    parts: Parts = frozenset({"logits", "features"})
    return frozenset(part for part in parts if part in rule.needs)


def check_width(block: Embedding, reference: Any) -> None:
    """Raise unless pool and labelled set come from heads of one shape."""
    if (
        not isinstance(reference, LastLayerReference)
        or block.logits is None
        or block.features is None
    ):
        return
    own = block.logits.shape[1], block.features.shape[1]
    theirs = reference.mean.shape[0], reference.mean.shape[1] - int(reference.bias)
    if own != theirs:
        raise InputError(
            f"pool and labelled set must have the same numbers of logits and features, got {own} and "
            f"{theirs}: are both from the same model?"
        )


@dataclass(frozen=True, eq=False)
class Sums:
    """Σ a ⊗ [h; 1] over a labelled shard in float64, and over how many points."""

    total: torch.Tensor
    count: int


@dataclass(frozen=True, eq=False)
class GradientSummer:
    """The labelled reference as a sum of sums: one labelled shard's share of n·ḡ_L."""

    reader: Reader
    bias: bool
    loss: LossName

    @contextmanager
    def opened(self) -> Iterator[Callable[[Shard], Sums | None]]:
        with self.reader.opened(frozenset({"logits", "features", "labels"})) as read:
            yield lambda shard: self._sums(shard, read)

    def _sums(self, shard: Shard, read: Any) -> Sums | None:
        total, count = None, 0
        for given, block in read(shard):
            if not len(given):
                continue
            for name in ("logits", "features"):
                check_finite(name, getattr(block, name), block.positions, of="labelled")
            labels = given.labels.to(block.logits.device)
            check_labels(labels, block.logits, self.loss)
            a_BC = residuals(block.logits.double(), labels, self.loss)
            part = gradient_matrix(a_BC, block.features, self.bias).cpu()
            total = part if total is None else total + part
            count += len(given)
        return None if total is None else Sums(total, count)


@dataclass(frozen=True, eq=False)
class Gatherer:
    """A labelled shard's whole embedding and labels, for rules that look at each labelled point."""

    reader: Reader

    @contextmanager
    def opened(self) -> Iterator[Callable[[Shard], Labeled | None]]:
        parts: Parts = frozenset({"logits", "features", "labels"})
        if self.reader.recipe is None:
            parts &= self.reader.source.holds
        with self.reader.opened(parts) as read:
            yield lambda shard: self._gathered(shard, read)

    def _gathered(self, shard: Shard, read: Any) -> Labeled | None:
        blocks, labels = [], []
        for given, block in read(shard):
            if len(given):
                blocks.append(block)
                labels.append(given.labels)
        if not blocks:
            return None
        return joined([Labeled(b, y, len(b)) for b, y in zip(blocks, labels, strict=True)])


def joined(parts: list[Labeled]) -> Labeled:
    """Labelled points one after the other, as one set."""
    fields: dict[str, Any] = {}
    for name in ("logits", "features"):
        held = [getattr(part.block, name) for part in parts]
        fields[name] = None if held[0] is None else torch.cat([matrix.cpu() for matrix in held])
    count = sum(part.count for part in parts)
    labels = torch.cat([part.labels.cpu() for part in parts])
    return Labeled(Embedding(**fields), labels, count)
