"""Everything is left as it was: the model, its gradients and hooks, the global generators."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import askance
from askance.embedding.guard import evaluating
from askance.strategies import Grad
from tests.embedding import zoo
from tests.rules import ONE_MODEL


def hooks_of(module: nn.Module) -> tuple[int, ...]:
    return (
        len(module._forward_hooks),
        len(module._forward_pre_hooks),
        len(module._backward_hooks),
        len(module._forward_hooks_with_kwargs),
    )


def snapshot(model: nn.Module) -> list[object]:
    """All that scoring could change, in a form that compares."""
    return [
        [(name, module.training, hooks_of(module)) for name, module in model.named_modules()],
        [
            (name, id(p), p.data_ptr(), p.requires_grad, p.device, p.dtype, p._version)
            for name, p in model.named_parameters()
        ],
        [
            (name, None if p.grad is None else (id(p.grad), p.grad.flatten().tolist()))
            for name, p in model.named_parameters()
        ],
        [(name, id(b), b.flatten().tolist()) for name, b in model.named_buffers()],
    ]


def generators() -> list[object]:
    numpy = np.random.get_state()  # noqa: NPY002
    return [random.getstate(), numpy[1].tolist(), numpy[2], torch.get_rng_state().tolist()]


def used_model() -> zoo.ConvNet:
    """In training mode but for one layer, one layer frozen, gradients of an earlier step around."""
    model = zoo.seeded(zoo.ConvNet).train()
    model(zoo.images(6)).sum().backward()
    model.norm.eval()
    model.hidden.weight.requires_grad_(False)
    model.head.register_forward_hook(lambda *_: None)
    return model


LABELED = zoo.images(6, seed=1), torch.tensor([0, 1, 2, 0, 1, 2])
RULES = [*ONE_MODEL, Grad(parameters="all"), Grad(parameters=["head", "norm"])]


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_selection_leaves_everything_as_it_was(rule):
    model = used_model()
    before = snapshot(model), generators()
    loader = DataLoader(TensorDataset(zoo.images(15), torch.zeros(15)), batch_size=4)
    askance.select(model, LABELED, loader, 4, strategy=rule, batch_size=4).explain()
    assert snapshot(model) == before[0]
    assert generators() == before[1]
    assert torch.is_grad_enabled()


class Breaks(zoo.ConvNet):
    """Draws from every generator, and raises at its third batch."""

    def forward(self, x):
        self.seen = getattr(self, "seen", 0) + 1
        torch.rand(1), random.random(), np.random.rand()  # noqa: NPY002
        if self.seen == 3:
            raise RuntimeError("broken pipe")
        return super().forward(x)


@pytest.mark.parametrize("rule", ["grad", "badge", Grad(parameters="all")], ids=str)
def test_also_when_the_model_raises_in_the_middle(rule):
    model = zoo.seeded(Breaks).train()
    model.drop.eval()
    before = snapshot(model), generators()
    with pytest.raises(RuntimeError, match="broken pipe"):
        askance.select(model, LABELED, zoo.images(15), 4, strategy=rule, batch_size=4)
    assert snapshot(model) == before[0]
    assert generators() == before[1]
    assert torch.is_grad_enabled()


def test_also_when_the_data_raises_in_the_middle():
    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 9

        def __getitem__(self, index):
            if index == 5:
                raise OSError("unreadable image")
            return zoo.images(1)[0]

    model = used_model()
    before = snapshot(model), generators()
    with pytest.raises(OSError, match="unreadable image"):
        askance.embed(model, Data(), batch_size=2)
    assert snapshot(model) == before[0]
    assert generators() == before[1]


def test_a_model_that_draws_while_scoring_does_not_advance_the_generators():
    class Noisy(zoo.ConvNet):
        def forward(self, x):
            return super().forward(x + torch.randn_like(x) * np.random.rand())  # noqa: NPY002

    before = generators()
    askance.embed(zoo.seeded(Noisy), zoo.images(5))
    assert generators() == before


def test_a_model_moved_to_another_device_comes_home():
    """The meta device stands in for an accelerator: parameters, gradients, buffers are put back."""
    model = used_model()
    before = snapshot(model)
    with evaluating(model, torch.device("meta")) as device:
        assert device == torch.device("meta")
        assert {p.device.type for p in model.parameters()} == {"meta"}
        assert {b.device.type for b in model.buffers()} == {"meta"}
    after = snapshot(model)
    version = 6  # setting .data counts as a change of version, though not of the numbers
    for row_before, row_after in zip(before[1], after[1], strict=True):
        assert row_before[:version] == row_after[:version]
    assert [before[0], before[2], before[3]] == [after[0], after[2], after[3]]


def test_layers_that_override_train_are_not_asked():
    """Merged adapters and frozen batch-norms do things in `train()`; flags are set one by one."""

    class Touchy(zoo.HeadFirst):
        def train(self, _mode=True):
            raise AssertionError("train() was called")

    model = zoo.seeded(Touchy)
    askance.embed(model, zoo.rows(3))
    assert model.training


def test_inputs_are_not_changed():
    x = zoo.rows(5)
    kept = x.clone()
    askance.embed(zoo.seeded(zoo.Returning, lambda z, h: (z, h.zero_())), x)
    assert torch.equal(x, kept)
