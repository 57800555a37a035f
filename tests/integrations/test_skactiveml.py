"""scikit-activeml's rules in our loop and benchmark."""

import numpy as np
import pytest
import torch
from skactiveml import pool as library
from skactiveml.classifier import ParzenWindowClassifier, SklearnClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import askance
from askance import strategies
from askance.embedding import Embedding
from askance.errors import InputError, UnknownError
from askance.experiments.strategy_spec import StrategySpec
from askance.integrations import skactiveml
from askance.integrations.skactiveml import rule
from askance.oracles import Truth
from askance.strategies import Labeled
from askance.testing import CONTRACT, check_strategy
from tests.experiments.tiny import contents

# What a network's features and probabilities can serve, and what not.
SERVED = {
    "Badge", "Clue", "ContrastiveAL", "CoreSet", "CostEmbeddingAL", "DropQuery", "Falcun",
    "GreedySamplingX", "MaxHerding", "ProbCover", "Quire", "RandomSampling", "TypiClust",
    "UncertaintySampling",
}  # fmt: skip
RETRAINS = {"MonteCarloEER", "ValueOfInformationEER"}
ANOTHER_MODEL = {"EpistemicUncertaintySampling", "FourDs", "ProbabilisticAL"}
MORE_MODELS = {"BatchBALD", "DiscriminativeAL", "GreedyBALD", "QueryByCommittee"}


HEAD = torch.randn(5, 3, generator=torch.Generator().manual_seed(9))


def embedding(rows, seed):
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(rows, HEAD.shape[0], generator=generator)
    return askance.Embedding(logits=features @ HEAD, features=features)


LABELED = embedding(15, 0), torch.arange(15) % 3
POOL = embedding(60, 1)


def select(strategy, n=5, **options):
    return askance.select(None, LABELED, POOL, n, strategy=strategy, **options)


@pytest.mark.parametrize("name", sorted(SERVED))
def test_a_rule_that_can_be_served_picks(name):
    picks = select(f"skactiveml:{name}")
    assert len(set(picks.indices.tolist())) == 5
    assert np.isfinite(picks.scores).all()
    assert picks.explain()[0].pseudo_label in (0, 1, 2)


@pytest.mark.parametrize("name", sorted(set(skactiveml.names()) - SERVED))
def test_a_rule_that_cannot_says_what_it_lacks(name):
    with pytest.raises(InputError) as refused:
        select(f"skactiveml:{name}")
    said = str(refused.value)
    assert f"skactiveml:{name}" in said
    if name in RETRAINS:
        assert "cannot be retrained" in said
    elif name in MORE_MODELS:
        assert "must be given" in said
    elif name not in ANOTHER_MODEL:
        reasons = ("must be given reg", "wraps another rule", "cannot be made without")
        assert any(reason in said for reason in reasons)


def test_every_rule_of_theirs_is_known():
    assert set(skactiveml.names()) > SERVED | RETRAINS | ANOTHER_MODEL | MORE_MODELS
    with pytest.raises(UnknownError, match=r"rule of scikit-activeml 'Bagde'.*'Badge'"):
        strategies.get("skactiveml:Bagde")
    with pytest.raises(UnknownError, match=r"option of skactiveml:Falcun 'gama'.*'gamma'"):
        strategies.get("skactiveml:Falcun", gama=1)
    with pytest.raises(UnknownError, match=r"source of strategies 'skactivml'.*'skactiveml'"):
        strategies.get("skactivml:Falcun")


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (rule("UncertaintySampling", method="entropy"), "entropy"),
        (rule("UncertaintySampling", method="margin_sampling"), "margin"),
        (rule("UncertaintySampling"), "least-confidence"),
        (rule("CoreSet"), "kcenter"),
    ],
)
def test_rules_that_both_have_pick_alike(theirs, ours):
    assert select(theirs, n=12).indices.tolist() == select(ours, n=12).indices.tolist()


def test_both_badges_start_alike():
    assert select("skactiveml:Badge").indices[0] == select("badge").indices[0]


TWICE = {"Badge", "TypiClust"}  # which pick a row twice among copies
SLOW = {"CostEmbeddingAL"}


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
@pytest.mark.parametrize("check", CONTRACT)
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] if n in SLOW else []) for n in sorted(SERVED)]
)
def test_the_contract(name, check):
    if check == "copes_with_copies" and name in TWICE:
        with pytest.raises(InputError, match="must give 20 different rows"):
            check_strategy(f"skactiveml:{name}", checks=[check])
        return
    check_strategy(f"skactiveml:{name}", checks=[check])


def test_options_are_those_of_their_class_and_labels_say_them():
    one = StrategySpec.of({"name": "skactiveml:UncertaintySampling", "method": "entropy"})
    assert one.label == "skactiveml:UncertaintySampling(method='entropy')"
    assert one.build() == strategies.get("skactiveml:UncertaintySampling", method="entropy")
    assert hash(one.build()) == hash(one.build())
    assert one.build() != strategies.get("skactiveml:UncertaintySampling")
    plain = StrategySpec.of({"name": "skactiveml:UncertaintySampling", "method": "least_confident"})
    assert plain.label == "skactiveml:UncertaintySampling"


