"""The head is the linear layer whose output is what the model returns: found, or named."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

import askance
from askance.errors import HeadError, UnknownError
from tests.embedding import zoo


def head_and_embedding(model, inputs, head_name, **options):
    emb = askance.embed(model, inputs, **options)
    return model.get_submodule(head_name), emb


@pytest.mark.parametrize("kind", zoo.WRAPPERS)
def test_it_is_found_whatever_the_model_returns(kind):
    model, x = zoo.seeded(zoo.Returning, zoo.WRAPPERS[kind]), zoo.rows(7)
    head, emb = head_and_embedding(model, x, "head")
    hidden = F.relu(model.body(x))
    torch.testing.assert_close(emb.features, hidden)
    torch.testing.assert_close(emb.logits, head(hidden))


def test_it_need_not_be_the_last_module_by_name_or_by_registration():
    model, x = zoo.seeded(zoo.HeadFirst), zoo.rows(7)
    head, emb = head_and_embedding(model, x, "aardvark")
    assert torch.equal(emb.logits, model(x))
    torch.testing.assert_close(head(emb.features), emb.logits)


@pytest.mark.parametrize(
    ("make", "inputs", "name"),
    [
        (zoo.mlp, zoo.rows(7), "5"),
        (zoo.ConvNet, zoo.images(7), "head"),
        (zoo.Transformer, zoo.sentences(7), "classifier"),
    ],
)
def test_features_are_what_the_head_is_given(make, inputs, name):
    """After the functional ReLU, not before it: head(features) are the logits."""
    model = zoo.seeded(make)
    head, emb = head_and_embedding(model, inputs, name)
    torch.testing.assert_close(head(emb.features), emb.logits)
    with torch.no_grad():
        torch.testing.assert_close(emb.logits, model.eval()(inputs))


def test_a_model_that_is_one_linear_layer_is_its_own_head():
    model, x = zoo.seeded(nn.Linear, 4, 3), zoo.rows(5)
    emb = askance.embed(model, x)
    assert torch.equal(emb.features, x)
    assert torch.equal(emb.logits, model(x))


def test_a_head_called_by_keyword_is_heard():
    class ByKeyword(zoo.HeadFirst):
        def forward(self, x):
            return self.aardvark(input=F.relu(self.body(x)))

    model, x = zoo.seeded(ByKeyword), zoo.rows(5)
    assert torch.equal(askance.embed(model, x).logits, model(x))


def test_one_position_of_a_sequence_is_one_row():
    class OneToken(zoo.HeadFirst):
        def forward(self, x):
            return super().forward(x).unsqueeze(1).squeeze(1)

    model, x = zoo.seeded(OneToken), zoo.rows(5)
    assert torch.equal(askance.embed(model, x).logits, model(x))


def test_logits_changed_in_place_after_the_head_ask_for_its_name():
    model = zoo.seeded(zoo.Returning, lambda z, _: z.mul_(2.0))
    x = zoo.rows(5)
    with pytest.raises(HeadError, match=r"no nn\.Linear gives .*\(2, 3\).*head=.*'body', 'head'"):
        askance.embed(model, x)
    emb = askance.embed(model, x, head="head")
    torch.testing.assert_close(emb.logits, model.head(F.relu(model.body(x))))


def test_features_changed_in_place_after_the_head_are_those_it_was_given():
    def wrap(logits, hidden):
        hidden.zero_()
        return logits

    model, x = zoo.seeded(zoo.Returning, wrap), zoo.rows(5)
    torch.testing.assert_close(askance.embed(model, x).features, F.relu(model.body(x)))


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(4, 3), nn.Linear(4, 2)

    def forward(self, x):
        return self.one(x), self.two(x)


def test_several_heads_are_a_choice_to_be_made():
    model, x = zoo.seeded(TwoHeads), zoo.rows(5)
    with pytest.raises(
        HeadError, match=r"several linear layers.*'one', 'two'; choose one with head="
    ):
        askance.embed(model, x)
    assert askance.embed(model, x, head="two").classes == 2


def test_no_linear_layer_is_an_error():
    with pytest.raises(HeadError, match=r"has no nn\.Linear layer"):
        askance.embed(nn.Sequential(nn.Conv1d(1, 2, 1)), torch.zeros(2, 1, 4))


def test_an_unknown_head_lists_the_closest_names():
    with pytest.raises(UnknownError, match="unknown head 'aardvarks': did you mean 'aardvark'"):
        askance.embed(zoo.HeadFirst(), zoo.rows(2), head="aardvarks")


def test_a_head_that_is_no_linear_layer_is_refused():
    with pytest.raises(HeadError, match=r"head='1' must name an nn\.Linear; it is a ReLU"):
        askance.embed(zoo.mlp(), zoo.rows(2), head="1")


def test_a_named_head_that_is_not_called_is_refused():
    with pytest.raises(HeadError, match=r"'zzz_unused' must be called once .* called 0 times"):
        askance.embed(zoo.HeadFirst(), zoo.rows(2), head="zzz_unused")


def test_a_head_called_twice_is_refused():
    class Twice(zoo.HeadFirst):
        def forward(self, x):
            self.aardvark(self.body(x))
            return super().forward(x)

    with pytest.raises(HeadError, match=r"'aardvark' must be called once .* called 2 times"):
        askance.embed(Twice(), zoo.rows(2))


class EveryToken(nn.Module):
    """One row of logits for each of five tokens."""

    def __init__(self, flat):
        super().__init__()
        self.head, self.flat = nn.Linear(4, 3), flat

    def forward(self, x):
        return self.head(x.reshape(-1, 4) if self.flat else x)


def test_a_head_that_sees_many_rows_a_point_is_refused():
    with pytest.raises(
        HeadError, match=r"must see one row for each point, it saw shape \(2, 5, 4\)"
    ):
        askance.embed(EveryToken(flat=False), zoo.sentences(2))


def test_tokens_flattened_into_rows_are_not_taken_for_points():
    """Else picks would be positions among tokens, applied to the pool."""
    with pytest.raises(HeadError, match="10 rows for 2 points"):
        askance.embed(EveryToken(flat=True), zoo.sentences(2))
    with pytest.raises(HeadError, match="10 rows for 2 points"):
        askance.select(EveryToken(flat=True), None, zoo.sentences(2), 1, strategy="entropy")


def test_a_hidden_layer_is_no_head():
    model, x = zoo.seeded(zoo.mlp), zoo.rows(5)
    first = next(name for name, layer in model.named_modules() if isinstance(layer, nn.Linear))
    with pytest.raises(HeadError, match=rf"head='{first}' has \d+ outputs, the model returns 3"):
        askance.embed(model, x, head=first)
