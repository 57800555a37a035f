"""scikit-activeml's own tests of a query strategy's interface, on ours.

Its test templates are in its repository and in none of its packages. Where a checkout is at hand:

    ASKANCE_SKACTIVEML_CHECKOUT=~/scikit-activeml pytest tests/connect/test_template.py

`test_query.py` has the same checks in our words, and they always run.
"""

import importlib
import os
import unittest
from pathlib import Path

import numpy as np
import pytest
import skactiveml
from skactiveml.classifier import SklearnClassifier
from sklearn.linear_model import LogisticRegression

from askance import strategies
from askance.connect.sklearn import Query
from askance.errors import LabelError
from askance.strategies import Grad

CHECKOUT = os.environ.get("ASKANCE_SKACTIVEML_CHECKOUT")
FILE = Path(CHECKOUT or "") / "skactiveml" / "tests" / "template_query_strategy.py"

pytestmark = [
    pytest.mark.skipif(not FILE.is_file(), reason="ASKANCE_SKACTIVEML_CHECKOUT names no checkout"),
    pytest.mark.filterwarnings("ignore"),  # the templates ask for a batch larger than the pool, …
]


def template():
    skactiveml.__path__.append(str(FILE.parents[1]))  # the installed one has no tests
    module = importlib.import_module("skactiveml.tests.template_query_strategy")
    return module.TemplateSingleAnnotatorPoolQueryStrategy


if FILE.is_file():
    Template = template()

    class Interface(Template):
        """Their tests, of one rule; `rule` is set by the subclasses."""

        def setUp(self):
            rng = np.random.default_rng(0)
            X = rng.normal(size=(12, 3))
            y = np.full(12, np.nan)
            y[:4] = [0, 1, 0, 1]
            clf = SklearnClassifier(LogisticRegression(), classes=[0, 1], random_state=0)
            super().setUp(
                qs_class=Query,
                init_default_params={"strategy": self.rule},
                query_default_params_clf={"X": X, "y": y, "clf": clf},
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
            """With no label, or of one class alone, there is no model; only `random` starts there."""
            if self.rule == "random":
                super().test_query_al_cycles()
                return
            query = self.qs_class(**self.init_default_params)
            for known in (0, 1):
                y = np.full(12, np.nan)
                y[:known] = 0
                with pytest.raises(LabelError):
                    query.query(**(self.query_default_params_clf | {"y": y}))

        def test_query(self):
            picks = self.qs_class(**self.init_default_params).query(**self.query_default_params_clf)
            assert picks.shape == (1,)

    for _name in strategies.names():
        _title = "Test" + _name.title().replace("-", "")
        globals()[_title] = type(_title, (Interface, unittest.TestCase), {"rule": _name})
    del Interface, Template


def test_there_is_a_checkout():
    """Keeps this file from being empty where there is none."""
    assert FILE.is_file()
