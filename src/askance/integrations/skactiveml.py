"""scikit-activeml's rules as strategies of askance: `skactiveml:NAME`.

    >>> import askance, torch
    >>> X, y = torch.randn(12, 4), torch.randint(3, (12,))
    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    >>> from askance.integrations.skactiveml import rule
    >>> falcun = rule("Falcun", gamma=5)
    >>> len(askance.select(model, (X, y), torch.randn(50, 4), 5, strategy=falcun).indices)
    5

Such a rule gets the head's inputs (features) as its samples, labelled ones first, in float64. As its
classifier it gets the network's own head, which can predict for any samples that these determine. The
head cannot be fitted. So a rule that trains its model again for every candidate is refused, and so is
one that needs several models, a regressor or class frequencies.
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

# Arguments that this module supplies, so they are not options of a rule.
_GIVEN_TO_INIT = frozenset({"missing_label", "random_state", "classes"})
_GIVEN_TO_QUERY = frozenset({"X", "y", "clf", "estimator"})
_FIXED = "a network's head cannot be retrained here"
# Rules that draw only to break ties.
_DETERMINISTIC = frozenset(
    {"CoreSet", "GreedySamplingX", "MaxHerding", "Quire", "UncertaintySampling", "ContrastiveAL"}
)


class _Rule(Batch):
    """Base of the generated classes, whose fields are the options of one rule."""

    kind: ClassVar[type]
    arguments: Any

    def __hash__(self) -> int:
        return hash(self.name)  # options may be unhashable

    @property
    def random(self) -> bool:
        return self.kind.__name__ not in _DETERMINISTIC

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

    # A library that is asked for n rows at once cannot be told of limits, so `select` refuses them.
    def pick(  # type: ignore[override]
        self, pool: Embedding, n: int, reference: Labeled, draws: Draws
    ) -> Picks:
        labeled = reference.block
        X = np.concatenate([_numbers(features_of(labeled)), _numbers(features_of(pool))])
        logits = np.concatenate([_numbers(logits_of(labeled)), _numbers(logits_of(pool))])
        y = np.full(len(X), np.nan)
        y[: len(labeled)] = reference.labels.cpu().numpy()
        seed = int(draws.generator(self.name).integers(2**31 - 1))
        query_strategy = self._query_strategy(logits.shape[1], seed)
        arguments = self._query_arguments(query_strategy, X, logits)
        try:
            with preserved_rng():
                reseed(seed)  # some of their clusterings draw from the global generators
                rows, utilities = query_strategy.query(
                    X, y, **arguments, batch_size=n, return_utilities=True
                )
        except (TypeError, NotImplementedError, AttributeError) as error:
            raise InputError(
                f"{self.name} cannot be asked with a network's features and probabilities: {error}"
            ) from error
        rows = np.asarray(rows, dtype=np.int64)
        scores = np.asarray(utilities, dtype=np.float64)[np.arange(len(rows)), rows]
        return Picks(rows - len(labeled), scores)

    def _query_strategy(self, classes: int, seed: int) -> Any:
        """An instance of scikit-activeml's class."""
        options = {name: getattr(self, name) for name in options_of(self)}
        del options["arguments"]
        if "classes" in inspect.signature(self.kind).parameters:
            options["classes"] = list(range(classes))
        return self.kind(**options, missing_label=np.nan, random_state=seed)

    def _query_arguments(self, query_strategy: Any, X: Array, logits: Array) -> dict[str, Any]:
        """The arguments of `query` beside X (M, D) and y."""
        arguments = dict(self.arguments)
        if getattr(query_strategy, "query_strategy", self) is None:
            kind = self.kind.__name__
            raise InputError(
                f"{self.name} wraps another rule; pass it in Python: rule({kind}(Badge()))"
            )
        parameters = _query_parameters(query_strategy)
        if "ignore_partial_fit" in parameters:
            raise InputError(f"{self.name} retrains its model for every candidate, and {_FIXED}")
        for name in ("clf", "estimator"):
            if name in parameters and name not in arguments:
                arguments[name] = _HeadClassifier(X, logits)
                arguments |= {f"fit_{name}": False} if f"fit_{name}" in parameters else {}
        required = {
            k for k, v in parameters.items() if v.default is v.empty and v.kind != v.VAR_KEYWORD
        }
        missing = sorted(required - _GIVEN_TO_QUERY - set(arguments))
        if missing:
            raise InputError(
                f"{self.name} must be given {', '.join(missing)}, which one network is not; pass it in "
                f"Python: askance.integrations.skactiveml.rule(NAME, arguments={{{missing[0]!r}: …}})"
            )
        return arguments


