"""Logits of models without a linear head, for the rules that need no features."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

import askance
from askance import strategies
from askance.embedding import Evaluation
from askance.errors import HeadError, InputError
from tests.embedding import zoo

RULES = ["entropy", "margin", "least-confidence"]
IMAGES, ROWS = zoo.images(30), zoo.rows(30)


class Cosine(nn.Module):
    """Logits are cosines with one direction a class."""

    def __init__(self):
        super().__init__()
        self.body, self.weight = nn.Linear(4, 6), nn.Parameter(torch.randn(3, 6))

    def forward(self, x):
        return 8 * F.normalize(F.relu(self.body(x))) @ F.normalize(self.weight).T


class Tempered(nn.Module):
    """z / T, as temperature scaling makes it."""

    def __init__(self, temperature=3.0):
        super().__init__()
        self.model, self.temperature = zoo.mlp(), temperature

    def forward(self, x):
        return self.model(x) / self.temperature


class Averaged(nn.Module):
    """Calls its head twice, on the input and on its mirror image."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        return (self.head(x) + self.head(x.flip(1))) / 2


def one_by_one(*after):
    return nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Conv2d(8, 3, 1), nn.AdaptiveAvgPool2d(1), *after
    )


def scripted():
    return torch.jit.script(zoo.mlp().eval())


def frozen():
    return torch.jit.freeze(scripted())


def traced():
    return torch.jit.trace(zoo.mlp().eval(), ROWS)


def exported():
    return torch.export.export(zoo.mlp().eval(), (ROWS,)).module()


MODELS = {
    "1x1 convolution": (lambda: one_by_one(nn.Flatten()), IMAGES),
    "1x1 convolution, not flattened": (one_by_one, IMAGES),
    "cosine head": (Cosine, ROWS),
    "temperature after the head": (Tempered, ROWS),
    "head called twice": (Averaged, ROWS),
    "log-softmax without a head": (lambda: one_by_one(nn.Flatten(), nn.LogSoftmax(1)), IMAGES),
    "changed in place": (lambda: zoo.Returning(lambda z, _: z.mul_(2.0)), ROWS),
    "object with .logits": (
        lambda: zoo.Returning(lambda z, h: SimpleNamespace(logits=2 * z, hidden=h)),
        ROWS,
    ),
    "mapping with logits": (lambda: zoo.Returning(lambda z, h: {"h": h, "logits": 2 * z}), ROWS),
    "a tensor and what is none": (lambda: zoo.Returning(lambda z, _: (2 * z, None)), ROWS),
    "TorchScript": (scripted, ROWS),
    "TorchScript, frozen": (frozen, ROWS),
    "TorchScript, traced": (traced, ROWS),
}
# Made by older tools, which newer ones advise against.
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")


def returned(model, x):
    with torch.no_grad():
        given = (model.eval() if hasattr(model, "training") else model)(x)
    given = given.get("logits") if isinstance(given, dict) else getattr(given, "logits", given)
    given = given[0] if isinstance(given, tuple) else given
    return given.reshape(len(x), -1)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("rule", RULES)
def test_the_picks_are_those_of_the_logits_that_it_returns(kind, rule):
    make, x = MODELS[kind]
    model = zoo.seeded(make)
    logits = askance.Embedding(logits=returned(model, x))
    expected = askance.select(None, None, logits, 7, strategy=rule, keep_scores=True)
    for batch_size in (30, 7, 1):
        picks = askance.select(
            model, None, x, 7, strategy=rule, batch_size=batch_size, keep_scores=True
        )
        np.testing.assert_array_equal(picks.indices, expected.indices)
        np.testing.assert_allclose(picks.pool_scores, expected.pool_scores, rtol=1e-5, atol=1e-6)
        assert [why.pseudo_label for why in picks.explain()] == [
            why.pseudo_label for why in expected.explain()
        ]


def test_an_exported_program_can_be_asked():
    picks = askance.select(zoo.seeded(exported), None, ROWS, 5, strategy="margin")
    assert len(picks.indices) == 5


@pytest.mark.parametrize("kind", zoo.WRAPPERS)
@pytest.mark.parametrize("rule", RULES)
def test_a_normal_head_gives_the_same_bits_as_its_embedding(kind, rule):
    model = zoo.seeded(zoo.Returning, zoo.WRAPPERS[kind])
    embedded = askance.embed(model, ROWS, batch_size=8)
    options = {"strategy": rule, "batch_size": 8, "keep_scores": True}
    picks = askance.select(model, None, ROWS, 9, **options)
    expected = askance.select(None, None, embedded, 9, **options)
    np.testing.assert_array_equal(picks.indices, expected.indices)
    np.testing.assert_array_equal(picks.pool_scores, expected.pool_scores)
    assert picks.explain() == expected.explain()
    assert picks.explain()[0].grad_norm is not None


