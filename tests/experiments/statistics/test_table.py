"""From rows to arrays."""

import numpy as np
import pytest

from askance.errors import InputError
from askance.experiments import export
from askance.experiments.statistics.suite import PLAIN, Suite
from askance.experiments.statistics.table import experiments, in_order
from tests.experiments.statistics.worlds import experiment, noise, rows


def test_rows_become_arrays_with_holes():
    tables = noise(("grad", "random", "zeta"), seeds=3, rounds=4)
    tables["grad"][1, 2:] = np.nan
    one = experiment(tables)
    assert one.methods == ("random", "grad", "zeta")
    np.testing.assert_array_equal(one.accuracy_MST[1], tables["grad"])
    assert one.labels_MST[0, 0].tolist() == [10, 20, 30, 40]
    assert np.isnan(one.labels_MST[1, 1, 2])
    assert one.only({"grad"}).methods == ("grad",)


def test_experiments_come_by_name():
    results = experiments(rows(noise(("grad",)), name="b") + rows(noise(("grad",)), name="a"))
    assert [one.name for one in results] == ["a", "b"]
    with pytest.raises(InputError, match="a has no 'badge'; it has grad"):
        results[0].index("badge")


def test_the_rules_of_a_suite_come_first():
    names = ["zeta", "grad", "alpha", "random"]
    assert in_order(names) == PLAIN.sort(names) == ("random", "alpha", "grad", "zeta")
    suite = Suite(rules=("random", "entropy", "grad"))
    assert suite.sort(names) == ("random", "grad", "alpha", "zeta")
    (one,) = experiments(rows(noise(names)), suite.rules)
    assert one.methods == ("random", "grad", "alpha", "zeta")


@pytest.mark.parametrize("format", ["csv", "json", "parquet"])
def test_other_peoples_results_are_read_from_an_export(tmp_path, format):
    table = rows(noise(("random", "theirs")))
    export.write(table, format, tmp_path / f"theirs.{format}")
    (one,) = experiments(export.table(tmp_path))
    assert one.methods == ("random", "theirs")
