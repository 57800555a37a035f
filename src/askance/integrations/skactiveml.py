"""scikit-activeml's rules in askance's loop and benchmark: the strategy `skactiveml:NAME`.

    >>> import askance, torch
    >>> X, y = torch.randn(12, 4), torch.randint(3, (12,))
    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    >>> from askance.integrations.skactiveml import rule
    >>> falcun = rule("Falcun", gamma=5)
    >>> len(askance.select(model, (X, y), torch.randn(50, 4), 5, strategy=falcun).indices)
    5

What such a rule is given: for samples the head's inputs (features), labelled ones first, in float64;
for a classifier the network's own head, which answers about any samples that these determine. It
cannot be fitted, so a rule that retrains its model for every candidate is refused, and so is one that
wants several models, a regressor or class frequencies.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import field, make_dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import softmax

try:
    from skactiveml import pool as library
    from skactiveml.base import SingleAnnotatorPoolQueryStrategy, SkactivemlClassifier
except ImportError as error:
    from askance.errors import ExtraError

    raise ExtraError.of("scikit-activeml", "skactiveml") from error

from askance.embedding import Embedding, Evaluation
from askance.embedding.guard import preserved_rng, reseed
from askance.errors import InputError, KindError, UnknownError
from askance.picking import Picks
from askance.seeding import Draws
from askance.strategies import Batch, Labeled, options_of
from askance.strategies.base import Need, features_of, logits_of

Array = NDArray[Any]

# Given by the adapter, so no option of a rule.
_GIVEN_TO_INIT = frozenset({"missing_label", "random_state", "classes"})
_GIVEN_TO_QUERY = frozenset({"X", "y", "clf", "estimator"})
_FIXED = "a network's head cannot be retrained here"
# Rules whose picks no draw decides, but for ties.
_SETTLED = frozenset(
    {"CoreSet", "GreedySamplingX", "MaxHerding", "Quire", "UncertaintySampling", "ContrastiveAL"}
)


class _Rule(Batch):
    """What the generated classes have in common; their fields are the options of one rule."""

    kind: ClassVar[type]
    arguments: Any

    def __hash__(self) -> int:
        return hash(self.name)  # options may be unhashable, equal rules are equal still

    @property
    def random(self) -> bool:
        return self.kind.__name__ not in _SETTLED

    @property
    def needs(self) -> frozenset[Need]:
        return frozenset({"logits", "features", "labeled"})

    @property
    def multilabel(self) -> bool:
        return False

    def prepare(self, labeled: Labeled | None, model: Evaluation | None) -> Labeled:
        assert labeled is not None
        if labeled.block.logits is None or labeled.block.features is None:
            raise InputError(f"{self.name} needs the labelled set's logits and features")
        return labeled

    def pick(self, pool: Embedding, n: int, reference: Labeled, draws: Draws) -> Picks:
        seen = reference.block
        X = np.concatenate([_numbers(features_of(seen)), _numbers(features_of(pool))])
        logits = np.concatenate([_numbers(logits_of(seen)), _numbers(logits_of(pool))])
        y = np.full(len(X), np.nan)
        y[: len(seen)] = reference.labels.cpu().numpy()
        seed = int(draws.generator(self.name).integers(2**31 - 1))
        asked = self._built(logits.shape[1], seed)
        given = self._given(asked, X, logits)
        try:
            with preserved_rng():
                reseed(seed)  # some of their clusterings draw from the global generators
                rows, utilities = asked.query(X, y, **given, batch_size=n, return_utilities=True)
        except (TypeError, NotImplementedError, AttributeError) as error:
            raise InputError(
                f"{self.name} cannot be asked with a network's features and probabilities: {error}"
            ) from error
        rows = np.asarray(rows, dtype=np.int64)
        scores = np.asarray(utilities, dtype=np.float64)[np.arange(len(rows)), rows]
        return Picks(rows - len(seen), scores)

    def _built(self, classes: int, seed: int) -> Any:
        options = {name: getattr(self, name) for name in options_of(self)}
        del options["arguments"]
        if "classes" in inspect.signature(self.kind).parameters:
            options["classes"] = list(range(classes))
        return self.kind(**options, missing_label=np.nan, random_state=seed)

    def _given(self, asked: Any, X: Array, logits: Array) -> dict[str, Any]:
        """The query's arguments beside X and y."""
        given = dict(self.arguments)
        if getattr(asked, "query_strategy", self) is None:
            kind = self.kind.__name__
            raise InputError(
                f"{self.name} wraps another rule; pass it in Python: rule({kind}(Badge()))"
            )
        wanted = _query_parameters(asked)
        if "ignore_partial_fit" in wanted:
            raise InputError(f"{self.name} retrains its model for every candidate, and {_FIXED}")
        for name in ("clf", "estimator"):
            if name in wanted and name not in given:
                given[name] = _Known(X, logits)
                given |= {f"fit_{name}": False} if f"fit_{name}" in wanted else {}
        required = {
            k for k, v in wanted.items() if v.default is v.empty and v.kind != v.VAR_KEYWORD
        }
        missing = sorted(required - _GIVEN_TO_QUERY - set(given))
        if missing:
            raise InputError(
                f"{self.name} must be given {', '.join(missing)}, which one network is not; pass it in "
                f"Python: askance.integrations.skactiveml.rule(NAME, arguments={{{missing[0]!r}: …}})"
            )
        return given


