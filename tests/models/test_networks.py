"""The four networks: their sizes, their features, and that copies of one can be stacked."""

from __future__ import annotations

import copy
import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.func import functional_call, grad, stack_module_state, vmap

import askance
from askance import models
from askance.errors import InputError, UnknownError
from askance.models import MLP, VGG16, LeNet, ResNet18
from askance.seeding import Draws

IMAGE_NETWORKS = ["lenet", "vgg16", "resnet18"]
# Every network that trains, and how it is made.
VARIANTS = [
    pytest.param("mlp", {}, id="mlp"),
    pytest.param("lenet", {}, id="lenet"),
    pytest.param("vgg16", {}, id="vgg16"),
    pytest.param("vgg16", {"batch_norm": False}, id="vgg16-plain"),
    pytest.param("resnet18", {}, id="resnet18"),
    pytest.param("resnet18", {"stem": "imagenet"}, id="resnet18-imagenet"),
    pytest.param("mlp", {"init": "kaiming"}, id="mlp-kaiming"),
]
SHAPE = (3, 32, 32)


def made(name: str, seed: int = 0, shape: tuple[int, ...] = SHAPE, **options: object) -> nn.Module:
    return models.build(name, shape, 5, Draws(seed=seed), **options)


def inputs(count: int, shape: tuple[int, ...] = SHAPE, seed: int = 0) -> Tensor:
    return torch.randn(count, *shape, generator=torch.Generator().manual_seed(seed))


def count(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


def linear(width: int, wider: int) -> int:
    return width * wider + wider


def conv(width: int, wider: int, side: int, bias: bool) -> int:
    return width * wider * side * side + wider * bias


def norm(width: int) -> int:
    return 2 * width


def head(features: int, classes: int) -> int:
    return linear(features, 512) + linear(512, 256) + linear(256, classes)


def vgg_convolutions(channels: int) -> list[tuple[int, int]]:
    widths = [64, 64, 128, 128, 256, 256, 256, 512, 512, 512, 512, 512, 512]
    return list(zip([channels, *widths], widths, strict=False))


def resnet_body() -> int:
    def block(width: int, wider: int) -> int:
        main = conv(width, wider, 3, False) + conv(wider, wider, 3, False) + 2 * norm(wider)
        return main + (conv(width, wider, 1, False) + norm(wider) if width != wider else 0)

    widths = [64, 64, 64, 128, 128, 256, 256, 512, 512]
    return sum(block(*pair) for pair in pairwise(widths))


# Sizes


def test_mlp_has_the_parameters_of_its_layers():
    assert count(MLP((617,), 26)) == 617 * 512 + 512 + 512 * 256 + 256 + 256 * 26 + 26


@pytest.mark.parametrize("channels", [1, 3])
def test_lenet_has_the_parameters_of_its_layers(channels):
    convolutions = (channels * 25 * 6 + 6) + (6 * 25 * 16 + 16)
    assert count(LeNet((channels, 32, 32), 10)) == convolutions + head(400, 10)


@pytest.mark.parametrize("batch_norm", [True, False])
def test_vgg16_has_the_parameters_of_its_layers(batch_norm):
    body = sum(
        conv(width, wider, 3, not batch_norm) + batch_norm * norm(wider)
        for width, wider in vgg_convolutions(1)
    )
    assert count(VGG16((1, 32, 32), 43, batch_norm=batch_norm)) == body + head(512, 43)


@pytest.mark.parametrize(("stem", "side"), [("cifar", 3), ("imagenet", 7)])
def test_resnet18_has_the_parameters_of_its_layers(stem, side):
    first = conv(3, 64, side, False) + norm(64)
    assert count(ResNet18(SHAPE, 10, stem=stem)) == first + resnet_body() + head(512, 10)


@pytest.mark.parametrize(
    ("options", "side"), [({}, 4), ({"stem": "imagenet"}, 1)], ids=["cifar", "imagenet"]
)
def test_resnet18_ends_in_maps_of_the_documented_size(options, side):
    model = made("resnet18", **options).eval()
    assert model.blocks(model.stem(inputs(1))).shape == (1, 512, side, side)


@settings(deadline=None, max_examples=25)
@given(
    shape=st.lists(st.integers(1, 6), min_size=1, max_size=4).map(tuple),
    classes=st.integers(1, 12),
    points=st.integers(1, 4),
)
def test_mlp_takes_any_shape(shape, classes, points):
    model = models.build("mlp", shape, classes, Draws())
    assert model(inputs(points, shape)).shape == (points, classes)
    assert count(model) == head(math.prod(shape), classes)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("name", IMAGE_NETWORKS)
def test_image_networks_take_one_channel_or_three(name, channels):
    shape = (channels, 32, 32)
    assert made(name, shape=shape).eval()(inputs(2, shape)).shape == (2, 5)


@pytest.mark.parametrize(("name", "options"), VARIANTS)
def test_the_rules_see_256_features(name, options):
    model, images = made(name, **options), inputs(3)
    record = askance.embed(model, images)
    assert np.asarray(record.features).shape == (3, 256)
    assert np.asarray(record.logits).shape == (3, 5)
    with torch.no_grad():
        torch.testing.assert_close(torch.as_tensor(record.logits), model.eval()(images))


# Initial weights


def weights_of(model: nn.Module, kind: type[nn.Module]) -> list[Tensor]:
    return [layer.weight for layer in model.modules() if type(layer) is kind]


@pytest.mark.parametrize("name", ["mlp", *IMAGE_NETWORKS])
def test_kaiming_weights_are_normal_with_variance_two_over_fan(name):
    model = made(name, init="kaiming")
    layers = [m for m in model.modules() if isinstance(m, (nn.Conv2d, nn.Linear))]
    for layer in layers:
        weight = layer.weight.detach().double().flatten()
        rows, columns = layer.weight.shape[:2]
        linear = isinstance(layer, nn.Linear)
        fan = columns if linear else rows * layer.weight[0, 0].numel()
        # P(|Z| > 5.5) is 4e-8; the variance of n squared normals is 2/n.
        assert abs(weight.mean()) < 5.5 * math.sqrt(2 / fan / len(weight))
        assert abs(weight.square().mean() * fan / 2 - 1) < 5.5 * math.sqrt(2 / len(weight))
        if len(weight) > 3000:
            share = (weight.abs() < math.sqrt(2 / fan)).double().mean()  # 68.27% of a normal
            assert abs(share - 0.6827) < 5.5 * math.sqrt(0.25 / len(weight))
        assert layer.bias is None or not layer.bias.any()


@pytest.mark.parametrize("name", IMAGE_NETWORKS)
def test_torchvisions_weights_leave_the_head_as_it_was(name):
    ours, default, kaiming = (
        made(name, init=init) for init in ("torchvision", "default", "kaiming")
    )
    for a, b in zip(weights_of(ours, nn.Linear), weights_of(default, nn.Linear), strict=True):
        assert torch.equal(a, b)
    assert torch.equal(weights_of(ours, nn.Conv2d)[0], weights_of(kaiming, nn.Conv2d)[0])
    assert not torch.equal(weights_of(ours, nn.Conv2d)[0], weights_of(default, nn.Conv2d)[0])


@pytest.mark.parametrize("name", ["mlp", *IMAGE_NETWORKS])
def test_the_default_weights_are_pytorchs(name):
    named, left_out = made(name, init="default"), made(name)
    for a, b in zip(named.parameters(), left_out.parameters(), strict=True):
        assert torch.equal(a, b)
    for layer in (m for m in named.modules() if isinstance(m, nn.Linear)):
        assert layer.weight.abs().max() <= 1 / math.sqrt(layer.in_features)


def test_an_unknown_init_names_the_known_ones():
    with pytest.raises(
        UnknownError, match="unknown init 'xavier': known: default, kaiming, torchvision"
    ):
        made("mlp", init="xavier")


# Training


@pytest.mark.parametrize("options", [{}, {"batch_norm": False}], ids=["norm", "plain"])
def test_vgg16_normalises_after_each_convolution_or_nowhere(options):
    kinds = [type(module) for module in made("vgg16", **options).modules()]
    assert kinds.count(nn.Conv2d) == 13
    assert kinds.count(nn.BatchNorm2d) == (0 if options else 13)


@pytest.mark.parametrize(("name", "options"), [v for v in VARIANTS if v.id != "resnet18-imagenet"])
def test_a_last_mini_batch_of_one_trains(name, options):
    model = made(name, **options).train()
    loss = nn.functional.cross_entropy(model(inputs(1)), torch.tensor([2]))
    loss.backward()
    assert torch.isfinite(loss)
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())
    assert all(torch.isfinite(b).all() for b in model.buffers())


