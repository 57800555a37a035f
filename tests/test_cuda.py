"""The same answers on a CUDA device; skipped where there is none."""

import numpy as np
import pytest
import torch
from torch import nn

import askance
from askance import models
from askance.loop import Run, ask_together
from askance.picking import coverage
from askance.seeding import Draws
from askance.strategies import Grad
from askance.testing import CONTRACT, check_strategy
from askance.training import Recipe, TrainingJob, fit, numerics, sparse
from askance.training import maps as ways
from askance.training.stack import Stack
from tests.rules import ONE_MODEL

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here"),
    # torch's own backward thread makes its context at its first use, and says so.
    pytest.mark.filterwarnings("ignore:Attempting to run cuBLAS"),
]

RULES = [*ONE_MODEL, Grad(parameters="all"), Grad(reference_size=7)]


def problem(dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 5)
        )
    images = torch.randn(420, 3, 8, 8, generator=generator, dtype=dtype)
    labels = torch.randint(5, (20,), generator=generator)
    return model.to(dtype), (images[:20], labels), images[20:]


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_picks_are_those_of_the_cpu(rule):
    model, labeled, pool = problem()
    on_cpu = askance.select(model, labeled, pool, 30, strategy=rule)
    on_cuda = askance.select(model, labeled, pool, 30, strategy=rule, device="cuda")
    assert on_cuda.indices.tolist() == on_cpu.indices.tolist()
    np.testing.assert_allclose(on_cuda.scores, on_cpu.scores, rtol=1e-6)
    assert [e.pseudo_label for e in on_cuda.explain()] == [e.pseudo_label for e in on_cpu.explain()]


@pytest.mark.parametrize("rule", ["grad-cover", "maxherding", "grad-cover-shortlist"])
def test_coverage_on_the_device_asks_the_host_nothing(rule, monkeypatch):
    generator = torch.Generator().manual_seed(0)
    h = torch.randn(6000, 48, generator=generator).relu()
    z = h @ torch.randn(48, 7, generator=generator) / 4
    pool, seen = askance.Embedding(z[300:], h[300:]), askance.Embedding(z[:300], h[:300])
    labels = torch.arange(300) % 7
    on_cpu = askance.select(None, (seen, labels), pool, 60, strategy=rule)
    monkeypatch.delattr(coverage, "_Greedy")
    seen, pool = (e.mapped(torch.Tensor.cuda) for e in (seen, pool))
    on_cuda = askance.select(None, (seen, labels), pool, 60, strategy=rule)
    assert on_cuda.indices.tolist() == on_cpu.indices.tolist()
    np.testing.assert_allclose(on_cuda.scores, on_cpu.scores, rtol=1e-5)


def test_a_model_moved_for_scoring_comes_back_bit_for_bit():
    model, labeled, pool = problem()
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    before = {k: (v.data_ptr(), v.device) for k, v in model.state_dict(keep_vars=True).items()}
    askance.select(model, labeled, pool, 5, device="cuda")
    after = {k: (v.data_ptr(), v.device) for k, v in model.state_dict(keep_vars=True).items()}
    assert after == before
    assert all(p.grad.device.type == "cpu" for p in model.parameters())


@pytest.mark.parametrize("rule", ["grad", "badge", "kcenter", "egl"])
def test_autocast_scores_are_those_of_full_precision_up_to_half_precision(rule):
    model, labeled, pool = problem(torch.float32)
    model, full = model.cuda(), askance.select(model.cuda(), labeled, pool, 400, strategy=rule)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        half = askance.select(model, labeled, pool, 400, strategy=rule)
    assert sorted(half.indices.tolist()) == sorted(full.indices.tolist())
    np.testing.assert_allclose(np.sort(half.scores)[-50:], np.sort(full.scores)[-50:], rtol=0.1)


def test_embeddings_on_the_device_are_scored_there():
    model, labeled, pool = problem(torch.float32)
    model = model.cuda()
    seen = askance.embed(model, labeled[0]), labeled[1]
    embedded = askance.embed(model, pool)
    assert embedded.logits.device.type == "cuda"
    direct = askance.select(model, labeled, pool, 25)
    assert askance.select(None, seen, embedded, 25).indices.tolist() == direct.indices.tolist()


@pytest.mark.parametrize("check", ["leaves_model_and_rng_alone", "same_seed_same_picks"])
def test_contract_holds_beside_a_cuda_context(check):
    assert check in CONTRACT
    torch.zeros(1, device="cuda")
    check_strategy("grad", checks=[check])


NETWORKS = [
    ("mlp", (6,)),
    ("lenet", (3, 32, 32)),
    ("vgg16", (3, 32, 32)),
    ("resnet18", (3, 32, 32)),
]


@pytest.mark.parametrize("engine", ["captured", "stacked", "streams"])
@pytest.mark.parametrize(("name", "shape"), NETWORKS)
def test_every_engine_trains_the_networks_of_one_by_one(name, shape, engine):
    """Other seeds, sets and rates side by side, a smaller last batch; in float64, so no digit hides."""
    X = torch.randn(12, *shape, generator=torch.Generator().manual_seed(0)).cuda()
    y = torch.arange(12) % 4

    def build(draws):
        return models.build(name, shape, 4, draws)

    jobs = [
        TrainingJob(np.arange(7) + seed, y[seed : seed + 7], rate, Draws(seed, 1))
        for seed, rate in ((0, 0.01), (1, 0.001), (2, 0.005))
    ]
    recipe = Recipe(epochs=3, batch_size=3)
    alone = fit(build, X, jobs, recipe, precision="float64", training="one")
    other = fit(build, X, jobs, recipe, precision="float64", training=engine)
    for place in range(3):
        ours, theirs = other.model(place).state_dict(), alone.model(place).state_dict()
        for key, value in theirs.items():
            assert torch.allclose(ours[key].double(), value.double(), rtol=1e-8, atol=1e-9), key
    for a, b in zip(other.evaluate(X, y.cuda()), alone.evaluate(X, y.cuda()), strict=True):
        assert a.accuracy == b.accuracy
        assert a.loss == pytest.approx(b.loss, rel=1e-7)