class _Known(SkactivemlClassifier):  # type: ignore[misc]
    """A classifier that is a network's head: known samples have its answers, others follow from them.

    Args:
        X: (M, D) the head's inputs, in float64.
        logits: (M, C) its outputs.
    """

    def __init__(self, X: Array, logits: Array) -> None:
        super().__init__(classes=list(range(logits.shape[1])), missing_label=np.nan)
        self.X, self.logits = X, logits
        self.classes_ = np.arange(logits.shape[1])
        self.rows_ = {row.tobytes(): number for number, row in enumerate(X + 0.0)}  # −0 is 0

    def fit(self, X: Array, y: Array, sample_weight: Array | None = None) -> Any:
        raise KindError(f"it retrains its model, and {_FIXED}")

    def predict_proba(self, X: Array) -> Array:
        X = np.asarray(X, dtype=np.float64)
        rows = [self.rows_.get(row.tobytes()) for row in X + 0.0]
        known = [row for row in rows if row is not None]
        logits = self.logits[known] if len(known) == len(rows) else self._extended(X)
        return softmax(logits, axis=1)

    def predict(self, X: Array) -> Array:
        return self.predict_proba(X).argmax(axis=1)

    def _extended(self, X: Array) -> Array:
        """Outputs for other inputs (entries dropped, …): the head is linear, so known ones tell."""
        seen, asked = (np.concatenate([x, np.ones((len(x), 1))], axis=1) for x in (self.X, X))
        _, sizes, directions = np.linalg.svd(seen, full_matrices=False)
        directions = directions[sizes > 1e-6 * sizes[0]]
        outside = np.linalg.norm(asked - asked @ directions.T @ directions, axis=1)
        if (outside > 1e-4 * (1 + np.linalg.norm(asked, axis=1))).any():
            raise KindError("it asks about samples of which pool and labelled set tell nothing")
        coordinates = seen @ directions.T
        weights = np.linalg.lstsq(coordinates, self.logits, rcond=None)[0]
        return asked @ directions.T @ weights


def rule(name: str | Any, *, arguments: Mapping[str, Any] | None = None, **options: Any) -> Batch:
    """A scikit-activeml rule as one of ours.

    Args:
        name: of a class in `skactiveml.pool`, or a query strategy, whose options are then taken over.
        arguments: what its `query` needs beside X, y and clf, e.g. `{"ensemble": […]}`.
        options: what its class takes.
    """
    if isinstance(name, SingleAnnotatorPoolQueryStrategy):
        held = name.get_params(deep=False)
        options = {k: v for k, v in held.items() if k not in _GIVEN_TO_INIT} | options
        kind = _generated(type(name))  # type: ignore[arg-type]
    else:
        kind = strategy_class(name)
    known = [name for name in options_of(kind) if name != "arguments"]
    for option in options:
        if option not in known:
            raise UnknownError.of(f"option of {kind.name}", option, known)
    return kind(**options, arguments=tuple((arguments or {}).items()))  # type: ignore[call-arg]


def strategy_class(name: str) -> type[Batch]:
    """The class of `skactiveml:NAME`: a frozen dataclass of the rule's own options."""
    known = names()
    if name not in known:
        raise UnknownError.of("rule of scikit-activeml", name, known)
    return _generated(getattr(library, name))


def names() -> list[str]:
    """Every rule of scikit-activeml for one annotator, whether or not a network can serve it."""
    found = (getattr(library, name) for name in library.__all__)
    return sorted(
        kind.__name__
        for kind in found
        if inspect.isclass(kind) and issubclass(kind, SingleAnnotatorPoolQueryStrategy)
    )


@cache
def _generated(kind: type) -> type[Batch]:
    options: list[Any] = []
    for name, parameter in inspect.signature(kind).parameters.items():
        if name in _GIVEN_TO_INIT:
            continue
        if parameter.default is parameter.empty:
            raise InputError(f"skactiveml:{kind.__name__} cannot be made without {name!r}")
        options.append((name, Any, field(default_factory=_giving(parameter.default))))
    options.append(("arguments", Any, field(default=())))
    name = f"skactiveml:{kind.__name__}"
    space = {"name": name, "kind": kind, "__doc__": kind.__doc__, "__hash__": _Rule.__hash__}
    return make_dataclass(kind.__name__, options, bases=(_Rule,), namespace=space, frozen=True)


def _giving(value: Any) -> Callable[[], Any]:
    return lambda: value


def _query_parameters(asked: Any) -> Mapping[str, inspect.Parameter]:
    """Of the rule's query, or of the one inside it."""
    inner = getattr(asked, "query_strategy", None)
    own = inspect.signature(asked.query).parameters
    return own if inner is None else {**own, **_query_parameters(inner)}


def _numbers(matrix: torch.Tensor) -> Array:
    return matrix.double().cpu().numpy()
