"""Every example runs, is short, and its model learns."""

import ast
import re
import runpy
import warnings
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples"
LONGEST = 60
ELSEWHERE = {"demo"}  # the shipped experiment, which other tests run in small
LEARNS = {  # how good the last model must be, by the accuracies it prints
    "convnet_workers": 0.8,
    "finetune_encoder": 0.8,
    "huggingface": 0.8,
    "iterable_dataset": 0.8,
    "lightning_module": 0.8,
    "mixed_precision": 0.8,
    "scikit_learn": 0.8,
    "fine_tuning": 0.8,
}


def output_of(name, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of other people's packages, on import
        runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    return capsys.readouterr().out


def test_every_example_is_run_here():
    assert {path.stem for path in FOLDER.glob("*.py")} == set(LEARNS) | ELSEWHERE


@pytest.mark.parametrize("name", sorted(LEARNS))
def test_an_example_learns(name, capsys, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    out = output_of(name, capsys)
    accuracies = [float(number) / 100 for number in re.findall(r"([\d.]+)%", out)]
    assert len(accuracies) >= 2, out
    assert accuracies[-1] >= LEARNS[name], out
    if "labels:" in out:
        assert accuracies[-1] > accuracies[0], out


@pytest.mark.parametrize("name", sorted(LEARNS))
def test_an_example_is_short_and_says_how_to_run_it(name):
    text = (FOLDER / f"{name}.py").read_text()
    assert len(text.splitlines()) <= LONGEST
    assert f"python examples/{name}.py" in ast.get_docstring(ast.parse(text))
