"""The linear head of a fitted classifier, in closed form.

Classifiers of scikit-learn and skorch, and wrappers of them (pipelines, searches, scikit-activeml). An
`Embedding` of the head's outputs z and inputs h is all that a last-layer gradient needs:

- a linear model (`LogisticRegression`, …): h = x, z = W x + b;
- `MLPClassifier`: h the last hidden layer's activations;
- a skorch net: h the inputs of its module's last `nn.Linear`, found by running it.

A model of two classes with one output z is the softmax of (0, z). If the gradient of the single output
is d ⊗ h, that of the two is (−d, d) ⊗ h: every score is √2 times as large, and the picks are the same.

The classifier's probabilities must be the softmax of these outputs. This is checked.
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
    """The last linear layer of a fitted classifier, and the classifier's own probabilities.

    Args:
        outputs: from X (N, …) to the embedding: logits z (N, C) and features h (N, D).
        probabilities: from X (N, …) to the classifier's own class probabilities (N, C).
        classes: (C,) the label of each output; None if labels are the numbers of the outputs.
    """

    outputs: Callable[[Array], Embedding]
    probabilities: Callable[[Array], Array]
    classes: Array | None

    def embed(self, X: Array) -> Embedding:
        """The embedding of X (N, …), with two outputs or more; it must give the probabilities."""
        embedding = self.outputs(X)
        assert embedding.logits is not None
        if embedding.classes == 1:
            zeros = torch.zeros_like(embedding.logits)
            embedding = Embedding(torch.cat([zeros, embedding.logits], dim=1), embedding.features)
        self._check(X, embedding)
        return embedding

    def labels(self, y: Array) -> NDArray[np.int64]:
        """(N,) the number of the output of each label."""
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

    def _check(self, X: Array, embedding: Embedding) -> None:
        assert embedding.logits is not None
        ours = torch.softmax(embedding.logits[:_ROWS_CHECKED].double(), dim=1).cpu().numpy()
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
    """Raise if a classifier of this kind, fitted or not, has no linear head."""
    inner = _innermost(clf)
    linear = isinstance(inner, LinearClassifierMixin) and hasattr(inner, "predict_proba")
    if not (linear or is_net(clf) or isinstance(inner, MLPClassifier)):
        raise KindError(f"clf must be {_KINDS}; got {type(inner).__name__}")


def is_net(clf: Any) -> bool:
    """Whether it is, or wraps, a skorch net: its number of outputs does not depend on the labels."""
    inner = _innermost(clf)
    if isinstance(inner, type):
        return False
    return hasattr(inner, "initialize") or "neural_net_param_dict" in getattr(inner, "__dict__", ())


def _innermost(clf: Any) -> Any:
    if isinstance(clf, Pipeline):
        return _innermost(clf.steps[-1][1])
    if _is_wrapper(clf) and "estimator" in vars(clf):
        return _innermost(clf.estimator)
    return clf


def _is_wrapper(clf: Any) -> bool:
    """Whether it is a search for hyper-parameters or a wrapper of scikit-activeml."""
    modules = [kind.__module__ for kind in type(clf).__mro__]
    return isinstance(clf, BaseSearchCV) or any(m.startswith("skactiveml.") for m in modules)


def _wrapped(clf: Any, head: str | None) -> Head:
    attributes = vars(clf)
    if attributes.get("is_fitted_") is False:
        raise LabelError(
            "the classifier could not be fitted on the labels there are, so it has no gradients; start "
            "with a few labels of two classes at least, picked by the rule 'random'"
        )
    for name in ("best_estimator_", "estimator_"):
        if name in attributes:
            return head_of(attributes[name], head)
    if "neural_net_" in attributes:  # scikit-activeml numbers the classes of its nets
        net = attributes["neural_net_"]
        probabilities = _unchanged(net.module_, clf.predict_proba)
        classes = np.asarray(clf.classes_)
        return replace(head_of(net, head), probabilities=probabilities, classes=classes)
    if "estimator" in attributes:  # around a classifier that was fitted before
        return head_of(attributes["estimator"], head)
    raise KindError(
        f"clf must be {_KINDS}; got a {type(clf).__name__} that is not fitted, or around none"
    )


def _pipeline(clf: Pipeline, head: str | None) -> Head:
    last = head_of(clf.steps[-1][1], head)

    def transformed(X: Array) -> Embedding:
        return last.outputs(_dense(clf[:-1].transform(X)) if len(clf.steps) > 1 else X)

    return Head(transformed, clf.predict_proba, last.classes)


def _net(clf: Any, head: str | None) -> Head:
    probabilities = _unchanged(clf.module_, clf.predict_proba)
    return Head(lambda X: embed(clf.module_, X, head=head), probabilities, None)


def _unchanged(module: nn.Module, predict: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """`predict` with the net's mode and the generators put back afterwards."""

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
    """As a dense array: a transformer may return a sparse matrix."""
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X)
