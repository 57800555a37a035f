"""How to run a stored experiment again: a command, and a file where the command alone cannot say it."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from askance._io.filenames import is_path
from askance.errors import AskanceError
from askance.experiments import spec as specs
from askance.experiments.seeds import to_option
from askance.experiments.strategy_spec import label_of
from askance.report.facts import StoreFacts

# What options can change of a spec, by its key: the option, and the value as it takes it.
_OPTIONS: dict[str, tuple[str, Callable[[Mapping[str, Any]], str]]] = {
    "strategies": ("--strategies", lambda spec: ",".join(map(label_of, spec["strategies"]))),
    "seeds": ("--seeds", lambda spec: to_option(spec["seeds"])),
    "schedule.rounds": ("--rounds", lambda spec: str(spec["schedule"]["rounds"])),
    "precision": ("--precision", lambda spec: spec["precision"]),
}


@dataclass(frozen=True)
class Repeat:
    """How to run an experiment again: `how` says what to do first, `file` is the TOML it then needs."""

    command: str
    how: str = "To run it again:"
    file: str | None = None


def repeat(store: StoreFacts) -> Repeat:
    """The command line; and a file, where neither a shipped experiment nor its own file says it."""
    spec, folder = store.spec, str(store.path.parent)
    names = [spec["name"]] if spec["name"] in specs.names() else []
    if store.file is not None and store.file.is_file():
        names.append(_shown(store.file))
    for name in names:
        changed = _changed(spec, name)
        if changed is not None:
            words = ["askance", "run", name]
            for key, (option, value) in _OPTIONS.items():
                if key in changed:
                    words += [option, value(spec)]
            return Repeat(shlex.join([*words, "--out", folder]))
    name = f"{spec['name']}.toml"
    beside = ""
    if is_path(spec["dataset"]) and not Path(spec["dataset"]).expanduser().is_absolute():
        where = _shown(store.file.parent) if store.file else "the folder"
        beside = f" in {where}, from where {spec['dataset']} is the data,"
    how = f"To run it again, save the file above as {name}{beside} and run:"
    return Repeat(shlex.join(["askance", "run", name, "--out", folder]), how, toml(spec))


def _shown(path: Path) -> str:
    """A path from here where it lies below, else the whole one."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _changed(spec: Mapping[str, Any], name: str) -> set[str] | None:
    """What differs from the experiment of that name or file; None where options cannot say it."""
    try:
        changed = set(specs.differences(specs.load(name).to_dict(), spec))
    except AskanceError:  # the file is not what it was
        return None
    plain = all(set(entry) == {"name"} for entry in spec["strategies"])
    return (
        changed if changed <= _OPTIONS.keys() and (plain or "strategies" not in changed) else None
    )


def toml(spec: Mapping[str, Any]) -> str:
    """A stored spec as the file it could have come from; a regression needs no recipe."""
    if spec["model"] == "linear":
        spec = {key: value for key, value in spec.items() if key != "recipe"}
    tables = {key: value for key, value in spec.items() if isinstance(value, Mapping)}
    lines = [f"{key} = {_value(value)}" for key, value in spec.items() if key not in tables]
    for key, table in tables.items():
        if table:
            lines += ["", f"[{key}]", *(f"{_key(name)} = {_value(v)}" for name, v in table.items())]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)} = {_value(v)}" for key, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, (bool, str)):
        return json.dumps(value, ensure_ascii=False)
    return repr(value)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[\w-]+", name, re.ASCII) else json.dumps(name)
