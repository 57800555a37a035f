"""Each study measures what it says, on data small enough to check."""

from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from torch import nn

from askance import data
from askance.embedding import embed
from askance.errors import DataError, InputError
from askance.paper.studies import (
    Lab,
    contraction,
    contraction_run,
    cost,
    geometry_run,
    lab,
    reference,
    samples,
    shift,
)
from askance.seeding import Draws
from askance.training import Recipe as TrainingRecipe
from askance.training import TrainingJob, fit
from tests.naive import contraction as naive
from tests.paper.claims import worlds
from tests.paper.studies.tiny import OPTIONS, tiny

LAB = Lab()


@pytest.fixture(scope="module")
def results():
    return {name: tiny(name).run(OPTIONS[name], LAB) for name in OPTIONS}


@pytest.mark.parametrize("name", [name for name in OPTIONS if name != "cost"])
def test_the_seed_decides_everything(name, results):
    study = tiny(name)
    torch.manual_seed(123)
    assert asdict(study.run(study.quick, LAB)) == asdict(results[name])
    other = asdict(study.run(replace(study.quick, seed=5), LAB))
    assert other != asdict(results[name]) | {"options": other["options"]}


def test_geometry_measures_every_batch_in_every_view(results):
    result = results["geometry"]
    rules, batches, starts = 4, 2, 2
    assert len(result.measured) == rules * batches * starts * len(geometry_run.SPACES) * 2
    assert {p.space for p in result.planes} == {"inputs", "gradients"}
    assert all(len(plane.points) == 200 for plane in result.planes)
    for of in result.picks.values():
        assert [len(of["5"]), len(of["12"])] == [5, 12]
        assert not set(of["12"]) & set(result.labeled)


def test_gradient_rows_are_those_of_autograd():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3)).double()
    x = torch.randn(5, 4, dtype=torch.float64)
    rows = geometry_run.gradient_rows(embed(model, x))
    for point, row in zip(x, rows, strict=True):
        logits = model(point[None])
        loss = nn.functional.cross_entropy(logits, logits.argmax(1))
        weight, bias = torch.autograd.grad(loss, [model[2].weight, model[2].bias])
        expected = torch.cat([weight, bias[:, None]], dim=1).flatten()
        np.testing.assert_allclose(row, expected, atol=1e-12)


def test_contraction_follows_the_network_that_fit_trains():
    """The cell of the usual recipe is what `fit` trains, measured by autograd after every epoch."""
    digits = data.load("digits")
    options = replace(
        OPTIONS["contraction"], batches=(8,), trained_on=("S",), shares=(0.5,), draws=1
    )
    (path,) = contraction_run.run(options, LAB).paths
    draws = Draws(0)
    x, y = samples.draw_points(digits, options.points, draws)
    subset = torch.from_numpy(draws.generator("S_J").choice(60, 30, replace=False))
    build = lab.network("two-layer", digits, hidden=options.hidden)
    job = TrainingJob(np.arange(60), y, options.learning_rate, draws)
    for place, epochs in enumerate((1, 4)):  # which are those whose norms are kept
        model = fit(build, x, [job], TrainingRecipe(epochs=epochs), training="one").model(0)
        copied = model.double()
        for series, last_layer in zip(path.series, (False, True), strict=True):
            expected = naive.discrepancy(copied, x.flatten(1).double(), y, subset, last_layer)
            assert series.norms[place] == pytest.approx(expected, rel=1e-3)
        if epochs == 4:
            loss = nn.functional.cross_entropy(copied(x.double()), y).item()
            assert path.loss[1] == pytest.approx(loss, rel=1e-5)


def test_contraction_has_a_cell_for_every_reading(results):
    result = results["contraction"]
    found = contraction_run.cells(result)
    # Two batches; trained on S with two gradients and three sizes, on S_J with one size.
    assert len(found) == 2 * (2 * 3 + 2)
    assert len({(cell.choice, cell.gradient, cell.share) for cell in found}) == len(found)
    assert {len(cell.series) for cell in found} == {2}
    shares = {cell.share for cell in found if cell.choice.trained_on == "S_J"}
    assert shares == {0.5}
    assert {len(series.norms) for cell in found for series in cell.series} == {2}  # of 1 and 4
    assert contraction_run.kept_epochs(25) == [1, 10, 20, 25]


def test_contraction_starts_every_choice_from_the_same_weights(results):
    starts = {
        (path.seed, path.loss[0], tuple(one.start for one in path.series if one.share == 0.5))
        for path in results["contraction"].paths
    }
    assert len(starts) == 2  # one a seed


def test_contraction_is_the_same_however_networks_are_stacked(monkeypatch):
    options = replace(OPTIONS["contraction"], epochs=2)
    together = contraction_run.run(options, LAB)
    monkeypatch.setattr(contraction_run, "_STACK", 1)
    apart = contraction_run.run(options, LAB)
    one, other = ({(path.choice, path.seed): path for path in r.paths} for r in (together, apart))
    assert list(one) == list(other)
    for key, path in one.items():
        for a, b in zip(path.series, other[key].series, strict=True):
            assert a.norms == pytest.approx(b.norms, rel=1e-3)


def test_contraction_draws_from_all_splits():
    digits = data.load("digits")
    whole = len(digits.train) + len(digits.val) + len(digits.test)
    x, y = samples.draw_points(digits, whole, Draws(0))
    assert torch.equal(x, torch.cat([digits.train.inputs, digits.val.inputs, digits.test.inputs]))
    assert torch.equal(y, torch.cat([digits.train.labels, digits.val.labels, digits.test.labels]))


