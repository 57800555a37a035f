"""`embed`: one evaluation pass of any model."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import askance
from askance.errors import InputError, NonFiniteError
from tests.embedding import zoo

MODELS = {
    "mlp": (zoo.mlp, zoo.rows),
    "cnn": (zoo.ConvNet, zoo.images),
    "transformer": (zoo.Transformer, zoo.sentences),
}


@pytest.mark.parametrize("kind", MODELS)
def test_a_model_left_in_training_mode_is_scored_in_evaluation_mode(kind):
    make, draw = MODELS[kind]
    model, x = zoo.seeded(make).train(), draw(9)
    emb = askance.embed(model, x)
    assert model.training
    with torch.no_grad():
        torch.testing.assert_close(emb.logits, model.eval()(x))


@settings(deadline=None, max_examples=20)
@given(count=st.integers(1, 12), batch_size=st.integers(1, 15))
def test_the_batch_size_changes_nothing(count, batch_size):
    model, x = zoo.seeded(zoo.ConvNet).double(), zoo.images(count).double()
    whole, parts = (askance.embed(model, x, batch_size=size) for size in (1000, batch_size))
    torch.testing.assert_close(parts.logits, whole.logits, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(parts.features, whole.features, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_inputs_come_in_the_models_dtype(dtype):
    model, x = zoo.seeded(zoo.mlp).to(dtype), zoo.rows(5).double()
    emb = askance.embed(model, x.numpy())
    assert emb.logits.dtype == emb.features.dtype == dtype
    with torch.no_grad():
        assert torch.equal(emb.logits, model.eval()(x.to(dtype)))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("strategy", ["grad", "entropy", "egl", "badge", "kcenter"])
def test_half_precision_models_can_be_asked(dtype, strategy):
    model = zoo.seeded(zoo.mlp).to(dtype)
    labeled = zoo.rows(6, seed=1), torch.tensor([0, 1, 2, 0, 1, 2])
    picks = askance.select(model, labeled, zoo.rows(20), 5, strategy=strategy)
    assert len(set(picks.indices.tolist())) == 5
    assert np.isfinite(picks.scores).all()


def test_under_autocast_the_logits_are_autocast():
    model, x = zoo.seeded(zoo.mlp), zoo.rows(8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        emb = askance.embed(model, x.double())
        picks = askance.select(model, (x, torch.arange(8) % 3), x, 3)
    assert emb.logits.dtype == torch.bfloat16
    assert len(picks.indices) == 3
    assert next(model.parameters()).dtype == torch.float32
    torch.testing.assert_close(emb.logits.float(), model.eval()(x), rtol=0.05, atol=0.05)


def test_inputs_by_name():
    model, batch = zoo.seeded(zoo.Tokens), zoo.token_batch(7)
    torch.testing.assert_close(askance.embed(model, batch, batch_size=3).logits, model(**batch))


def test_the_model_is_not_needed_for_gradients_later():
    emb = askance.embed(zoo.seeded(zoo.mlp), zoo.rows(3))
    assert not emb.logits.requires_grad
    assert not emb.features.requires_grad


def test_empty_data_is_refused():
    with pytest.raises(InputError, match="at least one point, it is empty"):
        askance.embed(zoo.mlp(), torch.empty(0, 4))


@pytest.mark.parametrize("batch_size", [0, -1, 2.0, "8", True])
def test_a_bad_batch_size_is_refused(batch_size):
    with pytest.raises(InputError, match="batch_size must be a whole number ≥ 1 or None, got"):
        askance.embed(zoo.mlp(), zoo.rows(3), batch_size=batch_size)


@pytest.mark.parametrize("model", [None, 7, lambda x: x])
def test_what_is_no_module_is_refused(model):
    with pytest.raises(InputError, match=r"model must be a torch\.nn\.Module, got"):
        askance.embed(model, zoo.rows(3))


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_logits_that_are_no_numbers_are_counted_and_the_first_is_named(bad):
    x = zoo.rows(12)
    x[[7, 8, 10]] = bad
    for batch_size in (4, 256):
        with pytest.raises(NonFiniteError, match=r"3 of 12 pool rows .* the first is row 7\."):
            askance.embed(zoo.seeded(nn.Linear, 4, 3), x, batch_size=batch_size)


def test_finite_numbers_whose_sum_overflows_are_not_refused():
    model = nn.Linear(4, 3).half()
    nn.init.constant_(model.weight, 100.0)
    assert torch.isfinite(askance.embed(model, torch.full((50, 4), 100.0)).logits).all()


def test_an_error_of_the_models_own_says_what_it_was_called_with():
    with pytest.raises(RuntimeError) as wide:
        askance.embed(nn.Linear(4, 3), torch.zeros(6, 5))
    assert wide.value.__notes__ == [
        "askance called the model with a tensor of shape (6, 5), torch.float32"
    ]
    with pytest.raises(TypeError) as named:
        askance.embed(nn.Linear(4, 3), {"pixels": torch.zeros(6, 4), "label": torch.zeros(6)})
    assert named.value.__notes__ == [
        "askance called the model with pixels= a tensor of shape (6, 4), torch.float32"
    ]
    with pytest.raises(InputError, match="the items are texts: a network takes numbers; pass what"):
        askance.embed(nn.Linear(4, 3), ["one", "two", "three", "four", "five"])
