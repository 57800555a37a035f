"""What the documents show is run; what they list is all there is."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import askance
from askance.testing import CONTRACT

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
MODULES = [module.name for module in pkgutil.walk_packages(askance.__path__, "askance.")]


def blocks():
    for page in PAGES:
        for i, code in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)):
            yield pytest.param(code, id=f"{page.name}-{i}")


@pytest.mark.parametrize("code", list(blocks()))
def test_every_python_block_runs(code, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some leave files
    exec(compile(code, "block", "exec"), {})
    assert "Error" not in capsys.readouterr().out


@pytest.mark.parametrize("name", ["askance", *MODULES])
def test_every_docstring_example_holds(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


def test_readme_lists_every_rule():
    assert set(re.findall(r"^\| `([a-z-]+)` \|", PAGES[0].read_text(), re.MULTILINE)) == set(
        askance.strategies.names()
    )


def test_contributing_lists_every_check_of_the_contract():
    assert set(re.findall(r"^\| `(\w+)` \|", PAGES[1].read_text(), re.MULTILINE)) == set(CONTRACT)


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert target.startswith("https://") or (page.parent / target).exists(), target


def test_the_public_surface_is_what_the_design_says():
    assert askance.__all__ == [
        "AskanceError",
        "Embedding",
        "Explanation",
        "Selection",
        "df_scores",
        "embed",
        "loop",
        "oracles",
        "select",
        "strategies",
    ]
    assert askance.strategies.names() == [
        "random", "entropy", "margin", "least-confidence", "egl", "gradnorm", "grad", "powergrad",
        "grad-spread", "badge", "kcenter",
    ]  # fmt: skip
