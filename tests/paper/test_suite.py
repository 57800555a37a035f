"""The paper's experiments, as its protocol has them, and its figures."""

import pytest

from askance.experiments import spec as specs
from askance.experiments.statistics.table import experiments
from askance.figures.catalog import figures
from askance.paper import SUITE
from tests.experiments.statistics.worlds import noise, rows

SCHEDULES = {
    "stl10": (100, 14), "gtsrb": (500, 8), "svhn": (500, 8), "cifar10": (500, 8), "cinic10": (1000, 4),
}  # fmt: skip


# Those on a pretrained encoder are not the paper's; tests/experiments/test_pretrained.py has them.
NAMES = [name for name in specs.names() if specs.load(name).encoder is None]


def test_the_paper_suite_ships_as_the_protocol_has_it():
    assert set(NAMES) == {"digits", *SUITE.experiments, *VARIANTS}
    assert len(NAMES) == 1 + 18 + len(VARIANTS)
    for dataset, schedule in SCHEDULES.items():
        for model, epochs in (("lenet", 50), ("vgg16", 30), ("resnet18", 30)):
            check_paper(f"{dataset}-{model}", dataset, model, schedule, epochs)
    for dataset in ("20newsgroups", "isolet", "pokerhand"):
        check_paper(f"{dataset}-mlp", dataset, "mlp", (100, 39), 50)
    options = {name: dict(specs.load(name).model_options) for name in NAMES}
    headline = {k: v for k, v in options.items() if v and k not in VARIANTS}
    assert headline == {"20newsgroups-mlp": {"init": "kaiming"}}


# What each variant changes in the experiment whose name it extends.
VARIANTS = {
    "20newsgroups-mlp-default-init": ['model_options.init: "kaiming" → none'],
    "cifar10-lenet-100": ["schedule.batch: 500 → 100", "schedule.rounds: 8 → 14"],
    "cifar10-lenet-1000": ["schedule.batch: 500 → 1000", "schedule.rounds: 8 → 4"],
    "cifar10-lenet-second-rate": [
        "recipe.learning_rates: [0.0001, 0.0005, 0.001, 0.005, 0.01] → [0.001]"
    ],
    "cifar10-lenet-all-parameters": [
        "strategies: badge, entropy, grad, kcenter, random → "
        "badge, entropy, grad, grad(parameters='all'), kcenter, random"
    ],
    "cifar10-lenet-reference-size": [
        "strategies: badge, entropy, grad, kcenter, random → badge, entropy, grad, "
        "grad(reference_size=128), grad(reference_size=8), kcenter, random"
    ],
    "svhn-lenet-100": ["schedule.batch: 500 → 100", "schedule.rounds: 8 → 14"],
    "svhn-lenet-1000": ["schedule.batch: 500 → 1000", "schedule.rounds: 8 → 4"],
    "cifar10-vgg16-torchvision": [
        "model_options.batch_norm: none → false",
        'model_options.init: none → "torchvision"',
    ],
    "cifar10-resnet18-torchvision": [
        'model_options.init: none → "torchvision"',
        'model_options.stem: none → "imagenet"',
    ],
}


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_changes_what_its_name_says(name):
    headline = "-".join(name.split("-")[:2])
    changes = specs.differences(*(specs.load(one).to_dict() for one in (headline, name)))
    del changes["name"]
    assert list(changes.values()) == VARIANTS[name]


def check_paper(name, dataset, model, schedule, epochs):
    spec = specs.load(name)
    assert (spec.name, spec.dataset, spec.model) == (name, dataset, model)
    assert (spec.schedule.batch, spec.schedule.rounds) == schedule
    assert (spec.recipe.epochs, spec.recipe.batch_size, spec.recipe.momentum) == (epochs, 8, 0.9)
    assert spec.recipe.learning_rates == (1e-4, 5e-4, 1e-3, 5e-3, 1e-2)
    assert {rule.label for rule in spec.strategies} == set(SUITE.rules)
    assert (spec.seeds, spec.precision) == (5, "tf32")
    assert spec.oracle == (("kind", "truth"),)


