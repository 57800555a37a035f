"""A scikit-learn pipeline, and a query strategy that takes y with missing labels.

python examples/scikit_learn.py
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from askance.integrations.sklearn import Query


def main() -> None:
    X, truth = load_digits(return_X_y=True)
    X, truth, X_test, y_test = X[:1_200], truth[:1_200], X[1_200:], truth[1_200:]
    clf = make_pipeline(
        StandardScaler(), MLPClassifier((32,), alpha=0.1, max_iter=2_000, random_state=0)
    )
    for name in ("random", "badge"):
        y = np.full(len(X), np.nan)  # NaN: not labelled yet
        y[:30] = truth[:30]
        strategy = Query(name, random_state=0)
        for _ in range(3):
            picks = strategy.query(X, y, clf, batch_size=30)
            y[picks] = truth[picks]
        labelled = ~np.isnan(y)
        score = clf.fit(X[labelled], y[labelled]).score(X_test, y_test)
        print(f"{name}: {score:.1%} with {labelled.sum()} labels")


if __name__ == "__main__":
    main()
