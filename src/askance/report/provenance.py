"""Where the numbers come from, and how to have them again."""

from __future__ import annotations

import shlex
from typing import Any

from askance.experiments.machine import code_version
from askance.report.elements import Block, Code, Details, Section, Text, TextTable
from askance.report.facts import Facts, StoreFacts
from askance.report.formatting import join_names, number, percent, plural
from askance.report.repeat import command


def provenance_section(facts: Facts, out: str) -> Section:
    """For each store its data, recipe and machines; the commands that repeat the runs and the page."""
    blocks: list[Block] = []
    for store in facts.stores:
        line, file = command(store)
        shown: list[Block] = [TextTable(["", ""], _rows(store), left=2)]
        if file is not None:
            shown.append(Details(f"{store.name}.toml", [Code(file)]))
        shown += [Text("To run it again:"), Code(line)]
        blocks += shown if len(facts.stores) == 1 else [Details(store.name, shown)]
    if facts.bare:
        blocks.append(
            Text(
                f"Of {join_names(facts.bare)} there is a table of results alone, no store: what was "
                "picked, what it cost, and how it was run are not known here.",
                "note",
            )
        )
    blocks += [
        Text("To write this report again:"),
        Code(shlex.join(["askance", "report", *facts.paths, "--out", out])),
        Text(f"Written by askance {code_version()}.", "note"),
    ]
    return Section("provenance", "Provenance", blocks)


def _rows(store: StoreFacts) -> list[list[str]]:
    spec, info = store.spec, store.info
    recipe, schedule = spec["recipe"], spec["schedule"]
    rows = [
        ["data", f"{info['source'] or 'not said'}"],
        ["subset", info["subset"] or "none: the official set"],
        ["fingerprint", info["fingerprint"] or "–"],
        ["network", spec["model"]],
        ["schedule", f"{plural(schedule['batch'], 'label')} to start, "
                     f"{plural(schedule['rounds'], 'round')} of as many after it"],
        ["training", f"{plural(recipe['epochs'], 'epoch')}, batch size {recipe['batch_size']}, "
                     f"momentum {recipe['momentum']:g}, {spec['precision']}"],
        ["learning rate", _rate(store)],
        ["oracle", ", ".join(f"{k} {v}" if k != "kind" else str(v)
                             for k, v in spec["oracle"].items())],
        ["runs", f"{plural(len(store.progress), 'run')}"
                 + (f", {len(store.unfinished)} unfinished" if store.unfinished else ", all finished")],
        ["store", str(store.path)],
        ["spec hash", store.info["hash"]],
        ["created", f"{info['created'][:19].replace('T', ' ')} UTC, askance {info['code']}"],
    ]  # fmt: skip
    seen = []
    for machine in store.machines:
        said = _machine(machine)
        if said not in seen:
            seen.append(said)
    return rows + [["machine", said] for said in seen]


def _rate(store: StoreFacts) -> str:
    rate = store.info["learning_rate"]
    if rate is None:
        return "not chosen yet"
    tried: dict[float, list[float]] = {}
    for result in store.sweep:
        tried.setdefault(result.learning_rate, []).append(result.accuracy)
    swept = ", ".join(f"{lr:g}: {percent(sum(a) / len(a))}" for lr, a in tried.items())
    out = sorted({one.learning_rate for one in store.sweep if one.trained is False} - {rate})
    why = (
        f"; {join_names([f'{lr:g}' for lr in out])} did not train a first labelled set"
        if out
        else ""
    )
    return f"{rate:g}" + (f", the best on validation of {swept}{why}" if swept else ", given")


def _machine(machine: dict[str, Any]) -> str:
    hardware, packages = machine["hardware"], machine["packages"]
    parts = [
        *hardware["gpus"],
        hardware["processor"],
        plural(hardware["cores"], "core"),
        f"{number(hardware['memory_gb'], 1)} GB" if hardware["memory_gb"] else "",
        hardware["system"],
        f"Python {machine['python']}",
        *(f"{name} {version}" for name, version in packages.items()),
        f"{machine['device']}, {machine['engine']}, {machine['precision']}, "
        f"{plural(machine['threads'], 'thread')}",
        f"askance {machine['code']}",
    ]
    return "; ".join(part for part in parts if part)
