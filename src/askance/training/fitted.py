"""What training leaves: R networks, asked all at once what they say of some points.

Shapes: R networks; N points; C classes; D features.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from askance.embedding import Embedding, embed
from askance.training.numerics import numerics
from askance.training.recipe import Build, Precision, TrainingJob, dtype_of
from askance.training.stack import Stack

T = TypeVar("T")

# Points of a forward pass, over all networks of a stack: images, whose maps take memory, and rows.
_IMAGES_AT_A_TIME, _ROWS_AT_A_TIME = 8_192, 131_072


@dataclass(frozen=True)
class Score:
    """How a network did on labelled points.

    Args:
        accuracy: the share of right answers.
        loss: the mean cross-entropy.
        balanced_accuracy: the mean over classes of the share of their points that were right.
        macro_f1: the mean over classes of 2·right / (points of the class + answers of the class).
            Classes that no point has are left out of both means.
    """

    accuracy: float
    loss: float
    balanced_accuracy: float
    macro_f1: float

    @classmethod
    def of(cls, counts_3C: Tensor, loss: float) -> Score:
        """The score of a network with these `class_counts` and this sum of losses."""
        right_C, true_C, guessed_C = counts_3C.double()
        there_C = true_C > 0
        points = float(true_C.sum())
        recall_C = right_C[there_C] / true_C[there_C]
        f1_C = 2 * right_C[there_C] / (true_C + guessed_C)[there_C]
        right = int(right_C.sum())
        return cls(right / points, loss / points, float(recall_C.mean()), float(f1_C.mean()))


@dataclass(frozen=True, eq=False)
class Fitted(ABC):
    """Trained networks, one a job. Jobs that are the same job share a network.

    Args:
        jobs: what was trained, each once.
        where: for every job asked for, its place in `jobs`.
        precision: to compute in.
    """

    jobs: Sequence[TrainingJob]
    where: Sequence[int]
    precision: Precision

    def __len__(self) -> int:
        return len(self.where)

    def evaluate(self, inputs: Tensor, labels: Tensor) -> list[Score]:
        """The score of every network on these points."""
        return self._of_each(self._scores(inputs, labels))

    def evaluate_training(self, inputs: Tensor) -> list[Score]:
        """The same of every network on the points of its own job, in evaluation mode."""
        return self._of_each(self._training_scores(inputs))

    def embed(self, inputs: Tensor) -> list[Embedding]:
        """Every network's logits and features of these points."""
        return self._of_each(self._embeddings(inputs))

    def _of_each(self, results: Iterable[T]) -> list[T]:
        distinct = list(results)
        return [distinct[place] for place in self.where]

    @abstractmethod
    def model(self, place: int) -> nn.Module:
        """One of the networks as an ordinary module, in evaluation mode."""

    @abstractmethod
    def _scores(self, inputs: Tensor, labels: Tensor) -> Iterable[Score]: ...

    @abstractmethod
    def _training_scores(self, inputs: Tensor) -> Iterable[Score]: ...

    @abstractmethod
    def _embeddings(self, inputs: Tensor) -> Iterable[Embedding]: ...


@dataclass(frozen=True, eq=False)
class Networks(Fitted):
    """Ordinary modules, computed one after the other.

    Args:
        models: of each of `jobs`, in evaluation mode.
    """

    models: Sequence[nn.Module]

    def model(self, place: int) -> nn.Module:
        return self.models[self.where[place]]

    def _scores(self, inputs: Tensor, labels: Tensor) -> Iterator[Score]:
        for model in self.models:
            yield evaluate(model, inputs, labels, precision=self.precision)

    def _training_scores(self, inputs: Tensor) -> Iterator[Score]:
        for model, job in zip(self.models, self.jobs, strict=True):
            x, y = inputs[torch.from_numpy(job.rows).to(inputs.device)], job.labels
            yield evaluate(model, x, y.to(inputs.device), precision=self.precision)

    def _embeddings(self, inputs: Tensor) -> Iterator[Embedding]:
        with numerics(inputs.device, self.precision):
            for model in self.models:
                yield embed(model, inputs, batch_size=1024)


