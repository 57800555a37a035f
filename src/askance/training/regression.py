"""`linear` is not trained but solved: the one minimum of each job's regression."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from askance.encoders.linear import Floats, Standardiser, fit_linear
from askance.training.fitted import Networks
from askance.training.recipe import OnEpoch, TrainingJob, distinct


def fit_regressions(
    inputs: Tensor,
    jobs: Sequence[TrainingJob],
    classes: int,
    strength: float | None = None,
    on_epoch: OnEpoch | None = None,
    standardise: Standardiser | None = None,
) -> Networks:
    """A regression for each job, on standardised inputs.

    Args:
        inputs: (N, …) the points all jobs take theirs from.
        jobs: what to solve; a job's learning rate and draws have no part in it.
        classes: C.
        strength: of every fit; see `fit_linear` when None.
        on_epoch: told when a regression is solved.
        standardise: that of all inputs, labelled or not; `standardiser(inputs)` when None.
    """
    standardise = standardise or standardiser(inputs)
    singles, where = distinct(jobs)
    models: list[torch.nn.Module] = []
    for job in singles:
        z_LD = standardise(_features(inputs[torch.from_numpy(job.rows).to(inputs.device)]))
        fit = fit_linear(z_LD, job.labels.numpy(), classes, strength=strength, calibrated=False)
        models.append(fit.module(standardise).to(inputs.device).eval())
        if on_epoch is not None:
            on_epoch(1, 1)
    return Networks(singles, where, "float32", models)


def standardiser(inputs: Tensor) -> Standardiser:
    """Shift and scale of (N, …) inputs' features. Of a large pool they take longer than a fit."""
    return Standardiser.of(_features(inputs))


def _features(inputs: Tensor) -> Floats:
    """(N, …) inputs as rows of features in float64."""
    features_ND: Floats = inputs.flatten(1).double().cpu().numpy()
    return features_ND
