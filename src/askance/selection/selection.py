"""`Selection`: what was picked, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from askance.embedding import Embedding, positions_array, texts
from askance.embedding.guard import full_precision
from askance.errors import KindError, UnknownError
from askance.gradients.discrepancy import Reference, ScoreTerms
from askance.gradients.last_layer import LossName, pseudo_labels, pseudo_residuals, sq_norms
from askance.picking import TopRows
from askance.strategies import Strategy

_SHOWN = 8
_COLUMNS = ["id", "position", "rank", "score", "pseudo_label", "confidence", "reason"]


@dataclass(frozen=True)
class Explanation:
    """Why one point was picked. What a rule gives no ground for is None.

    With g the point's pseudo-labelled gradient and ḡ the labelled set's mean gradient,
    ‖g − ḡ‖² = ‖g‖² + ‖ḡ‖² − 2⟨g, ḡ⟩; the three shares are these terms over their sum. A
    `gradient_share` near 1 says that the reference no longer matters: `grad` then ranks by ‖g‖.

    Args:
        index: position in the pool.
        score: the rule's own score.
        pseudo_label: what the model would answer: a class, by its name where that is known, or the
            classes that are on.
        confidence: the probability the model gives that answer.
        grad_norm: ‖g‖.
        reference_norm: ‖ḡ‖.
        alignment: cos of the angle between g and ḡ; None where either is zero.
        gradient_share: ‖g‖² / ‖g − ḡ‖².
        reference_share: ‖ḡ‖² / ‖g − ḡ‖².
        alignment_share: −2⟨g, ḡ⟩ / ‖g − ḡ‖²; negative where g points the way of ḡ.
        reason: the same in words, for somebody who labels.
    """

    index: int
    score: float
    pseudo_label: Any = None
    confidence: float | None = None
    grad_norm: float | None = None
    reference_norm: float | None = None
    alignment: float | None = None
    gradient_share: float | None = None
    reference_share: float | None = None
    alignment_share: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class Skipped:
    """Rows that were left out because they could not be read.

    Args:
        what: the shard, or the row of it, and what was wrong.
        rows: how many rows; None where a shard's rows could not even be counted.
        shard: whether it is a whole shard.
    """

    what: str
    rows: int | None
    shard: bool


@dataclass(frozen=True)
class ReadCounts:
    """What came of reading a pool, or a part of one.

    Args:
        rows: how many rows were read.
        excluded: how many of them were not to be picked.
        skipped: what could not be read.
        labeled: the positions of rows that equal labelled ones and are not excluded.
    """

    rows: int = 0
    excluded: int = 0
    skipped: tuple[Skipped, ...] = ()
    labeled: tuple[int, ...] = ()

    @classmethod
    def total(cls, parts: Iterable[ReadCounts]) -> ReadCounts:
        """Of several parts, whatever their order."""
        every = list(parts)
        skipped = {skip for part in every for skip in part.skipped}
        return cls(
            sum(part.rows for part in every),
            sum(part.excluded for part in every),
            tuple(sorted(skipped, key=lambda skip: skip.what)),
            tuple(sorted(row for part in every for row in part.labeled)),
        )


@dataclass(frozen=True, eq=False, repr=False)
class Selection:
    """The points to label next.

    Args:
        indices: int64, into the pool as it was passed, best first, unique.
        scores: float64, the rule's own score of each pick when it was picked.
        pool_scores: float64, every point's score (pointwise rules with `keep_scores=True`).
        timings: seconds in "labeled" (embedding the labelled set and its reference), "forward" (the
            pool), "score" and "select"; of all workers together, where shards are read in parallel.
        strategy: the rule that picked.
        chosen: in words, why that rule, where the caller named none.
        explainer: gives the explanations; see `explain`.
        ids: the picks' identifiers, where the pool has them.
        read: how many rows of the pool were read, excluded and skipped.
        how: in words, what a batch rule was given to pick from, where that is not the whole pool.
        notes: in words, what limits on the picks came to: what they cost, and what could not be met.
        already_labeled: int64, rows of the pool that are in the labelled set as well and are not
            excluded; to leave them out, exclude them.
        engine: who read the pool.
        seconds: from the question to the answer.
        classes: the names of the classes, where they are known, in the order of the model's outputs.
        items: the picked items themselves, where the pool can be indexed.
    """

    indices: NDArray[np.int64]
    scores: NDArray[np.float64]
    pool_scores: NDArray[np.float64] | None
    timings: dict[str, float]
    strategy: Strategy
    explainer: Callable[[], list[Explanation]] = field(repr=False)
    ids: tuple[str, ...] | None = None
    read: ReadCounts = ReadCounts()
    how: str = ""
    notes: tuple[str, ...] = ()
    already_labeled: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    engine: str = "local"
    seconds: float = 0.0
    classes: tuple[Any, ...] | None = None
    chosen: str = ""
    items: Any = None

    @classmethod
    def of(
        cls,
        rule: Strategy,
        top: TopRows,
        reference: Any,
        timings: dict[str, float],
        pool_scores: NDArray[np.float64] | None = None,
        classes: tuple[Any, ...] | None = None,
        **more: Any,
    ) -> Selection:
        """The selection of the rows a rule picked."""
        with full_precision(top.rows.device):
            explain = explainer(rule, top.rows, top.scores, reference, classes)
        indices = positions_array(top.rows.positions)
        ids = None if top.rows.ids is None else texts(top.rows.ids)
        return cls(
            indices, top.scores, pool_scores, timings, rule, explain, ids, classes=classes, **more
        )

    @classmethod
    def nothing(cls, rule: Strategy) -> Selection:
        """No picks at all, as after the last round."""
        return cls(np.empty(0, np.int64), np.empty(0), None, {}, rule, list)

    def __len__(self) -> int:
        return len(self.indices)

    def __iter__(self) -> Iterator[int]:
        """The positions of the picks, best first."""
        return iter(self.indices.tolist())

    def __repr__(self) -> str:
        some = self.indices[:_SHOWN].tolist() if self.ids is None else list(self.ids[:_SHOWN])
        more = ", …" if len(self) > _SHOWN else ""
        name, shown = self.strategy.name, ", ".join(map(str, some))
        return f"Selection({len(self)} picks by {name}: {shown}{more})"

    def _repr_html_(self) -> str:
        from askance.selection.shown import html_table  # which takes Pillow

        return html_table(self)

    def to_frame(self, library: Literal["pandas", "polars"] = "pandas") -> Any:
        """A frame of the picks, one row each, best first, with the columns of `rows`, flat.

        Args:
            library: whose frame; it has to be installed.
        """
        if library not in ("pandas", "polars"):
            raise UnknownError.of("library", library, ["pandas", "polars"])
        try:
            frames = import_module(library)
        except ImportError as error:
            raise KindError(f"{library} is not installed; install it, or use rows()") from error
        flat = [
            {key: value for key, value in row.items() if key != "why"} | row["why"]
            for row in self.rows()
        ]
        columns = list(flat[0]) if flat else _COLUMNS
        return frames.DataFrame({name: [row[name] for row in flat] for name in columns})

    def explain(self) -> list[Explanation]:
        """Why each point was picked, in the order of the picks."""
        return self.explainer()

    def rows(self) -> list[dict[str, Any]]:
        """One mapping a pick, best first: id, position, rank, score, pseudo_label, confidence, reason,
        why.
        """
        ids = [None] * len(self) if self.ids is None else self.ids
        return [
            {"id": name, "position": why.index, "rank": rank, **_columns(why)}
            for rank, (name, why) in enumerate(zip(ids, self.explain(), strict=True), start=1)
        ]


def _columns(why: Explanation) -> dict[str, Any]:
    shares = asdict(why)
    del shares["index"]
    plain = {key: shares.pop(key) for key in ("score", "pseudo_label", "confidence", "reason")}
    return {**plain, "why": shares}


def explainer(
    rule: Strategy,
    rows: Embedding,
    scores: NDArray[np.float64],
    reference: Any,
    classes: tuple[Any, ...] | None = None,
) -> Callable[[], list[Explanation]]:
    """A function that explains the picks; what needs the model itself is computed now."""
    ref = reference if isinstance(reference, Reference) else None
    early = ref.parts(rows) if ref is not None and "inputs" in rule.needs else None
    return partial(_explained, rule, rows, scores, ref, early, classes)  # which can be pickled


def _explained(
    rule: Strategy,
    rows: Embedding,
    scores: NDArray[np.float64],
    ref: Reference | None,
    parts: ScoreTerms | None,
    classes: tuple[Any, ...] | None,
) -> list[Explanation]:
    # Shares are terms over their own difference: near a copy they need the digits.
    exact = rows.mapped(torch.Tensor.double)
    if parts is None and ref is not None:
        parts = ref.parts(exact)
    columns = _answers(rule, exact, ref, classes) | _gradients(rule, exact, parts, ref)
    return [
        _in_words(
            Explanation(int(index), float(score), **{k: v[i] for k, v in columns.items()}), rule
        )
        for i, (index, score) in enumerate(zip(rows.positions, scores, strict=True))
    ]


def _in_words(why: Explanation, rule: Strategy) -> Explanation:
    reason = f"Picked by {rule.name}" + (f" because {rule.because}." if rule.because else ".")
    if why.confidence is not None:
        answer = why.pseudo_label
        if isinstance(answer, tuple):
            answer = " and ".join(map(str, answer)) or "none of the classes"
        reason += f" The model says {answer}, and is {why.confidence:.0%} sure."
    return replace(why, reason=reason)


def _answers(
    rule: Strategy, rows: Embedding, ref: Reference | None, classes: tuple[Any, ...] | None
) -> dict[str, list[Any]]:
    if rows.logits is None or _is_regression(rule, rows.logits):
        return {}
    logits = rows.logits
    named: Sequence[Any] = range(logits.shape[1]) if classes is None else classes
    labels = getattr(ref, "labels", None)  # of an objective, which may be of several labels a point
    if rule.multilabel or (labels is not None and labels.ndim == 2):
        on = [
            tuple(named[place] for place in row.nonzero().flatten().tolist())
            for row in pseudo_labels(logits, "multilabel")
        ]
        confidence = torch.sigmoid(logits.abs()).prod(dim=1)
        return {"pseudo_label": on, "confidence": confidence.tolist()}
    confidence = torch.softmax(logits, dim=1).amax(dim=1)
    answers = [named[place] for place in pseudo_labels(logits).tolist()]
    return {"pseudo_label": answers, "confidence": confidence.tolist()}


def _is_regression(rule: Strategy, logits: torch.Tensor) -> bool:
    """Whether a model's outputs are numbers to be predicted: by its rule, or since one is no class."""
    return getattr(rule, "loss", None) == "squared" or (
        logits.shape[1] == 1 and not rule.multilabel
    )