@pytest.mark.parametrize("precision", ["float32", "tf32", "bf16"])
@pytest.mark.parametrize("name", ["lenet", "resnet18"])
def test_a_stack_is_deterministic_and_near_float32(name, precision):
    X = torch.randn(40, 3, 32, 32, generator=torch.Generator().manual_seed(0)).cuda()
    y = torch.arange(40) % 4
    jobs = [TrainingJob(np.arange(19), y[:19], 0.01, Draws(seed)) for seed in range(4)]

    def trained():
        build = lambda draws: models.build(name, (3, 32, 32), 4, draws)  # noqa: E731
        fitted = fit(build, X, jobs, Recipe(epochs=2), precision=precision, training="stacked")
        return [fitted.model(place).state_dict() for place in range(4)], fitted.embed(X)

    (first, embedded), (second, _) = trained(), trained()
    for a, b in zip(first, second, strict=True):
        assert all(torch.equal(a[key], b[key]) for key in a)
    assert all(torch.isfinite(e.logits).all() and len(e) == 40 for e in embedded)


@pytest.mark.parametrize(
    ("precision", "engine", "within"),
    [
        ("float64", "captured", 1e-9),
        ("float64", "stacked", 1e-9),
        ("float64", "streams", 1e-9),
        # On a CPU, where both are dense, float32 and float64 come to weights 8e-6 apart.
        ("float32", "stacked", 1e-4),
    ],
)
def test_sparse_inputs_train_the_networks_of_a_dense_stack(monkeypatch, precision, engine, within):
    """Late steps of the first layer, the same each time to the last bit; on the CPU there are none."""
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(60, 2000, generator=generator)
    lengths = torch.linspace(0.0, 0.05, 60).unsqueeze(1)  # from an empty text to one of 100 words
    X = X * (torch.rand(60, 2000, generator=generator) < lengths)
    y = torch.arange(60) % 4
    jobs = [
        TrainingJob(np.arange(35) + seed, y[seed : seed + 35], rate, Draws(seed, 1))
        for seed, rate in ((0, 0.1), (10, 0.02), (20, 0.05))
    ]
    recipe = Recipe(epochs=40, batch_size=8)
    clocks = []
    settle = sparse.Lazy.settle

    def noted(lazy):
        settle(lazy)
        clocks.append(int(lazy.clock))

    monkeypatch.setattr(sparse.Lazy, "settle", noted)

    def trained(device, engine):
        build = lambda draws: models.build("mlp", (2000,), 4, draws)  # noqa: E731
        fitted = fit(build, X.to(device), jobs, recipe, precision=precision, training=engine)
        return [fitted.model(place).cpu().state_dict() for place in range(3)]

    first, second = trained("cuda", engine), trained("cuda", engine)
    assert clocks == [200] * (2 if engine == "stacked" else 6)
    dense = trained("cpu", "stacked")
    assert len(clocks) == (2 if engine == "stacked" else 6)
    for a, b, c in zip(first, second, dense, strict=True):
        for key in a:
            assert torch.equal(a[key], b[key]), key
            assert torch.allclose(a[key], c[key], rtol=within, atol=within), key


@pytest.mark.parametrize(("name", "count"), [("vgg16", 13), ("resnet18", 20)])
@pytest.mark.parametrize("precision", ["float32", "tf32"])
def test_every_norm_of_a_large_network_is_our_own(name, count, precision, monkeypatch):
    """What they come to: tests/training/test_norms.py."""
    norms = pytest.importorskip("askance.training.norms")
    used, kept = [], ways._norms
    monkeypatch.setattr(ways, "_norms", lambda *maps: used.append(kept(*maps)) or used[-1])
    solos = [models.build(name, (3, 32, 32), 4, Draws(seed)) for seed in range(2)]
    with numerics(torch.device("cuda"), precision):
        Stack(solos).cuda().train()(torch.randn(6, 3, 32, 32, device="cuda"), shared=True)
    assert used == [norms] * count


def test_runs_asked_together_pick_what_each_picks_alone():
    generator = torch.Generator().manual_seed(0)
    pools = [
        askance.Embedding(
            torch.randn(500, 5, generator=generator).cuda(),
            torch.randn(500, 16, generator=generator).relu().cuda(),
        )
        for _ in range(3)
    ]
    X, oracle = torch.zeros(500, 1), askance.oracles.Truth(torch.arange(500) % 5)
    for rule in ("badge", "kcenter", "grad-spread", "powergrad"):
        together = [Run(X, oracle, rule, batch=20, rounds=2, seed=s) for s in range(3)]
        actual = ask_together(together, pools)
        for seed, (picks, pool) in enumerate(zip(actual, pools, strict=True)):
            run = Run(X, oracle, rule, batch=20, rounds=2, seed=seed)
            rows = run.rows
            here = askance.Embedding(pool.logits.cpu(), pool.features.cpu())
            alone = askance.select(
                None,
                (here[rows], run.labels),
                here,
                20,
                strategy=rule,
                seed=run.draws,
                exclude=rows,
            )
            assert picks.indices.tolist() == alone.indices.tolist(), rule
