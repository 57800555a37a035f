"""Scores under true labels, by hand; and the two studies that take them."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.functional import cross_entropy

from askance import select
from askance.embedding import embed
from askance.errors import InputError
from askance.gradients.discrepancy import last_layer_reference
from askance.paper.studies import Lab, grand, grand_run, labels, labels_run, scores
from askance.paper.studies.intervals import over_draws, said, sided
from askance.paper.studies.reference import Experiment
from tests.paper.studies.tiny import OPTIONS

LAB = Lab()
DIGITS = Experiment("digits", rounds=3, epochs=20, rates=(0.05,))


def gradients(model, x, y, parameters):
    """(N, P) gradients of the loss at each point, by automatic differentiation."""
    rows = []
    for point, label in zip(x, y, strict=True):
        loss = cross_entropy(model(point[None]), label[None])
        parts = torch.autograd.grad(loss, parameters)
        rows.append(torch.cat([part.flatten() for part in parts]))
    return torch.stack(rows).detach().numpy()


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.integers(1, 7))
def test_every_score_is_that_of_autograd(seed, classes, points):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, classes)).double()
    x, y = torch.randn(points, 4).double(), torch.randint(classes, (points,))
    known, truth = torch.randn(3, 4).double(), torch.randint(classes, (3,))
    head = [model[2].weight, model[2].bias]
    mean = gradients(model, known, truth, head).mean(axis=0)
    at_head = gradients(model, x, y, head)
    pool, reference = embed(model, x), last_layer_reference(embed(model, known), truth)
    near = {"rtol": 1e-9, "atol": 1e-12}
    np.testing.assert_allclose(
        scores.df(pool, y, reference), 3 / 4 * np.linalg.norm(at_head - mean, axis=1), **near
    )
    np.testing.assert_allclose(
        scores.last_layer_norm(pool, y), np.linalg.norm(at_head, axis=1), **near
    )
    everywhere = gradients(model, x, y, list(model.parameters()))
    np.testing.assert_allclose(
        scores.grand(model, x, y), np.linalg.norm(everywhere, axis=1), **near
    )
    error = model(x).softmax(dim=1).detach() - torch.eye(classes).double()[y]
    np.testing.assert_allclose(scores.el2n(pool, y), error.norm(dim=1), **near)
    assert scores.pseudo(pool).tolist() == model(x).argmax(dim=1).tolist()


def test_scoring_leaves_the_network_as_it_was():
    model = nn.Sequential(nn.Linear(4, 6), nn.Dropout(0.5), nn.Linear(6, 3)).train()
    scores.grand(model, torch.randn(5, 4), torch.randint(3, (5,)))
    assert model.training
    assert all(p.grad is None for p in model.parameters())


def test_under_pseudo_labels_the_scores_are_those_of_the_rules():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))
    x, known, truth = torch.randn(40, 4), torch.randn(9, 4), torch.randint(3, (9,))
    pool = embed(model, x)
    reference = last_layer_reference(embed(model, known), truth)
    for rule, by in (
        ("grad", scores.df(pool, scores.pseudo(pool), reference)),
        ("gradnorm", scores.last_layer_norm(pool, scores.pseudo(pool))),
    ):
        picks = select(model, (known, truth), x, 7, strategy=rule)
        assert picks.indices.tolist() == scores.in_order(by)[:7].tolist()
        np.testing.assert_allclose(picks.scores, np.sort(by)[::-1][:7], rtol=1e-5)


def test_equal_scores_are_taken_in_their_order():
    assert scores.in_order(np.array([1.0, 3.0, 1.0, 3.0])).tolist() == [1, 3, 0, 2]


def test_a_mean_over_draws_in_words():
    mean = over_draws(np.array([0.1, 0.2, 0.3]))
    # Student's t for 2 degrees of freedom is 4.3027; the standard error is 0.1/√3.
    assert mean.low == pytest.approx(0.2 - 4.30265 * 0.1 / 3**0.5, rel=1e-5)
    assert said(mean, 100, sign=True) == "+20.0 [−4.8, 44.8]"
    assert said(over_draws(np.array([0.5]))) == "0.5"
    assert said(over_draws(np.array([]))) == "–"
    words = ("above", "below", "neither")
    assert sided(mean, *words) == "neither"
    assert sided(over_draws(np.array([1.0, 1.1])), *words) == "above"
    assert sided(over_draws(np.array([-1.0, -1.1])), *words) == "below"
    assert sided(over_draws(np.array([1.0])), *words) == "cannot be judged on one draw"


@pytest.fixture(scope="module")
def by_labels():
    return labels.run(labels_run.LabelsOptions((DIGITS,), runs=3), LAB)


def test_every_way_to_pick_has_a_point_in_every_round(by_labels):
    assert {(one.path, one.seed, one.round) for one in by_labels.curves} == {
        (path, seed, number)
        for path in ("random", "grad", "oracle")
        for seed in range(3)
        for number in range(4)
    }
    starts = {(one.seed, one.accuracy) for one in by_labels.curves if one.round == 0}
    assert len(starts) == 3  # a seed's runs share their first network
    assert [(one.seed, one.round) for one in by_labels.rounds] == [
        (seed, number) for number in range(3) for seed in range(3)
    ]


def test_both_scores_agree_wherever_the_pseudo_label_is_right(by_labels):
    for one in by_labels.rounds:
        assert 0 <= one.overlap <= 1
        assert one.wrong_true >= one.wrong_pseudo >= 0
        # Batches differ by points with a wrong pseudo-label, and by those they push out.
        assert one.wrong_true * 20 >= (1 - one.overlap) * 20 - 1e-9


def test_the_path_of_grad_is_that_of_the_experiment(tmp_path, by_labels):
    from askance.experiments.store import ResultStore
    from tests.experiments.tiny import play

    with ResultStore.read(play(DIGITS.spec.override(seeds=1), tmp_path)) as store:
        expected = [row["accuracy"] for row in store.results()]
    mine = [p.accuracy for p in by_labels.curves if (p.path, p.seed) == ("grad", 0)]
    assert mine == expected


def test_an_oracle_that_wins_and_one_that_loses_are_told_apart(by_labels):
    def lifted(by):
        curves = tuple(
            replace(one, accuracy=0.5 + 0.001 * one.seed * (one.path == "grad")
                    + by * (one.path == "oracle"))
            for one in by_labels.curves
        )  # fmt: skip
        return labels.findings(replace(by_labels, curves=curves))

    assert "knowing the labels raises accuracy." in lifted(0.1)
    assert "knowing the labels lowers accuracy." in lifted(-0.1)
    assert "knowing the labels is not shown to change accuracy." in lifted(0.001)
    assert labels.gain(by_labels, "digits", "grad", "grad").value == 0


@pytest.fixture(scope="module")
def by_grand():
    return grand.run(OPTIONS["grand"], LAB)


def test_every_score_is_taken_at_every_epoch_in_every_way(by_grand):
    options = by_grand.options
    ways = {(one.score, one.labels, one.epoch, one.networks) for one in by_grand.rankings}
    assert ways == {
        *((score, kind, epoch, count) for score in ("GraNd", "EL2N") for kind in ("pseudo", "true")
          for epoch in (0, 2, 8) for count in (1, 2)),
        ("gradnorm", "pseudo", 8, 1), ("grad", "pseudo", 8, 1), ("gradnorm", "true", 8, 1),
    }  # fmt: skip
    assert len(by_grand.rankings) == len(ways) * options.draws
    assert all(len(shares) == options.draws for shares in by_grand.wrong.values())
    for one in by_grand.rankings:
        if (one.score, one.labels) == ("gradnorm", "pseudo"):
            assert (one.with_gradnorm, one.shared_gradnorm) == (pytest.approx(1), 1)
    assert len(grand.table(by_grand).rows) == len(ways)


def test_the_scores_of_one_network_are_those_of_its_job(by_grand):
    """Taken again by hand: the last epoch, one network, EL2N under pseudo-labels of the first draw."""
    from askance.experiments.rounds import LoadedExperiment
    from askance.seeding import Draws
    from askance.training import TrainingJob

    options = by_grand.options
    loaded = LoadedExperiment.of(options.experiments[0].spec, torch.device("cpu"), "auto")
    rows = Draws(0).generator("start").choice(
        loaded.dataset.pool_size, options.labeled + options.points, replace=False
    )  # fmt: skip
    mine, rest = rows[: options.labeled], rows[options.labeled :]
    job = TrainingJob(mine, loaded.dataset.train.labels[mine], 0.05, Draws(0, 0))
    model = loaded.fit([job]).model(0)
    p = model(loaded.inputs[rest]).softmax(dim=1)
    error = (p - torch.eye(10)[p.argmax(dim=1)]).norm(dim=1).detach().double().numpy()
    top = scores.in_order(error)[: options.batch]
    wrong = p.argmax(dim=1) != loaded.dataset.train.labels[rest]
    (one,) = [
        r for r in by_grand.rankings
        if (r.seed, r.score, r.labels, r.epoch, r.networks) == (0, "EL2N", "pseudo", 8, 1)
    ]  # fmt: skip
    assert one.wrong == pytest.approx(float(wrong[torch.from_numpy(top.copy())].float().mean()))
    assert by_grand.wrong["digits"][0] == pytest.approx(float(wrong.float().mean()))


def test_a_pool_that_is_too_small_is_refused():
    with pytest.raises(InputError, match="wants 1000060 points, the pool of digits has 1295"):
        grand_run.run(replace(OPTIONS["grand"], points=10**6), LAB)
