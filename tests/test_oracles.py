"""Who answers, and that an answer depends on its row alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from askance.errors import AskanceError, InputError, LabelError
from askance.oracles import Abstaining, Costly, Noisy, Truth

LABELS = torch.arange(2000) % 5


def rows(*values: int) -> np.ndarray:
    return np.asarray(values, dtype=np.int64)


def test_truth_tells_the_labels_in_the_order_asked():
    answers = Truth(LABELS).answer(rows(7, 3, 11))
    assert answers.rows.tolist() == [7, 3, 11]
    assert answers.labels.tolist() == [2, 3, 1]
    assert answers.cost == 3


@pytest.mark.parametrize("asked", [rows(2000), rows(-1), rows(3, 5000)])
def test_truth_refuses_rows_it_does_not_have(asked):
    with pytest.raises(LabelError, match="knows rows 0 to 1999"):
        Truth(LABELS).answer(asked)


def test_noise_spoils_its_share_and_gives_every_wrong_class_alike():
    oracle = Noisy(Truth(torch.arange(40_000) % 5), rate=0.3, classes=5)
    answers = oracle.answer(np.arange(40_000))
    shift = (answers.labels - torch.arange(40_000)) % 5
    counts = np.bincount(shift.numpy(), minlength=5)
    expected = 40_000 * np.array([0.7, *[0.075] * 4])
    assert chisquare(counts, expected).pvalue > 1e-3


@given(
    asked=st.lists(st.integers(0, 1999), min_size=1, max_size=30, unique=True),
    seed=st.integers(0, 5),
)
def test_an_answer_depends_on_its_row_alone(asked, seed):
    """Asked for one by one, backwards or together: the same labels, the same silence."""
    for oracle in (
        Noisy(Truth(LABELS), rate=0.5, classes=5, seed=seed),
        Abstaining(Truth(LABELS), rate=0.5, seed=seed),
        Costly(Truth(LABELS), np.linspace(0, 1, 2000)),
    ):
        together = oracle.answer(rows(*asked))
        told = dict(zip(together.rows.tolist(), together.labels.tolist(), strict=True))
        apart = [oracle.answer(rows(row)) for row in reversed(asked)]
        again = {
            int(r): int(y)
            for answers in apart
            for r, y in zip(answers.rows, answers.labels, strict=True)
        }
        assert again == told
        assert sum(answers.cost for answers in apart) == pytest.approx(together.cost)


def test_abstaining_keeps_order_and_costs_all_the_same():
    answers = Abstaining(Truth(LABELS), rate=0.4).answer(np.arange(2000)[::-1].copy())
    assert answers.cost == 2000
    assert 1100 < len(answers.rows) < 1300
    assert (np.diff(answers.rows) < 0).all()
    assert torch.equal(answers.labels, LABELS[torch.from_numpy(answers.rows)])


def test_wrappers_stack():
    oracle = Costly(Noisy(Abstaining(Truth(LABELS), 0.5), 1.0, classes=5), np.full(2000, 2.5))
    answers = oracle.answer(np.arange(100))
    assert answers.cost == 250
    assert len(answers.rows) < 100
    assert not bool((answers.labels == LABELS[torch.from_numpy(answers.rows)]).any())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Noisy(Truth(LABELS), rate=1.5, classes=5), "rate must be a probability"),
        (lambda: Abstaining(Truth(LABELS), rate=-0.1), "rate must be a probability"),
        (lambda: Noisy(Truth(LABELS), rate=float("nan"), classes=5), "rate must be a probability"),
        (lambda: Noisy(Truth(LABELS), rate=0.5, classes=1), "at least 2 classes"),
        (lambda: Costly(Truth(LABELS), [1.0, -1.0]), "finite number ≥ 0"),
        (lambda: Costly(Truth(LABELS), [[1.0]]), "finite number ≥ 0"),
        (lambda: Costly(Truth(LABELS), [1.0]).answer(rows(1)), "costs for 1 rows"),
    ],
)
def test_impossible_oracles_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()
    assert issubclass(InputError, AskanceError)
