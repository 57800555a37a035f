"""Without Ray: everything local works, and what needs it says what to install."""

import sys

import pytest

from askance.cli import main
from askance.errors import ExtraError
from askance.integrations.ray_engine import RayEngine
from askance.integrations.ray_rounds import RayCluster
from tests.experiments.tiny import written

INSTALL = r'pip install "askance\[cluster\]"'


@pytest.fixture(autouse=True)
def no_ray(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "ray"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ray", None)  # `import ray` raises ImportError


@pytest.mark.parametrize("make", [RayCluster, RayEngine])
def test_an_engine_says_what_to_install(make):
    with pytest.raises(ExtraError, match=INSTALL):
        make()


def test_the_command_says_what_to_install_before_it_does_anything(tmp_path, capsys):
    assert main(["run", "digits", "--engine", "ray", "--out", str(tmp_path / "out")]) == 2
    assert 'pip install "askance[cluster]"' in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out").exists()


def test_a_run_needs_no_ray(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(tmp_path)
    spec = written(tmp_path, rounds=1, epochs=1, seeds=1, learning_rates="[0.1]")
    where = ["--out", str(tmp_path / "out"), "--device", "cpu", "--workers", "1"]
    assert main(["run", str(spec), *where]) == 0
