"""A model behind a wrapper is asked like the model itself, after a probe of two rows."""

import pytest
import torch
from torch import nn
from torch.nn.parallel import DataParallel

import askance
from askance.embedding import sources
from askance.embedding.device import scoring_device
from askance.errors import HeadError, UnknownError
from askance.strategies import Grad

X = torch.randn(12, 4, generator=torch.Generator().manual_seed(1))
POOL = torch.randn(30, 4, generator=torch.Generator().manual_seed(2))
Y = torch.arange(12) % 3


class Net(nn.Module):
    """Two linear layers of one width, so that a wrong head would not be noticed by its shape."""

    def __init__(self):
        super().__init__()
        self.body, self.middle, self.fc = nn.Linear(4, 8), nn.Linear(8, 3), nn.Linear(8, 3)
        self.rows = []

    def forward(self, x):
        self.rows.append(len(x))
        h = self.body(x).relu()
        return self.fc(h) + 0 * self.middle(h)


def net():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Net()


def compiled(model):
    return torch.compile(model, backend="eager")


def with_compiled_head():
    model = net()
    model.fc = compiled(model.fc)
    return model


def with_compiled_body():
    model = net()
    model.body = compiled(model.body)
    return model


WRAPPED = {
    "plain": net,
    "parallel": lambda: DataParallel(net()),
    "compiled": lambda: compiled(net()),
    "compiled in parallel": lambda: DataParallel(compiled(net())),
    "parallel compiled": lambda: compiled(DataParallel(net())),
    "compiled head": with_compiled_head,
    "compiled body": with_compiled_body,
}


@pytest.mark.parametrize("kind", WRAPPED)
@pytest.mark.parametrize("rule", ["grad", "badge", "margin"])
def test_a_wrapper_changes_no_pick(kind, rule):
    expected = askance.select(net(), (X, Y), POOL, 5, strategy=rule)
    picks = askance.select(WRAPPED[kind](), (X, Y), POOL, 5, strategy=rule)
    assert picks.indices.tolist() == expected.indices.tolist()
    assert picks.scores.tolist() == expected.scores.tolist()


@pytest.mark.parametrize("head", ["fc", "module.fc", "_orig_mod.fc"])
@pytest.mark.parametrize("kind", ["parallel", "compiled", "compiled head", "parallel compiled"])
def test_a_head_is_named_with_its_wrapper_or_without(kind, head):
    expected = askance.embed(net(), POOL, head="fc")
    found = askance.embed(WRAPPED[kind](), POOL, head=head)
    assert torch.equal(found.features, expected.features)
    assert torch.equal(found.logits, expected.logits)


def test_a_head_that_is_not_there_is_told_by_the_names_inside():
    with pytest.raises(UnknownError, match=r"unknown head 'module\.cf'.*'?fc"):
        askance.embed(DataParallel(net()), POOL, head="module.cf")
    with pytest.raises(HeadError, match=r"must name an nn\.Linear"):
        askance.embed(
            DataParallel(nn.Sequential(nn.Linear(4, 3), nn.ReLU())), POOL, head="module.1"
        )


def test_the_head_is_looked_for_on_two_rows():
    model = net()
    askance.embed(model, POOL, batch_size=12)
    assert model.rows == [2, 12, 12, 6]
    model.rows.clear()
    askance.embed(model, POOL, head="fc", batch_size=12)
    assert model.rows == [2, 12, 12, 6]  # a named head is checked
    model.rows.clear()
    askance.embed(model, POOL[:1])
    assert model.rows == [1, 1]


def test_a_batch_that_is_not_of_rows_is_probed_whole():
    nodes, edges = torch.zeros(5, 3), torch.zeros(2, 9)
    for batch in (
        {"x": nodes, "edge_index": edges},
        (nodes, ["a"] * 5),
        ["a", "b", "c"],
        (nodes, torch.tensor(3)),
    ):
        assert sources.first_rows(batch, 2) is batch
    ids, mask = sources.first_rows({"ids": nodes, "mask": nodes}, 2).values()
    assert len(ids) == len(mask) == 2


def test_what_a_device_without_float64_says_is_scored_on_the_cpu(monkeypatch):
    assert scoring_device(torch.device("mps")) == torch.device("cpu")
    assert scoring_device(torch.device("cuda:1")) == torch.device("cuda:1")
    for module in ("selection.inputs", "embedding.forward"):
        monkeypatch.setattr(f"askance.{module}.scoring_device", lambda _: torch.device("meta"))
    with pytest.raises(askance.errors.InputError, match=r"in float64, which cpu does not have"):
        askance.select(net(), (X, Y), POOL, 2, strategy=Grad(parameters="all"))
    assert askance.embedding.Evaluation(net()).model is not None
    blocks = []
    with askance.embedding.Evaluation(net()) as evaluation:
        blocks += evaluation.blocks(POOL, 10)
        labeled = evaluation.labeled((X, Y), 10)
    assert {block.device.type for block in blocks} == {"meta"}
    assert labeled.labels.device.type == labeled.features.device.type == "meta"
