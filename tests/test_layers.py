"""Packages import only from packages above them in docs/design.md, and nothing goes in circles.

All imports count, those inside functions too: an import that is late to save time still ties two
packages together. The tables of that page are read here, so that they and the code cannot differ.
"""

import ast
import re
from graphlib import CycleError, TopologicalSorter

import pytest

from askance.paper import SUITE
from tests.fences import ROOT

SRC = ROOT / "src"
LAYERS = ["Base", "Selection", "Learning", "Evidence", "People and tools"]

# (package, package below it that it imports), with the reason. There is none; keep it so.
KNOWN: set[tuple[str, str]] = set()


def modules():
    """Every module's name and file."""
    found = {}
    for path in SRC.rglob("*.py"):
        parts = path.relative_to(SRC).with_suffix("").parts
        found[".".join(parts).removesuffix(".__init__")] = path
    return found


def imported(path, known):
    """The modules of askance that a file imports, wherever in the file it does."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name in known)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}:{node.lineno}: say the whole name, not a relative one"
            for each in node.names:
                full = f"{node.module}.{each.name}"
                if full in known or node.module in known:
                    yield full if full in known else node.module


def graph():
    """Module → the modules it imports."""
    known = modules()
    return {name: set(imported(path, known)) - {name} for name, path in known.items()}


def package_of(module):
    """`bench` for askance.experiments.statistics.table; what `import askance` gives is `__init__`."""
    return [*module.split("."), "__init__"][1]


def between_packages(imports):
    """Package → the packages it imports."""
    found = {}
    for name, targets in imports.items():
        here = found.setdefault(package_of(name), set())
        here |= {package_of(target) for target in targets} - {package_of(name)}
    return found


def table(text):
    """Layer → its packages from top to bottom, as docs/design.md lists them."""
    found = {}
    for part in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
        title, body = part.split("\n", 1)
        rows = re.findall(r"^\| (`[^|]*`) \|", body.split("\n## ")[0], re.MULTILINE)
        names = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
        found[title] = list(dict.fromkeys(re.split(r"[/.]", name)[0] for name in names))
    return found


def wrong(packages, order):
    """(package, package that is not above it) of every import that goes down or sideways."""
    place = {name: at for at, name in enumerate(order)}
    return {
        (name, target)
        for name, targets in packages.items()
        for target in targets
        if place[target] >= place[name]
    }


def circles(imports):
    """Groups of names that import each other in a circle, round by round until none is left."""
    left, found = {name: set(targets) for name, targets in imports.items()}, []
    while True:
        try:
            TopologicalSorter(left).prepare()
        except CycleError as error:
            circle = error.args[1]
            found.append(set(circle))
            left[circle[1]].discard(circle[0])
        else:
            return found


@pytest.fixture(scope="module")
def imports():
    return graph()


@pytest.fixture(scope="module")
def layers():
    return table((ROOT / "docs" / "design.md").read_text())


def test_the_table_has_five_layers_and_every_package(imports, layers):
    assert list(layers) == LAYERS
    listed = [name for names in layers.values() for name in names]
    assert len(listed) == len(set(listed))
    assert set(listed) == set(between_packages(imports)), "docs/design.md, against src/askance"


def test_packages_import_only_from_packages_above_them(imports, layers):
    order = [name for names in layers.values() for name in names]
    found = wrong(between_packages(imports), order)
    assert found - KNOWN == set()
    assert KNOWN - found == set(), "no longer an exception: take it out of KNOWN"


def test_the_command_line_alone_imports_the_paper(imports):
    importing = {name for name, targets in between_packages(imports).items() if "paper" in targets}
    assert importing == {"cli"}


def test_no_other_package_names_the_paper():
    """Neither its package, nor its rules in their order, nor one of its experiments."""
    names = ["askance.paper", *SUITE.experiments]
    for path in SRC.rglob("*"):
        if path.suffix not in (".py", ".toml") or {"paper", "cli"} & set(path.parts):
            continue
        text = path.read_text()
        assert [name for name in names if name in text] == [], path
        words = re.findall(r"[\w-]+", text)
        rules = len(SUITE.rules)
        runs = {tuple(words[at : at + rules]) for at in range(len(words))}
        assert SUITE.rules not in runs or path.name == "digits.toml", path


def test_no_packages_import_each_other(imports):
    assert circles(between_packages(imports)) == []


def test_no_modules_import_each_other(imports):
    found = circles(imports)
    assert [sorted(each) for each in found] == []


def test_one_class_name_is_one_class():
    where = {}
    for name, path in modules().items():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                where.setdefault(node.name, []).append(name)
    assert {name: places for name, places in where.items() if len(places) > 1} == {}


def test_the_check_sees_what_it_is_for(tmp_path):
    """Late imports, imports of names and of modules; downwards, sideways and in circles."""
    file = tmp_path / "one.py"
    file.write_text(
        "import askance.low.a\nimport torch\n\n\ndef late():\n    from askance.high import b, thing\n"
    )
    known = {"askance.low.a", "askance.high", "askance.high.b"}
    assert set(imported(file, known)) == known

    assert between_packages({"askance.low.x": {"askance.low.a", "askance.high.b", "askance"}}) == {
        "low": {"high", "__init__"}
    }
    assert wrong({"high": {"low"}, "low": {"high"}}, ["high", "low"]) == {("high", "low")}
    assert circles({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}}) == [{"a", "b", "c"}]
    assert len(circles({"a": {"b"}, "b": {"a", "c"}, "c": {"b"}})) == 2

    rows = "| package | job |\n|---|---|\n| `a.py` | x |\n| `b/`, `b/c/` | y `z` |\n"
    text = f"## Layers\n### Base\n{rows}## Ideas\n| `d` | x |\n"
    assert table(text) == {"Base": ["a", "b"]}
