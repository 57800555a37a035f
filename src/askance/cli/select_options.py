"""What `askance select` is told, in groups."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any

import typer

from askance import encoders
from askance.cli.run import Device
from askance.errors import InputError
from askance.pools import LocalEngine, ModelRecipe, Naming
from askance.pools.constraints import ColumnConstraints
from askance.pools.select import CACHE_LIMIT


class Engines(StrEnum):
    """Who works on the shards."""

    local = "local"
    ray = "ray"


class OnErrors(StrEnum):
    """What to do at what cannot be read."""

    stop = "raise"
    skip = "skip"


@dataclass(frozen=True)
class PoolOptions:
    """How the items of the pool and of the labelled set are found and read."""

    features: Annotated[
        list[str] | None,
        typer.Option(help="Column of features, or several separated by commas."),
    ] = None
    logits: Annotated[
        list[str] | None,
        typer.Option(help="Column of logits, or several separated by commas."),
    ] = None
    image: Annotated[
        str | None, typer.Option(help="Column (or suffix in tar files) of images.")
    ] = None
    text: Annotated[str | None, typer.Option(help="Column (or suffix) of texts.")] = None
    id: Annotated[str | None, typer.Option(help="Column of identifiers (default: file:row).")] = (
        None
    )
    label: Annotated[str | None, typer.Option(help="Column (or suffix) of labels.")] = None
    pairs: Annotated[
        bool, typer.Option("--pairs", help="A dataset's items are pairs (identifier, item).")
    ] = False
    transform: Annotated[
        str | None,
        typer.Option(help="module:function that makes a tensor of image bytes or a text."),
    ] = None
    image_size: Annotated[
        int, typer.Option(help="Width and height of images, in pixels.", min=1)
    ] = 32

    @property
    def naming(self) -> Naming:
        """Of the pool."""
        columns = _columns(self.features), _columns(self.logits), self.image, self.text, self.id
        return Naming(*columns, None, self.transform, self.image_size, self.pairs)

    @property
    def labelled(self) -> Naming:
        """Of the labelled set, which has labels and needs no identifiers of its own."""
        return replace(self.naming, label=self.label, id=None)


@dataclass(frozen=True)
class ModelOptions:
    """The network that scores, or the encoder in its place."""

    encoder: Annotated[
        str | None,
        typer.Option(help="Pretrained encoder in place of a network (`askance list encoders`)."),
    ] = None
    model: Annotated[
        str | None,
        typer.Option(
            help="module:function that returns the network. Not needed for stored embeddings."
        ),
    ] = None
    weights: Annotated[
        str | None,
        typer.Option(help="Weights of the network: .safetensors, or .pt with only tensors."),
    ] = None
    model_option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Argument of that function. Repeatable."),
    ] = None
    head: Annotated[
        str | None, typer.Option(help="Name of the last linear layer (default: automatic).")
    ] = None
    classes: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…",
            help="Names of all classes, in the order of the network's outputs (default: the names in "
            "the labelled set, in alphabetical order).",
        ),
    ] = None

    @property
    def names(self) -> list[str] | None:
        """Of the classes."""
        return None if self.classes is None else [name.strip() for name in self.classes.split(",")]

    @property
    def source(self) -> ModelRecipe | str | None:
        """How to come by the network; the encoder's name; None for stored embeddings."""
        if self.encoder is not None:
            others = (self.model, self.weights, self.model_option, self.head)
            if any(others):
                raise InputError(
                    "an encoder takes the place of a network: give --encoder alone, or --model with "
                    "its weights, options and head"
                )
            encoders.check_name(self.encoder)
            return self.encoder
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
class ConstraintOptions:
    """Constraints on the picks."""

    groups: Annotated[
        str | None,
        typer.Option(help="Groups to count: a column, or 'predicted' for the predicted classes."),
    ] = None
    at_most: Annotated[
        list[str] | None,
        typer.Option(metavar="N", help="Most picks of a group: N, or NAME=N. Repeatable."),
    ] = None
    at_least: Annotated[
        list[str] | None,
        typer.Option(metavar="N", help="Fewest picks of a group: N, or NAME=N. Repeatable."),
    ] = None
    costs: Annotated[str | None, typer.Option(help="Column of what a row costs.")] = None
    budget: Annotated[float | None, typer.Option(help="Most that the picks cost together.")] = None
    max_similarity: Annotated[
        float | None,
        typer.Option(help="Cosine that the features of two picks may not reach (1: copies)."),
    ] = None

    @property
    def given(self) -> ColumnConstraints | None:
        """As `select_from` takes them; None where there are none."""
        at_most, at_least = (
            _numbers("--at-most", self.at_most),
            _numbers("--at-least", self.at_least),
        )
        limits = ColumnConstraints(
            self.groups, at_most, at_least, self.costs, self.budget, self.max_similarity
        )
        return None if limits == ColumnConstraints() else limits