def test_a_strategy_of_theirs_can_be_given_with_what_its_query_needs():
    ensemble = [
        SklearnClassifier(GaussianNB(), classes=[0, 1, 2]),
        ParzenWindowClassifier(classes=[0, 1, 2]),
    ]
    committee = rule(
        library.QueryByCommittee(method="vote_entropy"), arguments={"ensemble": ensemble}
    )
    assert committee.method == "vote_entropy"
    assert len(select(committee).indices) == 5
    judge = SklearnClassifier(LogisticRegression(), classes=[0, 1])
    assert len(select(rule("DiscriminativeAL", arguments={"discriminator": judge})).indices) == 5
    inside = library.SubSamplingWrapper(library.Badge(), max_candidates=0.5)
    assert len(select(rule(inside)).indices) == 5


def test_their_classifier_is_ours():
    asked = []

    class Asks(library.UncertaintySampling):
        def query(self, X, y, clf, fit_clf=True, **rest):
            asked.append((X, y, clf.predict_proba(X), clf.predict(X), fit_clf))
            return super().query(X, y, clf, fit_clf=fit_clf, **rest)

    select(rule(Asks()))
    X, y, probs, answers, fit = asked[0]
    logits = torch.cat([LABELED[0].logits, POOL.logits]).double()
    assert not fit
    assert np.array_equal(X[:15], LABELED[0].features.double().numpy())
    assert y[:15].tolist() == LABELED[1].tolist()
    assert np.isnan(y[15:]).all()
    assert np.allclose(probs, torch.softmax(logits, 1).numpy())
    assert np.array_equal(answers, logits.argmax(1).numpy())


def test_samples_that_follow_from_the_known_ones_have_the_heads_answers():
    asked = []

    class Wonders(library.UncertaintySampling):
        def query(self, X, y, clf, fit_clf=True, **rest):
            asked.append((X, clf.predict_proba(X * 0.5 + 1)))
            return super().query(X, y, clf, fit_clf=fit_clf, **rest)

    select(rule(Wonders()))
    X, probs = asked[0]
    expected = torch.softmax((torch.from_numpy(X) * 0.5 + 1) @ HEAD.double(), dim=1)
    assert np.allclose(probs, expected.numpy(), atol=1e-5)


def test_samples_of_which_nothing_is_known_are_refused():
    """A feature that is zero everywhere says nothing of its weights."""

    def dead(known):
        features = known.features.clone()
        features[:, 2] = 0
        return askance.Embedding(logits=features @ HEAD, features=features)

    class Dreams(library.UncertaintySampling):
        def query(self, X, y, clf, fit_clf=True, **rest):
            return clf.predict_proba(X + 1)

    with pytest.raises(InputError, match="pool and labelled set tell nothing"):
        askance.select(None, (dead(LABELED[0]), LABELED[1]), dead(POOL), 5, strategy=rule(Dreams()))
    shared = rule("DropQuery")  # drops entries, which leaves zeros zero
    askance.select(None, (dead(LABELED[0]), LABELED[1]), dead(POOL), 5, strategy=shared)


def test_an_embedding_without_features_is_refused():
    block = Embedding(torch.randn(3, 2))
    with pytest.raises(InputError, match="logits and features"):
        rule("Falcun").prepare(Labeled(block, torch.zeros(3), 3), None)


def test_it_goes_round_in_our_loop():
    X = torch.randn(120, 5, generator=torch.Generator().manual_seed(0))
    oracle = Truth(X[:, :3].argmax(1))
    for run in askance.loop(X, oracle, strategy="skactiveml:TypiClust", batch=8, rounds=2):
        torch.manual_seed(run.round)
        run.ask(torch.nn.Sequential(torch.nn.Linear(5, 6), torch.nn.ReLU(), torch.nn.Linear(6, 3)))
    assert len(np.unique(run.rows)) == 24


def test_it_runs_in_an_experiment(tiny, askance, tmp_path):
    listed = '["random", {name = "skactiveml:UncertaintySampling", method = "entropy"}, "entropy"]'
    spec = tiny(strategies=listed, seeds=1, learning_rates="[0.1]")
    code, _, err = askance("run", spec, "--workers", 1, "--out", tmp_path / "out", "--json")
    assert code == 0, err
    rounds, *_ = contents(tmp_path / "out")
    theirs, ours = "skactiveml:UncertaintySampling(method='entropy')", "entropy"
    for number in range(3):
        # The same labels are asked for, so the same networks are trained.
        assert rounds[theirs, 0, number][:2] == rounds[ours, 0, number][:2]
        assert set(rounds[theirs, 0, number][4]) == set(rounds[ours, 0, number][4])
