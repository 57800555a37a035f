"""Constraints as `select` takes them, on pools in any form."""

import numpy as np
import pytest
import torch
from scipy import stats

import askance
from askance import Embedding, select
from askance.errors import InputError, KindError, NonFiniteError, UnknownError
from tests.embedding import zoo

N = 60
X, POOL = zoo.rows(6, seed=1), zoo.rows(N, seed=2)
Y = torch.tensor([0, 1, 2, 0, 1, 2])
MODEL = zoo.seeded(zoo.mlp)
UNSEEN = askance.embed(MODEL, POOL)
SITE = np.array(["park", "street", "yard"])[np.arange(N) % 3]


@pytest.mark.parametrize("strategy", ["random", "entropy", "grad", "maxherding"])
def test_what_constraints_look_at_is_computed_for_every_rule(strategy):
    options = {"groups": "predicted", "at_most": 5, "max_similarity": 0.99}
    picks = select(MODEL, (X, Y), POOL, 9, strategy=strategy, **options)
    classes = UNSEEN.logits.argmax(1)[torch.from_numpy(picks.indices)]
    assert torch.bincount(classes).max() <= 5
    h = torch.nn.functional.normalize(UNSEEN.features[torch.from_numpy(picks.indices)].double())
    assert ((h @ h.T).fill_diagonal_(0) < 0.99).all()


@pytest.mark.parametrize("strategy", ["entropy", "kcenter"])
def test_a_stream_is_held_to_what_was_given_for_its_rows(strategy):
    seen = askance.embed(MODEL, X), Y
    whole = select(None, seen, UNSEEN, 6, strategy=strategy, groups=SITE, at_most=2)
    blocks = UNSEEN.blocks(7)
    picks = select(None, seen, blocks, 6, strategy=strategy, groups=SITE, at_most=2)
    assert picks.indices.tolist() == whole.indices.tolist()
    for wrong in (SITE[:50], np.append(SITE, "park")):
        with pytest.raises(InputError, match=r"one value for each row .* groups \d\d"):
            select(None, seen, UNSEEN.blocks(7), 6, strategy=strategy, groups=wrong, at_most=2)


@pytest.mark.parametrize("as_given", [list, tuple, torch.as_tensor, np.asarray])
def test_groups_and_costs_come_in_any_form(as_given):
    groups, costs = as_given((np.arange(N) % 4).tolist()), as_given([2] * N)
    picks = select(
        MODEL, None, POOL, 6, strategy="margin", groups=groups, at_most={0: 0, 3: 1}, costs=costs,
        budget=10,
    )  # fmt: skip
    assert np.bincount(picks.indices % 4, minlength=4)[[0, 3]].tolist() in ([0, 0], [0, 1])
    assert len(picks) == 5


def test_a_classifier_with_predict_proba_is_held_to_its_predictions():
    class Model:
        classes_ = np.arange(3)

        def predict_proba(self, rows):
            return UNSEEN.logits[: len(rows)].softmax(1).numpy()

    options = {"strategy": "random", "groups": "predicted", "at_most": 2}
    picks = select(Model(), None, POOL.numpy(), 4, batch_size=N, **options)
    rows = torch.from_numpy(picks.indices)
    assert torch.bincount(UNSEEN.logits.argmax(1)[rows]).max() == 2
    with pytest.raises(KindError, match="max_similarity compares features, a Model gives prob"):
        select(Model(), None, POOL.numpy(), 6, strategy="random", max_similarity=0.5)


def test_look_alikes_are_passed_over_however_many_there_are():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(12, 5))
    # The copies of a centre score alike, so that those of the best fill the top of the order.
    which = np.sort(rng.integers(12, size=3000))
    features = torch.from_numpy(centres[which] * rng.uniform(1, 2, (3000, 1)))
    logits = torch.from_numpy(np.stack([which + rng.random(3000) / 2, np.zeros(3000)], axis=1))
    picks = select(
        None, None, Embedding(logits, features), 5, strategy="margin", max_similarity=0.999
    )
    best = [int(np.flatnonzero(which == k)[logits[which == k, 0].argmin()]) for k in range(5)]
    assert picks.indices.tolist() == best