@dataclass(frozen=True)
class PassOptions:
    """How the pass over the pool is made."""

    batch_size: Annotated[
        int | None, typer.Option(help="Batch size of the forward pass.", min=1)
    ] = None
    device: Device = None
    on_error: Annotated[
        OnErrors, typer.Option(help="Data that cannot be read: raise an error, or skip it.")
    ] = OnErrors.stop
    engine: Annotated[Engines, typer.Option(help="Where to run: local or ray.")] = Engines.local
    address: Annotated[
        str | None, typer.Option(help="Address of the Ray cluster (default: this machine).")
    ] = None
    workers: Annotated[
        int | None,
        typer.Option(help="Number of workers (default: one for each core).", min=1),
    ] = None
    shortlist: Annotated[
        int | None,
        typer.Option(
            help="Number of rows of largest gradient from which a batch rule picks (default: all).",
            min=1,
        ),
    ] = None
    cache_gib: Annotated[
        float, typer.Option(help="Limit of a batch rule's cache on disk, in GiB.", min=0)
    ] = CACHE_LIMIT / 2**30
    id_check: Annotated[
        bool, typer.Option("--id-check/--no-id-check", help="Check that identifiers are unique.")
    ] = True
    restart: Annotated[
        bool, typer.Option("--restart", help="Start again and discard a stopped pass.")
    ] = False

    def arguments(self) -> dict[str, Any]:
        """As `select_from` takes it."""
        return {
            "batch_size": self.batch_size,
            "device": self.device,
            "engine": _engine(self.engine, self.address, self.workers),
            "on_error": self.on_error.value,
            "shortlist": self.shortlist,
            "cache_limit": int(min(self.cache_gib * 2**30, sys.maxsize)),
            "check_ids": self.id_check,
            "restart": self.restart,
        }


def _numbers(option: str, given: list[str] | None) -> int | dict[str, int] | None:
    """N for each group, or a number by name."""
    if not given:
        return None
    numbers: dict[str, int] = {}
    for text in given:
        name, _, number = text.rpartition("=")
        if not number.strip().isdecimal():
            raise InputError(f"{option} is N, or NAME=N, with N a whole number ≥ 0; got {text!r}")
        numbers[name] = int(number)
    if "" in numbers and len(numbers) > 1:
        raise InputError(f"{option} is one N for every group, or NAME=N for some; got both")
    return numbers.get("", numbers)


def _columns(given: list[str] | None) -> tuple[str, ...]:
    names = (name.strip() for text in given or () for name in text.split(","))
    return tuple(name for name in names if name)


def option_values(options: list[str] | None) -> dict[str, Any]:
    """NAME=VALUE pairs; a value is JSON where it can be, else a text."""
    values: dict[str, Any] = {}
    for text in options or ():
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise InputError(f"an option is NAME=VALUE, got {text!r}")
        try:
            values[name] = json.loads(value)
        except (ValueError, RecursionError):
            values[name] = value
    return values


def _engine(kind: Engines, address: str | None, workers: int | None) -> Any:
    if kind is Engines.local:
        if address is not None:
            raise InputError("--address is of a Ray cluster; say --engine ray as well")
        return LocalEngine(workers)
    from askance.integrations.ray_engine import RayEngine

    return RayEngine(address=address, workers=workers)
