"""The linear head of a fitted classifier, in closed form.

Of scikit-learn and skorch, and of what wraps them (pipelines, searches, scikit-activeml). With z the
head's outputs and h its inputs, an `Embedding` says all that a last-layer gradient needs:

- a linear model (`LogisticRegression`, …): h = x, z = W x + b;
- `MLPClassifier`: h the last hidden layer's activations;
- a skorch net: whatever its module's last `nn.Linear` is given, found by running it.

A model of two classes with one output z is the softmax of (0, z). Its gradients are then (−d, d) ⊗ h
for the single output's d ⊗ h: every score is √2 times the other's, and the picks are the same.

Whatever a classifier is, its probabilities must be the softmax of the outputs found; that is checked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.model_selection._search import BaseSearchCV
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted
from torch import nn

from askance.embedding import Embedding, embed
from askance.embedding.guard import evaluating, preserved_rng
from askance.embedding.sources import as_tensor
from askance.errors import KindError, LabelError

Array = NDArray[Any]

_ROWS_CHECKED = 32
_KINDS = (
    "a linear model with predict_proba, an MLPClassifier, a skorch net, or a Pipeline ending in one"
)

_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "identity": lambda x: x,
    "logistic": lambda x: 0.5 * (1.0 + np.tanh(0.5 * x)),
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0.0),
}


@dataclass(frozen=True, eq=False)
class Head:
    """A fitted classifier as askance sees it.

    Args:
        outputs: X to (z, h).
        probabilities: X to the classifier's own class probabilities.
        classes: the label of each output; None where labels are the outputs' numbers.
    """

    outputs: Callable[[Array], Embedding]
    probabilities: Callable[[Array], Array]
    classes: Array | None

    def embed(self, X: Array) -> Embedding:
        """The embedding of X, of two outputs at least, seen to be what the classifier goes by."""
        found = self.outputs(X)
        assert found.logits is not None
        if found.classes == 1:
            zeros = torch.zeros_like(found.logits)
            found = Embedding(torch.cat([zeros, found.logits], dim=1), found.features)
        self._check(X, found)
        return found

    def labels(self, y: Array) -> NDArray[np.int64]:
        """The output of each label."""
        if self.classes is None:
            whole = np.asarray(y).astype(np.int64)
            if (whole != np.asarray(y)).any():
                raise LabelError(
                    "a skorch net's labels must be the numbers of its outputs, 0 to C − 1"
                )
            return whole
        place = {label: number for number, label in enumerate(self.classes.tolist())}
        unknown = [label for label in np.unique(y).tolist() if label not in place]
        if unknown:
            raise LabelError(
                f"the classifier knows the classes {list(place)}, y also has {unknown}; fit it on y, "
                f"or let fit_clf=True do so"
            )
        return np.array([place[label] for label in np.asarray(y).tolist()], dtype=np.int64)

    def _check(self, X: Array, found: Embedding) -> None:
        assert found.logits is not None
        ours = torch.softmax(found.logits[:_ROWS_CHECKED].double(), dim=1).cpu().numpy()
        theirs = np.asarray(self.probabilities(X[:_ROWS_CHECKED]))
        if theirs.shape != ours.shape or not np.allclose(theirs, ours, rtol=1e-3, atol=1e-4):
            raise KindError(
                "the classifier's probabilities must be the softmax of its last linear layer's "
                "outputs, and they are not: one model a class (one-vs-rest), calibration, or a net "
                "whose criterion and outputs do not go together are the usual causes"
            )


def head_of(clf: Any, head: str | None = None) -> Head:
    """The head of a fitted classifier.

    Args:
        clf: a linear model with `predict_proba`, an `MLPClassifier`, a skorch net, a pipeline that ends
            in one, or a search or a scikit-activeml wrapper around one.
        head: of a skorch net, the name of its last linear layer; found and verified when None.
    """
    if _is_wrapper(clf):
        return _wrapped(clf, head)
    if isinstance(clf, Pipeline):
        return _pipeline(clf, head)
    if isinstance(getattr(clf, "module_", None), nn.Module):
        return _net(clf, head)
    if isinstance(clf, MLPClassifier):
        return _mlp(clf)
    if isinstance(clf, LinearClassifierMixin) and hasattr(clf, "predict_proba"):
        return _linear(clf)
    raise KindError(f"clf must be {_KINDS}; got {type(clf).__name__}")


def check_supported(clf: Any) -> None:
    """Raise unless `clf`, fitted or not, can have a linear head as far as its kind tells."""
    inner = _innermost(clf)
    linear = isinstance(inner, LinearClassifierMixin) and hasattr(inner, "predict_proba")
    if not (linear or is_net(clf) or isinstance(inner, MLPClassifier)):
        raise KindError(f"clf must be {_KINDS}; got {type(inner).__name__}")


def is_net(clf: Any) -> bool:
    """Whether it is a skorch net inside, whose outputs are there before its labels."""
    inner = _innermost(clf)
    known = hasattr(inner, "initialize") or "neural_net_param_dict" in getattr(
        inner, "__dict__", ()
    )
    return known and not isinstance(inner, type)


def _innermost(clf: Any) -> Any:
    if isinstance(clf, Pipeline):
        return _innermost(clf.steps[-1][1])
    if _is_wrapper(clf) and "estimator" in vars(clf):
        return _innermost(clf.estimator)
    return clf


def _is_wrapper(clf: Any) -> bool:
    """A search for hyper-parameters, or one of scikit-activeml's: their probabilities are another's."""
    theirs = any(kind.__module__.startswith("skactiveml.") for kind in type(clf).__mro__)
    return theirs or isinstance(clf, BaseSearchCV)


def _wrapped(clf: Any, head: str | None) -> Head:
    held = vars(clf)
    if held.get("is_fitted_") is False:
        raise LabelError(
            "the classifier could not be fitted on the labels there are, so it has no gradients; start "
            "with a few labels of two classes at least, picked by the rule 'random'"
        )
    for name in ("best_estimator_", "estimator_"):
        if name in held:
            return head_of(held[name], head)
    if "neural_net_" in held:  # scikit-activeml numbers the classes of its nets
        net = held["neural_net_"]
        found = replace(head_of(net, head), classes=np.asarray(clf.classes_))
        return replace(found, probabilities=_undisturbed(net.module_, clf.predict_proba))
    if "estimator" in held:  # around a classifier that was fitted before
        return head_of(held["estimator"], head)
    raise KindError(
        f"clf must be {_KINDS}; got a {type(clf).__name__} that is not fitted, or around none"
    )


def _pipeline(clf: Pipeline, head: str | None) -> Head:
    last = head_of(clf.steps[-1][1], head)

    def transformed(X: Array) -> Embedding:
        return last.outputs(_dense(clf[:-1].transform(X)) if len(clf.steps) > 1 else X)

    return Head(transformed, clf.predict_proba, last.classes)


def _net(clf: Any, head: str | None) -> Head:
    own = _undisturbed(clf.module_, clf.predict_proba)
    return Head(lambda X: embed(clf.module_, X, head=head), own, None)


def _undisturbed(module: nn.Module, predict: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """The same; to predict with a net leaves its mode changed, and the generators a draw further."""

    def probabilities(X: Array) -> Array:
        with preserved_rng(), evaluating(module, None):
            return predict(X)

    return probabilities


def _linear(clf: Any) -> Head:
    check_is_fitted(clf)
    weights_CD, bias_C = np.asarray(clf.coef_, dtype=np.float64), clf.intercept_

    def outputs(X: Array) -> Embedding:
        features_ND = np.asarray(_dense(X), dtype=np.float64)
        return _embedding(features_ND @ weights_CD.T + bias_C, features_ND)

    return Head(outputs, clf.predict_proba, np.asarray(clf.classes_))


def _mlp(clf: MLPClassifier) -> Head:
    check_is_fitted(clf)
    if clf.out_activation_ == "logistic" and clf.n_outputs_ > 1:
        raise KindError("an MLPClassifier of several labels a point cannot be used here")
    activation = _ACTIVATIONS[clf.activation]

    def outputs(X: Array) -> Embedding:
        hidden = np.asarray(_dense(X), dtype=clf.coefs_[0].dtype)
        for weights, bias in zip(clf.coefs_[:-1], clf.intercepts_[:-1], strict=True):
            hidden = activation(hidden @ weights + bias)
        return _embedding(hidden @ clf.coefs_[-1] + clf.intercepts_[-1], hidden)

    return Head(outputs, clf.predict_proba, np.asarray(clf.classes_))


def _embedding(logits_NC: Array, features_ND: Array) -> Embedding:
    return Embedding(as_tensor(logits_NC), as_tensor(features_ND))


def _dense(X: Any) -> Array:
    """A transformer may give a sparse matrix."""
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X)
