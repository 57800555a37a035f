"""What a store says of the machine, and what it keeps to itself."""

import json
import platform

import numpy
import torch

from askance.experiments import machine
from askance.experiments.machine import Machine


def test_this_process_is_described():
    here = Machine(device="cpu", engine="one by one", precision="float64")
    assert here.packages["torch"] == torch.__version__
    assert here.packages["numpy"] == numpy.__version__
    assert here.threads == torch.get_num_threads()
    assert here.python == platform.python_version()
    assert here.hardware["cores"] >= 1
    assert here.hardware["memory_gb"] > 0
    assert json.loads(json.dumps(here.hardware)) == here.hardware
    assert (here.device, here.engine, here.precision) == ("cpu", "one by one", "float64")


def test_the_code_is_named_by_its_content(monkeypatch, tmp_path):
    whole = machine.code_version()
    assert whole == machine.code_version()
    (tmp_path / "__init__.py").write_text("")
    monkeypatch.setattr(machine.askance, "__file__", str(tmp_path / "__init__.py"))
    machine.code_version.cache_clear()
    assert machine.code_version() != whole
    machine.code_version.cache_clear()


def test_the_hosts_name_is_not_told():
    assert (platform.node() or "no name") not in json.dumps(machine.hardware())
