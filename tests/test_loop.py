"""Algorithm 1: what is asked, of whom, and when."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import askance
from askance.errors import AskanceError, InputError
from askance.loop import Run, lockstep, loop
from askance.oracles import Abstaining, Answers, Costly, Noisy, Truth
from askance.seeding import Draws
from tests.rules import ONE_MODEL

N, D, C = 120, 6, 3
RULES = ONE_MODEL


def task(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(N, D, generator=generator)
    return X, X[:, :C].argmax(1)


def network(seed: int) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(D, 8), nn.ReLU(), nn.Linear(8, C))


class Remembering:
    """Truth that keeps what it was asked."""

    def __init__(self, labels: torch.Tensor) -> None:
        self.truth, self.asked = Truth(labels), []

    def answer(self, rows: np.ndarray) -> Answers:
        self.asked.append(rows.copy())
        return self.truth.answer(rows)


@settings(max_examples=25, deadline=None)
@given(
    rule=st.sampled_from(RULES),
    seed=st.integers(0, 99),
    batch=st.integers(1, 12),
    T=st.integers(0, 5),
)
def test_no_row_is_asked_twice_and_every_round_asks_for_a_batch(rule, seed, batch, T):
    X, y = task(seed)
    oracle = Remembering(y)
    seen = []
    for run in loop(X, oracle, strategy=rule, batch=batch, rounds=T, seed=seed):
        seen.append(len(run.rows))
        inputs, labels = run.labeled
        assert torch.equal(inputs, X[run.rows])
        assert torch.equal(labels, y[run.rows])
        run.ask(network(run.round))
    assert seen == [batch * (t + 1) for t in range(T + 1)]
    assert [len(rows) for rows in oracle.asked] == [batch] * (T + 1)
    every = np.concatenate(oracle.asked)
    assert len(np.unique(every)) == len(every)
    assert every.min() >= 0
    assert every.max() < N


@pytest.mark.parametrize("seed", [0, 7])
def test_all_rules_of_a_seed_start_from_the_same_rows(seed):
    X, y = task()
    starts = {
        tuple(Run(X, Truth(y), rule, batch=10, rounds=1, seed=seed).rows.tolist()) for rule in RULES
    }
    assert len(starts) == 1
    other = Run(X, Truth(y), "grad", batch=10, rounds=1, seed=seed + 1)
    assert tuple(other.rows.tolist()) not in starts


def test_lockstep_lets_a_resumed_run_join_at_its_round():
    X, y = task()
    runs = [Run(X, Truth(y), rule, batch=5, rounds=3) for rule in ("grad", "badge", "random")]
    for _ in range(2):
        runs[1].ask(network(runs[1].round))
    turns = []
    for turn in lockstep(runs):
        turns.append([run.strategy.name for run in turn])
        for run in turn:
            run.ask(network(run.round))
    assert turns == [
        ["grad", "random"],
        ["grad", "random"],
        ["grad", "badge", "random"],
        ["grad", "badge", "random"],
    ]
    assert all(len(run.rows) == 20 for run in runs)


@pytest.mark.parametrize("rule", RULES)
def test_a_run_told_its_earlier_picks_goes_on_as_if_never_stopped(rule):
    X, y = task()
    oracle = Abstaining(Noisy(Truth(y), 0.2, classes=C), 0.2)
    whole = Run(X, oracle, rule, batch=7, rounds=4, seed=3)
    picks = [whole.ask(network(t)).indices for t in range(4)]
    resumed = Run(X, oracle, rule, batch=7, rounds=4, seed=3)
    for earlier in picks[:2]:
        resumed.tell(earlier)
    again = [resumed.ask(network(t)).indices for t in (2, 3)]
    assert [p.tolist() for p in again] == [p.tolist() for p in picks[2:]]
    assert np.array_equal(resumed.rows, whole.rows)
    assert torch.equal(resumed.labels, whole.labels)
    assert resumed.spent == whole.spent == 35


def test_rounds_draw_apart():
    X, y = task()
    run = Run(X, Truth(y), "random", batch=5, rounds=2)
    assert run.draws == Draws(0, 0)
    run.ask(None)
    assert run.draws == Draws(0, 1)


def test_rows_an_oracle_leaves_unanswered_are_not_asked_again_and_not_learnt_from():
    X, y = task()
    oracle = Abstaining(Truth(y), rate=0.5)
    for run in loop(X, oracle, strategy="random", batch=12, rounds=9):
        run.ask(None)
    assert len(np.unique(run.asked)) == N
    assert 0 < len(run.rows) < N
    assert len(run.labels) == len(run.rows)


def test_costs_add_up():
    X, y = task()
    costs = np.arange(N) / 10
    for run in loop(X, Costly(Truth(y), costs), strategy="entropy", batch=4, rounds=3):
        run.ask(network(0))
    assert run.spent == pytest.approx(costs[run.asked].sum())


def test_a_dataset_and_a_mapping_are_pools_too():
    X, y = task()
    expected = None
    for pool in (X, X.numpy(), TensorDataset(X, torch.full((N,), -1))):
        run = Run(pool, Truth(y), "grad", batch=6, rounds=2)
        picks = [run.ask(network(t)).indices.tolist() for t in range(2)]
        expected = expected or picks
        assert picks == expected


def test_a_round_that_is_not_asked_is_an_error():
    X, y = task()
    with pytest.raises(AskanceError, match=r"round 0 of grad \(seed 0\) was trained but not asked"):
        for _ in loop(X, Truth(y), strategy="grad", batch=5, rounds=2):
            pass


def test_after_the_last_round_there_is_nothing_to_ask():
    X, y = task()
    run = Run(X, Truth(y), batch=5, rounds=0)
    assert run.finished
    assert len(run.ask(network(0))) == 0
    with pytest.raises(InputError, match="all 0 rounds"):
        run.tell(np.arange(5))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch": 0, "rounds": 1}, "batch must be a whole number ≥ 1"),
        ({"batch": 5, "rounds": -1}, "rounds must be a whole number ≥ 0"),
        ({"batch": True, "rounds": 1}, "batch must be a whole number"),
        ({"batch": 61, "rounds": 1}, "ask for 122 points, the pool has 120"),
        ({"batch": 5, "rounds": 1, "strategy": "gard"}, "did you mean 'grad'"),
        ({"batch": 5, "rounds": 1, "seed": -1}, "seed must be a whole number ≥ 0"),
    ],
)
def test_impossible_loops_are_refused_before_anybody_is_asked(options, message):
    X, y = task()
    oracle = Remembering(y)
    with pytest.raises(AskanceError, match=message):
        next(iter(loop(X, oracle, **options)))
    assert oracle.asked == []


def test_a_pool_that_cannot_be_indexed_is_refused():
    X, y = task()
    for pool in (iter([X]), DataLoader(TensorDataset(X), shuffle=True)):
        with pytest.raises(InputError, match="must have a length and be indexed"):
            Run(pool, Truth(y), batch=5, rounds=1)


@pytest.mark.parametrize(
    ("picks", "message"),
    [
        ([1, 2], "asks for 3 different rows"),
        ([1, 1, 2], "asks for 3 different rows"),
        ([1, 2, 500], "between 0 and 119"),
        ([-1, 2, 3], "between 0 and 119"),
    ],
)
def test_impossible_picks_are_refused(picks, message):
    X, y = task()
    run = Run(X, Truth(y), batch=3, rounds=2)
    free = np.setdiff1d(np.arange(10), run.rows)
    replaced = [int(free[p]) if 0 <= p < 5 else p for p in picks]
    with pytest.raises(InputError, match=message):
        run.tell(np.asarray(replaced))
    with pytest.raises(InputError, match="asked for before"):
        run.tell(run.rows[:3])


def test_what_is_no_oracle_is_refused():
    with pytest.raises(InputError, match=r"method answer\(rows\), got a list.*oracles\.Truth"):
        next(loop(torch.zeros(9, 2), [0] * 9, batch=2, rounds=1))


def test_an_oracle_that_answers_what_it_was_not_asked_is_refused():
    X, y = task()

    class Chatty:
        def answer(self, rows):
            return Answers(np.arange(3), y[:3], 3.0)

    with pytest.raises(InputError, match="rows it was asked for"):
        Run(X, Chatty(), batch=3, rounds=1)


@pytest.mark.parametrize("embedded", [False, True])
def test_a_round_keeps_to_limits(embedded):
    torch.manual_seed(0)
    pool, model = torch.randn(80, 4), torch.nn.Linear(4, 2)
    site = np.arange(80) % 8
    oracle = askance.oracles.Truth((pool[:, 0] > 0).long())
    for run in askance.loop(pool, oracle, strategy="margin", batch=8, rounds=3):
        asked = askance.embed(model, pool) if embedded else model
        picks = run.ask(asked, groups=site, at_most=1, costs=np.full(80, 2.0), budget=10)
        if len(picks):
            assert len(picks) == 5
            assert len(set(site[picks.indices])) == 5
            assert "5 of 8 points picked" in picks.notes[0]
    assert [len(batch) for batch in run.picks] == [5, 5, 5]
    assert len(run.rows) == 23


@pytest.mark.parametrize("first", ["random", "maxherding"])
def test_excluded_rows_are_never_asked_for(first):
    X, y = task()
    closed = np.arange(0, N, 2)
    mask = np.isin(np.arange(N), closed)
    asked = []
    for exclude in (closed, mask):
        for run in loop(
            X, Truth(y), strategy="badge", batch=10, rounds=5, first=first, exclude=exclude
        ):
            run.ask(network(0))
        assert sorted(run.asked.tolist()) == sorted(set(range(N)) - set(closed.tolist()))
        asked.append(run.asked.tolist())
    assert asked[0] == asked[1]


def test_excluded_rows_are_told_of():
    X, y = task()
    options = {"batch": 4, "rounds": 2, "exclude": [3, 5]}
    with pytest.raises(InputError, match="the pool has 120, 118 of them free"):
        Run(X, Truth(y), **{**options, "batch": 40})
    with pytest.raises(InputError, match="between 0 and 119, got 200"):
        Run(X, Truth(y), **{**options, "exclude": [200]})
    with pytest.raises(InputError, match="exclude rows by index or by mask"):
        Run(X, Truth(y), **{**options, "exclude": ["a"]})
    with pytest.raises(InputError, match=r"rows \[3, 5\] are excluded"):
        Run(X, Truth(y), **options, first=np.array([3, 5, 0, 1]))
    run = Run(X, Truth(y), **options, first=np.array([0, 1, 2, 4]))
    with pytest.raises(InputError, match=r"rows \[5\] are excluded"):
        run.tell(np.array([5, 6, 7, 8]))
