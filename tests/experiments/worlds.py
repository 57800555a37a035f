"""Specs and stores small enough to write down."""

from askance.experiments.records import RoundRecord
from askance.experiments.spec import Spec

TOML = """\
name = "small"
dataset = "digits"
model = "mlp"
strategies = ["random", "grad"]
seeds = 2

[schedule]
batch = 4
rounds = 3

[recipe]
epochs = 1
learning_rates = [0.01, 0.1]
"""


def spec(**changes):
    data = {
        "name": "small",
        "dataset": "digits",
        "model": "mlp",
        "strategies": ["random", "grad"],
        "seeds": 2,
        "schedule": {"batch": 4, "rounds": 3},
        "recipe": {"epochs": 1, "learning_rates": [0.01, 0.1]},
    }
    return Spec.from_dict({**data, **changes})


def record(round=0, strategy="grad", seed=0, **changes):
    values = {
        "labels": 4 * (round + 1),
        "accuracy": 0.1 + 0.2 / (round + 1),
        "loss": 1.5,
        "learning_rate": 0.01,
        "picks": [] if round == 3 else [10 * round + i for i in (3, 1, 2, 0)],
    }
    return RoundRecord(strategy=strategy, seed=seed, round=round, **{**values, **changes})


def fill(store, rounds=4):
    for strategy, _, seed in Spec.from_dict(store.spec).runs():
        store.start_run(strategy, seed, [100, 101, 102, 103])
        for round in range(rounds):
            store.add_round(record(round, strategy, seed, accuracy=(1 + round + seed) / 7))
