"""`askance list`: what there is."""

from __future__ import annotations

import inspect
from typing import Annotated, Any

import typer

from askance import data, encoders, models, strategies
from askance.cli import console
from askance.errors import UnknownError
from askance.experiments import spec
from askance.strategies import Pointwise, TwoStage


def show(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="strategies|datasets|models|encoders|experiments", help="What to list."
        ),
    ],
    json: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False,
) -> None:
    """List strategies, datasets, models, encoders or experiments."""
    if kind not in _KINDS:
        raise UnknownError.of("kind", kind, _KINDS)
    entries = _KINDS[kind]()
    if json:
        console.as_json(entries)
        return
    columns = [name for name in entries[0] if name not in _FOR_MACHINES]
    rows = [[_shown(entry[name]) for name in columns] for entry in entries]
    console.table(None, columns, rows, {"batch", "rounds", "epochs"})


def _strategies() -> list[dict[str, Any]]:
    rules = {name: strategies.get(name) for name in strategies.names()}
    return [
        {
            "name": name,
            "kind": strategies.kind_of(rule),
            "needs": sorted(rule.needs),
            "optional": sorted(rule.optional),
            "streams": isinstance(rule, (Pointwise, TwoStage)),
            "draws": rule.random,
            "cost": rule.cost,
            "about": _first_line(rule),
        }
        for name, rule in rules.items()
    ]


def _datasets() -> list[dict[str, Any]]:
    return [{"name": name, "kind": data.describe(name).kind} for name in data.names()]


def _models() -> list[dict[str, Any]]:
    return [{"name": name, "about": _first_line(models.get(name))} for name in models.names()]


def _encoders() -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "kind": encoders.kind_of(name),
            "installed": encoders.installed(name),
            "about": encoders.about(name),
        }
        for name in encoders.names()
    ]


def _experiments() -> list[dict[str, Any]]:
    return [
        {
            "name": one.name,
            "dataset": one.dataset,
            "model": one.model,
            "batch": one.schedule.batch,
            "rounds": one.schedule.rounds,
            "epochs": one.recipe.epochs,
        }
        for one in map(spec.load, spec.names())
    ]


_KINDS = {
    "strategies": _strategies,
    "datasets": _datasets,
    "models": _models,
    "encoders": _encoders,
    "experiments": _experiments,
}


# What would make a table too wide to read.
_FOR_MACHINES = {"streams", "draws", "cost"}


def _first_line(thing: object) -> str:
    return (inspect.getdoc(thing) or "").partition("\n")[0]


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else 'no: pip install "askance[encoders]"'
    return ", ".join(value) if isinstance(value, list) else str(value)
