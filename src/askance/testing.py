"""The contract every rule is held to, askance's own and third parties' alike.

    >>> import askance.testing
    >>> askance.testing.check_strategy("entropy")

`CONTRACT` names each check, so that a test suite can run them one by one:

    @pytest.mark.parametrize("check", askance.testing.CONTRACT)
    def test_my_rule(check):
        askance.testing.check_strategy(MyRule(), checks=[check])
"""

from __future__ import annotations

import copy
import random
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from askance import strategies
from askance.embedding.committee import committee
from askance.embedding.guard import default_dtype, preserved_rng
from askance.errors import SelectionWarning, UnknownError
from askance.selection import Selection, select
from askance.strategies import Pointwise, Strategy
from askance.strategies.base import picks_under_limits

_POOL, _LABELED, _PICKS, _INPUTS, _CLASSES = 61, 14, 9, 6, 4


class _Net(nn.Module):
    """Dropout and batch-norm, a ReLU the head sees through, and a head that is not registered last."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(7, _CLASSES)
        self.body = nn.Linear(_INPUTS, 7)
        self.norm = nn.BatchNorm1d(7)
        self.drop = nn.Dropout(0.5)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.drop(torch.relu(self.norm(self.body(x)))))
        return out


class _Poison:
    """A label that cannot be looked at."""

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("a pool label was read")

    __array__ = __bool__ = __eq__ = __float__ = __getattr__ = __hash__ = __index__ = _refuse
    __int__ = __iter__ = __len__ = __lt__ = __repr__ = _refuse


class _Pairs(Dataset[Any]):
    """Items (x, label)."""

    def __init__(self, inputs: Tensor, labels: Any) -> None:
        self.inputs, self.labels = inputs, labels

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: int) -> Any:
        return self.inputs[index], self.labels[index]


class _Task:
    """A small problem, in float64 so that rounding cannot hide or make a difference."""

    def __init__(self, rule: Strategy, seed: int = 0, dtype: torch.dtype = torch.float64) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.rule = rule
        with torch.random.fork_rng(devices=[]), default_dtype(torch.float32):
            torch.manual_seed(seed)
            self.model = _Net().to(dtype).train()
        with torch.no_grad():
            self.model.norm.running_mean.normal_(generator=generator)  # type: ignore[union-attr]
            self.model.head.weight.mul_(4)
        self.pool = torch.randn(_POOL, _INPUTS, dtype=dtype, generator=generator)
        inputs = torch.randn(_LABELED, _INPUTS, dtype=dtype, generator=generator)
        if rule.multilabel:
            labels = torch.randint(2, (_LABELED, _CLASSES), generator=generator)
        else:
            labels = torch.randint(_CLASSES, (_LABELED,), generator=generator)
        self.labeled = inputs, labels

    def select(
        self, pool: Any = None, n: int = _PICKS, *, keep_scores: bool = False, **options: Any
    ) -> Selection:
        """`askance.select` by the task's rule, on its own pool when None is given."""
        model = committee(self.model, 5) if "members" in self.rule.needs else self.model
        pool = self.pool if pool is None else pool
        options["keep_scores"] = keep_scores and isinstance(self.rule, Pointwise)
        return select(model, self.labeled, pool, n, strategy=self.rule, **options)


def _check(holds: bool, rule: Strategy, what: str) -> None:
    if not holds:
        raise AssertionError(f"strategy {rule.name!r}: {what}")


def _draws(rule: Strategy) -> bool:
    """Whether the rule draws random numbers from a pool of the task's size."""
    return rule.random and rule.draws_above < _POOL


def unique_in_pool_exactly_n(rule: Strategy) -> None:
    """n different positions in the pool, for one point, some, and all of them."""
    task = _Task(rule)
    for n in (1, _PICKS, _POOL):
        picks = task.select(n=n).indices
        _check(picks.dtype == np.int64 and picks.shape == (n,), rule, f"gave {picks!r} for n = {n}")
        _check(len(set(picks.tolist())) == n, rule, "picked a point twice")
        _check(picks.min() >= 0 and picks.max() < _POOL, rule, "picked outside the pool")


def finite_scores_best_first(rule: Strategy) -> None:
    """Finite float64 scores; a pointwise rule's picks are the best of its pool scores, in order."""
    result = _Task(rule).select(keep_scores=True)
    _check(result.scores.dtype == np.float64, rule, "scores are not float64")
    _check(bool(np.isfinite(result.scores).all()), rule, "a score is not finite")
    if isinstance(rule, Pointwise):
        assert result.pool_scores is not None
        best = np.argsort(-result.pool_scores, kind="stable")[:_PICKS]
        _check(best.tolist() == result.indices.tolist(), rule, "picks are not the highest scores")


