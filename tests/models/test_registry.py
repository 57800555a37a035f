"""Networks by name: weights from the draws alone, a user's own, and what is refused."""

from __future__ import annotations

import random
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from askance import models
from askance.errors import InputError, UnknownError
from askance.seeding import Draws

OWN = '''
import random

import numpy as np
import torch
from torch import nn

constant = 3
torch.manual_seed(constant)  # as a careless module does when it is imported
calls = []


def net(shape, classes, width=7):
    calls.append((shape, classes, width))
    return nn.Sequential(
        nn.Flatten(), nn.Linear(shape[0], width), nn.BatchNorm1d(width), nn.Linear(width, classes)
    )


def anything(**named):
    return net(**named)


def double(shape, classes):
    return net(shape, classes).double()


def noisy(shape, classes):
    """Weights from all three generators."""
    model = nn.Linear(shape[0], classes)
    with torch.no_grad():
        model.bias[0] = random.random()
        model.bias[1] = float(np.random.random())
    return model


class Counting(nn.Module):
    """Writes to a buffer in evaluation mode too."""

    def __init__(self, shape, classes):
        super().__init__()
        self.linear = nn.Linear(shape[0], classes)
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        self.seen += len(x)
        return self.linear(x)


def positional(inputs, outputs):
    return nn.Linear(inputs, outputs)


def needy(shape, classes, depth):
    return nn.Linear(shape[0], classes)


def broken(shape, classes):
    raise KeyError("weights")


def nothing(shape, classes):
    pass


def cls(shape, classes):
    return nn.Linear


def lazy(shape, classes):
    return nn.LazyLinear(classes)


def narrow(shape, classes):
    return nn.Linear(shape[0], classes - 1)


def other_shape(shape, classes):
    return nn.Linear(shape[0] + 1, classes)


class Pair(nn.Module):
    def __init__(self, shape, classes):
        super().__init__()
        self.linear = nn.Linear(shape[0], classes)

    def forward(self, x):
        return self.linear(x), x
'''


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A module `own_networks` of the user's, importable for one test."""
    (tmp_path / "own_networks.py").write_text(OWN)
    (tmp_path / "own_damaged.py").write_text("import no_such_package\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in ("own_networks", "own_damaged"):
        sys.modules.pop(name, None)


def build(name: str, seed: int = 0, round: int = 0, **options: object) -> nn.Module:
    return models.build(name, (4,), 3, Draws(seed=seed, round=round), **options)


def weights(model: nn.Module) -> torch.Tensor:
    return torch.cat([tensor.flatten() for tensor in model.state_dict().values()])


def generators() -> list[object]:
    numpy = np.random.get_state()  # noqa: NPY002
    return [random.getstate(), numpy[1].tolist(), numpy[2], torch.get_rng_state().tolist()]


def test_names_and_classes():
    assert models.names() == ["mlp", "linear", "lenet", "vgg16", "resnet18"]
    assert [models.get(name) for name in models.names()] == [
        models.MLP, models.Linear, models.LeNet, models.VGG16, models.ResNet18,
    ]  # fmt: skip


# Weights


@pytest.mark.parametrize("name", models.names())
def test_weights_depend_on_the_draws_alone(name):
    def made(seed, round):
        return weights(models.build(name, (3, 32, 32), 3, Draws(seed=seed, round=round)))

    first = made(5, 2)
    torch.manual_seed(99)
    assert torch.equal(first, made(5, 2))
    assert not torch.equal(first, made(5, 3))
    assert not torch.equal(first, made(6, 2))


@settings(deadline=None, max_examples=25)
@given(a=st.tuples(*[st.integers(0, 3)] * 2), b=st.tuples(*[st.integers(0, 3)] * 2))
def test_weights_are_equal_exactly_where_the_draws_are(a, b):
    assert torch.equal(weights(build("mlp", *a)), weights(build("mlp", *b))) == (a == b)


@pytest.mark.parametrize("name", ["mlp", "own_networks:noisy", "own_networks:broken"])
@pytest.mark.usefixtures("own")
def test_the_global_generators_are_left_alone(name):
    torch.manual_seed(4)
    before = generators()
    if name.endswith("broken"):
        with pytest.raises(InputError):
            build(name)
    else:
        build(name)
    assert generators() == before


@pytest.mark.skipif(torch.cuda.is_initialized(), reason="CUDA is already in use")
def test_no_seed_is_left_waiting_for_cuda():
    waiting = len(torch.cuda._queued_calls)
    build("mlp")
    assert len(torch.cuda._queued_calls) == waiting


@pytest.mark.usefixtures("own")
def test_a_users_weights_depend_on_the_draws_alone_whatever_generator_they_use():
    first = weights(build("own_networks:noisy", seed=1))
    random.seed(8), np.random.seed(8), torch.manual_seed(8)  # noqa: NPY002
    assert torch.equal(first, weights(build("own_networks:noisy", seed=1)))
    assert (first != weights(build("own_networks:noisy", seed=2))).all()


def test_networks_are_made_on_the_cpu_whatever_the_default_device():
    expected = build("mlp")
    with torch.device("meta"):
        model = build("mlp")
    assert torch.equal(weights(model), weights(expected))


# A user's own


@pytest.mark.usefixtures("own")
def test_a_users_factory_is_given_shape_classes_and_options():
    model = models.build("own_networks:net", [np.int64(4)], np.int64(3), Draws(), width=9)
    assert sys.modules["own_networks"].calls == [((4,), 3, 9)]
    assert model(torch.zeros(5, 4)).shape == (5, 3)
    assert models.get("own_networks:net") is sys.modules["own_networks"].net
    assert isinstance(build("own_networks:anything", width=2), nn.Sequential)
    assert next(build("own_networks:double").parameters()).dtype == torch.float64


@pytest.mark.usefixtures("own")
def test_the_trial_leaves_the_network_as_it_was():
    counting = build("own_networks:Counting")
    assert counting.seen == 0
    assert counting.training
    net = build("own_networks:net")
    assert all(module.training for module in net.modules())
    assert net[2].num_batches_tracked == 0
    assert all(p.requires_grad and p.grad is None for p in net.parameters())


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize(
    ("function", "message", "cause"),
    [
        ("absent", "has no 'absent'; define there a function", AttributeError),
        ("constant", "must be a function, it is of type int", None),
        ("positional", "parameters named shape and classes, it has inputs, outputs; add", None),
        ("needy", "it raised TypeError: .*'depth', when called with shape=\\(4,\\)", TypeError),
        ("broken", "must return a torch.nn.Module, it raised KeyError: 'weights'", KeyError),
        ("nothing", "must return a torch.nn.Module, it returned NoneType$", None),
        ("cls", "it returned type; return an instance, not the class", None),
        ("lazy", r"weight, bias are lazy; call the network once on torch.zeros\(2, 4\)", None),
        ("narrow", r"logits of shape \(B, classes\), here \(2, 3\), it returned \(2, 2\)", None),
        ("Pair", r"here \(2, 3\), it returned tuple; end the network in a linear layer", None),
        (
            "other_shape",
            r"must take batches of shape \(B, 4\), one of shape \(2, 4\)",
            RuntimeError,
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:Lazy modules")
def test_a_users_factory_that_does_not_do(function, message, cause):
    with pytest.raises(InputError, match=message) as caught:
        build(f"own_networks:{function}")
    assert isinstance(caught.value.__cause__, cause or type(None))


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize("name", ["no_such_module:net", "own_damaged:net", ".relative:net"])
def test_a_module_that_cannot_be_imported(name):
    with pytest.raises(
        InputError, match=r"not be imported .*put its folder on PYTHONPATH"
    ) as caught:
        build(name)
    assert caught.value.__cause__ is not None


@pytest.mark.parametrize("name", [":", "module:", ":function"])
def test_half_a_name(name):
    with pytest.raises(InputError, match="must be a module and a function in it"):
        build(name)


# Refusals


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(
        UnknownError, match="unknown model 'lenet5': did you mean 'lenet'"
    ) as caught:
        build("lenet5")
    assert all(name in str(caught.value) for name in (*models.names(), "module:function"))
    with pytest.raises(UnknownError, match="unknown model None"):
        build(None)


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mlp", "model 'mlp' has no option 'depth'; its options: init"),
        ("resnet18", "model 'resnet18' has no option 'depth'; its options: stem, init"),
        ("own_networks:net", "model 'own_networks:net' has no option 'depth'; its options: width"),
    ],
)
def test_an_unknown_option_lists_the_known_ones(name, message):
    with pytest.raises(InputError, match=message):
        build(name, depth=3)


@pytest.mark.parametrize("shape", [(), 4, None, (0,), (3, -1), (3, 2.5), "32", (True,)])
def test_a_shape_that_cannot_be(shape):
    with pytest.raises(InputError, match="shape must be"):
        models.build("mlp", shape, 3, Draws())


@pytest.mark.parametrize("classes", [0, -2, 2.0, True, None])
def test_a_number_of_classes_that_cannot_be(classes):
    with pytest.raises(InputError, match="classes must be a whole number ≥ 1"):
        models.build("mlp", (4,), classes, Draws())
