"""scikit-activeml's own tests of a query strategy's interface, on ours.

Its test templates are in its repository and in none of its packages. Where a checkout is at hand:

    ASKANCE_SKACTIVEML_CHECKOUT=~/scikit-activeml pytest tests/integrations/test_template.py

Seen to pass with the template of commit 054a9d09 and scikit-activeml 1.0.1, six of whose own rules were
put through it as well; later templates test what 1.0.1 has not (several labels a point) and cannot be
imported beside it.

`test_query.py` has the same checks in our words, and they always run. A rule of theirs under our name
(`skactiveml:NAME`) is a rule of ours, no query strategy: `test_skactiveml.py` has our contract for it.
"""

import importlib
import os
import unittest
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
import skactiveml
import torch
from skactiveml.classifier import SklearnClassifier, SkorchClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

from askance import strategies
from askance.errors import LabelError
from askance.integrations.sklearn import Query
from askance.strategies import Grad
from tests.rules import ONE_MODEL

CHECKOUT = os.environ.get("ASKANCE_SKACTIVEML_CHECKOUT")
FILE = Path(CHECKOUT or "") / "skactiveml" / "tests" / "template_query_strategy.py"

pytestmark = [
    pytest.mark.skipif(not FILE.is_file(), reason="ASKANCE_SKACTIVEML_CHECKOUT names no checkout"),
    pytest.mark.filterwarnings("ignore"),  # the templates ask for a batch larger than the pool, …
]

LEFT_OUT = {
    "test_query_param_reg": "our rules are of classifiers: query takes no reg",
    "test_query_param_fit_reg": "our rules are of classifiers: query takes no fit_reg",
    "test_query_param_sample_weight": "query takes no weights: fit with them, then fit_clf=False",
    "test_query_param_utility_weight": "query takes no weights of candidates: utilities are scores",
}


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(5, 8)
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(torch.tanh(self.body(x)))


def logistic():
    return SklearnClassifier(LogisticRegression(), classes=[0, 1], random_state=0)


def pipeline():
    steps = make_pipeline(StandardScaler(), LogisticRegression())
    return SklearnClassifier(steps, classes=[0, 1], random_state=0)


def mlp():
    estimator = MLPClassifier((8,), solver="lbfgs", alpha=1.0, max_iter=2000, random_state=0)
    return SklearnClassifier(estimator, classes=[0, 1], random_state=0)


def net():
    options = {"train_split": None, "verbose": 0, "max_epochs": 3}
    return SkorchClassifier(
        Small, nn.CrossEntropyLoss, classes=[0, 1], neural_net_param_dict=options, random_state=0
    )


def template():
    skactiveml.__path__.append(str(FILE.parents[1]))  # the installed one has no tests
    module = importlib.import_module("skactiveml.tests.template_query_strategy")
    return module.TemplateSingleAnnotatorPoolQueryStrategy


if FILE.is_file():
    Template = template()

    class Interface(Template):
        """Their tests, of one rule and one kind of classifier, which the subclasses name."""

        def setUp(self):
            rng = np.random.default_rng(0)
            X = rng.normal(size=(12, 5))
            y = np.full(12, np.nan)
            y[:4] = [0, 1, 0, 1]
            super().setUp(
                qs_class=Query,
                init_default_params={"strategy": self.rule},
                query_default_params_clf={"X": X, "y": y, "clf": self.clf()},
            )

        def test_init_param_strategy(self):
            cases = [
                ("gard", ValueError),
                (3, TypeError),
                ("badge", None),
                (Grad(bias=False), None),
            ]
            self._test_param("init", "strategy", cases)

        def test_init_param_head(self):
            self._test_param("init", "head", [(None, None), ("head", None)])

        def test_query_param_clf(self):
            super().test_query_param_clf(test_cases=[(LogisticRegression(), None)])

        def test_query_param_random_state(self):
            self._test_param(
                "query", "random_state", [("state", ValueError), (None, None), (1, None)]
            )

        def test_query_al_cycles(self):
            """With no label there is no model, but of one class alone only a net is one.

            `random`, which asks none, starts there.
            """
            refused = 0
            if strategies.get(self.rule).needs:
                refused = 1 if self.clf is net else 2  # labels that do not do

            def case(init_labels):
                return pytest.raises(LabelError) if init_labels < refused else nullcontext()

            with patch.object(self, "subTest", case):
                super().test_query_al_cycles()

        def test_query(self):
            picks = self.qs_class(**self.init_default_params).query(**self.query_default_params_clf)
            assert picks.shape == (1,)

    for _name, _why in LEFT_OUT.items():
        setattr(Interface, _name, unittest.skip(_why)(getattr(Template, _name)))

    _cases = [(_rule, logistic) for _rule in ONE_MODEL]
    _cases += [(_rule, _kind) for _rule in ("grad", "badge") for _kind in (pipeline, mlp, net)]
    for _rule, _kind in _cases:
        _title = f"Test_{_rule.replace('-', '_')}_{_kind.__name__}"
        _held = {"rule": _rule, "clf": staticmethod(_kind)}
        globals()[_title] = type(_title, (Interface, unittest.TestCase), _held)
    del Interface, Template


def test_there_is_a_checkout():
    """Keeps this file from being empty where there is none."""
    assert FILE.is_file()
