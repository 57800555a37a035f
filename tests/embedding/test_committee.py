"""Committees: several models, or one with dropout left on."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import askance
from askance import Embedding
from askance.embedding import concatenated
from askance.errors import InputError
from askance.oracles import Truth
from tests.naive import committees as naive

X = torch.randn(30, 4, generator=torch.Generator().manual_seed(0))


def network(seed=0, p=0.5, classes=3):
    torch.manual_seed(seed)
    body = nn.Linear(4, 64), nn.ReLU(), nn.Dropout(p)
    return nn.Sequential(*body, nn.Linear(64, classes))


# --- the record -----------------------------------------------------------------------------------


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 5), st.integers(1, 6), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_logits_are_the_mean_of_the_members_probabilities(M, N, C, seed):
    stacked = torch.from_numpy(np.random.default_rng(seed).normal(size=(M, N, C)) * 3)
    rows = Embedding(logits=stacked)
    assert rows.members.shape == (N, M, C)
    assert torch.equal(rows.members.transpose(0, 1), stacked)
    expected = [naive.mean_logits(point) for point in rows.members.tolist()]
    np.testing.assert_allclose(rows.logits, expected, rtol=1e-12, atol=1e-13)


def test_members_go_where_their_rows_go():
    rows = Embedding(logits=torch.randn(3, 8, 2), features=torch.randn(8, 5))
    some = rows[np.array([6, 1])]
    assert torch.equal(some.members, rows.members[[6, 1]])
    halves = concatenated([rows[:3], rows[3:]])
    assert torch.equal(halves.members, rows.members)
    assert rows.mapped(torch.Tensor.double).members.dtype == torch.float64
    assert rows.to("cpu").members.shape == (8, 3, 2)


@pytest.mark.parametrize("shape", [(4,), (4, 3), (4, 0, 3), (4, 2, 0), (4, 2, 3, 1)])
def test_members_have_three_axes(shape):
    with pytest.raises(InputError, match=r"members must be \(N, M, C\)"):
        Embedding(members=torch.zeros(shape))


def test_probabilities_of_members_are_refused():
    p = torch.softmax(torch.randn(4, 20, 3), dim=2)
    with pytest.raises(InputError, match="look like probabilities"):
        askance.select(None, None, Embedding(logits=p), 2, strategy="bald")


# --- one network with dropout ---------------------------------------------------------------------


def test_a_member_is_the_network_without_some_units():
    """Its logits are those of the head on h ⊙ mask/(1 − p), one mask for all points."""
    net = network().double()
    members = askance.embed(askance.committee(net, 400), X.double()).members
    h = torch.relu(net[0](X.double())).detach()
    # 64 units from 30 points of 3 logits: the masks are found by least squares.
    W, bias = net[3].weight.detach(), net[3].bias.detach()
    system = torch.stack([h * w for w in W], dim=1).reshape(90, 64)
    answers = (members - bias).permute(0, 2, 1).reshape(90, 400)
    masks = torch.linalg.lstsq(system, answers).solution
    assert torch.allclose(system @ masks, answers, atol=1e-8), "one mask explains every point"
    used = (system.abs().amax(dim=0) > 1e-3).numpy()
    found = masks.numpy()[used]
    near = np.minimum(abs(found), abs(found - 2)) < 0.2
    if np.linalg.matrix_rank(system.numpy()[:, used]) == used.sum():
        assert near.all()
        share = (found > 1).mean()
        assert abs(share - 0.5) < 4 * np.sqrt(0.25 / found.size)


def test_the_mean_over_many_members_is_the_network_itself():
    """Of the logits, since the mask's mean is 1 and the head is linear in it."""
    net = network()
    members = askance.embed(askance.committee(net, 3_000), X[:5]).members
    plain = askance.embed(net, X[:5]).logits
    spread = members.std(dim=1) / 3_000**0.5
    assert ((members.mean(dim=1) - plain).abs() < 5 * spread + 1e-6).all()


def test_members_depend_on_the_seed_alone():
    net = network()
    first, again, other = (
        askance.embed(askance.committee(net, 4, seed=seed), X, batch_size=size).members
        for seed, size in ((1, 256), (1, 7), (2, 256))
    )
    assert torch.allclose(first, again, atol=1e-6)
    assert not torch.allclose(first, other, atol=1e-2)
    more = askance.embed(askance.committee(net, 6, seed=1), X).members
    assert torch.equal(more[:, :4], first)


class Twice(nn.Module):
    """One dropout layer, called twice, and channels that are dropped whole."""

    def __init__(self):
        super().__init__()
        self.drop, self.maps = nn.Dropout(0.5), nn.Dropout2d(0.5)
        self.seen = []

    def forward(self, x):
        ones = torch.ones(len(x), 500)
        first, second = self.drop(ones), self.drop(ones)
        channels = self.maps(torch.ones(len(x), 40, 3, 3))
        self.seen.append((first, second, channels))
        return torch.stack([first.sum(1), second.sum(1), channels.sum((1, 2, 3))], dim=1)


