"""The variants of experiments run from their own TOML to the end; their rules do what they say."""

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from askance.experiments import export, spec
from askance.experiments.rounds import LoadedExperiment, RunState
from askance.experiments.spec import Spec
from tests.experiments.tiny import pictures, play
from tests.paper.test_suite import VARIANTS

IMAGES = [name for name in VARIANTS if name.startswith(("cifar10", "svhn"))]
ALL, MANY = "grad(parameters='all')", "grad(reference_size=128)"


def shortened(name, folder):
    """The experiment with its own network and rules, on 240 small pictures and for one epoch."""
    content = spec.load(name).to_dict()
    content["dataset"] = pictures(folder).strip('"')
    content["seeds"] = 1
    content["schedule"] = {"batch": 10, "rounds": 1}
    content["recipe"] |= {"epochs": 1, "learning_rates": content["recipe"]["learning_rates"][:1]}
    return Spec.from_dict(content)


@pytest.mark.parametrize("name", IMAGES)
def test_a_variant_runs_to_its_end(name, tmp_path):
    wanted = shortened(name, tmp_path)
    rows = export.table(play(wanted, tmp_path / "run"))
    rules = [rule.label for rule in wanted.strategies]
    assert sorted({row.strategy for row in rows}) == sorted(rules)
    assert {(row.round, row.labels) for row in rows} == {(0, 10), (1, 20)}
    assert len(rows) == 2 * len(rules)


def test_each_variant_has_the_papers_rules_to_be_compared_with():
    for name in VARIANTS:
        labels = [rule.label for rule in spec.load(name).strategies]
        assert labels[:5] == ["random", "entropy", "badge", "kcenter", "grad"]


def first_round(name, folder):
    """The network after round 0, the data, and every rule's picks."""
    loaded = LoadedExperiment.of(shortened(name, folder), torch.device("cpu"), "one")
    states = [RunState(rule, 0) for rule in loaded.spec.strategies]
    run = loaded.run(states[0])
    model = loaded.fit([loaded.job(run, 1e-3)]).model(0).eval()
    records = loaded.run_round(states, 1e-3)
    return model, loaded.inputs, run, {one.strategy: one.picks.tolist() for one in records}


def test_all_parameters_are_those_of_the_network(tmp_path):
    model, inputs, run, picks = first_round("cifar10-lenet-all-parameters", tmp_path)

    def gradient(x, y):
        model.zero_grad()
        cross_entropy(model(x), y).backward()
        return torch.cat([p.grad.flatten() for p in model.parameters()]).double()

    mean = gradient(inputs[run.rows], run.labels)
    scores = np.full(len(inputs), -np.inf)
    for row in np.setdiff1d(np.arange(len(inputs)), run.rows):
        one = inputs[row : row + 1]
        scores[row] = float((mean - gradient(one, model(one).argmax(1))).norm())
    assert sorted(picks[ALL]) == sorted(np.argsort(-scores)[:10].tolist())
    assert sorted(picks[ALL]) != sorted(picks["grad"])


def test_a_reference_of_more_points_than_are_labelled_is_the_whole_set(tmp_path):
    *_, picks = first_round("cifar10-lenet-reference-size", tmp_path)
    assert picks[MANY] == picks["grad"]  # ten are labelled in round 0
    assert set(picks) == {"random", "entropy", "badge", "kcenter", "grad", MANY,
                          "grad(reference_size=8)"}  # fmt: skip
