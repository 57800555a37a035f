"""Training against its equations, and every engine against the others."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from askance import models
from askance.errors import InputError
from askance.seeding import Draws
from askance.training import ENGINES, Recipe, TrainingJob, chosen, evaluate, fit, stacked
from askance.training import fitted as fitted_module
from tests.naive import training as naive

C = 4


def build_mlp(draws: Draws) -> nn.Module:
    return models.build("mlp", (6,), C, draws)


def points(shape: tuple[int, ...], count: int = 60) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    X = torch.randn(count, *shape, generator=generator, dtype=torch.float64)
    return X, torch.arange(count) % C


def job(y: torch.Tensor, rows, lr: float = 0.01, seed: int = 0, round: int = 0) -> TrainingJob:
    rows = np.asarray(rows)
    return TrainingJob(rows, y[torch.from_numpy(rows)], lr, Draws(seed, round))


def same(a: nn.Module, b: nn.Module, within: float) -> None:
    for (name, p), q in zip(a.state_dict().items(), b.state_dict().values(), strict=True):
        assert torch.allclose(p.double(), q.double(), rtol=within, atol=within), name


@settings(max_examples=12, deadline=None)
@given(
    L=st.integers(1, 21),
    seed=st.integers(0, 50),
    batch_size=st.integers(1, 9),
    momentum=st.sampled_from([0.0, 0.5, 0.9]),
    engine=st.sampled_from(["one", "stacked"]),
)
def test_training_follows_its_equations(L, seed, batch_size, momentum, engine):
    X, y = points((6,))
    recipe = Recipe(epochs=3, batch_size=batch_size, momentum=momentum)
    one = job(y, range(7, 7 + L), lr=0.05, seed=seed, round=2)
    ours = fit(build_mlp, X, [one], recipe, precision="float64", training=engine).model(0)
    twin = naive.train(
        build_mlp(Draws(seed, 2)).double(),
        X[7 : 7 + L],
        y[7 : 7 + L],
        one.order(3),
        lr=0.05,
        momentum=momentum,
        batch_size=batch_size,
    )
    same(ours, twin, 1e-10)


NETWORKS = [
    ("mlp", (6,), {}),
    ("lenet", (3, 32, 32), {}),
    ("vgg16", (3, 32, 32), {}),
    ("resnet18", (3, 32, 32), {}),
]


@pytest.mark.parametrize(("name", "shape", "options"), NETWORKS)
def test_a_stack_equals_its_networks_trained_alone(name, shape, options):
    """Other seeds, sets and learning rates side by side; sizes that leave a smaller last batch."""
    small = name in ("mlp", "lenet")
    X, y = points(shape, 12 if small else 7)

    def build(draws: Draws) -> nn.Module:
        return models.build(name, shape, C, draws, **options)

    recipe = Recipe(epochs=3 if small else 1, batch_size=4 if small else 3)
    L = 10 if small else 5
    jobs = [
        job(y, range(L), lr=0.01, seed=0, round=1),
        job(y, range(2, 2 + L), lr=0.001, seed=1, round=1),
    ]
    if small:
        jobs.append(job(y, range(3), lr=0.02, seed=1, round=0))  # of another size
    alone = fit(build, X, jobs, recipe, precision="float64", training="one")
    stack = fit(build, X, jobs, recipe, precision="float64", training="stacked")
    for place in range(len(jobs)):
        a, b = alone.model(place), stack.model(place)
        assert not a.training
        assert not b.training
        same(a, b, 1e-10)
    points_all = X
    X, y = (X, y) if small else (X[:2], y[:2])
    for a, b in zip(alone.evaluate(X, y), stack.evaluate(X, y), strict=True):
        assert a.accuracy == b.accuracy
        assert (a.balanced_accuracy, a.macro_f1) == (b.balanced_accuracy, b.macro_f1)
        assert a.loss == pytest.approx(b.loss, rel=1e-9)
    for a, b in zip(
        alone.evaluate_training(points_all), stack.evaluate_training(points_all), strict=True
    ):
        assert a.accuracy == b.accuracy
        assert a.loss == pytest.approx(b.loss, rel=1e-9)
    for a, b in zip(alone.embed(X), stack.embed(X), strict=True):
        assert torch.allclose(a.logits, b.logits, rtol=1e-9, atol=1e-9)
        assert torch.allclose(a.features, b.features, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("engine", ["one", "stacked"])
def test_a_job_is_decided_by_its_seed_and_round_alone(engine):
    X, y = points((6,))
    recipe = Recipe(epochs=2)
    X = X.float()
    jobs = [job(y, range(20)), job(y, range(20), seed=1), job(y, range(20), round=1)]
    state = torch.random.get_rng_state()
    fitted = fit(build_mlp, X, jobs, recipe, training=engine)
    first, *others = (fitted.model(place) for place in range(3))
    again = fit(build_mlp, X, jobs[:1], recipe, training=engine).model(0)
    assert torch.equal(torch.random.get_rng_state(), state)
    same(first, again, 0.0 if engine == "one" else 1e-6)
    for other in others:
        assert not torch.allclose(next(other.parameters()), next(first.parameters()))


def test_the_same_job_is_trained_once():
    X, y = points((6,))
    built = []

    def build(draws: Draws) -> nn.Module:
        built.append(draws)
        return build_mlp(draws)

    jobs = [job(y, range(9)), job(y, range(9), seed=1), job(y, range(9)), job(1 - y % 2, range(9))]
    fitted = fit(build, X.float(), jobs, Recipe(epochs=1), training="one")
    assert len(fitted) == 4
    assert fitted.model(0) is fitted.model(2)
    assert fitted.model(0) is not fitted.model(3)  # other labels: another job
    assert len(built) == 3


def test_global_settings_come_back():
    X, y = points((6,))

    def global_settings():
        return (
            torch.are_deterministic_algorithms_enabled(),
            torch.get_float32_matmul_precision(),
            torch.backends.cudnn.allow_tf32,
            torch.backends.cudnn.deterministic,
            torch.backends.cudnn.benchmark,
            torch.is_grad_enabled(),
        )

    with torch.no_grad():
        before = global_settings()
        fit(build_mlp, X.float(), [job(y, range(9))], Recipe(epochs=1), precision="tf32")
        assert global_settings() == before


def test_bfloat16_trains_and_keeps_float32_weights():
    X, y = points((6,))
    fitted = fit(build_mlp, X.float(), [job(y, range(30))], Recipe(epochs=5), precision="bf16")
    model = fitted.model(0)
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    score = evaluate(model, X[:30].float(), y[:30], precision="bf16")
    assert 0 <= score.accuracy <= 1


def test_epochs_are_told():
    X, y = points((6,))
    told = []
    jobs = [job(y, range(9)), job(y, range(9), seed=1)]
    for engine, expected in (("one", [(1, 1), (2, 1)] * 2), ("stacked", [(1, 2), (2, 2)])):
        told.clear()
        recipe = Recipe(epochs=2)
        fit(build_mlp, X.float(), jobs, recipe, training=engine, on_epoch=lambda *e: told.append(e))
        assert told == expected


@settings(max_examples=10)
@given(
    sizes=st.lists(st.integers(1, 12), min_size=1, max_size=4),
    at_a_time=st.integers(1, 20),
    engine=st.sampled_from(["one", "stacked"]),
)
def test_what_training_left_is_told_of_each_network_on_its_own_points(sizes, at_a_time, engine):
    """Against the naive sums; jobs of several sizes, one of them twice, in passes of a few points."""
    X, y = points((6,))
    jobs = [job(y, range(place, place + L), seed=place) for place, L in enumerate(sizes)]
    jobs.append(jobs[0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitted_module, "_ROWS_AT_A_TIME", at_a_time)
        fitted = fit(build_mlp, X, jobs, Recipe(epochs=2), precision="float64", training=engine)
        scores = fitted.evaluate_training(X)
    assert len(scores) == len(jobs)
    for place, (score, one) in enumerate(zip(scores, jobs, strict=True)):
        accuracy, loss = naive.score(fitted.model(place), X, y, one.rows)
        assert score.accuracy == accuracy
        assert score.loss == pytest.approx(loss, rel=1e-9)
        means = naive.by_class(fitted.model(place), X, y, one.rows)
        assert (score.balanced_accuracy, score.macro_f1) == pytest.approx(means, rel=1e-12)


@settings(max_examples=20)
@given(
    answers=st.lists(st.tuples(*[st.integers(0, 4)] * 2), min_size=1, max_size=30),
    batch_size=st.integers(1, 8),
)
def test_means_by_class_leave_out_the_classes_no_point_has(answers, batch_size):
    """Against the naive means; the network answers what it is given."""
    y, guesses = torch.tensor(answers).T
    logits = torch.nn.functional.one_hot(guesses, 5).double()
    score = evaluate(nn.Identity(), logits, y, precision="float64", batch_size=batch_size)
    means = naive.by_class(nn.Identity(), logits, y, range(len(y)))
    assert (score.balanced_accuracy, score.macro_f1) == pytest.approx(means, rel=1e-12)
    assert score.accuracy == float((guesses == y).double().mean())


def test_evaluation_counts_and_averages():
    class Fixed(nn.Module):
        def forward(self, x):
            return x

    logits = torch.tensor([[4.0, 0.0], [0.0, 1.0], [3.0, 1.0]])
    labels = torch.tensor([0, 0, 0])
    score = evaluate(Fixed(), logits, labels, batch_size=2)
    losses = [np.log(np.exp(row).sum()) - row[0] for row in logits.numpy().astype(float)]
    assert score.accuracy == pytest.approx(2 / 3)
    assert score.balanced_accuracy == pytest.approx(2 / 3)
    assert score.macro_f1 == pytest.approx(0.8)  # right 2 of 3, and both answers of that class
    assert score.loss == pytest.approx(np.mean(losses))


def test_an_order_visits_every_point_once_an_epoch():
    _, y = points((6,))
    order = job(y, range(17), seed=4, round=3).order(6)
    assert order.shape == (6, 17)
    assert all(sorted(epoch) == list(range(17)) for epoch in order.tolist())
    assert len({tuple(epoch) for epoch in order.tolist()}) == 6


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Recipe(epochs=0), "epochs must be a whole number"),
        (lambda: Recipe(batch_size=2.5), "batch_size must be a whole number"),
        (lambda: Recipe(momentum=1.0), r"momentum must be in \[0, 1\)"),
        (
            lambda: TrainingJob(np.empty(0), torch.empty(0), 0.1, Draws()),
            "at least one labelled row",
        ),
        (
            lambda: TrainingJob(np.arange(2), torch.zeros(2), 0.0, Draws()),
            "learning_rate must be above 0",
        ),
        (
            lambda: chosen("fast", torch.device("cpu"), build_mlp),
            "training must be one of auto, one",
        ),
        (lambda: chosen("captured", torch.device("cpu"), build_mlp), "records CUDA graphs"),
        (lambda: chosen("streams", torch.device("cpu"), build_mlp), "use 'one' or 'stacked'"),
    ],
)
def test_impossible_training_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_rows_outside_the_inputs_and_unknown_precisions_are_refused():
    X, y = points((6,))
    outside = TrainingJob(np.array([3, 60]), y[:2], 0.1, Draws())
    with pytest.raises(InputError, match="between 0 and 59"):
        fit(build_mlp, X, [outside], Recipe())
    with pytest.raises(InputError, match="precision must be one of"):
        fit(build_mlp, X, [job(y, range(3))], Recipe(), precision="float8")


def test_auto_is_one_by_one_on_a_cpu_and_a_stack_on_a_gpu():
    assert chosen("auto", torch.device("cpu"), build_mlp) == "one"
    assert chosen("auto", torch.device("cuda"), build_mlp) == "stacked"
    assert chosen("auto", torch.device("cuda"), lambda draws: nn.Dropout()) == "one"
    assert set(ENGINES) == {"auto", "one", "captured", "stacked", "streams"}


def test_what_does_not_fit_is_trained_in_smaller_stacks(monkeypatch):
    X, y = points((6,))
    jobs = [job(y, range(9), seed=seed) for seed in range(7)]
    recipe = Recipe(epochs=2)
    expected = fit(build_mlp, X, jobs, recipe, precision="float64", training="stacked")
    sizes = []
    real = stacked._Fit.__init__

    def small(self, build, inputs, some, recipe):
        sizes.append(len(some))
        if len(some) > 2:
            raise torch.OutOfMemoryError("no room")
        real(self, build, inputs, some, recipe)

    monkeypatch.setattr(stacked._Fit, "__init__", small)
    split = fit(build_mlp, X, jobs, recipe, precision="float64", training="stacked")
    assert sizes[:2] == [7, 3]  # all; then 3 and 4
    assert max(sizes[2:]) == 2
    for place in range(7):
        same(split.model(place), expected.model(place), 1e-12)


def test_memory_that_cannot_hold_one_network_is_an_error(monkeypatch):
    X, y = points((6,))

    def never(*args):
        raise torch.OutOfMemoryError("no room")

    monkeypatch.setattr(stacked._Fit, "__init__", never)
    with pytest.raises(torch.OutOfMemoryError):
        fit(build_mlp, X.float(), [job(y, range(3))], Recipe(), training="stacked")
