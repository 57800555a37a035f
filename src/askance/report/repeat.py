"""How to run a stored experiment again: a command, and a file where the command alone cannot say it."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping
from typing import Any

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


def command(store: StoreFacts) -> tuple[str, str | None]:
    """The command line, and the TOML file it needs, if it does."""
    spec, folder = store.spec, str(store.path.parent)
    changed = _changed(spec)
    if changed is None:
        name = f"{spec['name']}.toml"
        return shlex.join(["askance", "run", name, "--out", folder]), toml(spec)
    words = ["askance", "run", spec["name"]]
    for key, (option, value) in _OPTIONS.items():
        if key in changed:
            words += [option, value(spec)]
    return shlex.join([*words, "--out", folder]), None


def _changed(spec: Mapping[str, Any]) -> set[str] | None:
    """What differs from the shipped experiment of that name; None where options cannot say it."""
    if spec["name"] not in specs.names():
        return None
    changed = set(specs.differences(specs.load(spec["name"]).to_dict(), spec))
    plain = all(set(entry) == {"name"} for entry in spec["strategies"])
    return (
        changed if changed <= _OPTIONS.keys() and (plain or "strategies" not in changed) else None
    )


def toml(spec: Mapping[str, Any]) -> str:
    """A stored spec as the file it could have come from."""
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
