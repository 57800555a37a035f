"""What training leaves: R networks, asked all at once what they say of some points.

Shapes: R networks; N points; C classes; D features.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from askance.embedding import Embedding, embed
from askance.training.numerics import numerics
from askance.training.recipe import Precision, TrainingJob, dtype_of
from askance.training.stack import Stack

T = TypeVar("T")

# Points of a forward pass, over all networks of a stack.
_AT_A_TIME = 8192


@dataclass(frozen=True)
class Score:
    """How a network did on labelled points: share of right answers, mean cross-entropy."""

    accuracy: float
    loss: float


class Fitted(ABC):
    """Trained networks, one a job, in the order of jobs."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def model(self, place: int) -> nn.Module:
        """One of the networks as an ordinary module, in evaluation mode."""

    @abstractmethod
    def evaluate(self, inputs: Tensor, labels: Tensor) -> list[Score]:
        """Accuracy and mean cross-entropy of every network on these points."""

    @abstractmethod
    def evaluate_training(self, inputs: Tensor, jobs: Sequence[TrainingJob]) -> list[Score]:
        """The same of every network on the points of its own job, in evaluation mode."""

    @abstractmethod
    def embed(self, inputs: Tensor) -> list[Embedding]:
        """Every network's logits and features of these points."""


class Networks(Fitted):
    """Ordinary modules, one after the other; the same one may stand in several places."""

    def __init__(self, models: Sequence[nn.Module], precision: Precision) -> None:
        self.models, self.precision = list(models), precision

    def __len__(self) -> int:
        return len(self.models)

    def model(self, place: int) -> nn.Module:
        return self.models[place]

    def evaluate(self, inputs: Tensor, labels: Tensor) -> list[Score]:
        return self._each(lambda model: evaluate(model, inputs, labels, precision=self.precision))

    def evaluate_training(self, inputs: Tensor, jobs: Sequence[TrainingJob]) -> list[Score]:
        known: dict[int, Score] = {}
        for model, job in zip(self.models, jobs, strict=True):
            if id(model) not in known:
                rows = torch.from_numpy(job.rows).to(inputs.device)
                labels = job.labels.to(inputs.device)
                known[id(model)] = evaluate(model, inputs[rows], labels, precision=self.precision)
        return [known[id(model)] for model in self.models]

    def embed(self, inputs: Tensor) -> list[Embedding]:
        with numerics(inputs.device, self.precision):
            return self._each(lambda model: embed(model, inputs, batch_size=1024))

    def _each(self, of: Callable[[nn.Module], T]) -> list[T]:
        known = {id(model): of(model) for model in {id(m): m for m in self.models}.values()}
        return [known[id(model)] for model in self.models]


