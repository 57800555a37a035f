"""askance's rules as query strategies of scikit-activeml.

>>> import numpy as np
>>> from sklearn.linear_model import LogisticRegression
>>> from askance.integrations.sklearn import Query
>>> X = np.random.default_rng(0).normal(size=(60, 4))
>>> y = np.full(60, np.nan)  # NaN: no label yet
>>> y[:10] = X[:10, 0] > 0
>>> Query("badge", random_state=0).query(X, y, LogisticRegression(), batch_size=3).shape
(3,)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

try:
    from skactiveml.base import SingleAnnotatorPoolQueryStrategy, SkactivemlClassifier
    from skactiveml.classifier import SklearnClassifier
    from skactiveml.utils import (
        MISSING_LABEL,
        check_equal_missing_label,
        check_random_state,
        check_type,
        is_labeled,
    )
except ImportError as error:
    from askance.errors import ExtraError

    raise ExtraError.of("scikit-activeml", "skactiveml") from error

from sklearn.base import clone

from askance import strategies
from askance.embedding import Embedding
from askance.embedding.guard import preserved_rng, reseed
from askance.errors import InputError, KindError, LabelError
from askance.integrations.heads import Head, check_supported, head_of, is_net
from askance.seeding import Draws
from askance.selection import select
from askance.selection.inputs import labeled_set
from askance.strategies import Batch, Pointwise, Strategy

Array = NDArray[Any]

_START = "start with a few labels of two classes at least, picked by the rule 'random'"


class Query(SingleAnnotatorPoolQueryStrategy):  # type: ignore[misc]
    """A rule of askance with the interface of a query strategy of scikit-activeml.

    Args:
        strategy: a rule's name (`askance.strategies.names()`), or an instance with its options. When
            None, the default of `askance.select` for a model with features.
        head: the name of a skorch net's last linear layer; found automatically if None.
        missing_label: the value in y that means that a label is missing.
        random_state: an integer or a `RandomState`. The same value gives the same picks for the same
            labels, and new draws when there are new labels. It also seeds a net's initial weights.
    """

    def __init__(
        self,
        strategy: str | Strategy | None = None,
        head: str | None = None,
        missing_label: Any = MISSING_LABEL,
        random_state: Any = None,
    ) -> None:
        super().__init__(missing_label=missing_label, random_state=random_state)
        self.strategy = strategy
        self.head = head

    def query(
        self,
        X: Any,
        y: Any,
        clf: Any,
        fit_clf: bool = True,
        candidates: Any = None,
        batch_size: int = 1,
        random_state: Any = None,
        return_utilities: bool = False,
    ) -> Any:
        """The samples to label next.

        Args:
            X: (n_samples, …), the labelled and the unlabelled ones.
            y: (n_samples,), `missing_label` where a label is missing.
            clf: a classifier with a linear head: a linear model with `predict_proba`, an
                `MLPClassifier`, a skorch net, a pipeline ending in one, or scikit-activeml's wrapper
                around one. It is not changed. May be None if the rule needs no model.
            fit_clf: whether to fit a copy of it on the labelled samples; else it must be fitted.
            candidates: None for all unlabelled samples; (n_candidates,) indices into X; or the
                (n_candidates, …) samples themselves.
            batch_size: how many. If it is larger than the number of candidates, there is a warning, and
                all candidates are picked.
            random_state: used instead of the object's own.
            return_utilities: whether to return the scores of all candidates as well.

        Returns:
            (batch_size,) indices into X, best first, or into `candidates` if those are samples. With
            return_utilities also (batch_size, n_samples or n_candidates): the rule's scores at each
            pick, higher is better, NaN for what could not be picked.
        """
        X, y, candidates, batch_size, return_utilities = self._validate_data(
            X, y, candidates, batch_size, return_utilities, reset=True
        )
        generator = self.random_state_
        if random_state is not None:
            unlabeled = int((~is_labeled(y, self.missing_label_)).sum())
            generator = check_random_state(random_state, unlabeled + 1)
        draws = Draws(int(generator.randint(2**31 - 1)))
        rule = strategies.of(self.strategy or strategies.default().name)
        check_type(fit_clf, "fit_clf", bool)
        if clf is not None:
            check_supported(clf)
        elif rule.needs:
            raise KindError(f"{rule.name} needs a classifier, clf is None")
        X_cand, mapping = self._transform_candidates(candidates, X, y)
        if len(X_cand) == 0:
            raise InputError(
                "there is no candidate: every sample is labelled, or candidates is empty"
            )
        labeled: tuple[Embedding, Array] | None = None
        pool = X_cand
        if rule.needs:
            has_label, labels = self._labels(y)
            head = self._head(X, y, clf, fit_clf, draws)
            pool = head.embed(X_cand)
            if "labeled" in rule.uses:
                labeled = head.embed(X[has_label]), head.labels(labels)
        keep = return_utilities and isinstance(rule, Pointwise)
        picks = select(None, labeled, pool, batch_size, strategy=rule, seed=draws, keep_scores=keep)
        places = np.arange(len(X_cand)) if mapping is None else mapping
        if not return_utilities:
            return places[picks.indices]
        utilities = np.full((batch_size, len(X_cand) if mapping is None else len(X)), np.nan)
        utilities[:, places] = _utilities(
            rule, labeled, pool, picks.indices, picks.pool_scores, draws
        )
        return places[picks.indices], utilities

    def _labels(self, y: Array) -> tuple[Array, Array]:
        """(N,) which samples have a label, and (L,) those labels."""
        has_label = is_labeled(y, self.missing_label_)
        if not has_label.any():
            raise LabelError(f"no label is known yet, so there is no model to ask; {_START}")
        labels = np.array(y[has_label].tolist())  # scikit-learn takes no labels of dtype object
        if labels.dtype.kind == "f" and (labels == labels.round()).all():
            # Whole numbers became floats because of NaN. Nets refuse floats.
            labels = labels.astype(np.int64)
        return has_label, labels

    def _head(self, X: Array, y: Array, clf: Any, fit_clf: bool, draws: Draws) -> Head:
        """The head of the classifier as it is, or of a copy fitted on the labelled samples."""
        takes_missing = isinstance(clf, SkactivemlClassifier)
        if takes_missing:
            check_equal_missing_label(clf.missing_label, self.missing_label_)
        if not fit_clf:
            return head_of(clf, self.head)
        has_label, labels = self._labels(y)
        if len(np.unique(labels)) < 2 and not is_net(clf):
            raise LabelError(
                f"only one class is labelled yet, so there is no model to ask; {_START}"
            )
        if isinstance(clf, SklearnClassifier) and not clf.include_unlabeled_samples:
            # It does the same, but refuses labels of dtype object.
            clf, takes_missing = clf.estimator, False
        with preserved_rng():
            reseed(int(draws.generator("fit").integers(2**63)))
            copy = clone(clf)
            fitted = copy.fit(X, y) if takes_missing else copy.fit(X[has_label], labels)
        return head_of(fitted, self.head)


def _utilities(
    rule: Strategy,
    labeled: tuple[Embedding, Array] | None,
    pool: Any,
    picks: NDArray[np.int64],
    pool_scores: NDArray[np.float64] | None,
    draws: Draws,
) -> NDArray[np.float64]:
    """(n, N) the score of every candidate at each pick, NaN for those picked before."""
    if isinstance(rule, Batch):
        reference = labeled_set(rule, labeled, None, len(pool), None, draws)
        return rule.utilities(pool, picks, rule.prepare(reference, None))
    assert pool_scores is not None
    utilities = np.tile(pool_scores, (len(picks), 1))
    for place in range(1, len(picks)):
        utilities[place, picks[:place]] = np.nan
    return utilities