def test_draws_under_a_quota_are_by_weight_among_the_rows_that_are_left():
    # 1 − (p₁ − p₂) = 2·p₂ of two classes is what powermargin draws by.
    weights, groups, rounds = np.array([0.8, 0.4, 0.6, 0.2]), np.array([0, 0, 1, 1]), 3000
    chances = np.stack([1 - weights / 2, weights / 2], axis=1)
    pool, counts = Embedding(logits=torch.from_numpy(np.log(chances))), np.zeros((4, 4))
    rule = askance.strategies.PowerMargin(beta=1.0)
    for seed in range(rounds):
        picks = select(None, None, pool, 2, strategy=rule, seed=seed, groups=groups, at_most=1)
        counts[tuple(picks.indices)] += 1
    other = groups[:, None] != groups
    left = np.where(other, weights, 0)
    expected = (weights / weights.sum())[:, None] * left / left.sum(axis=1, keepdims=True)
    assert counts[~other].sum() == 0
    assert stats.chisquare(counts[other], rounds * expected[other]).pvalue > 1e-3


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"at_most": 2}, InputError, "are for groups: pass groups='predicted', or one group for"),
        ({"groups": SITE}, InputError, "groups alone limit nothing"),
        ({"costs": [1] * N}, InputError, "costs and budget belong together"),
        ({"budget": 3}, InputError, "costs and budget belong together"),
        ({"costs": [1] * N, "budget": -1}, InputError, "budget must be a finite number above 0"),
        ({"costs": [-1] * N, "budget": 1}, InputError, "costs must hold numbers that are not neg"),
        ({"costs": [np.nan] * N, "budget": 1}, NonFiniteError, "costs must be finite, 60 are not"),
        ({"costs": [1] * 9, "budget": 9}, InputError, "the pool has 60 rows, costs 9"),
        ({"groups": SITE[:9], "at_most": 2}, InputError, "the pool has 60 rows, groups 9"),
        ({"groups": "site", "at_most": 2}, InputError, "groups must be 'predicted' or hold one"),
        ({"groups": [1, "a"] * 30, "at_most": 2}, InputError, "all texts or all numbers; 30 of 60 are"),
        ({"groups": SITE, "at_most": 1.5}, InputError, "at_most must be a whole number ≥ 0"),
        ({"groups": SITE, "at_least": {"park": -1}}, InputError, "at_least must be a whole number"),
        ({"groups": SITE, "at_most": {"pork": 1}}, UnknownError, "'pork', .* 'park', 'street'"),
        ({"groups": "predicted", "at_least": {7: 1}}, UnknownError, "names the group 7"),
        ({"max_similarity": 1.5}, InputError, "max_similarity must be above 0 and at most 1"),
        ({"groups": SITE, "at_least": {"park": 21}}, InputError, "the pool has 20; ask for at most"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("strategy", ["entropy", "badge"])
def test_constraints_that_cannot_be_are_refused(options, kind, message, strategy):
    with pytest.raises(kind, match=message):
        select(MODEL, (X, Y), POOL, 30, strategy=strategy, **options)


def test_what_constraints_need_must_be_there():
    options = {"groups": "predicted", "at_most": 1}
    with pytest.raises(InputError, match=r"groups='predicted' needs logits, the pool's Embedding"):
        select(None, None, Embedding(features=torch.eye(4)), 2, strategy="random", **options)
    pool, rule = Embedding(logits=torch.eye(4)), askance.strategies.Entropy(loss="multilabel")
    with pytest.raises(InputError, match="max_similarity needs features, the pool's Embedding has"):
        select(None, None, pool, 2, strategy="entropy", max_similarity=0.5)
    with pytest.raises(InputError, match="groups='predicted' is for one class a point"):
        select(MODEL, None, POOL, 2, strategy=rule, **options)