def same_seed_same_picks(rule: Strategy) -> None:
    """A seed decides everything, global generators nothing; where the rule draws, seeds differ."""
    task = _Task(rule)
    first = task.select(seed=3)
    with preserved_rng():
        for reseed in (random.seed, np.random.seed, torch.manual_seed):
            reseed(12345)
        again = task.select(seed=3)
    _check(first.indices.tolist() == again.indices.tolist(), rule, "same seed, other picks")
    _check(first.scores.tolist() == again.scores.tolist(), rule, "same seed, other scores")
    others = [task.select(seed=seed).indices.tolist() for seed in range(4, 9)]
    differs = any(picks != first.indices.tolist() for picks in others)
    draws = _draws(rule)
    _check(differs == draws, rule, f"random = {rule.random}, but seeds say otherwise")


def invariant_to_batches_and_containers(rule: Strategy) -> None:
    """The same picks whatever the batch size and whatever the pool is wrapped in."""
    task = _Task(rule)
    expected = task.select(keep_scores=True)
    pairs = _Pairs(task.pool, torch.zeros(_POOL))
    ways: list[tuple[str, Any, int]] = [
        *((f"batches of {size}", task.pool, size) for size in (1, 7, 64)),
        ("a NumPy array", task.pool.numpy(), 256),
        ("a list", list(task.pool), 5),
        ("a Dataset", pairs, 8),
        ("a DataLoader", DataLoader(pairs, batch_size=10), 256),
    ]
    for way, pool, batch_size in ways:
        result = task.select(pool, batch_size=batch_size, keep_scores=True)
        same = result.indices.tolist() == expected.indices.tolist()
        _check(same, rule, f"other picks from {way}")
        # A distance of 0 found as √(‖x‖² − 2⟨x,y⟩ + ‖y‖²) is the root of a rounding: √2⁻⁵² ≈ 1.5e-8.
        close = np.allclose(result.scores, expected.scores, rtol=1e-6, atol=1e-7)
        _check(close, rule, f"other scores from {way}")


def equivariant_to_order(rule: Strategy) -> None:
    """A rule that draws nothing follows the points when the pool is shuffled."""
    if _draws(rule):
        return
    task = _Task(rule)
    order = torch.randperm(_POOL, generator=torch.Generator().manual_seed(1))
    plain, shuffled = task.select(keep_scores=True), task.select(task.pool[order], keep_scores=True)
    moved = order[torch.from_numpy(shuffled.indices)].tolist()
    _check(moved == plain.indices.tolist(), rule, "picks depend on the order of the pool")
    if plain.pool_scores is not None and shuffled.pool_scores is not None:
        close = np.allclose(shuffled.pool_scores, plain.pool_scores[order.numpy()], rtol=1e-6)
        _check(close, rule, "scores depend on the order of the pool")


def leaves_model_and_rng_alone(rule: Strategy) -> None:
    """Weights, gradients, statistics, flags, hooks and global generators are as they were."""
    task = _Task(rule)
    for parameter in task.model.parameters():
        parameter.grad = torch.ones_like(parameter)
    task.model.body.weight.requires_grad_(False)
    task.model.norm.eval()
    before, kept = _snapshot(task.model), copy.deepcopy(task.model.state_dict())
    rng = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    task.select(_Pairs(task.pool, torch.zeros(_POOL)))
    after = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    for name, value in task.model.state_dict().items():
        _check(torch.equal(value, kept[name]), rule, f"changed {name} of the model")
    _check(_snapshot(task.model) == before, rule, "changed flags, gradients or hooks of the model")
    same = rng[0] == after[0] and torch.equal(rng[2], after[2])
    same = same and all(np.array_equal(a, b) for a, b in zip(rng[1], after[1], strict=True))
    _check(same, rule, "drew from a global random generator")


def never_reads_pool_labels(rule: Strategy) -> None:
    """Labels in the pool that raise when touched stay untouched."""
    task = _Task(rule)
    poisoned = _Pairs(task.pool, [_Poison()] * _POOL)
    for pool in (poisoned, DataLoader(poisoned, batch_size=7)):
        picks = task.select(pool).indices.tolist()
        _check(picks == task.select().indices.tolist(), rule, "other picks with labels in the pool")


def never_picks_excluded(rule: Strategy) -> None:
    """Excluded points are not picked, also when all others are."""
    task = _Task(rule)
    excluded = task.select().indices
    rest = task.select(n=_POOL - len(excluded), exclude=excluded).indices
    _check(not set(rest.tolist()) & set(excluded.tolist()), rule, "picked an excluded point")