class _HeadClassifier(SkactivemlClassifier):  # type: ignore[misc]
    """A network's head as a classifier: it knows the logits of M samples and extends them linearly.

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
        stored = [row for row in rows if row is not None]
        logits = self.logits[stored] if len(stored) == len(rows) else self._extended(X)
        return softmax(logits, axis=1)

    def predict(self, X: Array) -> Array:
        return self.predict_proba(X).argmax(axis=1)

    def _extended(self, X: Array) -> Array:
        """Logits of other inputs (entries dropped, …), which follow since the head is linear."""
        stored, new = (np.concatenate([x, np.ones((len(x), 1))], axis=1) for x in (self.X, X))
        _, sizes, directions = np.linalg.svd(stored, full_matrices=False)
        directions = directions[sizes > 1e-6 * sizes[0]]
        outside = np.linalg.norm(new - new @ directions.T @ directions, axis=1)
        if (outside > 1e-4 * (1 + np.linalg.norm(new, axis=1))).any():
            raise KindError("it asks about samples of which pool and labelled set tell nothing")
        coordinates = stored @ directions.T
        weights = np.linalg.lstsq(coordinates, self.logits, rcond=None)[0]
        return new @ directions.T @ weights


def rule(name: str | Any, *, arguments: Mapping[str, Any] | None = None, **options: Any) -> Batch:
    """A rule of scikit-activeml as a strategy of askance.

    Args:
        name: the name of a class in `skactiveml.pool`, or an instance, whose options are used.
        arguments: arguments of its `query` beside X, y and clf, e.g. `{"ensemble": […]}`.
        options: arguments of its class.
    """
    if isinstance(name, SingleAnnotatorPoolQueryStrategy):
        parameters = name.get_params(deep=False)
        options = {k: v for k, v in parameters.items() if k not in _GIVEN_TO_INIT} | options
        kind = _generated(type(name))  # type: ignore[arg-type]
    else:
        kind = strategy_class(name)
    names_of_options = [name for name in options_of(kind) if name != "arguments"]
    for option in options:
        if option not in names_of_options:
            raise UnknownError.of(f"option of {kind.name}", option, names_of_options)
    return kind(**options, arguments=tuple((arguments or {}).items()))  # type: ignore[call-arg]


def strategy_class(name: str) -> type[Batch]:
    """The class of `skactiveml:NAME`: a frozen dataclass of the rule's own options."""
    if name not in names():
        raise UnknownError.of("rule of scikit-activeml", name, names())
    return _generated(getattr(library, name))


def names() -> list[str]:
    """Every rule of scikit-activeml for one annotator, whether or not it works here."""
    members = (getattr(library, name) for name in library.__all__)
    return sorted(
        kind.__name__
        for kind in members
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
        options.append((name, Any, field(default_factory=_constant(parameter.default))))
    options.append(("arguments", Any, field(default=())))
    name = f"skactiveml:{kind.__name__}"
    space = {"name": name, "kind": kind, "__doc__": kind.__doc__, "__hash__": _Rule.__hash__}
    return make_dataclass(kind.__name__, options, bases=(_Rule,), namespace=space, frozen=True)


def _constant(value: Any) -> Callable[[], Any]:
    return lambda: value


def _query_parameters(query_strategy: Any) -> Mapping[str, inspect.Parameter]:
    """The parameters of its `query`, and of the strategy that it wraps."""
    wrapped = getattr(query_strategy, "query_strategy", None)
    parameters = inspect.signature(query_strategy.query).parameters
    return parameters if wrapped is None else {**parameters, **_query_parameters(wrapped)}


def _numbers(matrix: torch.Tensor) -> Array:
    return matrix.double().cpu().numpy()
