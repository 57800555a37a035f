"""What `askance select` is told, in groups."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any

import typer

from askance.cli.run import Device
from askance.errors import InputError
from askance.pools import LocalEngine, ModelRecipe, Naming
from askance.pools.plan import CACHE_LIMIT


class Engines(StrEnum):
    local = "local"
    ray = "ray"


class OnErrors(StrEnum):
    stop = "raise"
    skip = "skip"


@dataclass(frozen=True)
class PoolOptions:
    """How the items of the pool and of the labelled set are found and read."""

    features: Annotated[
        list[str] | None,
        typer.Option(help="Column of features; several with commas between, or one by one."),
    ] = None
    logits: Annotated[
        list[str] | None,
        typer.Option(help="Column of logits; several with commas between, or one by one."),
    ] = None
    image: Annotated[str | None, typer.Option(help="Column (or ending) of image files.")] = None
    text: Annotated[str | None, typer.Option(help="Column (or ending) of texts.")] = None
    id: Annotated[
        str | None, typer.Option(help="Column of identifiers; file:row when left out.")
    ] = None
    label: Annotated[str | None, typer.Option(help="Column (or ending) of labels.")] = None
    pairs: Annotated[
        bool, typer.Option("--pairs", help="A dataset's items begin with their identifier.")
    ] = False
    transform: Annotated[
        str | None,
        typer.Option(help="module:function from an image's bytes or a text to a tensor."),
    ] = None
    image_size: Annotated[int, typer.Option(help="Pixels a side of a decoded image.", min=1)] = 32

    @property
    def naming(self) -> Naming:
        """Of the pool."""
        columns = _columns(self.features), _columns(self.logits), self.image, self.text, self.id
        return Naming(*columns, None, self.transform, self.image_size, self.pairs)

    @property
    def labelled(self) -> Naming:
        """Of the labelled set, which has labels and needs no identifiers."""
        return replace(self.naming, label=self.label, id=None)


@dataclass(frozen=True)
class ModelOptions:
    """The network that scores."""

    model: Annotated[
        str | None,
        typer.Option(
            help="module:function that returns the network; left out for stored embeddings."
        ),
    ] = None
    weights: Annotated[
        str | None, typer.Option(help="Its state dict: .safetensors, or .pt holding tensors alone.")
    ] = None
    model_option: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Given to the function by name.")
    ] = None
    head: Annotated[
        str | None, typer.Option(help="The last linear layer's name; found when left out.")
    ] = None

    @property
    def recipe(self) -> ModelRecipe | None:
        if self.model is None:
            if self.weights is not None or self.model_option:
                raise InputError(
                    "weights and model options belong to a model; name it with --model"
                )
            return None
        return ModelRecipe(
            self.model, self.weights, tuple(option_values(self.model_option).items())
        )


@dataclass(frozen=True)
class PassOptions:
    """How the pass over the pool is made."""

    batch_size: Annotated[
        int | None, typer.Option(help="Rows of a forward pass or a block.", min=1)
    ] = None
    device: Device = None
    on_error: Annotated[
        OnErrors, typer.Option(help="Stop at what cannot be read, or skip and count it.")
    ] = OnErrors.stop
    engine: Annotated[Engines, typer.Option(help="Where to run: local or ray.")] = Engines.local
    address: Annotated[str | None, typer.Option(help="Address of the Ray cluster.")] = None
    workers: Annotated[
        int | None, typer.Option(help="Shards at a time; one a core when left out.", min=1)
    ] = None
    shortlist: Annotated[
        int | None,
        typer.Option(
            help="A batch rule picks from this many rows, the rows of largest gradient.", min=1
        ),
    ] = None
    cache_gib: Annotated[
        float, typer.Option(help="The most disk a batch rule's cache of the pool may take.", min=0)
    ] = CACHE_LIMIT / 2**30
    id_check: Annotated[
        bool, typer.Option("--id-check/--no-id-check", help="Compare all identifiers of the pool.")
    ] = True
    restart: Annotated[
        bool, typer.Option("--restart", help="Begin anew, whatever a stopped pass left.")
    ] = False

    def arguments(self) -> dict[str, Any]:
        """As `select_from` takes it."""
        return {
            "batch_size": self.batch_size,
            "device": self.device,
            "engine": _engine(self.engine, self.address, self.workers),
            "on_error": self.on_error.value,
            "shortlist": self.shortlist,
            "cache_limit": int(self.cache_gib * 2**30),
            "check_ids": self.id_check,
            "restart": self.restart,
        }


def _columns(given: list[str] | None) -> tuple[str, ...]:
    names = (name.strip() for text in given or () for name in text.split(","))
    return tuple(name for name in names if name)


def option_values(options: list[str] | None) -> dict[str, Any]:
    """NAME=VALUE pairs; a value is JSON where it can be, else a text."""
    found: dict[str, Any] = {}
    for text in options or ():
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise InputError(f"an option is NAME=VALUE, got {text!r}")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


def _engine(kind: Engines, address: str | None, workers: int | None) -> Any:
    if kind is Engines.local:
        if address is not None:
            raise InputError("--address is of a Ray cluster; say --engine ray as well")
        return LocalEngine(workers)
    from askance.integrations.ray_engine import RayEngine

    return RayEngine(address=address, workers=workers)
