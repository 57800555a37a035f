"""Experiments and studies made up to be known: which claims they bear out, and which not."""

import numpy as np

from askance.paper import SUITE
from askance.paper.claims.evidence import Evidence
from askance.paper.studies import contraction_run, cost, geometry_run, shift
from askance.paper.studies.measures import Spread
from askance.paper.studies.measures import contraction as held
from askance.report.facts import Facts
from tests.experiments.statistics.worlds import noise, rows

NAMES = ("svhn-lenet", "cifar10-lenet", "stl10-lenet", "gtsrb-lenet", "isolet-mlp", "pokerhand-mlp")
FIVE = SUITE.rules


def verdicts(judged):
    """By claim."""
    return {one.claim: one.verdict for one in judged}


def evidence(folder, lifts, names=NAMES, rules=FIVE, results=None, rounds=8):
    """Experiments of the suite, in which each rule is lifted by its own amount."""
    table = [
        row
        for seed, name in enumerate(names)
        for row in curves(name, noise(rules, rounds=rounds, seed=seed, lifts=lifts, spread=0.004))
    ]
    return gathered(folder, table, results)


def staged(folder, early, late, *rules):
    """Ten rounds in which some rules are lifted in the first three, or in the last three."""
    draws = np.random.default_rng(0)
    lifts = np.repeat([0, early, 0, late], [1, 3, 3, 3])
    table = []
    for name in NAMES:
        accuracies = {one: 0.5 + 1e-3 * draws.normal(size=(5, 10)) for one in FIVE}
        for rule in rules:
            accuracies[rule] += lifts
        table += curves(name, accuracies)
    return gathered(folder, table)


def curves(name, accuracies):
    """The rows of one experiment of given accuracies {rule: (S, T)}."""
    dataset, model = name.split("-")
    return rows(accuracies, name=name, dataset=dataset, model=model)


def gathered(folder, table, results=None):
    return Evidence(folder, Facts([str(folder)], table, [], SUITE), results or {})


def picks(entropy=0.5, grad=0.9, badge=1.2, reach=0.8, rules=("grad", "entropy", "badge")):
    """Mean distances of picks over those of random batches, and how far BADGE's reach."""
    options = geometry_run.GeometryOptions(rules=rules, starts=4, batches=(10, 20))
    apart = {"entropy": entropy, "grad": grad, "badge": badge, geometry_run.CHANCE: 1.0}
    measured = tuple(
        geometry_run.Measured(
            start,
            space,
            view,
            batch,
            rule,
            Spread(
                (3.0 + start) * apart[rule] * (1 + 0.01 * start * (rule != geometry_run.CHANCE)),
                (2.0 + start) * (reach if rule == "badge" else 1.0),
                0.0,
            ),
        )
        for start in range(4)
        for space in geometry_run.SPACES
        for view in geometry_run.VIEWS
        for batch in options.batches
        for rule in (*rules, geometry_run.CHANCE)
    )
    return geometry_run.GeometryResult(options, "made", (), {}, (), measured)


def shifted(auroc):
    detectors = tuple(
        shift.Detector(seed, name, auroc + 0.01 * seed, 0.0, 0.0, (0.0, 1.0), (1,), (1,))
        for seed in range(3)
        for name in ("DF", "entropy", "1 − confidence", "gradient norm")
    )
    networks = tuple(shift.Network(seed, 0.8, 0.01, 0.1, 1.0, 0.9) for seed in range(3))
    return shift.ShiftResult(shift.ShiftOptions(), ("made",), 10, networks, detectors)


def trained(*norms, loss=(1.0, 0.5)):
    """Five draws of German, a hair apart, for each optimiser: its norms. No other dataset is there."""
    optimisers = tuple(contraction_run.OPTIMISERS)[: len(norms)]
    paths = tuple(
        contraction_run.TrainedPath(
            contraction_run.TrainingChoice("german", optimiser, 8, "S"),
            seed,
            loss,
            (contraction_run.Series("full θ", 0.5, 1.0, (1.0,), held(one ** (1 + 0.01 * seed))),),
        )
        for optimiser, one in zip(optimisers, norms, strict=True)
        for seed in range(5)
    )
    options = contraction_run.ContractionOptions()
    return contraction_run.ContractionResult(options, ("made",), {"gisette": "no"}, paths)


def timed(choosing, labeled=None, grows=0.0):
    """Five rounds: milliseconds to choose, and of the labelled set's pass; the pool's takes 100."""
    labeled = labeled or {}
    options = cost.CostOptions(networks=(("lenet", 1),), rules=tuple(choosing))
    timings = tuple(
        cost.Timing(
            "lenet",
            rule,
            number,
            500 * number,
            labeled.get(rule, 0.0) / 1000 + grows * number,
            0.1,
            (milliseconds + 0.01 * (number % 2)) / 2000,
            milliseconds / 2000,
        )
        for rule, milliseconds in choosing.items()
        for number in range(1, 6)
    )
    return cost.CostResult(options, "made", "CPU", 2, timings)


def falling(epochs=150):
    """Falls fast, then slowly."""
    return 1 + np.exp(-np.arange(epochs) / 20)