# A store belongs to its spec's hash: these must not move, or no published store can be extended.
SHIPPED = {
    "20newsgroups-mlp": "5f6e98e1d7ba109db60a78066de3c40b",
    "20newsgroups-mlp-default-init": "73b220dab6deb8bc69b84e703d0aed4a",
    "cifar10-lenet": "b9f60c73fe859da0c3618748a8776094",
    "cifar10-lenet-100": "a818d51d904a1f0716fd28cc65b5423a",
    "cifar10-lenet-1000": "8807000672fa765c9a64e165edf09408",
    "cifar10-lenet-all-parameters": "3a5b9d416e6b114bbdd108a7f2bf08c1",
    "cifar10-lenet-reference-size": "d3eca0bf12cbcdc4fac708455ad4e026",
    "cifar10-lenet-second-rate": "2605653b3ad4d2cdfedee6dd97c85fa2",
    "cifar10-resnet18": "f09770658ce5c63728c5a7623c9725bc",
    "cifar10-resnet18-torchvision": "77962f8fd58757409e3e962a89ef2c3f",
    "cifar10-vgg16": "c104857d9af818b40e9e15847c3b0c64",
    "cifar10-vgg16-torchvision": "0c437fa355e9da2195171a6b678dd91c",
    "cinic10-lenet": "a84cc01c392eadc1d96b95462c0c2181",
    "cinic10-resnet18": "f1f07de986c7677796459fef3809b6e5",
    "cinic10-vgg16": "cc8b0de2a3393d8a0f345bf1d2fd6991",
    "digits": "c57c382adce273a5bf51a84b54bb46d2",
    "gtsrb-lenet": "07a44b571e0081c8050594752dfee25c",
    "gtsrb-resnet18": "ea9aa85395cdcb7decf71250fff28f64",
    "gtsrb-vgg16": "0420f51178a8d3b8887912c70d42edf1",
    "isolet-mlp": "1860576f13886dd26712efa1ad149fb3",
    "pokerhand-mlp": "ebbb202aec224c2269ec86f01dc6aaa1",
    "stl10-lenet": "8a586170801407fac98a8909184af9dd",
    "stl10-resnet18": "78d5d8d0774581dc007abfbaa14aee0f",
    "stl10-vgg16": "47fe226182479ac0526de9023861c01f",
    "svhn-lenet": "c1561608818e8829e7423b71e425e10d",
    "svhn-lenet-100": "543b519b6cdebf2e2caacb58ab6fd9f4",
    "svhn-lenet-1000": "d594bfd956f2d4ec959ccae3bbc098f3",
    "svhn-resnet18": "105434ebe505ddb4a528d1eb19a2d1eb",
    "svhn-vgg16": "aef80efcf7151944eccfcbe0ff407d40",
}


def test_the_hashes_of_shipped_experiments_stay():
    assert {name: specs.load(name).hash for name in NAMES} == SHIPPED


@pytest.fixture(scope="module")
def suite():
    table = []
    for i, name in enumerate(SUITE.experiments):
        data, _, model = name.rpartition("-")
        tables = noise((*SUITE.rules, "powergrad"), seeds=5, rounds=5, seed=i)
        table += rows(tables, name=name, dataset=data, model=model)
    return experiments(table, SUITE.rules)


def test_every_figure_of_the_paper_is_there(suite):
    assert len(SUITE.experiments) == 18
    seconds = {"isolet-mlp": {"grad": [{"score": 0.1}]}}
    names = [name for name, _ in figures(suite, SUITE, seconds)]
    assert len(names) == len(set(names))
    for prefix in ("paper", "extended"):
        for figure in ("curves-text-tabular", "curves-images", "curves-appendix",
                       "penalty-rounds", "penalty-backbone", "penalty-dataset"):  # fmt: skip
            assert f"{prefix}-{figure}" in names
    assert {f"curves-{name}" for name in SUITE.experiments} < set(names)
    assert {"profile", "ranks", "timing-isolet-mlp"} < set(names)


def test_the_papers_figures_have_its_rules_alone(suite):
    drawn = dict(figures(suite, SUITE))
    figure = drawn["paper-curves-images"]()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(SUITE.rules)
    assert sum(axes.get_visible() for axes in figure.axes) == 6
    matrices = drawn["paper-penalty-backbone"]()
    titles = [axes.get_title(loc="left") for axes in matrices.axes[:3]]
    assert titles == ["lenet", "resnet18", "vgg16"]
    ticks = [text.get_text() for text in matrices.axes[0].get_yticklabels()]
    assert ticks == list(SUITE.rules)