def test_resnet18_with_the_imagenet_stem_says_why_it_refuses_to_train_on_one_point():
    model = made("resnet18", stem="imagenet").train()
    before = {name: buffer.clone() for name, buffer in model.named_buffers()}
    with pytest.raises(
        InputError, match="needs 2 or more points in a mini-batch to train on, got 1"
    ):
        model(inputs(1))
    assert all(torch.equal(buffer, before[name]) for name, buffer in model.named_buffers())
    assert model(inputs(2)).shape == (2, 5)
    assert model.eval()(inputs(1)).shape == (1, 5)


@pytest.mark.parametrize(("name", "options"), [v for v in VARIANTS if v.id != "vgg16-plain"])
def test_stacked_copies_train_as_each_alone(name, options):
    """Logits, gradients and batch-norm statistics of two stacked networks, each on its own batch."""
    solos = [made(name, seed, **options).double().train() for seed in (0, 1)]
    batches = torch.stack([inputs(2, seed=seed) for seed in (2, 3)]).double()
    labels = torch.tensor([[0, 4], [3, 3]])
    params, buffers = stack_module_state(solos)
    template = copy.deepcopy(solos[0]).to("meta")

    def loss(params, buffers, batch, labels):
        logits = functional_call(template, (params, buffers), (batch,))
        return nn.functional.cross_entropy(logits, labels), logits

    def step(*args):
        return grad(loss, has_aux=True)(*args)

    grads, logits = vmap(step)(params, buffers, batches, labels)

    for i, solo in enumerate(solos):
        alone = solo(batches[i])
        nn.functional.cross_entropy(alone, labels[i]).backward()
        torch.testing.assert_close(logits[i], alone)
        for key, parameter in solo.named_parameters():
            torch.testing.assert_close(grads[key][i], parameter.grad, rtol=1e-6, atol=1e-9)
        for key, buffer in solo.named_buffers():
            torch.testing.assert_close(buffers[key][i], buffer)


# Refusals


@pytest.mark.parametrize("shape", [(3, 28, 28), (617,), (32, 32), (3, 32, 31), (1, 3, 32, 32)])
@pytest.mark.parametrize("name", IMAGE_NETWORKS)
def test_image_networks_refuse_other_shapes(name, shape):
    with pytest.raises(InputError, match=rf"{name} needs .*\(channels, 32, 32\), got .*use mlp"):
        made(name, shape=shape)


def test_resnet18_refuses_an_unknown_stem():
    with pytest.raises(UnknownError, match="unknown stem of resnet18 'imagnet': did you mean"):
        made("resnet18", stem="imagnet")


def test_vgg16_refuses_a_batch_norm_that_is_no_truth_value():
    with pytest.raises(InputError, match="batch_norm must be True or False, got 'no'"):
        made("vgg16", batch_norm="no")