def test_what_a_model_does_to_some_batches_alone_is_seen():
    """The first batch would pass for the head's output: what the model returns counts."""

    class Clamped(zoo.HeadFirst):
        def forward(self, x):
            return super().forward(x).clamp(-0.5, 0.5)

    x = torch.cat([torch.zeros(10, 4), 30 * zoo.rows(20)])
    model = zoo.seeded(Clamped)
    logits = askance.Embedding(logits=returned(model, x))
    expected = askance.select(None, None, logits, 9, strategy="entropy", keep_scores=True)
    for size in (10, 30):
        picks = askance.select(
            model, None, x, 9, strategy="entropy", batch_size=size, keep_scores=True
        )
        np.testing.assert_allclose(picks.pool_scores, expected.pool_scores, atol=1e-6)


def test_a_head_in_half_precision_may_be_made_wide_afterwards():
    model = zoo.seeded(zoo.Returning, lambda z, _: z.float()).bfloat16()
    assert askance.embed(model, ROWS).logits.dtype == torch.bfloat16
    for rule in ("margin", "gradnorm"):
        assert len(askance.select(model, None, ROWS, 5, strategy=rule)) == 5


def test_a_head_that_is_named_is_the_one_that_counts():
    model = zoo.seeded(Tempered)
    picks = askance.select(
        model, None, ROWS, 9, strategy="entropy", head="model.5", keep_scores=True
    )
    logits = askance.embed(model.model, ROWS)
    expected = askance.select(None, None, logits, 9, strategy="entropy", keep_scores=True)
    np.testing.assert_array_equal(picks.pool_scores, expected.pool_scores)


@pytest.mark.parametrize(
    "name", [each for each in strategies.names() if "features" in strategies.get(each).needs]
)
def test_rules_that_need_a_head_say_which_do_not(name):
    labeled = IMAGES[:6], torch.tensor([0, 1, 2, 0, 1, 2])
    for model in (one_by_one(nn.Flatten()), nn.Sequential(one_by_one(nn.Flatten()), Scale())):
        with pytest.raises(HeadError, match=r"no nn\.Linear.*\(entropy, margin, least-confidence"):
            askance.select(model, labeled, IMAGES, 3, strategy=name)


class Scale(nn.Module):
    def forward(self, x):
        return 2 * x


@pytest.mark.parametrize("squash", [nn.Softmax(1), nn.Softmax2d()])
def test_probabilities_without_a_head_are_refused(squash):
    with pytest.raises(InputError, match=r"look like probabilities.*pass their logarithms"):
        askance.select(one_by_one(squash, nn.Flatten()), None, IMAGES, 3, strategy="margin")


@pytest.mark.parametrize(
    ("wrap", "message"),
    [
        (
            lambda z, h: (2 * z, h + 1),
            r"several tensors, \(2, 3\) and \(2, 6\), and nothing tells",
        ),
        (lambda z, h: {"a": 2 * z, "b": h + 1}, "several tensors.*with 'logits'"),
        (lambda _z, _h: None, "must return its logits.*it returned a NoneType"),
        (lambda _z, _h: "cat", "must return its logits.*it returned a str"),
        (lambda z, _: z[:, :, None] * z[:, None], r"one row of logits for .* shape \(30, 3, 3\)"),
        (lambda z, _: 2 * z[:7], "the model gave 7 rows for 30 points"),
        (lambda z, _: 2 * z.sum(1), "the model has one output"),
        (lambda z, _: z.argmax(1, keepdim=True), "logits must be floating point"),
        (lambda z, _: z.sum(), r"one row of logits for each point, it returned shape \(\)"),
    ],
)
def test_what_is_no_matrix_of_logits_is_refused(wrap, message):
    with pytest.raises((HeadError, InputError), match=message):
        askance.select(zoo.seeded(zoo.Returning, wrap), None, ROWS, 3, strategy="margin")


def test_one_of_two_heads_is_named():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(4, 3), nn.Linear(4, 2)

        def forward(self, x):
            return self.one(x), self.two(x)

    model = zoo.seeded(Two)
    with pytest.raises(HeadError, match=r"name the layer .* head=\.\.\. \(one of 'one', 'two'\)"):
        askance.select(model, None, ROWS, 3, strategy="margin")
    assert len(askance.select(model, None, ROWS, 3, strategy="margin", head="two")) == 3


def test_the_model_comes_back_as_it_was():
    model = zoo.seeded(Tempered).train()
    hooks = [len(m._forward_hooks) for m in model.modules()]
    askance.select(model, None, ROWS, 3, strategy="margin")
    assert all(m.training for m in model.modules())
    assert [len(m._forward_hooks) for m in model.modules()] == hooks
    script = zoo.seeded(lambda: torch.jit.script(zoo.mlp())).train()
    askance.select(script, None, ROWS, 3, strategy="margin")
    assert script.training


def test_a_head_is_no_longer_looked_for_once_it_is_not_there():
    calls = []

    class Counting(Tempered):
        def forward(self, x):
            calls.append(len(x))
            return super().forward(x)

    with Evaluation(zoo.seeded(Counting), features=False) as evaluation:
        blocks = list(evaluation.blocks(ROWS, 10))
    assert evaluation.head is None
    assert [block.features for block in blocks] == [None] * 3
    assert calls == [2, 10, 10, 10]  # two rows to look for it