def test_contraction_leaves_out_what_cannot_be_had(monkeypatch):
    def load(name, *args, **kwargs):
        if name == "gisette":
            raise DataError("gisette is not at hand")
        return data_load(name, *args, **kwargs)

    data_load = data.load
    monkeypatch.setattr(lab.data, "load", load)
    options = replace(OPTIONS["contraction"], datasets=("gisette", "digits"), draws=1)
    result = contraction_run.run(options, LAB)
    assert list(result.absent) == ["gisette"]
    assert "Left out, because it could not be had: gisette." in contraction.findings(result)
    with pytest.raises(DataError, match="none of the datasets is at hand"):
        contraction_run.run(replace(options, datasets=("gisette",)), LAB)


def test_contraction_names_the_readings_that_agree():
    falling = worlds.falling()
    result = worlds.trained(falling, falling[::-1], falling)
    assert contraction.agreement("german", contraction_run.cells(result)) == (
        "The readings of german that agree with all three: SGD with momentum, batch 8, trained on S "
        "(every reading), Adam, batch 8, trained on S (every reading)."
    )
    alone = contraction_run.cells(worlds.trained(falling))
    assert "Every reading of german" in contraction.agreement("german", alone)
    rising = contraction_run.cells(worlds.trained(falling[::-1]))
    assert "No reading of german" in contraction.agreement("german", rising)


def test_shift_sees_nothing_between_a_set_and_itself(results):
    assert [one.auroc for one in results["shift"].detectors] == [0.5] * 8
    assert {one.name for one in results["shift"].detectors} == set(shift.DETECTORS)


def test_shift_detects_what_lies_far_away(monkeypatch):
    """Noise far outside the training data, to a network that is sure of its own."""
    digits = data.load("digits")
    noise = torch.randn(digits.test.inputs.shape, generator=torch.Generator().manual_seed(0))
    far = replace(digits, test=replace(digits.test, inputs=noise * 0.3))
    monkeypatch.setattr(
        lab.data, "load", lambda name, *args, **kwargs: far if name == "far" else digits
    )
    options = replace(OPTIONS["shift"], outside="far", training=800, epochs=15, networks=1)
    result = shift.run(options, LAB)
    assert result.networks[0].accuracy > 0.85
    assert all(one.auroc > 0.8 for one in result.detectors)
    assert "larger out of distribution holds with every network" in shift.findings(result)


def test_cost_times_every_rule_in_every_round(results):
    result = results["cost"]
    assert [(one.rule, one.round, one.labels) for one in result.timings] == [
        (rule, number, 10 * number) for number in (1, 2) for rule in OPTIONS["cost"].rules
    ]
    for one in result.timings:
        assert one.forward > 0
        if one.rule in ("entropy", "badge"):  # they need no labelled set
            assert one.labeled < one.forward
        assert one.total == one.forward + one.score + one.select


def test_reference_compares_both_scores_in_every_round(results):
    rounds = results["reference"].rounds
    assert [(one.seed, one.round, one.labels) for one in rounds] == [
        (seed, number, 20 * (number + 1)) for seed in (0, 1) for number in range(3)
    ]
    for one in rounds:
        assert -1 <= one.spearman <= 1
        assert 0 <= one.overlap <= 1
        assert one.reference_norm > 0
        assert one.median_norm > 0


def test_reference_without_a_reference_is_the_gradient_norm(results):
    """The longer a labelled set is trained on, the less its mean gradient moves the ranking."""
    one = reference.Experiment("digits", rounds=2, epochs=60, rates=(0.05,))
    result = reference.run(reference.ReferenceOptions((one,)), LAB)
    last = result.rounds[-1]
    assert last.loss < 0.01
    assert last.reference_norm < 0.1 * last.median_norm
    assert last.spearman > 0.99


def test_reference_sweeps_where_there_are_rates():
    one = reference.Experiment("digits", rounds=1, epochs=1, rates=(1e-6, 0.05))
    result = reference.run(reference.ReferenceOptions((one,), runs=1), LAB)
    assert result.rates == {"digits": 0.05}


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("geometry", {"points": 10**6}, "wants 1000000 points, digits has 1295"),
        ("shift", {"test": 10**6}, "digits has 359 test images, the study wants 1000000"),
        ("shift", {"training": 10**6}, "1295 images to train on, not 1000000"),
        ("contraction", {"points": 10**6}, "has 1797 rows, the study wants 1000000"),
        ("contraction", {"shares": (0.5, 1.0)}, "fewer points than S, got 60 of 60"),
        ("cost", {"pool": 10**6}, "digits has 1295 points"),
    ],
)
def test_what_the_data_cannot_give_is_refused(name, changes, message):
    with pytest.raises(InputError, match=message):
        tiny(name).run(replace(OPTIONS[name], **changes), LAB)


def test_threads_are_as_before():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        reference.run(OPTIONS["reference"], LAB)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_the_order_of_the_paper_is_told(results):
    said = cost.findings(results["cost"])
    assert "after the forward pass the order is" in said
    assert "there: grad 2.30, badge 2.90, kcenter 3.27; here" in said


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
@pytest.mark.filterwarnings("ignore:Attempting to run cuBLAS")
@pytest.mark.parametrize("name", list(OPTIONS))
def test_studies_run_on_cuda(name):
    study = tiny(name)
    result = study.run(study.quick, Lab(torch.device("cuda")))
    assert study.findings(result)