def keeps_to_limits(rule: Strategy) -> None:
    """Quotas, minimums and a budget hold; limits that rule nothing out change nothing.

    A batch rule whose `pick` takes no `eligible` is refused under limits, and not held to this.
    """
    if not picks_under_limits(rule):
        return
    task, groups = _Task(rule), np.arange(_POOL) % 5
    for n in (_PICKS, 10):
        picks = task.select(n=n, groups=groups, at_most=2).indices
        _check(len(picks) == n, rule, f"gave {len(picks)} picks for n = {n} under a quota")
        _check(
            int(np.bincount(groups[picks]).max()) <= 2, rule, "picked more of a group than it may"
        )
    picks = task.select(n=6, groups=groups, at_least={0: 4, 3: 2}).indices
    _check(np.bincount(groups[picks]).tolist() == [4, 0, 0, 2], rule, "fewer picks than at_least")
    costs = 1.0 + np.arange(_POOL) % 7
    picks = task.select(costs=costs, budget=12).indices
    _check(costs[picks].sum() <= 12, rule, "picks cost more than the budget")
    left = np.delete(costs, picks).min()
    _check(len(picks) == _PICKS or costs[picks].sum() + left > 12, rule, "left some of the budget")
    plain = task.select()
    limited = task.select(groups=groups, at_most=_PICKS, costs=np.ones(_POOL), budget=_PICKS)
    same = plain.indices.tolist() == limited.indices.tolist()
    _check(same, rule, "other picks under limits that rule nothing out")


def copes_with_copies(rule: Strategy) -> None:
    """A pool of copies, some of them labelled already, still gives n different rows."""
    task = _Task(rule)
    pool = torch.cat([task.pool[:3].repeat(9, 1), task.labeled[0][:4]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SelectionWarning)  # which says just that
        result = task.select(pool, n=20)
    _check(len(set(result.indices.tolist())) == 20, rule, "picked a row of a pool of copies twice")
    _check(bool(np.isfinite(result.scores).all()), rule, "a score among copies is not finite")


def explains_itself(rule: Strategy) -> None:
    """One explanation a pick, in the order of the picks."""
    result = _Task(rule).select()
    indices = [explanation.index for explanation in result.explain()]
    _check(indices == result.indices.tolist(), rule, "explanations are not those of the picks")


def ignores_default_dtype(rule: Strategy) -> None:
    """The same picks and scores, to the last bit, whatever `torch.set_default_dtype` was given."""
    for dtype in (torch.float64, torch.float32):
        task = _Task(rule, dtype=dtype)
        with default_dtype(torch.float32):
            expected = task.select(keep_scores=True)
        for other in (torch.float64, torch.bfloat16):
            with default_dtype(other):
                result = task.select(keep_scores=True)
            where = f"under the default dtype {other}, for a model in {dtype}"
            same = result.indices.tolist() == expected.indices.tolist()
            _check(same, rule, f"other picks {where}")
            same = result.scores.tolist() == expected.scores.tolist()
            if result.pool_scores is not None and expected.pool_scores is not None:
                same &= np.array_equal(result.pool_scores, expected.pool_scores)
            _check(same, rule, f"other scores {where}")


CONTRACT: dict[str, Callable[[Strategy], None]] = {
    check.__name__: check
    for check in (
        unique_in_pool_exactly_n,
        finite_scores_best_first,
        same_seed_same_picks,
        invariant_to_batches_and_containers,
        equivariant_to_order,
        leaves_model_and_rng_alone,
        never_reads_pool_labels,
        never_picks_excluded,
        keeps_to_limits,
        copes_with_copies,
        ignores_default_dtype,
        explains_itself,
    )
}


def check_strategy(strategy: str | Strategy, *, checks: Iterable[str] | None = None) -> None:
    """Hold a rule to the contract; an AssertionError says which part it breaks.

    Args:
        strategy: a registered name, or an instance.
        checks: names in `CONTRACT`; all of them when None.
    """
    rule = strategies.of(strategy)
    for name in CONTRACT if checks is None else checks:
        if name not in CONTRACT:
            raise UnknownError.of("check", name, CONTRACT)
        CONTRACT[name](rule)


def _snapshot(model: nn.Module) -> list[Any]:
    modules = [
        (m.training, len(m._forward_hooks), len(m._forward_pre_hooks)) for m in model.modules()
    ]
    grads = [
        (p.requires_grad, None if p.grad is None else p.grad.tolist()) for p in model.parameters()
    ]
    return [modules, grads, [(name, id(p)) for name, p in model.named_parameters()]]
