"""What `advise` says, of what is shipped and of a made-up decision."""

import pytest

import askance
from askance import advice, strategies
from askance.errors import InputError, UnknownError
from askance.selection.default import LARGE
from askance.strategies import defaults
from askance.strategies.defaults import ExperimentEvidence, RuleEvidence, TrackEvidence

ORDER = ("uherding", "powergrad", "badge", "margin", "grad-cover-shortlist", "grad")


def gains(*points):
    return dict(zip(ORDER, points, strict=True))


def track(name, order, *points):
    whole = {rule: (p, p - 0.01, p + 0.01) for rule, p in gains(*points).items()}
    return TrackEvidence(name, "5-14", 1, order, whole)


NETWORK = track("network", ("badge", "uherding", "powergrad", "margin", "grad-cover-shortlist"),
                0.01, 0.009, 0.012, 0.008, 0.001, -0.02)  # fmt: skip
ENCODER = track("encoder", ("powergrad", "uherding", "grad-cover-shortlist", "margin", "badge"),
                0.04, 0.05, 0.02, 0.03, 0.035, -0.05)  # fmt: skip
THIRDS = ((1.0, 4.0), (5.0, 8.0), (9.0, 12.0))
CODED = {rule: (p, p / 2, -p / 10) for rule, p in gains(0.08, 0.06, 0.02, 0.03, 0.01, 0.5).items()}
DECIDED = RuleEvidence(
    True,
    ORDER,
    {"grad": ("little",)},
    (NETWORK, ENCODER),
    (
        ExperimentEvidence("little", "network", "a", 10, THIRDS, dict.fromkeys(ORDER, (0.0,) * 3)),
        ExperimentEvidence("coded", "encoder", "b", 10, THIRDS, CODED),
    ),
)


@pytest.fixture
def decided(monkeypatch):
    monkeypatch.setattr(strategies, "evidence", lambda: DECIDED)
    monkeypatch.setattr(advice, "evidence", lambda: DECIDED)


def test_without_a_word_it_is_the_default(decided):
    said = askance.advise()
    assert said.strategy == "uherding"
    assert said.decided
    assert str(said) == (
        "Take `uherding`, askance's default: it picks points that cover what the model is unsure of. "
        "`uherding` is the default: of 6 rules it has the best mean rank in our experiments, with "
        "gains over random labelling of 1.0 points with a small network and 4.0 points with a "
        "pretrained encoder. No rule wins everywhere, so compare it with `random` on data like yours "
        "(`askance run`)."
    )


def test_of_an_encoder_it_is_what_gained_most_there(decided):
    said = askance.advise("encoder", classes=10, labels=30)
    assert said.strategy == "powergrad"
    assert said.sentences[1:] == (
        "In 1 experiment with a pretrained encoder it gained 5.0 points of accuracy over random "
        "labelling (95% interval 4.0 to 6.0; `badge` 2.0, `margin` 3.0, `uherding` 4.0).",
        "With about 3 labels a class (coded) it gained 6.0 points, and `uherding` the most, 8.0.",
    )
    late = askance.advise("encoder", classes=10, labels=5000).sentences[2]
    assert late == (
        "With the nearest to 500 labels a class (coded) it gained −0.6 points, and "
        "`grad-cover-shortlist` the most, −0.1."
    )


def test_a_rule_that_cannot_be_used_is_not_held_against_another(decided):
    said = askance.advise("probabilities", classes=10, labels=30)
    assert said.strategy == "margin"
    assert "the most" not in said.sentences[2]


@pytest.mark.parametrize(
    ("case", "rule"),
    [
        ({"model": "network"}, "badge"),
        ({"model": "network", "pool": LARGE}, "badge"),
        ({"model": "network", "pool": LARGE + 1}, "powergrad"),
        ({"model": "encoder", "pool": LARGE + 1}, "powergrad"),
        ({"pool": LARGE + 1}, "powergrad"),
        ({"model": "probabilities"}, "margin"),
        ({"model": "probabilities", "labels": 0}, "margin"),
        ({"model": "committee"}, "powerbald"),
        ({"labels": 0}, "maxherding"),
        ({"model": "encoder", "labels": 0}, "maxherding"),
    ],
)
def test_each_case_has_its_rule(decided, case, rule):
    said = askance.advise(**case)
    assert said.strategy == rule
    assert len(said.sentences) == 3
    assert said.sentences[0].startswith(f"Take `{rule}`")
    assert all(each.endswith(".") for each in said.sentences)
    assert ("in one pass" in said.sentences[0]) == ("pool" in case and case["pool"] > LARGE)


def test_before_labels_it_says_what_comes_next(decided):
    assert "Once there are labels, take `powergrad`." in str(askance.advise("encoder", labels=0))


def test_what_is_shipped_has_words_for_every_rule_it_may_advise():
    there = defaults.evidence()
    assert {*there.order, strategies.FIRST, "powerbald"} <= set(advice.PICKS)
    said = askance.advise()
    assert said.strategy == strategies.default().name == there.order[0]
    assert said.decided == there.decided
    if not there.decided:
        assert "provisional" in said.sentences[1]
        assert "for now" in advice.reason()


def test_what_is_no_case_is_refused():
    with pytest.raises(UnknownError, match="model 'forest': known: committee, encoder"):
        askance.advise("forest")
    for wrong in ({"classes": 1}, {"labels": -1}, {"pool": 0}, {"labels": 1.5}):
        with pytest.raises(InputError):
            askance.advise(**wrong)