def _gradients(
    rule: Strategy, rows: Embedding, parts: ScoreTerms | None, ref: Reference | None
) -> dict[str, list[Any]]:
    if parts is None or ref is None or ref.norm is None:
        if rows.logits is None or rows.features is None or ref is not None:
            return {}
        loss: LossName = getattr(rule, "loss", "cross-entropy")
        if loss != "squared" and _is_regression(rule, rows.logits):
            return {}
        a = pseudo_residuals(rows.logits, loss)
        norms = sq_norms(a, rows.features, getattr(rule, "bias", True)).sqrt()
        return {"grad_norm": norms.tolist()}
    norms = parts.sq_norms.double().sqrt()
    inner, sq_dists = parts.inner.double(), parts.sq_dists.double()
    lengths = norms * ref.norm
    return {
        "grad_norm": norms.tolist(),
        "reference_norm": [ref.norm] * len(rows),
        "alignment": _ratio(inner.clamp(-lengths, lengths), lengths),
        "gradient_share": _ratio(norms.square(), sq_dists),
        "reference_share": _ratio(torch.full_like(norms, ref.norm**2), sq_dists),
        "alignment_share": _ratio(-2 * inner, sq_dists),
    }


def _ratio(top: torch.Tensor, bottom: torch.Tensor) -> list[float | None]:
    """top / bottom, None where the denominator is zero."""
    quotients = (top / bottom.where(bottom > 0, 1.0)).tolist()
    return [q if b > 0 else None for q, b in zip(quotients, bottom.tolist(), strict=True)]
