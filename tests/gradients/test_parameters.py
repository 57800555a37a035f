"""Gradients of the full θ, or of a named part of it, against backward passes in a loop."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import askance
from askance.embedding import Evaluation
from askance.errors import InputError, UnknownError
from askance.gradients.parameters import ParameterGradients, ParameterReference
from askance.strategies import Grad, PowerGrad
from tests.embedding import zoo
from tests.naive import gradients as naive

ALL = Grad(parameters="all")
MODELS = {
    "mlp": (zoo.mlp, zoo.rows),
    "cnn": (zoo.ConvNet, zoo.images),
    "transformer": (zoo.Transformer, zoo.sentences),
}


def scene(kind, seed=0, pool=5, labeled=4, dtype=torch.float64):
    """(model in evaluation mode, labelled inputs, labels, pool inputs)."""
    make, draw = MODELS[kind]
    model = zoo.seeded(make, seed=seed).to(dtype).eval()
    x, pool_x = draw(labeled, seed + 1).to(dtype), draw(pool, seed + 2).to(dtype)
    return model, x, torch.arange(labeled) % 3, pool_x


def scores_of(rule, model, x, y, pool, **options):
    return askance.select(
        model, (x, y), pool, len(pool), strategy=rule, keep_scores=True, **options
    ).pool_scores


def assert_scores(scores, expected, scale, tolerance=1e-9):
    assert np.isfinite(scores).all()
    assert (np.abs(scores - expected.numpy()) <= tolerance * scale.numpy()).all()


def assert_two_passes(model, x, y, pool, rule=ALL, *how, **options):
    """The rule's scores are those of two backward passes; `how` is the twin's objective and names."""
    expected, scale = naive.autograd_df_scores(model, x, y, pool, *how)
    assert_scores(scores_of(rule, model, x, y, pool, **options), expected, scale)


@pytest.mark.parametrize("kind", MODELS)
def test_the_full_gradient_is_two_backward_passes_a_point(kind):
    model, x, y, pool = scene(kind)
    expected, scale = naive.autograd_df_scores(model, x, y, pool)
    model.train()  # scored in evaluation mode all the same
    assert_scores(scores_of(ALL, model, x, y, pool, batch_size=2), expected, scale)


@settings(deadline=None, max_examples=15)
@given(
    seed=st.integers(0, 10**6),
    pool=st.integers(1, 5),
    labeled=st.integers(1, 5),
    batch_size=st.integers(1, 6),
)
def test_whatever_the_weights_and_the_batches(seed, pool, labeled, batch_size):
    assert_two_passes(*scene("mlp", seed, pool, labeled), batch_size=batch_size)


SUBSETS = [
    ("mlp", ["3"], ["3.weight", "3.bias"]),
    ("mlp", ["0.weight"], ["0.weight"]),
    ("mlp", ["0.weight", "5", "5.bias"], ["0.weight", "5.weight", "5.bias"]),
    ("mlp", "3", ["3.weight", "3.bias"]),
    ("cnn", ["norm", "head.bias"], ["norm.weight", "norm.bias", "head.bias"]),
    ("cnn", ["conv"], ["conv.weight", "conv.bias"]),
    ("transformer", ["classifier.weight"], ["classifier.weight"]),
]


@pytest.mark.parametrize(("kind", "chosen", "names"), SUBSETS, ids=str)
def test_a_named_part_of_the_parameters(kind, chosen, names):
    assert_two_passes(*scene(kind), Grad(parameters=chosen), F.cross_entropy, names)


def test_a_module_is_not_taken_for_another_whose_name_it_begins():
    model = nn.Sequential()
    for width in [4] * 11 + [3]:
        model.append(nn.Linear(4, width))
    with Evaluation(model) as evaluation:
        assert list(ParameterGradients(evaluation, ["1"]).chosen) == ["1.weight", "1.bias"]


@pytest.mark.parametrize("kind", MODELS)
def test_the_last_layer_chosen_by_name_is_the_last_layer(kind):
    model, x, y, pool = scene(kind)
    head = {"mlp": "5", "cnn": "head", "transformer": "classifier"}[kind]
    named, last = (
        scores_of(Grad(parameters=parameters), model, x, y, pool) for parameters in ([head], "last")
    )
    np.testing.assert_allclose(named, last, rtol=1e-9)


@pytest.mark.parametrize("kind", MODELS)
def test_float32_models(kind):
    model, x, y, pool = scene(kind, dtype=torch.float32)
    scores = scores_of(ALL, model, x, y, pool)
    exact = model.double()
    expected, scale = naive.autograd_df_scores(exact, x.double(), y, pool.double())
    assert_scores(scores, expected, scale, tolerance=1e-4)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_confident_points_keep_their_digits(dtype):
    """1 − p_ŷ ≈ 1e-12 for pool and labelled set alike: ‖g‖ is tiny, and right."""
    model, x, _, pool = scene("mlp")
    with torch.no_grad():
        z = model(torch.cat([x, pool]))
        gap = (z.topk(2, dim=1).values * torch.tensor([1.0, -1.0])).sum(1)
        x, pool = x[:1], pool[gap[4:] > gap[4:].median()]
        model[-1].weight *= 28 / gap.median()
        model[-1].bias *= 28 / gap.median()
    model = model.to(dtype)
    x, pool = x.to(dtype), pool.to(dtype)
    y = model(x).argmax(1)
    scores = scores_of(ALL, model, x, y, pool)
    exact, x, pool = model.double(), x.double(), pool.double()
    reference = naive.jacobian_gradient(exact, x, int(y))
    for score, point in zip(scores, pool, strict=True):
        point = point[None]
        g = naive.jacobian_gradient(exact, point, int(exact(point).argmax()))
        scale = float(g.norm() + reference.norm())
        assert scale < 1e-6
        expected = float((reference - g).norm()) / 2
        tolerance = (
            1e-9 if dtype == torch.float64 else 1e-3
        )  # float32 logits have lost digits already
        assert abs(score - expected) <= tolerance * scale


def test_a_copy_of_the_labelled_set_scores_zero():
    model, x, _, _ = scene("cnn", labeled=1)
    y = model(x).argmax(1)
    assert 0 <= scores_of(ALL, model, x, y, x)[0] < 1e-12


def test_multilabel():
    model, x, _, pool = scene("mlp")
    y = torch.tensor([[0, 1, 1], [1, 0, 0], [0, 0, 0], [1, 1, 1]])
    rule = Grad(parameters="all", loss="multilabel")
    assert_two_passes(model, x, y, pool, rule, naive.summed_bce)


def soft_maximum(logits, labels):
    return F.cross_entropy(logits, labels, reduction="none").exp().mean().log()


def ranking(logits, labels):
    own = F.one_hot(labels, logits.shape[1]).bool()
    return torch.sigmoid(logits[~own][None, :] - logits[own][:, None]).mean()


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("objective", [soft_maximum, ranking])
@pytest.mark.parametrize("names", [None, "conv or first"])
def test_objectives_that_are_no_mean(kind, objective, names):
    model, x, y, pool = scene(kind, pool=3)
    some = [next(name for name, _ in model.named_parameters())] if names else None
    rule = Grad(parameters=some or "all", loss=objective)
    assert_two_passes(model, x, y, pool, rule, objective, some)


def test_a_mean_loss_given_as_an_objective_scores_the_same():
    model, x, y, pool = scene("mlp")
    named, called = (
        scores_of(Grad(parameters="all", loss=loss), model, x, y, pool)
        for loss in ("cross-entropy", F.cross_entropy)
    )
    np.testing.assert_allclose(called, named, rtol=1e-9)


def test_a_sampled_reference_keeps_the_factor_of_the_whole_set():
    model, x, y, pool = scene("mlp", labeled=6)
    first, again = (
        scores_of(Grad(parameters="all", reference_size=1), model, x, y, pool, seed=3)
        for _ in range(2)
    )
    np.testing.assert_array_equal(first, again)
    candidates = []
    for i in range(6):
        scores, _ = naive.autograd_df_scores(model, x[i : i + 1], y[i : i + 1], pool)
        candidates.append(scores.numpy() * 2 * 6 / 7)  # one point's own factor is 1/2
    assert min(np.abs(first - candidate).max() for candidate in candidates) < 1e-12


# --- memory, and models that cannot be vectorised -------------------------------------------------


@pytest.mark.parametrize("chunk_bytes", [1, 3000, 10**9])
def test_the_size_of_a_chunk_changes_nothing(chunk_bytes):
    model, x, y, pool = scene("mlp", pool=7)
    expected, scale = naive.autograd_df_scores(model, x, y, pool)
    with Evaluation(model) as evaluation:
        gradients = ParameterGradients(evaluation, "all", chunk_bytes)
        labeled = evaluation.labeled((x, y), 3, keep_inputs=True)
        reference = ParameterReference.of(gradients, labeled, labeled.labels, 4, "cross-entropy")
        (block,) = evaluation.blocks(pool, 100, keep_inputs=True)
        scores = reference.scores(block)
        largest = max(len(chunk[0]) for chunk in gradients.per_point(block.inputs, block.logits))
    assert_scores(scores.numpy(), expected, scale)
    assert largest <= max(1, chunk_bytes // (8 * sum(p.numel() for p in model.parameters())))


class Branching(zoo.HeadFirst):
    """Looks at its numbers to decide what to do, which a vectorised pass cannot."""

    def forward(self, x):
        return super().forward(x if float(x.sum()) > 1e9 else x * 1.5)


def test_a_model_that_cannot_be_vectorised_is_differentiated_one_by_one(caplog):
    with caplog.at_level(logging.WARNING, logger="askance"):
        assert_two_passes(zoo.seeded(Branching).double(), *scene("mlp")[1:])
    assert len([r for r in caplog.records if "cannot be vectorised" in r.message]) == 1


def test_recurrent_models():
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.gru, self.head = nn.GRU(4, 5, batch_first=True), nn.Linear(5, 3)

        def forward(self, x):
            return self.head(self.gru(x)[0][:, -1])

    model = zoo.seeded(Recurrent).double()
    x, pool = zoo.sentences(4, 1).double(), zoo.sentences(5, 2).double()
    assert_two_passes(model, x, torch.tensor([0, 1, 2, 0]), pool)


def test_weights_used_twice_are_differentiated_once_for_both_uses():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.head = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 3)
            self.second.weight = self.first.weight

        def forward(self, x):
            return self.head(torch.tanh(self.second(torch.tanh(self.first(x)))))

    assert_two_passes(zoo.seeded(Tied).double(), *scene("mlp")[1:])


def test_frozen_parameters_are_part_of_theta():
    model, x, y, pool = scene("mlp")
    expected, scale = naive.autograd_df_scores(model, x, y, pool)
    model[0].weight.requires_grad_(False)
    assert_scores(scores_of(ALL, model, x, y, pool), expected, scale)
    assert not model[0].weight.requires_grad


def test_parameters_off_the_path_to_the_logits_have_gradient_zero():
    model, (x, y, pool) = zoo.seeded(zoo.HeadFirst).double(), scene("mlp")[1:]
    assert (scores_of(Grad(parameters=["zzz_unused"]), model, x, y, pool) == 0).all()
    both, used = (
        scores_of(Grad(parameters=names), model, x, y, pool)
        for names in (["zzz_unused", "body"], ["body"])
    )
    np.testing.assert_allclose(both, used)


def test_inputs_by_name():
    model = zoo.seeded(zoo.Tokens).double()
    labeled, pool = zoo.token_batch(4, seed=1), zoo.token_batch(5, seed=2)
    y = torch.tensor([0, 1, 2, 0])
    rule = ALL
    picks = askance.select(
        model, (labeled, y), pool, 5, strategy=rule, batch_size=2, keep_scores=True
    )

    class Packed(nn.Module):
        """The same model on one tensor, for the loop."""

        def __init__(self):
            super().__init__()
            self.inner = model

        def forward(self, x):
            return self.inner(x[..., 0], x[..., 1])

    packed = [torch.stack([b["input_ids"], b["attention_mask"]], -1) for b in (labeled, pool)]
    expected, scale = naive.autograd_df_scores(Packed(), packed[0], y, packed[1])
    assert_scores(picks.pool_scores, expected, scale)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_models_give_finite_scores_near_the_exact_ones(dtype):
    model, x, y, pool = scene("mlp", dtype=dtype)
    scores = scores_of(ALL, model, x, y, pool)
    expected, scale = naive.autograd_df_scores(model.double(), x.double(), y, pool.double())
    assert_scores(scores, expected, scale, tolerance=0.02)


def test_powergrad_samples_by_any_parameters():
    model, x, y, pool = scene("mlp")
    rule = PowerGrad(grad=Grad(parameters="all"))
    assert len(askance.select(model, (x, y), pool, 3, strategy=rule)) == 3


# --- what is refused ------------------------------------------------------------------------------


def test_an_unknown_parameter_lists_the_closest_names():
    model, x, y, pool = scene("cnn")
    with pytest.raises(UnknownError, match=r"parameter or module 'heads': did you mean 'head'"):
        askance.select(model, (x, y), pool, 1, strategy=Grad(parameters=["heads"]))


def test_no_parameters_are_refused():
    model, x, y, pool = scene("mlp")
    with pytest.raises(InputError, match="at least one parameter must be chosen"):
        askance.select(model, (x, y), pool, 1, strategy=Grad(parameters=[]))


def test_embeddings_cannot_be_differentiated_through():
    model, x, y, pool = scene("mlp")
    rule = ALL
    with pytest.raises(InputError, match="needs the pool's inputs, not an Embedding"):
        askance.select(model, (x, y), askance.embed(model, pool), 1, strategy=rule)
    with pytest.raises(InputError, match="needs the labelled set's inputs, not an Embedding"):
        askance.select(model, (askance.embed(model, x), y), pool, 1, strategy=rule)


def test_the_bias_option_belongs_to_the_last_layer():
    with pytest.raises(InputError, match="bias=False is an option of parameters='last'"):
        Grad(parameters="all", bias=False)
