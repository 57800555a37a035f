"""The lists in the documents are complete, and the examples in docstrings hold."""

import doctest
import importlib
import inspect
import pkgutil
import re
from dataclasses import fields, is_dataclass

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
        "advise",
        "committee",
        "df_scores",
        "embed",
        "loop",
        "oracles",
        "resume",
        "select",
        "strategies",
    ]
    assert askance.strategies.names() == [
        "random", "entropy", "margin", "powermargin", "least-confidence", "bald", "powerbald",
        "egl", "gradnorm", "grad",
        "powergrad", "grad-spread", "badge", "bait", "cluster-margin", "kcenter", "typiclust",
        "probcover", "maxherding", "uherding", "grad-cover", "grad-cover-shortlist", "strata",
    ]  # fmt: skip


def option_rows():
    """A row of docs/rules.md for each option of each rule, from the rules' docstrings."""
    for name in askance.strategies.names():
        rule = askance.strategies.get(name)
        _, _, args = (inspect.getdoc(type(rule)) or "").partition("\nArgs:\n")
        args = re.split(r"\n\n\S", args)[0]
        parts = re.split(r"^ {4}(?=\w+: )", args, flags=re.MULTILINE)
        cut = (part.partition(": ") for part in parts)
        told = {option: " ".join(text.split()) for option, _, text in cut}
        for field in fields(rule):
            value = getattr(rule, field.name)
            shown = f"`{type(value).__name__}()`" if is_dataclass(value) else f"`{value!r}`"
            yield f"| `{name}` | `{field.name}` | {shown} | {told[field.name]} |"


def test_the_page_of_rules_has_every_option_with_its_default():
    expected = "\n".join(option_rows())
    assert expected in (ROOT / "docs" / "rules.md").read_text(), f"put there:\n{expected}"