@dataclass(frozen=True, eq=False)
class Stacks(Fitted):
    """Networks in stacks.

    Args:
        stacks: in evaluation mode; their networks, stack after stack, are those of `jobs`.
        build: the ordinary module of one network, with initial weights.
    """

    stacks: Sequence[Stack]
    build: Build

    def model(self, place: int) -> nn.Module:
        networks = [(stack, inner) for stack in self.stacks for inner in range(stack.count)]
        stack, inner = networks[self.where[place]]
        example = next(stack.parameters())
        model = self.build(self.jobs[self.where[place]].draws).to(example.device, example.dtype)
        stack.unstack(inner, model)
        return model.eval()

    def _scores(self, inputs: Tensor, labels: Tensor) -> Iterator[Score]:
        for stack in self.stacks:
            passes = self._passes(stack, inputs)
            yield from _scores(
                (logits_RBC, labels[start : start + logits_RBC.shape[1]])
                for start, (logits_RBC, _) in passes
            )

    def _training_scores(self, inputs: Tensor) -> Iterator[Score]:
        jobs = iter(self.jobs)
        for stack in self.stacks:
            yield from _scores(self._training_passes(stack, inputs, islice(jobs, stack.count)))

    def _training_passes(
        self, stack: Stack, inputs: Tensor, jobs: Iterable[TrainingJob]
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """(R, B, C) logits and (R, B) labels of every network's own points, batch by batch."""
        both_RL2 = torch.stack([torch.stack([torch.from_numpy(j.rows), j.labels], 1) for j in jobs])
        with torch.no_grad(), numerics(inputs.device, self.precision):
            for both_RB2 in both_RL2.to(inputs.device).split(_at_a_time(stack, inputs), dim=1):
                rows_RB, y_RB = both_RB2.unbind(2)
                yield stack(inputs[rows_RB].to(dtype_of(self.precision))), y_RB

    def _embeddings(self, inputs: Tensor) -> Iterator[Embedding]:
        for stack in self.stacks:
            whole: tuple[Tensor, Tensor] | None = None
            for start, parts in self._passes(stack, inputs):
                if whole is None:
                    sizes = [(stack.count, len(inputs), part.shape[2]) for part in parts]
                    whole = parts[0].new_empty(sizes[0]), parts[1].new_empty(sizes[1])
                for all_RN, part_RB in zip(whole, parts, strict=True):
                    all_RN[:, start : start + part_RB.shape[1]] = part_RB
            assert whole is not None
            for logits_NC, features_ND in zip(*whole, strict=True):
                yield Embedding(logits=logits_NC, features=features_ND)

    def _passes(self, stack: Stack, inputs: Tensor) -> Iterator[tuple[int, tuple[Tensor, Tensor]]]:
        """(first point, (logits, features)) of all networks on the same points, batch by batch."""
        size = _at_a_time(stack, inputs)
        with torch.no_grad(), numerics(inputs.device, self.precision):
            for start in range(0, len(inputs), size):
                batch = inputs[start : start + size].to(dtype_of(self.precision))
                yield start, stack.embedded(batch)


def _at_a_time(stack: Stack, inputs: Tensor) -> int:
    """Rows of thousands of columns take memory too: as many numbers as images of 32 × 32 have."""
    rows = inputs.ndim == 2 and inputs.shape[1] <= 1024
    return max(1, (_ROWS_AT_A_TIME if rows else _IMAGES_AT_A_TIME) // stack.count)


def _scores(passes: Iterable[tuple[Tensor, Tensor]]) -> list[Score]:
    """The scores of R networks, from their (R, B, C) logits of batches and the labels.

    Labels are (B,), the same points for all networks, or (R, B).
    """
    counts_R3C: Any = 0  # tensors from the first batch on
    loss_R: Any = 0.0
    for logits_RBC, labels in passes:
        y_RB = labels.expand(logits_RBC.shape[:2])
        counts_R3C = counts_R3C + class_counts(logits_RBC, y_RB)
        each = cross_entropy(logits_RBC.double().flatten(0, 1), y_RB.flatten(), reduction="none")
        loss_R = loss_R + each.view_as(y_RB).sum(dim=1)
    return list(map(Score.of, counts_R3C.cpu(), loss_R.tolist()))


def class_counts(logits_RBC: Tensor, y_RB: Tensor) -> Tensor:
    """(R, 3, C) by class: points that were answered right, points of the class, answers of the class.

    They stay on the logits' device, and nothing waits for them.
    """
    guess_RB = logits_RBC.argmax(dim=2)
    right_RB = (guess_RB == y_RB).long()
    which_R3B = torch.stack([y_RB, y_RB, guess_RB], dim=1)
    add_R3B = torch.stack([right_RB, torch.ones_like(right_RB), torch.ones_like(right_RB)], dim=1)
    shape = (len(logits_RBC), 3, logits_RBC.shape[2])
    return torch.zeros(shape, dtype=torch.long, device=y_RB.device).scatter_add_(
        2, which_R3B, add_R3B
    )


def evaluate(
    model: nn.Module,
    inputs: Tensor,
    labels: Tensor,
    *,
    precision: Precision = "float32",
    batch_size: int = 1024,
) -> Score:
    """The score of one network in evaluation mode."""
    counts_3C: Any = 0  # tensors from the first batch on
    loss: Any = 0.0
    with torch.no_grad(), numerics(inputs.device, precision):
        for x, y in zip(inputs.split(batch_size), labels.split(batch_size), strict=True):
            logits = model(x.to(dtype_of(precision))).double()
            counts_3C = counts_3C + class_counts(logits[None], y[None])[0]
            loss = loss + cross_entropy(logits, y, reduction="sum")
    return Score.of(counts_3C.cpu(), float(loss))
