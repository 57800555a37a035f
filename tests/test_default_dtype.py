"""`torch.set_default_dtype` decides nothing: picks, networks and stores are those of float32."""

import numpy as np
import pytest
import torch
from torch import nn

import askance
from askance import models
from askance.embedding.guard import default_dtype
from askance.experiments.spec import load
from askance.pools import Columns, ModelRecipe, ParquetSource, select_from
from askance.seeding import Draws
from askance.training import Recipe, TrainingJob, fit
from tests.experiments import tiny
from tests.pools import worlds
from tests.rules import ONE_MODEL

OTHERS = (torch.float64, torch.bfloat16, torch.float16)
NETWORKS = {"mlp": (6,), "lenet": (3, 32, 32), "vgg16": (3, 32, 32), "resnet18": (3, 32, 32)}


@pytest.fixture(params=OTHERS, ids=str, autouse=True)
def other(request):
    """Each test runs under each of the others, and makes what it compares with under float32."""
    assert torch.get_default_dtype() == torch.float32
    with default_dtype(request.param):
        yield request.param
    assert torch.get_default_dtype() == torch.float32


class Own(nn.Module):
    """A network that leaves the dtype of its tensors to the default."""

    def __init__(self, shape, classes):
        super().__init__()
        self.body = nn.Linear(shape[0], 8)
        self.scale = nn.Parameter(torch.ones(8))
        self.head = nn.Linear(8, classes)

    def forward(self, x):
        return self.head(torch.relu(self.body(x)) * self.scale + torch.linspace(0, 1, 8))


def own(shape, classes):
    return Own(shape, classes)


def embedding(rows, seed, dtype=torch.float32):
    return worlds.embedding(rows, seed, dtype)


def same_networks(one, other):
    one, other = one.state_dict(), other.state_dict()
    assert list(one) == list(other)
    for name, tensor in one.items():
        assert tensor.dtype == other[name].dtype
        assert torch.equal(tensor, other[name]), name


def same_picks(one, other):
    assert one.indices.tolist() == other.indices.tolist()
    assert one.scores.tolist() == other.scores.tolist()
    assert [w.__dict__ for w in one.explain()] == [w.__dict__ for w in other.explain()]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("rule", ONE_MODEL)
def test_picks_from_embeddings_of_every_dtype(rule, dtype):
    pool, seen = (embedding(*made, torch.float32) for made in ((200, 0), (20, 1)))
    pool, seen = (askance.Embedding(e.logits.to(dtype), e.features.to(dtype)) for e in (pool, seen))
    labels = torch.arange(20) % worlds.CLASSES

    def picks():
        return askance.select(None, (seen, labels), pool, 30, strategy=rule)

    actual = picks()
    with default_dtype(torch.float32):
        same_picks(actual, picks())


@pytest.mark.parametrize("name", [*NETWORKS, f"{__name__}:own"])
def test_networks_begin_in_float32(name):
    shape = NETWORKS.get(name, (6,))
    actual = models.build(name, shape, 4, Draws(3, 1))
    assert {p.dtype for p in actual.parameters()} == {torch.float32}
    with default_dtype(torch.float32):
        same_networks(actual, models.build(name, shape, 4, Draws(3, 1)))


@pytest.mark.parametrize("engine", ["one", "stacked"])
@pytest.mark.parametrize("name", ["mlp", "lenet", f"{__name__}:own"])
def test_training_ends_in_the_same_float32_networks(name, engine):
    if engine == "stacked" and ":" in name:
        return  # which cannot be stacked
    shape = NETWORKS.get(name, (6,))
    X = torch.randn(24, *shape, generator=torch.Generator().manual_seed(1), dtype=torch.float32)
    y = torch.arange(24) % 4
    jobs = [TrainingJob(np.arange(16), y[:16], rate, Draws(0, 1)) for rate in (0.01, 0.05)]

    def fitted():
        return fit(
            lambda draws: models.build(name, shape, 4, draws), X, jobs, Recipe(2), training=engine
        )

    actual = fitted()
    results = actual.evaluate(X, y), [e.logits for e in actual.embed(X)]
    with default_dtype(torch.float32):
        expected = fitted()
        assert results[0] == expected.evaluate(X, y)
        assert all(map(torch.equal, results[1], [e.logits for e in expected.embed(X)]))
        for place in range(2):
            same_networks(actual.model(place), expected.model(place))
            assert next(actual.model(place).parameters()).dtype == torch.float32


def test_a_store_holds_the_same_sweep_rounds_and_picks(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    rules = '["random", "powergrad", "badge", "kcenter"]'
    spec = load(tiny.written(tmp_path, strategies=rules))
    tiny.play(spec, tmp_path / "other")
    with default_dtype(torch.float32):
        tiny.play(spec, tmp_path / "float32")
    assert tiny.contents(tmp_path / "other") == tiny.contents(tmp_path / "float32")


def test_a_pool_read_by_a_model_that_is_named(tmp_path):
    X = torch.randn(60, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float32)
    pool = askance.Embedding(X[:, :3].contiguous(), X)
    columns = Columns(features=("features",))
    source = ParquetSource.open(worlds.write(tmp_path / "p", pool, [60]), columns)
    recipe = ModelRecipe(f"{__name__}:seeded")

    def picks():
        return select_from(source, 9, model=recipe, strategy="badge")

    actual = picks()
    with default_dtype(torch.float32):
        expected = picks()
    assert actual.indices.tolist() == expected.indices.tolist()
    assert actual.scores.tolist() == expected.scores.tolist()


def seeded():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))


@pytest.mark.parametrize("rule", ONE_MODEL)
def test_picks_do_not_depend_on_the_default_device(rule):
    """A tensor made without a device would be on one here that holds no numbers."""
    pool, seen = embedding(200, 0), embedding(20, 1)
    labels = torch.arange(20) % worlds.CLASSES
    expected = askance.select(None, (seen, labels), pool, 30, strategy=rule)
    with torch.device("meta"):
        actual = askance.select(None, (seen, labels), pool, 30, strategy=rule)
    same_picks(actual, expected)
