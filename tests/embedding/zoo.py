"""Models of every make, each small, each with four inputs (or 8×8 pixels, or five tokens)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn


def mlp(classes: int = 3, dropout: float = 0.5) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(4, 8),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(8, 6),
        nn.Tanh(),
        nn.Linear(6, classes),
    )


class ConvNet(nn.Module):
    """Batch-norm twice, dropout, and a head behind a functional ReLU."""

    def __init__(self, classes: int = 3) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.hidden = nn.Linear(4 * 9, 6)
        self.norm2 = nn.BatchNorm1d(6)
        self.drop = nn.Dropout(0.3)
        self.head = nn.Linear(6, classes)

    def forward(self, x: Tensor) -> Tensor:
        h = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2).flatten(1)
        return self.head(F.relu(self.drop(self.norm2(self.hidden(h)))))


class Transformer(nn.Module):
    """Five tokens of four numbers; the mean of the encoded tokens goes to the head."""

    def __init__(self, classes: int = 3) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.2, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.classifier = nn.Linear(4, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.encoder(x).mean(dim=1))


class Tokens(nn.Module):
    """Takes `input_ids` and `attention_mask` by name."""

    def __init__(self, classes: int = 3) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 6)
        self.head = nn.Linear(6, classes)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        mask = attention_mask.unsqueeze(-1).to(self.embed.weight.dtype)
        return self.head(torch.tanh((self.embed(input_ids) * mask).sum(1)))


class TwoInputs(nn.Module):
    """Takes (left, right)."""

    def __init__(self, classes: int = 3) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(4, 5), nn.Linear(2, 5)
        self.head = nn.Linear(5, classes)

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        return self.head(torch.relu(self.left(left) + self.right(right)))


class HeadFirst(nn.Module):
    """The head is registered first and named like no head; the last module by name is unused."""

    def __init__(self, classes: int = 3) -> None:
        super().__init__()
        self.aardvark = nn.Linear(6, classes)
        self.body = nn.Linear(4, 6)
        self.zzz_unused = nn.Linear(6, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.aardvark(F.relu(self.body(x)))


class Returning(nn.Module):
    """An MLP that returns what `wrap(logits, hidden)` makes."""

    def __init__(self, wrap: Any, classes: int = 3) -> None:
        super().__init__()
        self.body, self.head, self.wrap = nn.Linear(4, 6), nn.Linear(6, classes), wrap

    def forward(self, x: Tensor) -> Any:
        hidden = F.relu(self.body(x))
        return self.wrap(self.head(hidden), hidden)


WRAPPERS = {
    "tensor": lambda z, _: z,
    "object with .logits": lambda z, h: SimpleNamespace(logits=z, hidden_states=h),
    "dict": lambda z, h: {"hidden": h, "logits": z},
    "dict of another name": lambda z, h: {"hidden": h, "scores": z},
    "tuple": lambda z, h: (z, h),
    "tuple, logits last": lambda z, h: (h, z),
    "list": lambda z, h: [z, h],
    "log-softmax": lambda z, _: F.log_softmax(z, dim=1),
    "softmax": lambda z, _: F.softmax(z, dim=1),
}


def images(count: int, seed: int = 0) -> Tensor:
    return torch.randn(count, 1, 8, 8, generator=torch.Generator().manual_seed(seed))


def rows(count: int, seed: int = 0) -> Tensor:
    return torch.randn(count, 4, generator=torch.Generator().manual_seed(seed))


def sentences(count: int, seed: int = 0) -> Tensor:
    return torch.randn(count, 5, 4, generator=torch.Generator().manual_seed(seed))


def token_batch(count: int, seed: int = 0) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {
        "input_ids": torch.randint(20, (count, 5), generator=generator),
        "attention_mask": torch.randint(2, (count, 5), generator=generator),
    }


def seeded(make: Any, *args: Any, seed: int = 0, **kwargs: Any) -> Any:
    """A model with fixed weights, batch-norm statistics that are not the initial ones."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = make(*args, **kwargs)
        for module in model.modules():
            if isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d)):
                module.running_mean.uniform_(-0.5, 0.5)
                module.running_var.uniform_(0.5, 2.0)
        return model