def test_a_layer_that_is_called_twice_drops_other_units_the_second_time():
    model = Twice()
    askance.embed(askance.committee(model, 2), X)
    first, second, channels = model.seen[-1]
    assert (first == first[0]).all()
    assert 150 < int((first[0] != second[0]).sum()) < 350
    assert set(channels.unique().tolist()) == {0.0, 2.0}
    assert (channels == channels[:1, :, :1, :1]).all(), "whole channels, the same for every point"
    again = Twice()
    askance.embed(askance.committee(again, 2), X)
    assert torch.equal(again.seen[-1][0], first)


def test_the_network_comes_back_as_it_was():
    net = network().train()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    askance.select(askance.committee(net), None, X, 3, strategy="bald")
    assert net.training
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in net.modules())
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())

    class Broken(nn.Module):
        def __init__(self):
            super().__init__()
            self.drop = nn.Dropout()

        def forward(self, x):
            raise RuntimeError("no")

    broken = Broken()
    with pytest.raises(RuntimeError, match="no"):
        askance.select(askance.committee(broken), None, X, 3, strategy="bald")
    assert not broken.drop._forward_hooks


# --- several networks -----------------------------------------------------------------------------


def test_each_model_of_a_list_is_a_member():
    nets = [network(seed) for seed in range(3)]
    members = askance.embed(askance.committee(nets), X).members
    for place, net in enumerate(nets):
        assert torch.allclose(members[:, place], askance.embed(net, X).logits, atol=1e-6)


def test_rules_that_need_logits_see_the_mean():
    nets = [network(seed) for seed in range(3)]
    p = torch.stack([askance.embed(net, X).logits.softmax(1) for net in nets]).mean(0)
    expected = askance.select(None, None, Embedding(logits=p.log()), 5, strategy="margin")
    picks = askance.select(askance.committee(nets), None, X, 5, strategy="margin")
    assert picks.indices.tolist() == expected.indices.tolist()
    np.testing.assert_allclose(picks.scores, expected.scores, rtol=1e-4)


def test_a_rule_may_look_at_labels_too():
    y = torch.arange(30) % 3
    picks = askance.select(askance.committee(network()), (X, y), X, 6, strategy="strata")
    assert len(picks) == 6


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("net", [network(p=0.0), nn.Linear(4, 3)])
def test_without_dropout_members_would_agree(net):
    with pytest.raises(InputError, match=r"no nn\.Dropout.*pass several trained models"):
        askance.committee(net)


@pytest.mark.parametrize("models", [[], [network()], [network(), "another"]])
def test_a_committee_has_two_models_or_more(models):
    with pytest.raises(InputError, match=r"one torch\.nn\.Module with dropout, or two and more"):
        askance.committee(models)


def test_options_that_make_no_sense():
    with pytest.raises(InputError, match="members must be a whole number ≥ 2"):
        askance.committee(network(), members=1)
    with pytest.raises(InputError, match="each of the 2 models is one member"):
        askance.committee([network(), network(1)], members=4)


def test_members_have_the_same_classes():
    with pytest.raises(InputError, match=r"same classes.*\(30, 2\) and \(30, 3\)"):
        askance.embed(askance.committee([network(), network(classes=2)]), X)


@pytest.mark.parametrize("strategy", ["badge", "kcenter", "egl"])
def test_a_committee_has_no_features(strategy):
    known = X[:6], torch.arange(6) % 3
    with pytest.raises(InputError, match=f"{strategy} needs features.*have each their own"):
        askance.select(askance.committee(network()), known, X, 3, strategy=strategy)


@pytest.mark.parametrize("strategy", ["bald", "powerbald"])
def test_one_model_is_no_committee(strategy):
    for model, pool in ((network(), X), (None, Embedding(logits=torch.randn(9, 3)))):
        with pytest.raises(InputError, match=r"answers of several models; pass askance\.committee"):
            askance.select(model, None, pool, 3, strategy=strategy)
    with pytest.raises(InputError, match=f"{strategy} asks several models, and here there is one"):
        next(askance.loop(X, Truth(np.arange(30) % 3), strategy=strategy, batch=3, rounds=1))


def test_head_names_a_layer_of_one_model():
    with pytest.raises(InputError, match="head= names a layer of one model"):
        askance.select(askance.committee(network()), None, X, 3, strategy="bald", head="3")
    with pytest.raises(InputError, match="head= names a layer of one model"):
        askance.embed(askance.committee(network()), X, head="3")
