"""Why the model asks, as a labeller would say it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.label.doubts import Doubt, doubts, nearest_cosine, sampled
from tests.label.worlds import Person, client_of
from tests.naive.doubts import nearest

NAMES = ("dog", "horse", "cat")


@pytest.mark.parametrize(
    ("classes", "probabilities", "unlike", "text"),
    [
        ((1, 0), (0.5, 0.4), False, "The model hesitates between dog and horse."),
        ((0, 1), (0.5, 0.4), False, "The model hesitates between dog and horse."),
        ((2, 0), (0.95, 0.04), True, "Hardly anything like it has been answered yet."),
        (
            (2, 0), (0.5, 0.4), True,
            "The model hesitates between dog and cat. Hardly anything like it has been answered yet.",
        ),
        ((2, 0), (0.7, 0.2), False, "The model is not sure of this one."),
        ((0,), (1.0,), False,
         "The model is rather sure of this one; your answer tells whether it is right."),
    ],
)  # fmt: skip
def test_a_sentence_that_does_not_tell_the_guess(classes, probabilities, unlike, text):
    assert Doubt(classes, probabilities, unlike).text(NAMES) == text


rows = st.integers(1, 4).flatmap(
    lambda width: st.tuples(
        *[
            st.lists(
                st.lists(st.floats(-5, 5), min_size=width, max_size=width), min_size=1, max_size=6
            )
            for _ in range(2)
        ]
    )
)


@given(rows)
def test_the_nearest_is_that_of_the_slow_twin(pair):
    given_rows, others = pair
    found = nearest_cosine(np.asarray(given_rows, np.float64), np.asarray(others, np.float64))
    # Squares of the smallest numbers are 0 in both, or in one.
    tiny = [min(map(abs, filter(None, row)), default=1) < 1e-100 for row in [*given_rows, *others]]
    if not any(tiny):
        np.testing.assert_allclose(found, nearest(given_rows, others), atol=1e-12)


def test_what_is_unlike_all_that_was_answered_is_told():
    angles = np.linspace(0, np.pi / 2, 100)
    answered = np.asarray([[1.0, 0, 0], [0.0, 0, 0]])
    sample = np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=1)
    picked = np.asarray([[1.0, 1.0, 0], [0.1, 5.0, 1.0]])
    probs = np.asarray([[0.2, 0.5, 0.3], [0.9, 0.1, 0.0]])
    near, far = doubts(probs, picked, answered, sample)
    assert (near.classes, near.probabilities, near.unlike) == ((1, 2), (0.5, 0.3), False)
    assert (far.classes, far.unlike) == ((0, 1), True)
    assert not doubts(probs[:1], picked[:1], answered, np.empty((0, 3)))[0].unlike


def test_the_sample_is_of_the_candidates():
    draws = np.random.default_rng(0)
    assert set(sampled(np.arange(5, 9), draws)) == {5, 6, 7, 8}
    assert len(set(sampled(np.arange(2_000), draws))) == 500
    assert len(sampled(np.arange(0), draws)) == 0


def test_a_question_says_it_and_has_the_numbers(start):
    session = start(held_out=0.0)
    ann = Person(client_of(session))
    ann.work(12, session)
    session.scheduler.wait(2)
    why = ann.ask()["questions"][0]["why"]
    assert why["text"].split(" ")[0] in ("The", "Hardly")
    assert "powergrad" not in why["text"]
    assert {"rank", "confidence", "second_confidence", "grad_norm"} <= set(why["numbers"])
    assert 0 <= why["numbers"]["second_confidence"] <= why["numbers"]["confidence"] <= 1
