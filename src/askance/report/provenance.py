"""Where the numbers come from, and how to have them again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from askance._io.filenames import is_path
from askance.experiments.machine import code_version
from askance.report.elements import Block, Code, Details, Section, Text, TextTable
from askance.report.facts import Facts, StoreFacts
from askance.report.formatting import join_names, number, percent, plural
from askance.report.repeat import repeat


def provenance_section(facts: Facts, out: str) -> Section:
    """For each store its data, recipe and machines; the commands that repeat the runs and the page."""
    blocks: list[Block] = []
    for store in facts.stores:
        again = repeat(store)
        shown: list[Block] = [TextTable(["", ""], _rows(store), left=2)]
        if again.file is not None:
            shown.append(Details(f"{store.name}.toml", [Code(again.file)]))
        shown += [Text(again.how), Code(again.command)]
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
    schedule = spec["schedule"]
    rows = [
        ["data", f"{info['source'] or 'not said'}"],
        *_subset(store),
        ["split", _split(store.sizes_and_file)],
        ["fingerprint", info["fingerprint"] or "–"],
        *([["encoder", spec["encoder"]]] if "encoder" in spec else []),
        *_model(store),
        ["schedule", f"{plural(schedule['batch'], 'label')} to start, "
                     f"{plural(schedule['rounds'], 'round')} of as many after it"],
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


def _subset(store: StoreFacts) -> list[list[str]]:
    """How the data at hand is less than the official set; one's own data has none."""
    subset = store.info["subset"]
    if subset is None and is_path(store.spec["dataset"]):
        return []
    return [["subset", subset or "none: the official set"]]


def _split(sizes: Mapping[str, str]) -> str:
    if "pool" not in sizes:
        return "sizes not recorded"
    pool, validation, test, classes = (
        f"{int(sizes[name]):,}" for name in ("pool", "validation", "test", "classes")
    )
    return (
        f"{pool} in the pool, {validation} for validation, {test} for the test; {classes} classes"
    )


def _model(store: StoreFacts) -> list[list[str]]:
    """What learned, and how: a regression has no training, so no learning rate either."""
    spec, recipe = store.spec, store.spec["recipe"]
    if spec["model"] == "linear":
        strength = spec["model_options"].get("strength")
        penalty = "by cross-validation where every class seen has two labels, else 32 / features"
        return [
            ["model", "linear: multinomial logistic regression, solved and not trained"],
            ["strength of its penalty", penalty if strength is None else f"{strength:g}"],
        ]
    return [
        ["network", spec["model"]],
        ["training", f"{plural(recipe['epochs'], 'epoch')}, batch size {recipe['batch_size']}, "
                     f"momentum {recipe['momentum']:g}, {spec['precision']}"],
        ["learning rate", _rate(store)],
    ]  # fmt: skip


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
