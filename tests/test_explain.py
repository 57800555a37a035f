"""`Selection.explain()`: why each point was picked."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from hypothesis import given, settings
from hypothesis import strategies as st

import askance
from askance import Embedding, Explanation
from askance.strategies import Badge, Entropy, Grad, GradNorm, GradSpread, PowerGrad
from tests.embedding import zoo
from tests.naive import gradients as naive
from tests.rules import ONE_MODEL

REFERENCE = ("reference_norm", "alignment", "gradient_share", "reference_share", "alignment_share")


def drawn(seed, rows, C=3, D=4, scale=2.0, dtype=torch.float64):
    rng = np.random.default_rng(seed)
    logits = torch.from_numpy(rng.normal(size=(rows, C)) * scale).to(dtype)
    features = torch.from_numpy(rng.normal(size=(rows, D))).to(dtype)
    return Embedding(logits, features), torch.from_numpy(rng.integers(C, size=rows))


def exact(embedding, labels, i):
    return embedding.logits[i].tolist(), embedding.features[i].tolist(), labels[i].tolist()


def shares(why):
    return why.gradient_share + why.reference_share + why.alignment_share


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    bias=st.booleans(),
    dtype=st.sampled_from([torch.float64, torch.float32]),
)
def test_alignment_and_shares_are_those_of_the_gradients(seed, bias, dtype):
    both, labels = drawn(seed, 9, dtype=dtype)
    pool, labeled, labels = both[:5], both[5:], labels[5:]
    picks = askance.select(None, (labeled, labels), pool, 3, strategy=Grad(bias=bias))
    mean = naive.mean_gradient([exact(labeled, labels, i) for i in range(4)], bias)
    size = float(naive.norm(mean))
    for why, index, score in zip(picks.explain(), picks.indices, picks.scores, strict=True):
        assert (why.index, why.score) == (index, score)
        z, h = pool.logits[index].tolist(), pool.features[index].tolist()
        label = naive.pseudo_label(z)
        assert why.pseudo_label == label
        assert why.confidence == pytest.approx(float(naive.softmax(z)[label]), rel=1e-5)
        g = naive.gradient((z, h, label), bias)
        assert why.grad_norm == pytest.approx(float(naive.norm(g)), rel=1e-5)
        assert why.reference_norm == pytest.approx(size, rel=1e-5)
        cosine = float(naive.dot(g, mean) / (naive.norm(g) * naive.norm(mean)))
        assert why.alignment == pytest.approx(cosine, abs=1e-5)
        assert shares(why) == pytest.approx(1.0, abs=1e-6)
        sq_dist = float(naive.norm(naive.minus(g, mean))) ** 2
        assert why.gradient_share == pytest.approx(float(naive.norm(g)) ** 2 / sq_dist, rel=1e-4)
        assert why.reference_share == pytest.approx(size**2 / sq_dist, rel=1e-4)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_shares_of_a_near_copy_still_sum_to_one(dtype):
    """There ‖g‖², ‖ḡ‖² and 2⟨g, ḡ⟩ are a million times their sum."""
    one, _ = drawn(0, 1, dtype=dtype)
    noise, _ = drawn(1, 4, dtype=dtype)
    pool = Embedding(one.logits + 1e-3 * noise.logits, one.features + 1e-3 * noise.features)
    picks = askance.select(None, (one, one.logits.argmax(1)), pool, 4, strategy="grad")
    for why in picks.explain():
        assert why.gradient_share > 1e4
        assert shares(why) == pytest.approx(1.0, abs=1e-4)
        assert -1 <= why.alignment <= 1


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_copy_of_the_reference_has_alignment_one_and_no_shares_to_speak_of(dtype):
    one, _ = drawn(0, 1, dtype=dtype)
    (why,) = askance.select(None, (one, one.logits.argmax(1)), one, 1, strategy="grad").explain()
    assert why.alignment == pytest.approx(1.0)
    assert why.alignment <= 1.0
    assert why.score < 1e-6


def test_a_point_with_no_gradient_has_no_angle():
    sure = Embedding(torch.tensor([[5000.0, 0.0]]), torch.ones(1, 2))
    labeled = Embedding(torch.zeros(1, 2), torch.ones(1, 2))
    (why,) = askance.select(None, (labeled, [0]), sure, 1, strategy="grad").explain()
    assert why.grad_norm == 0
    assert why.alignment is None
    assert (why.gradient_share, why.reference_share) == (0.0, pytest.approx(1.0))


def test_nothing_is_known_of_two_zero_gradients():
    sure = Embedding(torch.tensor([[5000.0, 0.0]]), torch.ones(1, 2))
    (why,) = askance.select(None, (sure, [0]), sure, 1, strategy="grad").explain()
    assert (why.score, why.grad_norm, why.reference_norm) == (0.0, 0.0, 0.0)
    assert why.alignment is why.gradient_share is why.alignment_share is None


@pytest.mark.parametrize(
    "rule", ["random", "entropy", "margin", "least-confidence", "egl", "gradnorm", "badge"]
)
def test_without_a_reference_there_is_nothing_to_align_with(rule):
    pool, _ = drawn(0, 8)
    picks = askance.select(None, None, pool, 3, strategy=rule)
    for why in picks.explain():
        assert [getattr(why, name) for name in REFERENCE] == [None] * 5
        assert why.pseudo_label == int(pool.logits[why.index].argmax())
        g = naive.gradient(
            (*exact(pool, pool.logits, why.index)[:2], why.pseudo_label), rule != "badge"
        )
        assert why.grad_norm == pytest.approx(float(naive.norm(g)))


def test_kcenter_has_no_gradients_to_explain_by():
    both, labels = drawn(0, 8)
    features = Embedding(features=both.features)
    whys = askance.select(
        None, (features[5:], labels[5:]), features[:5], 2, strategy="kcenter"
    ).explain()
    because = "it is unlike everything that is labelled or picked"
    reason = f"Picked by kcenter because {because}."
    assert whys[0] == Explanation(whys[0].index, whys[0].score, reason=reason)


def test_a_reason_is_for_somebody_who_labels():
    both, labels = drawn(0, 8)
    picks = askance.select(
        None, (both[5:], labels[5:]), both[:5], 1, strategy="margin", classes=["ant", "bee", "cat"]
    )
    (why,) = picks.explain()
    assert why.reason == (
        f"Picked by margin because the model hesitates between two classes. The model says "
        f"{why.pseudo_label}, and is {why.confidence:.0%} sure."
    )
    assert picks.rows()[0]["reason"] == why.reason


def test_every_rule_has_a_reason():
    assert all(askance.strategies.get(name).because for name in askance.strategies.names())


def test_logits_alone_explain_the_answer_alone():
    pool, _ = drawn(0, 8)
    (why,) = askance.select(None, None, Embedding(pool.logits), 1, strategy="entropy").explain()
    assert why.confidence == pytest.approx(float(torch.softmax(pool.logits[why.index], 0).max()))
    assert why.grad_norm is None


@pytest.mark.parametrize("rule", [PowerGrad(), GradSpread(), Grad(reference_size=2)], ids=str)
def test_every_rule_with_a_mean_gradient_explains_by_it(rule):
    both, labels = drawn(0, 20)
    picks = askance.select(None, (both[15:], labels[15:]), both[:15], 4, strategy=rule)
    for why in picks.explain():
        assert shares(why) == pytest.approx(1.0)
        assert -1 <= why.alignment <= 1


def test_explanations_are_in_the_order_of_the_picks():
    both, labels = drawn(0, 20)
    picks = askance.select(None, (both[15:], labels[15:]), both[:15], 6)
    assert [why.index for why in picks.explain()] == picks.indices.tolist()
    assert [why.score for why in picks.explain()] == picks.scores.tolist()


def test_of_excluded_pools_the_right_rows_are_explained():
    both, labels = drawn(0, 20)
    picks = askance.select(None, (both[15:], labels[15:]), both[:15], 3, exclude=[0, 3, 7])
    whys = picks.explain()
    assert not {0, 3, 7} & {why.index for why in whys}
    assert [w.pseudo_label for w in whys] == both.logits[picks.indices].argmax(1).tolist()


@pytest.mark.parametrize("rule", [Grad, Entropy, GradNorm, Badge])
def test_multilabel_answers_are_the_classes_that_are_on(rule):
    both, _ = drawn(0, 9)
    labels = torch.randint(2, (4, 3), generator=torch.Generator().manual_seed(0))
    rule = rule(loss="multilabel")
    picks = askance.select(None, (both[5:], labels), both[:5], 5, strategy=rule)
    for why in picks.explain():
        z = both.logits[why.index]
        assert why.pseudo_label == tuple((z > 0).nonzero().flatten().tolist())
        on = torch.sigmoid(z)
        assert why.confidence == pytest.approx(float(torch.where(z > 0, on, 1 - on).prod()))
        bias = getattr(rule, "bias", True)
        g = naive.gradient(
            (*exact(both, both.logits, why.index)[:2], (z > 0).long().tolist()), bias
        )
        assert why.grad_norm == pytest.approx(float(naive.norm(g)))


# --- the full θ -----------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [None, ["0.weight"]])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_full_gradient_is_explained_by_itself(names, dtype):
    model = zoo.seeded(zoo.mlp).to(dtype).eval()
    x, pool, y = zoo.rows(4, 1).to(dtype), zoo.rows(6, 2).to(dtype), torch.tensor([0, 1, 2, 0])
    rule = Grad(parameters=names or "all")
    picks = askance.select(model, (x, y), pool, 3, strategy=rule, batch_size=2)
    model, x, pool = model.double(), x.double(), pool.double()
    mean = naive.objective_gradient(model, x, y, names=names)
    for why in picks.explain():
        point = pool[why.index][None]
        g = naive.objective_gradient(model, point, model(point).argmax(1), names=names)
        assert why.grad_norm == pytest.approx(float(g.norm()), rel=1e-4)
        assert why.reference_norm == pytest.approx(float(mean.norm()), rel=1e-4)
        assert why.alignment == pytest.approx(float(F.cosine_similarity(g, mean, dim=0)), abs=1e-4)
        assert why.score == pytest.approx(float((mean - g).norm()) * 4 / 5, rel=1e-4)
        assert shares(why) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_gradients_are_explained_in_full(dtype):
    """Squares of half-precision numbers would vanish or be rounded to three digits."""
    model = zoo.seeded(zoo.mlp).to(dtype)
    labeled = zoo.rows(4, 1), torch.tensor([0, 1, 2, 0])
    rule = Grad(parameters="all")
    for why in askance.select(model, labeled, zoo.rows(6, 2), 3, strategy=rule).explain():
        assert shares(why) == pytest.approx(1.0, abs=1e-6)


def test_the_model_may_be_gone_or_changed_by_the_time_of_asking():
    model = zoo.seeded(zoo.mlp)
    labeled = zoo.rows(4, 1), torch.tensor([0, 1, 2, 0])
    picks = askance.select(model, labeled, zoo.rows(6, 2), 3, strategy=Grad(parameters="all"))
    before = picks.explain()
    for parameter in model.parameters():
        parameter.data.zero_()
    assert picks.explain() == before


def soft_maximum(logits, labels):
    return F.cross_entropy(logits, labels, reduction="none").exp().mean().log()


@pytest.mark.parametrize("parameters", ["last", "all"])
def test_an_objective_that_is_no_mean_has_no_mean_gradient_to_explain_by(parameters):
    model = zoo.seeded(zoo.mlp)
    labeled = zoo.rows(4, 1), torch.tensor([0, 1, 2, 0])
    rule = Grad(parameters=parameters, loss=soft_maximum)
    for why in askance.select(model, labeled, zoo.rows(6, 2), 3, strategy=rule).explain():
        assert [getattr(why, name) for name in REFERENCE] == [None] * 5
        assert why.grad_norm is None, "the cross-entropy's gradient plays no part in this rule"
        assert why.pseudo_label is not None


def test_an_objective_of_several_labels_a_point_answers_with_the_classes_that_are_on():
    both, _ = drawn(0, 9)
    labels = torch.randint(2, (4, 3), generator=torch.Generator().manual_seed(0))
    rule = Grad(loss=lambda z, y: naive.summed_bce(z, y).exp())
    for why in askance.select(None, (both[5:], labels), both[:5], 5, strategy=rule).explain():
        on = (both.logits[why.index] > 0).nonzero().flatten()
        assert why.pseudo_label == tuple(on.tolist())


@pytest.mark.parametrize("name", ONE_MODEL)
def test_a_selection_can_be_pickled(name):
    model, pool = zoo.seeded(zoo.mlp), zoo.rows(10)
    picks = askance.select(model, (zoo.rows(6), torch.arange(6) % 3), pool, 3, strategy=name)
    again = pickle.loads(pickle.dumps(picks))
    assert again.indices.tolist() == picks.indices.tolist()
    assert again.explain() == picks.explain()
