"""Stores and folders to report on."""

import numpy as np

from askance.data import load
from askance.experiments.records import Origin, RoundRecord, SweepResult
from askance.experiments.spec import Spec
from askance.experiments.store import ResultStore
from tests.experiments.statistics.worlds import noise

RULES = ("random", "entropy", "badge", "kcenter", "grad", "powergrad")


def spec(rules=RULES, seeds=5, rounds=4, **changes):
    return Spec.from_dict(
        {
            "name": "small",
            "dataset": "digits",
            "model": "mlp",
            "strategies": list(rules),
            "seeds": seeds,
            "schedule": {"batch": 8, "rounds": rounds},
            "recipe": {"epochs": 1, "learning_rates": [0.01, 0.1]},
            **changes,
        }
    )


def store(folder, wanted=None, lifts=None, seed=0, done=None, fingerprint=None, subset=None):
    """A store of made-up accuracies with real rows of `digits`; `done` rounds of each run."""
    wanted = wanted or spec()
    last = wanted.schedule.rounds
    rules = [rule.label for rule in wanted.strategies]
    tables = noise(rules, wanted.seeds, last + 1, seed, lifts, spread=0.01)
    draws = np.random.default_rng(seed)
    origin = Origin(fingerprint or load("digits").fingerprint, "scikit-learn", subset)
    with ResultStore.open(folder, wanted, origin=origin) as made:
        for rate in wanted.recipe.learning_rates:
            made.add_sweep(SweepResult(rate, 0, 0.8 if rate == 0.01 else 0.6, 1.0))
        made.set_learning_rate(0.01)
        for rule, _, seed in wanted.runs():
            made.start_run(rule, seed, range(8))
            order = 8 + draws.permutation(1000)
            for round in range(last + 1 if done is None else done):
                made.add_round(
                    RoundRecord(
                        strategy=rule,
                        seed=seed,
                        round=round,
                        labels=8 * (round + 1),
                        accuracy=tables[rule][seed, round],
                        loss=1.0,
                        learning_rate=0.01,
                        picks=[] if round == last else order[8 * round : 8 * round + 8],
                        seconds={"train": 1.0, "forward": 0.2, "score": 0.1, "select": 0.05},
                    )
                )
    return folder / "store.sqlite"
