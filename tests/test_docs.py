"""The lists in the documents are complete, and the examples in docstrings hold."""

import doctest
import importlib
import pkgutil
import re

import pytest

import askance
from askance.testing import CONTRACT
from tests.fences import PAGES, ROOT

MODULES = [module.name for module in pkgutil.walk_packages(askance.__path__, "askance.")]


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


def test_the_walks_of_the_design_name_files_that_exist_each_once():
    _, section = (
        (ROOT / "docs" / "design.md").read_text().split("## Three walks through the code\n")
    )
    walks = section.split("\n## ")[0].split("\n**")[1:]
    assert len(walks) == 3
    for walk in walks:
        paths = re.findall(r"`([a-z_]+(?:/\w+)*(?:\.py|\.js|/))`", walk)
        assert len(paths) > 5
        assert len(paths) == len(set(paths))
        assert [path for path in paths if not (ROOT / "src" / "askance" / path).exists()] == []


def test_the_public_surface_is_what_the_design_says():
    assert askance.__all__ == [
        "AskanceError",
        "Embedding",
        "Explanation",
        "Selection",
        "committee",
        "df_scores",
        "embed",
        "loop",
        "oracles",
        "select",
        "strategies",
    ]
    assert askance.strategies.names() == [
        "random", "entropy", "margin", "powermargin", "least-confidence", "bald", "powerbald",
        "egl", "gradnorm", "grad",
        "powergrad", "grad-spread", "badge", "bait", "cluster-margin", "kcenter", "typiclust",
        "probcover", "maxherding", "uherding", "grad-cover", "grad-cover-shortlist", "strata",
    ]  # fmt: skip
