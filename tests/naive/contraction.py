"""‖DF‖ along a training path the slow way: PyTorch's own network, optimiser and automatic gradients."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy

OPTIMISERS = {
    "momentum": lambda weights, rate: torch.optim.SGD(weights, lr=rate, momentum=0.9),
    "sgd": lambda weights, rate: torch.optim.SGD(weights, lr=rate),
    "adam": lambda weights, rate: torch.optim.Adam(weights, lr=rate),
}


def discrepancy(model, x, y, subset, last_layer=False):
    """‖∇f(θ; S) − ∇f(θ; S_J)‖ of the mean losses."""
    weights = list((model[-1] if last_layer else model).parameters())
    whole = torch.autograd.grad(cross_entropy(model(x), y), weights)
    part = torch.autograd.grad(cross_entropy(model(x[subset]), y[subset]), weights)
    return float(torch.cat([(a - b).flatten() for a, b in zip(whole, part, strict=True)]).norm())


def path(model, x, y, rows, orders, optimiser, rate, batch):
    """Trains the model on some rows of S, and yields it after every epoch."""
    assert isinstance(model, nn.Sequential)
    step = OPTIMISERS[optimiser](model.parameters(), rate)
    for order in orders:
        for at in order.split(batch or len(order)):
            step.zero_grad()
            cross_entropy(model(x[rows][at]), y[rows][at]).backward()
            step.step()
        yield model
