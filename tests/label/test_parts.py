"""How the parts of `askance.label` hang together: no cycle, no field of another, no name of another."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import askance.label

FOLDER = Path(askance.label.__file__).parent
MODULES = {path.stem: ast.parse(path.read_text(encoding="utf-8")) for path in FOLDER.glob("*.py")}


def imported(tree):
    """Modules of the package that this one imports, for type checking too."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "askance.label":
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("askance.label."):
            names.add(node.module.removeprefix("askance.label."))
    return names & set(MODULES)


def test_imports_have_no_cycle():
    graph = {name: imported(tree) for name, tree in MODULES.items() if name != "__init__"}
    assert graph["session"] >= {"planning", "scheduler"}
    order = list(TopologicalSorter(graph).static_order())  # raises CycleError
    assert order.index("planning") < order.index("scheduler") < order.index("session")


def test_a_private_field_is_used_where_it_is_made_alone():
    for name, tree in MODULES.items():
        attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
        private = [a for a in attributes if a.attr.startswith("_") and not a.attr.startswith("__")]
        mine = {a.attr for a in private if isinstance(a.value, ast.Name) and a.value.id == "self"}
        others = {a.attr for a in private if a.attr not in mine}
        assert others <= {"_exit", "_asdict"}, (name, others)  # of os, of a named tuple


def test_fields_are_set_by_their_object_alone():
    others = {"idf_", "row_factory", "should_exit"}  # of scikit-learn, SQLite and uvicorn
    for name, tree in MODULES.items():
        targets = []
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign):
                targets += node.targets
            elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
                targets.append(node.target)
        flat = [part for target in targets for part in ast.walk(target)]
        fields = [part for part in flat if isinstance(part, ast.Attribute)]
        stored = [field for field in fields if isinstance(field.ctx, ast.Store)]
        foreign = {ast.unparse(f) for f in stored if ast.unparse(f.value) != "self"}
        assert {field.rpartition(".")[2] for field in foreign} <= others, (name, foreign)
