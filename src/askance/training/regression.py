"""`linear` is not trained but solved: the one minimum of each job's regression."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from askance.encoders.linear import Standardiser, fit_linear
from askance.training.fitted import Networks
from askance.training.recipe import OnEpoch, TrainingJob, distinct


def fit_regressions(
    inputs: Tensor,
    jobs: Sequence[TrainingJob],
    classes: int,
    strength: float | None = None,
    on_epoch: OnEpoch | None = None,
) -> Networks:
    """A regression for each job, on inputs that are standardised by all of them, labelled or not.

    Args:
        inputs: (N, …) the points all jobs take theirs from.
        jobs: what to solve; a job's learning rate and draws have no part in it.
        classes: C.
        strength: of every fit; see `fit_linear` when None.
        on_epoch: told when a regression is solved.
    """
    features_ND = inputs.flatten(1).double().cpu().numpy()
    standardise = Standardiser.of(features_ND)
    z_ND = standardise(features_ND)
    singles, where = distinct(jobs)
    models: list[torch.nn.Module] = []
    for job in singles:
        fit = fit_linear(
            z_ND[job.rows], job.labels.numpy(), classes, strength=strength, calibrated=False
        )
        models.append(fit.module(standardise).to(inputs.device).eval())
        if on_epoch is not None:
            on_epoch(1, 1)
    return Networks(singles, where, "float32", models)