class Stacks(Fitted):
    """Networks in stacks.

    Args:
        stacks: in evaluation mode.
        where: of each network, its stack and its place there.
        build: the ordinary module of one network, with any weights.
        precision: to compute in.
    """

    def __init__(
        self,
        stacks: Sequence[Stack],
        where: Sequence[tuple[int, int]],
        build: Callable[[int], nn.Module],
        precision: Precision,
    ) -> None:
        self.stacks, self.where, self.build, self.precision = stacks, list(where), build, precision

    def __len__(self) -> int:
        return len(self.where)

    def model(self, place: int) -> nn.Module:
        number, inner = self.where[place]
        stack = self.stacks[number]
        example = next(stack.parameters())
        model = self.build(place).to(example.device, example.dtype)
        stack.unstack(inner, model)
        return model.eval()

    def evaluate(self, inputs: Tensor, labels: Tensor) -> list[Score]:
        scores: list[list[Score]] = []
        for stack in self.stacks:
            tally = _Tally(stack.count, inputs.device)
            for start, (logits_RBC, _) in self._passes(stack, inputs):
                tally.add(logits_RBC, labels[start : start + logits_RBC.shape[1]])
            scores.append(tally.scores())
        return [scores[number][inner] for number, inner in self.where]

    def evaluate_training(self, inputs: Tensor, jobs: Sequence[TrainingJob]) -> list[Score]:
        # Jobs that share a network are the same job, so any of them stands for it.
        of = dict(zip(self.where, jobs, strict=True))
        scores: list[list[Score]] = []
        with torch.no_grad(), numerics(inputs.device, self.precision):
            for number, stack in enumerate(self.stacks):
                own = [of[number, inner] for inner in range(stack.count)]
                rows_RL = torch.stack([torch.from_numpy(job.rows) for job in own]).to(inputs.device)
                labels_RL = torch.stack([job.labels for job in own]).to(inputs.device)
                tally = _Tally(stack.count, inputs.device)
                size = max(1, _AT_A_TIME // stack.count)
                for rows_RB, y_RB in zip(
                    rows_RL.split(size, dim=1), labels_RL.split(size, dim=1), strict=True
                ):
                    tally.add(stack(inputs[rows_RB].to(dtype_of(self.precision))), y_RB)
                scores.append(tally.scores())
        return [scores[number][inner] for number, inner in self.where]

    def embed(self, inputs: Tensor) -> list[Embedding]:
        found: list[tuple[Tensor, Tensor]] = []
        for stack in self.stacks:
            whole: tuple[Tensor, Tensor] | None = None
            for start, parts in self._passes(stack, inputs):
                if whole is None:
                    sizes = [(stack.count, len(inputs), part.shape[2]) for part in parts]
                    whole = parts[0].new_empty(sizes[0]), parts[1].new_empty(sizes[1])
                for all_RN, part_RB in zip(whole, parts, strict=True):
                    all_RN[:, start : start + part_RB.shape[1]] = part_RB
            assert whole is not None
            found.append(whole)
        return [
            Embedding(logits=found[number][0][inner], features=found[number][1][inner])
            for number, inner in self.where
        ]

    def _passes(self, stack: Stack, inputs: Tensor) -> Iterator[tuple[int, tuple[Tensor, Tensor]]]:
        size = max(1, _AT_A_TIME // stack.count)
        with torch.no_grad(), numerics(inputs.device, self.precision):
            for start in range(0, len(inputs), size):
                batch = inputs[start : start + size].to(dtype_of(self.precision))
                yield start, stack.embedded(batch)


class _Tally:
    """Right answers and losses of R networks, summed as batches come in."""

    def __init__(self, count: int, device: torch.device) -> None:
        self.right_R = torch.zeros(count, dtype=torch.int64, device=device)
        self.loss_R = torch.zeros(count, dtype=torch.float64, device=device)
        self.points = 0

    def add(self, logits_RBC: Tensor, labels: Tensor) -> None:
        """`labels`: (B,) the same points for all networks, or (R, B)."""
        y_RB = labels.expand(logits_RBC.shape[:2])
        self.right_R += (logits_RBC.argmax(dim=2) == y_RB).sum(dim=1)
        each = cross_entropy(logits_RBC.double().flatten(0, 1), y_RB.flatten(), reduction="none")
        self.loss_R += each.view_as(y_RB).sum(dim=1)
        self.points += y_RB.shape[1]

    def scores(self) -> list[Score]:
        pairs = zip(self.right_R.tolist(), self.loss_R.tolist(), strict=True)
        return [Score(right / self.points, loss / self.points) for right, loss in pairs]


def evaluate(
    model: nn.Module,
    inputs: Tensor,
    labels: Tensor,
    *,
    precision: Precision = "float32",
    batch_size: int = 1024,
) -> Score:
    """Accuracy and mean cross-entropy of one network in evaluation mode."""
    right, loss = 0, 0.0
    with torch.no_grad(), numerics(inputs.device, precision):
        for x, y in zip(inputs.split(batch_size), labels.split(batch_size), strict=True):
            logits = model(x.to(dtype_of(precision))).double()
            right += int((logits.argmax(dim=1) == y).sum())
            loss += float(cross_entropy(logits, y, reduction="sum"))
    return Score(right / len(labels), loss / len(labels))
