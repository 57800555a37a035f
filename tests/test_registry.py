"""Rules by name: askance's own, and third parties' by entry point."""

from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import ClassVar

import pytest
import torch

import askance
from askance import strategies
from askance.errors import InputError, UnknownError
from askance.strategies import Pointwise
from askance.testing import check_strategy


@dataclass(frozen=True)
class ByNorm(Pointwise):
    """A third party's rule: the longest features first."""

    power: float = 1.0

    name: ClassVar[str] = "by-norm"
    needs = frozenset({"features"})

    def score(self, block, reference, draws):
        return block.features.norm(dim=1) ** self.power


@pytest.fixture
def installed(monkeypatch):
    """What another package would have declared under `askance.strategies`."""

    def declare(**entries):
        found = [EntryPoint(k.replace("_", "-"), v, strategies.GROUP) for k, v in entries.items()]
        monkeypatch.setattr(strategies, "entry_points", lambda group: found)
        strategies._third_party.cache_clear()

    yield declare
    strategies._third_party.cache_clear()


def test_a_third_partys_rule_is_found_by_name(installed):
    installed(by_norm="tests.test_registry:ByNorm")
    assert strategies.names()[-1] == "by-norm"
    assert strategies.get("by-norm", power=2.0).power == 2.0
    pool = askance.Embedding(features=torch.tensor([[1.0], [3.0], [2.0]]))
    assert askance.select(None, None, pool, 2, strategy="by-norm").indices.tolist() == [1, 2]


def test_a_third_partys_rule_can_be_held_to_the_contract():
    check_strategy(ByNorm())


def test_a_third_party_cannot_take_the_place_of_a_rule_of_ours(installed):
    installed(grad="tests.test_registry:ByNorm")
    assert strategies.names().count("grad") == 1
    assert isinstance(strategies.get("grad"), strategies.Grad)


def test_an_entry_point_that_is_no_rule_is_refused(installed):
    installed(broken="tests.test_registry:torch")
    with pytest.raises(InputError, match="must be a Pointwise or Batch strategy class"):
        strategies.get("broken")


def test_an_option_a_rule_does_not_have_lists_those_it_has():
    with pytest.raises(UnknownError, match=r"unknown option of powergrad 'betta'.*'beta'"):
        strategies.get("powergrad", betta=1.0)


@pytest.mark.parametrize("name", strategies.names())
def test_every_rule_says_what_it_is(name):
    rule = strategies.get(name)
    assert rule.name == name
    assert rule.needs <= {"logits", "features", "labeled", "inputs", "members"}
    assert type(rule).__doc__.strip()
    assert hash(rule) == hash(strategies.get(name)), "frozen: equal rules are one key"
