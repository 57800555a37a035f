"""A small model, its labelled set and its pool, as inputs and as embeddings."""

from __future__ import annotations

import torch

import askance
from askance import strategies
from tests.embedding import zoo
from tests.rules import ONE_MODEL

X, POOL = zoo.rows(6, seed=1), zoo.rows(10, seed=2)
Y = torch.tensor([0, 1, 2, 0, 1, 2])
MULTI_HOT = torch.tensor([[0, 1, 1], [1, 0, 0]] * 3)
MODEL = zoo.seeded(zoo.mlp)
SEEN, UNSEEN = askance.embed(MODEL, X), askance.embed(MODEL, POOL)

NAMES = ONE_MODEL
NEED_LABELS = [name for name in NAMES if "labeled" in strategies.get(name).needs]
NEED_LOGITS = [name for name in NAMES if "logits" in strategies.get(name).needs]


def with_entry(matrix, row, value):
    matrix = matrix.clone()
    matrix[row, 1] = value
    return matrix
