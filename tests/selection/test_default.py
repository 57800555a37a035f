"""The rule that is taken where none is named, whichever our experiments chose."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import askance
from askance import strategies
from askance.errors import InputError
from askance.oracles import Truth
from askance.pools import open_source, select_from
from askance.selection import default
from askance.strategies import defaults
from askance.tracking import Tracker

CANDIDATES = defaults.evidence().order
NET = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3))
X = torch.randn(80, 5, generator=torch.Generator().manual_seed(0))
SEEN = X[:12], torch.arange(12) % 3
POOL = askance.Embedding(logits=X[:, :3], features=X)
LABELED = POOL[:12], SEEN[1]


@pytest.fixture(params=[None, "grad-cover", "uherding", "powergrad"])
def order(request, monkeypatch):
    """The order that is shipped, and orders in which a rule of another kind is the first."""
    there = defaults.evidence()
    if request.param is not None:
        first = [request.param, *(name for name in CANDIDATES if name != request.param)]
        there = replace(there, decided=True, order=tuple(first))
        monkeypatch.setattr(strategies, "evidence", lambda: there)
    return there.order


def first_of(order, *, needs, streams=False):
    """Written from the words of CHOOSING.md."""
    for name in order:
        rule = strategies.get(name)
        if streams and strategies.kind_of(rule) == "batch":
            continue
        if rule.needs <= needs:
            return name
    raise AssertionError("no rule")


FULL = {"logits", "features", "labeled"}


def test_with_features_logits_and_labels_it_is_the_first_in_the_order(order):
    for model, labeled, pool in ((NET, SEEN, X), (None, LABELED, POOL)):
        picks = askance.select(model, labeled, pool, 4)
        assert picks.strategy == strategies.get(order[0])
        assert picks.chosen.endswith("default")
        named = askance.select(model, labeled, pool, 4, strategy=order[0])
        np.testing.assert_array_equal(picks.indices, named.indices)
        assert named.chosen == ""


def test_without_labels_it_covers_the_features(order):
    empty = POOL[:0], SEEN[1][:0]
    for model, labeled, pool in ((None, None, X), (NET, None, X), (None, empty, POOL)):
        picks = askance.select(model, labeled, pool, 4)
        assert picks.strategy.name == "maxherding"
        assert picks.chosen.endswith("default for a first batch")


def test_with_logits_alone_it_needs_no_more(order):
    logits = askance.Embedding(logits=X[:, :3])
    members = askance.Embedding(logits=torch.stack([X[:, :3], X[:, 1:4]]))
    for labeled, pool in ((None, logits), ((logits[:12], SEEN[1]), logits), (None, members)):
        picks = askance.select(None, labeled, pool, 4)
        assert picks.strategy.name == first_of(order, needs={"logits", "labeled"})
        assert picks.chosen.endswith("default for probabilities alone")
    both = askance.committee([NET, nn.Sequential(nn.Linear(5, 3))])
    assert askance.select(both, SEEN, X, 4).strategy.needs == {"logits"}


def test_with_features_and_labels_it_needs_no_logits(order):
    features = askance.Embedding(features=X)
    picks = askance.select(None, (features[:12], SEEN[1]), features, 4)
    assert picks.strategy.name == first_of(order, needs={"features", "labeled"})
    assert picks.chosen.endswith("default for features alone")


def test_an_iterator_and_a_large_pool_are_streamed(order, monkeypatch):
    expected = first_of(order, needs=FULL, streams=True)
    picks = askance.select(None, LABELED, POOL.blocks(16), 4)
    assert picks.strategy.name == expected
    assert picks.chosen.endswith("default for a pool that is read in parts")
    assert askance.select(None, None, POOL.blocks(16), 4).strategy.name == "maxherding"
    monkeypatch.setattr(default, "LARGE", 79)
    assert askance.select(NET, SEEN, X, 4).strategy.name == expected
    assert askance.select(None, LABELED, POOL, 4).strategy.name == order[0]  # is in memory


def test_a_pool_in_shards_is_streamed(order, tmp_path):
    for name, rows in (("pool", POOL), ("seen", POOL[:12])):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "logits.npy", rows.logits.numpy())
        np.save(tmp_path / name / "features.npy", rows.features.numpy())
    np.save(tmp_path / "seen" / "labels.npy", SEEN[1].numpy())
    pool = open_source(str(tmp_path / "pool"))
    seen = open_source(str(tmp_path / "seen"), labeled=True)
    picks = select_from(pool, 4, labeled=seen)
    assert picks.strategy.name == first_of(order, needs=FULL, streams=True)
    assert picks.chosen.endswith("default for a pool that is read in parts")
    picks = select_from(pool, 4)
    assert (picks.strategy.name, picks.chosen[-13:]) == ("maxherding", "a first batch")
    (tmp_path / "pool" / "features.npy").unlink()
    (tmp_path / "seen" / "features.npy").unlink()
    pool = open_source(str(tmp_path / "pool"))
    seen = open_source(str(tmp_path / "seen"), labeled=True)
    streamed = first_of(order, needs={"logits", "labeled"}, streams=True)
    for labeled in (None, seen):
        assert select_from(pool, 4, labeled=labeled).strategy.name == streamed


def test_a_shortlist_and_limits_get_a_rule_that_takes_them(order, tmp_path):
    np.save(tmp_path / "logits.npy", POOL.logits.numpy())
    np.save(tmp_path / "features.npy", POOL.features.numpy())
    np.save(tmp_path / "labels.npy", (torch.arange(80) % 3).numpy())
    pool, seen = open_source(str(tmp_path)), open_source(str(tmp_path), labeled=True)
    picks = select_from(pool, 4, labeled=seen, shortlist=30)
    assert strategies.kind_of(picks.strategy) == "batch"
    assert picks.how.startswith("from a shortlist, the 30 best rows")
    picks = askance.select(None, LABELED, POOL, 4, groups="predicted", at_most=2)
    assert picks.strategy.name == order[0]


def test_nothing_to_go_by_is_refused():
    with pytest.raises(InputError, match=r"no rule is named, .* or name a rule, such as 'random'"):
        askance.select(None, None, askance.Embedding(positions=range(9)), 2)


class Heard(Tracker):
    """What a tracker is told."""

    def __init__(self):
        self.facts, self.rounds = [], []

    def began(self, facts):
        self.facts.append(facts["strategy"])

    def round(self, done):
        self.rounds.append(done.strategy)


def test_a_loop_takes_what_its_first_model_allows(order):
    from sklearn.ensemble import RandomForestClassifier

    y = torch.arange(80) % 3
    forest = RandomForestClassifier(4, random_state=0)
    for model, needs in (
        (NET, FULL),
        (POOL, FULL),
        (askance.Embedding(logits=X[:, :3]), {"logits", "labeled"}),
        (forest, {"logits", "labeled"}),
    ):
        heard = Heard()
        for run in askance.loop(X.numpy(), Truth(y), batch=8, rounds=2, track=heard):
            if model is forest:
                model.fit(*run.labeled)
            run.ask(model)
        expected = first_of(order, needs=needs)
        assert run.strategy.name == run.label == expected
        assert heard.facts == [expected]
        assert heard.rounds == [expected] * 3


def test_the_labelling_page_and_scikit_activeml_take_the_first(order):
    from sklearn.linear_model import LogisticRegression

    from askance.integrations.sklearn import Query
    from askance.label import LabelingOptions

    assert LabelingOptions().strategy == order[0]
    y = np.where(np.arange(80) < 12, np.arange(80) % 3, np.nan)
    picks = [
        Query(rule, random_state=0).query(X.numpy(), y, LogisticRegression(), batch_size=3)
        for rule in (None, order[0])
    ]
    np.testing.assert_array_equal(*picks)


def test_what_is_shipped_names_every_candidate_once():
    shipped = defaults.evidence()
    assert len(shipped.order) == len(set(shipped.order)) == 11
    assert set(shipped.order) <= set(strategies.names())
    left = [rule for rule in shipped.order if rule not in shipped.out]
    assert [*left, *(rule for rule in shipped.order if rule in shipped.out)] == [*shipped.order]
    assert shipped.decided == bool(shipped.tracks)
    for each in shipped.tracks:
        assert set(each.gains) == set(shipped.order)
        assert sorted(each.order) == sorted(left)
