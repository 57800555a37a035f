"""askance's rules as query strategies in the manner of scikit-activeml.

>>> import numpy as np
>>> from sklearn.linear_model import LogisticRegression
>>> from askance.integrations.sklearn import Query
>>> X = np.random.default_rng(0).normal(size=(60, 4))
>>> y = np.full(60, np.nan)  # nothing is known but
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
    """One of askance's rules, asked as scikit-activeml asks.

    Args:
        strategy: a rule's name (`askance.strategies.names()`), or an instance with its options.
        head: of a skorch net, the name of its last linear layer; found and verified when None.
        missing_label: what stands in y where a label is missing.
        random_state: an integer or a `RandomState`; the same one gives the same picks, and other ones
            when labels have come in. It also seeds the generators that a net's weights are drawn from.
    """

    def __init__(
        self,
        strategy: str | Strategy = "grad",
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
                around one. It is not changed. None will do for a rule that needs no model.
            fit_clf: fit a copy of it on what is labelled first; else it must be fitted.
            candidates: None for all unlabelled samples; (n_candidates,) indices into X; or the
                (n_candidates, …) samples themselves.
            batch_size: how many. More than there are candidates is a warning, and all of them.
            random_state: instead of the object's own.
            return_utilities: whether to say what every candidate was worth at every pick.

        Returns:
            (batch_size,) indices into X, best first, or into `candidates` where those are samples; and
            where asked for, (batch_size, n_samples or n_candidates) utilities: the rule's own scores,
            higher is better, NaN for what could not be picked.
        """
        X, y, candidates, batch_size, return_utilities = self._validate_data(
            X, y, candidates, batch_size, return_utilities, reset=True
        )
        generator = self.random_state_
        if random_state is not None:
            unlabeled = int((~is_labeled(y, self.missing_label_)).sum())
            generator = check_random_state(random_state, unlabeled + 1)
        draws = Draws(int(generator.randint(2**31 - 1)))
        rule = self._rule()
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
            known, labels = self._known(y)
            head = self._head(X, y, clf, fit_clf, draws)
            pool = head.embed(X_cand)
            if "labeled" in rule.needs:
                labeled = head.embed(X[known]), head.labels(labels)
        picks = select(
            None, labeled, pool, batch_size, strategy=rule, seed=draws, keep_scores=return_utilities
        )
        places = np.arange(len(X_cand)) if mapping is None else mapping
        if not return_utilities:
            return places[picks.indices]
        worth = _utilities(rule, labeled, pool, picks.indices, picks.pool_scores, draws)
        utilities = np.full((batch_size, len(X_cand) if mapping is None else len(X)), np.nan)
        utilities[:, places] = worth
        return places[picks.indices], utilities

    def _rule(self) -> Strategy:
        rule = self.strategy
        rule = strategies.get(rule) if isinstance(rule, str) else rule
        if not isinstance(rule, (Pointwise, Batch)):
            raise KindError(f"strategy must be a name or a Strategy instance, got {rule!r}")
        return rule

    def _known(self, y: Array) -> tuple[Array, Array]:
        """Which samples have a label, and those labels."""
        known = is_labeled(y, self.missing_label_)
        if not known.any():
            raise LabelError(f"no label is known yet, so there is no model to ask; {_START}")
        labels = np.array(y[known].tolist())  # of object arrays scikit-learn cannot tell the kind
        if labels.dtype.kind == "f" and (labels == labels.round()).all():
            labels = labels.astype(np.int64)  # only NaN made floats of them, which no net takes
        return known, labels

    def _head(self, X: Array, y: Array, clf: Any, fit_clf: bool, draws: Draws) -> Head:
        """Of the classifier as it is, or of a copy fitted on what is labelled."""
        own = isinstance(clf, SkactivemlClassifier)  # takes y as it is
        if own:
            check_equal_missing_label(clf.missing_label, self.missing_label_)
        if not fit_clf:
            return head_of(clf, self.head)
        known, labels = self._known(y)
        if len(np.unique(labels)) < 2 and not is_net(clf):
            raise LabelError(
                f"only one class is labelled yet, so there is no model to ask; {_START}"
            )
        if isinstance(clf, SklearnClassifier) and not clf.include_unlabeled_samples:
            # What it would do, but for labels whose kind it cannot tell.
            clf, own = clf.estimator, False
        with preserved_rng():
            reseed(int(draws.generator("fit").integers(2**63)))
            fitted = clone(clf).fit(X, y) if own else clone(clf).fit(X[known], labels)
        return head_of(fitted, self.head)


def _utilities(
    rule: Strategy,
    labeled: tuple[Embedding, Array] | None,
    pool: Any,
    picks: NDArray[np.int64],
    pool_scores: NDArray[np.float64] | None,
    draws: Draws,
) -> NDArray[np.float64]:
    """(n, N): what every candidate was worth at each pick."""
    if isinstance(rule, Batch):
        seen = labeled_set(rule, labeled, None, len(pool), None, draws)
        return rule.utilities(pool, picks, rule.prepare(seen, None))
    assert pool_scores is not None
    utilities = np.tile(pool_scores, (len(picks), 1))
    for place in range(1, len(picks)):
        utilities[place, picks[:place]] = np.nan
    return utilities
