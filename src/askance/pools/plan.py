"""How a rule is answered from a stream: in one pass, from a shortlist, or from a cache on disk."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import torch

from askance.embedding import Embedding
from askance.embedding.guard import full_precision
from askance.errors import InputError, StoreError
from askance.gradients.last_layer import LossName
from askance.pools.cache import Embedder, EmbeddingCache, ids_at
from askance.pools.engine import Holder
from askance.pools.leaders import Leaders
from askance.pools.passes import Passage
from askance.pools.resume import listing
from askance.pools.scorer import Reader, ShardScorer, embedded_parts
from askance.pools.source import Parts, Source, rows_in
from askance.seeding import Draws
from askance.selection.checks import check_picks
from askance.strategies import Badge, Batch, GradNorm, GradSpread, KCenter, Pointwise, Strategy

CACHE_LIMIT = 8 << 30


@dataclass(frozen=True, eq=False)
class Plan:
    """What is asked, and the way to its answer.

    Args:
        rule: what picks.
        n: how many rows.
        reader: the pool.
        excluded: identifiers not to be picked.
        draws: the randomness.
        base: the pointwise rule that streams: the rule itself, or what makes a shortlist; None for a
            cache of the whole pool.
        kept: how many rows the stream keeps.
        cache_limit: the most bytes a cache may take.
    """

    rule: Strategy
    n: int
    reader: Reader
    excluded: frozenset[str]
    draws: Draws
    base: Pointwise | None
    kept: int
    cache_limit: int

    @classmethod
    def of(
        cls,
        rule: Strategy,
        n: int,
        reader: Reader,
        excluded: frozenset[str],
        draws: Draws,
        shortlist: int | None,
        cache_limit: int,
    ) -> Plan:
        if shortlist is not None and shortlist < n:
            raise InputError(f"a shortlist must hold at least the n = {n} picks, got {shortlist}")
        base, kept = _base(rule, n, shortlist)
        embedded_parts(rule)  # refuses rules that need the model itself
        plan = cls(rule, n, reader, excluded, draws, base, kept, cache_limit)
        if base is None:
            plan.check_cache()
        return plan

    def run(self, passage: Passage, reference: Any, resume: Path | None) -> tuple[Leaders, str]:
        """(the picked rows, in words what a batch rule picked from)."""
        if self.base is None and isinstance(passage.engine, Holder) and self.shardable:
            return self._held(passage, passage.engine, reference)
        if self.base is None:
            return self._cached(passage, reference, resume)
        scorer = ShardScorer(
            self.reader, self.base, reference, self.kept, self.draws, self.excluded,
            hash_ids=passage.seen is not None,
        )  # fmt: skip
        best = passage.stream(scorer)
        if isinstance(self.rule, Pointwise):
            return best, ""
        short = best.at(np.argsort(best.positions))
        if len(short) < self.n:
            return short, ""
        rows, scores = self._picked(short.block, reference)
        return replace(short.at(rows), scores=scores), self.told()

    def _picked(self, block: Embedding, reference: Any) -> tuple[Any, Any]:
        assert isinstance(self.rule, Batch)
        with full_precision(None), torch.no_grad():
            picks = self.rule.pick(block, self.n, reference, self.draws)
        check_picks(self.rule, picks, self.n, len(block))
        return picks.rows, picks.scores

    def _cached(self, passage: Passage, reference: Any, resume: Path | None) -> tuple[Leaders, str]:
        source = self.reader.source
        count = rows_in(source.shards)
        assert count is not None
        embedder = Embedder(self.reader, self.parts, self.excluded, passage.seen is not None)
        with self._cache(passage, resume, count) as cache:
            read = passage.fill(embedder, cache)
            how = self.told(cache.size)
            block = cache.block(read.positions)
            if len(block) < self.n:
                return read.at(np.empty(0, dtype=np.int64)), ""
            rows, scores = self._picked(block, reference)
            positions = np.asarray(block.positions)[rows]
            own: dict[str, Any] = {name: matrix[rows] for name, matrix in block.matrices.items()}
        ids = ids_at(source, positions)
        return replace(read, scores=scores, positions=positions, ids=ids, **own), how

    def _held(self, passage: Passage, engine: Holder, reference: Any) -> tuple[Leaders, str]:
        """The pool stays with the workers that read it; nothing of it can be resumed."""
        with engine.holding() as held:
            embedder = Embedder(self.reader, self.parts, self.excluded, passage.seen is not None)
            read = replace(passage, engine=held, ledger=None).fill(embedder, held)
            if (rows_in(self.reader.source.shards) or 0) - len(read.positions) < self.n:
                return read.at(np.empty(0, dtype=np.int64)), ""
            picks, block = held.pick(self.rule, self.n, reference, self.draws, read.positions)
        ids = ids_at(self.reader.source, picks.rows)
        how = f"from the embedding of all {read.rows:,} rows, held by the workers of {held.name}"
        own: dict[str, Any] = dict(block.matrices)
        return replace(read, scores=picks.scores, positions=picks.rows, ids=ids, **own), how

    @property
    def shardable(self) -> bool:
        """Whether the rule picks the same from a pool in parts."""
        return isinstance(self.rule, Badge | KCenter)

    @contextmanager
    def _cache(self, passage: Passage, resume: Path | None, count: int) -> Iterator[EmbeddingCache]:
        """A cache beside the file of what is done, or one that goes with this process."""
        if resume is None:
            with tempfile.TemporaryDirectory(prefix="askance-") as own:
                yield EmbeddingCache(Path(own), count, self.cache_limit)
            return
        assert passage.ledger is not None
        folder = resume.with_name(f"{resume.name}.cache")
        cache = EmbeddingCache(folder, count, self.cache_limit)
        if passage.ledger.done and not cache.size:
            raise StoreError(
                f"{folder}: the embeddings of what is done are gone; begin anew with --restart"
            )
        if not passage.ledger.done:  # of a pass that was given up
            cache.remove()
            cache = EmbeddingCache(folder, count, self.cache_limit)
        yield cache
        cache.remove()

    @property
    def parts(self) -> Parts:
        """What a cache holds: what the rule looks at, and logits where there are any, to explain."""
        there: Parts = self.reader.source.holds | (
            {"logits"} if self.reader.recipe else frozenset()
        )
        return embedded_parts(self.rule) | (there & {"logits"})

    def check_cache(self) -> None:
        """Refuse a cache that cannot be; how large it is shows with the first row."""
        count = rows_in(self.reader.source.shards)
        if count is None:
            raise InputError(
                f"{self.rule.name} looks at the whole pool, and how long this one is only reading "
                f"tells; give a shortlist for it to pick from"
            )

    def told(self, size: int = 0) -> str:
        """What a batch rule picks from, in words."""
        if self.base is None:
            count = rows_in(self.reader.source.shards)
            return (
                f"from the embedding of all {count:,} rows, cached on disk in float32 "
                f"({size / 2**20:,.1f} MiB)"
            )
        if isinstance(self.rule, GradSpread) and self.kept == self.rule.shortlist * self.n:
            return f"from the {self.kept:,} rows of largest s(x), which are all the rule looks at"
        return f"from a shortlist, the {self.kept:,} best rows by {self.base.name}"


def _base(rule: Strategy, n: int, shortlist: int | None) -> tuple[Pointwise | None, int]:
    """The rule that streams, and how many rows it keeps."""
    if isinstance(rule, Pointwise):
        if shortlist is not None:
            raise InputError(f"{rule.name} scores every row by itself and needs no shortlist")
        return rule, n
    if isinstance(rule, GradSpread):
        return rule.grad, max(shortlist or 0, rule.shortlist * n)
    if shortlist is None:
        return None, n
    bias: bool = getattr(rule, "bias", True)
    loss: LossName = getattr(rule, "loss", "cross-entropy")
    return GradNorm(bias=bias, loss=loss), shortlist


def question(plan: Plan, labeled: Source | None, *, hashed: bool) -> dict[str, Any]:
    """Everything an answer depends on, for the file of what is done."""
    reader = plan.reader
    names = blake2b("\n".join(sorted(plan.excluded)).encode(), digest_size=16).hexdigest()
    return {
        "strategy": repr(plan.rule),
        "n": plan.n,
        "seed": [plan.draws.seed, plan.draws.round],
        "kept": [None if plan.base is None else repr(plan.base), plan.kept],
        "model": None if reader.recipe is None else reader.recipe.digest(),
        "head": reader.head,
        "device": reader.device,
        "batch size": reader.batch_size,
        "on error": reader.on_error,
        "excluded": names,
        "identifiers compared": hashed,
        "reading": _told(reader.source),
        "pool": listing(reader.source),
        "labelled set": None if labeled is None else listing(labeled),
        "labelled reading": None if labeled is None else _told(labeled),
    }


def _told(source: Source) -> dict[str, str]:
    """How a source reads its rows."""
    own: Any = source
    names = [field.name for field in fields(own)] if is_dataclass(own) else []
    held = {name: getattr(source, name) for name in names if name != "shards"}
    told = {
        name: _named(value) if callable(value) and not is_dataclass(value) else repr(value)
        for name, value in held.items()
        if name != "dataset"  # of which nothing is known but its class
    }
    return {"kind": type(source).__qualname__, **told}


def _named(function: Any) -> str:
    return getattr(function, "__qualname__", type(function).__qualname__)
