"""Fit a list of networks: the recipe, the jobs, the engines, the learning-rate sweep."""

from askance.training.fitted import Fitted, Score, evaluate
from askance.training.fitting import ENGINES, Engine, chosen, fit
from askance.training.numerics import numerics
from askance.training.recipe import PRECISIONS, Build, OnEpoch, Precision, Recipe, TrainingJob
from askance.training.regression import fit_regressions, standardiser
from askance.training.sweep import SWEEP_SEEDS, best_rate, sweep_rows

__all__ = [
    "ENGINES",
    "PRECISIONS",
    "SWEEP_SEEDS",
    "Build",
    "Engine",
    "Fitted",
    "OnEpoch",
    "Precision",
    "Recipe",
    "Score",
    "TrainingJob",
    "best_rate",
    "chosen",
    "evaluate",
    "fit",
    "fit_regressions",
    "numerics",
    "standardiser",
    "sweep_rows",
]
