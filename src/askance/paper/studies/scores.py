"""Scores of points whose label is given: a pseudo-label, as rules have it, or the true one.

A rule never sees the labels of the pool. A study does, to say what knowing them would change.

Shapes: N points; C classes; D features.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.linalg import vector_norm

from askance.embedding import Embedding, Evaluation
from askance.gradients.discrepancy import LastLayerReference
from askance.gradients.last_layer import residuals, sq_norms
from askance.gradients.parameters import ParameterGradients
from askance.paper.studies.measures import Floats, Rows


def pseudo(pool: Embedding) -> Tensor:
    """(N,) the class that the network gives each point."""
    return _logits(pool).argmax(dim=1)


def df(pool: Embedding, labels: Tensor, reference: LastLayerReference) -> Floats:
    """(N,) n/(n + 1) · ‖ḡ_L − g(x, y)‖ over the last layer, in float64.

    ‖g − ḡ‖² = ‖g‖² − 2⟨a, Ḡ [h; 1]⟩ + ‖ḡ‖², with g = a ⊗ [h; 1] and a = p − e_y.
    """
    logits, features, mean = _logits(pool), _features(pool), reference.mean
    a_NC = residuals(logits, labels.to(logits.device))
    inner_N = ((features @ mean[:, :-1].T + mean[:, -1]) * a_NC).sum(dim=1)
    sq_dists_N = sq_norms(a_NC, features) - 2 * inner_N + mean.square().sum()
    shrink = reference.count / (reference.count + 1)
    return _array(shrink * sq_dists_N.clamp_min(0).sqrt())


def last_layer_norm(pool: Embedding, labels: Tensor) -> Floats:
    """(N,) ‖g(x, y)‖ over the last layer; of pseudo-labels it is the rule `gradnorm`."""
    logits = _logits(pool)
    return _array(sq_norms(residuals(logits, labels.to(logits.device)), _features(pool)).sqrt())


def el2n(pool: Embedding, labels: Tensor) -> Floats:
    """(N,) ‖p(x) − e_y‖: EL2N with one network (Paul et al. 2021)."""
    logits = _logits(pool)
    return _array(residuals(logits, labels.to(logits.device)).norm(dim=1))


def grand(model: nn.Module, inputs: Tensor, labels: Tensor) -> Floats:
    """(N,) ‖∇_θ ℓ(θ; x, y)‖ over all parameters: GraNd with one network (Paul et al. 2021)."""
    with Evaluation(model) as evaluation:
        prepared = evaluation.prepare(inputs)
        logits_NC, _ = evaluation(prepared)
        a_NC = residuals(logits_NC.detach().double(), labels.to(logits_NC.device))
        norms = [
            torch.stack([vector_norm(g.flatten(1), dim=1, dtype=torch.float64) for g in point])
            for point in ParameterGradients(evaluation, "all").per_point(prepared, a_NC)
        ]
    return _array(torch.cat(norms, dim=1).norm(dim=0))


def in_order(scores_N: Floats) -> Rows:
    """Positions, the highest score first; of equal ones the earlier."""
    return np.argsort(-scores_N, kind="stable")


def _logits(pool: Embedding) -> Tensor:
    assert pool.logits is not None
    return pool.logits.double()


def _features(pool: Embedding) -> Tensor:
    assert pool.features is not None
    return pool.features.double()


def _array(scores: Tensor) -> Floats:
    scores_N: Floats = scores.double().cpu().numpy()
    return scores_N
