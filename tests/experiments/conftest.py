"""The names a spec is checked against, from the rooms that hold them or from a stand-in; tiny specs."""

import importlib.util
import sys
from types import ModuleType

import pytest

from askance.experiments import spec as specs
from askance.experiments.store import ResultStore
from tests.experiments.tiny import written
from tests.experiments.worlds import fill, spec

NAMES = {
    "askance.models": ["mlp", "lenet", "vgg16", "resnet18"],
    "askance.data": [
        "20newsgroups", "isolet", "pokerhand", "cifar10", "svhn", "stl10", "gtsrb", "cinic10",
        "mnist", "german", "gisette", "digits", "fashion-mnist",
    ],
}  # fmt: skip


@pytest.fixture(autouse=True, scope="session")
def rooms():
    with pytest.MonkeyPatch.context() as patch:
        for room, names in NAMES.items():
            if importlib.util.find_spec(room) is None:
                module = ModuleType(room)
                module.names = lambda names=names: list(names)
                patch.setitem(sys.modules, room, module)
        yield


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    return lambda tail="", **changes: specs.load(written(tmp_path, tail, **changes))


@pytest.fixture
def filled(tmp_path):
    """The folder of a finished store."""
    with ResultStore.open(tmp_path / "full", spec()) as opened:
        fill(opened)
    return tmp_path / "full"
