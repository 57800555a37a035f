"""The same answers on a CUDA device; skipped where there is none."""

import numpy as np
import pytest
import torch
from torch import nn

import askance
from askance.strategies import Grad
from askance.testing import CONTRACT, check_strategy

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here"),
    # torch's own backward thread makes its context at its first use, and says so.
    pytest.mark.filterwarnings("ignore:Attempting to run cuBLAS"),
]

RULES = [*askance.strategies.names(), Grad(parameters="all"), Grad(reference_size=7)]


def problem(dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 5)
        )
    images = torch.randn(420, 3, 8, 8, generator=generator, dtype=dtype)
    labels = torch.randint(5, (20,), generator=generator)
    return model.to(dtype), (images[:20], labels), images[20:]


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_picks_are_those_of_the_cpu(rule):
    model, labeled, pool = problem()
    on_cpu = askance.select(model, labeled, pool, 30, strategy=rule)
    on_cuda = askance.select(model, labeled, pool, 30, strategy=rule, device="cuda")
    assert on_cuda.indices.tolist() == on_cpu.indices.tolist()
    np.testing.assert_allclose(on_cuda.scores, on_cpu.scores, rtol=1e-6)
    assert [e.pseudo_label for e in on_cuda.explain()] == [e.pseudo_label for e in on_cpu.explain()]


def test_a_model_moved_for_scoring_comes_back_bit_for_bit():
    model, labeled, pool = problem()
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    before = {k: (v.data_ptr(), v.device) for k, v in model.state_dict(keep_vars=True).items()}
    askance.select(model, labeled, pool, 5, device="cuda")
    after = {k: (v.data_ptr(), v.device) for k, v in model.state_dict(keep_vars=True).items()}
    assert after == before
    assert all(p.grad.device.type == "cpu" for p in model.parameters())


@pytest.mark.parametrize("rule", ["grad", "badge", "kcenter", "egl"])
def test_autocast_scores_are_those_of_full_precision_up_to_half_precision(rule):
    model, labeled, pool = problem(torch.float32)
    model, full = model.cuda(), askance.select(model.cuda(), labeled, pool, 400, strategy=rule)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        half = askance.select(model, labeled, pool, 400, strategy=rule)
    assert sorted(half.indices.tolist()) == sorted(full.indices.tolist())
    np.testing.assert_allclose(np.sort(half.scores)[-50:], np.sort(full.scores)[-50:], rtol=0.1)


def test_embeddings_on_the_device_are_scored_there():
    model, labeled, pool = problem(torch.float32)
    model = model.cuda()
    seen = askance.embed(model, labeled[0]), labeled[1]
    embedded = askance.embed(model, pool)
    assert embedded.logits.device.type == "cuda"
    direct = askance.select(model, labeled, pool, 25)
    assert askance.select(None, seen, embedded, 25).indices.tolist() == direct.indices.tolist()


@pytest.mark.parametrize("check", ["leaves_model_and_rng_alone", "same_seed_same_picks"])
def test_contract_holds_beside_a_cuda_context(check):
    assert check in CONTRACT
    torch.zeros(1, device="cuda")
    check_strategy("grad", checks=[check])
