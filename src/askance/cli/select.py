"""`askance select`: a pool of any size, a model, a rule → the rows to label next."""

from __future__ import annotations

import json as jsonlib
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from askance import strategies
from askance._io.atomic import atomic_write
from askance.cli import console
from askance.cli.picked import render
from askance.cli.progress import Rate, resumable
from askance.errors import InputError
from askance.pools import LocalEngine, ModelRecipe, Naming, PoolSelection, open_source, select_from
from askance.pools.plan import CACHE_LIMIT
from askance.pools.resume import ledger_path
from askance.pools.source import rows_in

_NAMED = 5


class Engines(StrEnum):
    local = "local"
    ray = "ray"


class OnErrors(StrEnum):
    stop = "raise"
    skip = "skip"


def select(
    pool: Annotated[
        str, typer.Option(help="A Parquet, tar, image or .npy file or folder, or module:function.")
    ],
    n: Annotated[int, typer.Option("--n", help="How many rows to pick.", min=1)],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The file of picks: .jsonl, .csv or .parquet.")
    ],
    labeled: Annotated[
        str | None, typer.Option(help="The labelled set, in any form the pool may have.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="module:function that returns the network; left out for stored embeddings."
        ),
    ] = None,
    weights: Annotated[
        str | None, typer.Option(help="Its state dict: .safetensors, or .pt holding tensors alone.")
    ] = None,
    model_option: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Given to the function by name.")
    ] = None,
    strategy: Annotated[
        str, typer.Option(help="The rule; see `askance list strategies`.")
    ] = "grad",
    option: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="An option of the rule.")
    ] = None,
    features: Annotated[
        list[str] | None,
        typer.Option(help="Column of features; several with commas between, or one by one."),
    ] = None,
    logits: Annotated[
        list[str] | None,
        typer.Option(help="Column of logits; several with commas between, or one by one."),
    ] = None,
    image: Annotated[str | None, typer.Option(help="Column (or ending) of image files.")] = None,
    text: Annotated[str | None, typer.Option(help="Column (or ending) of texts.")] = None,
    id: Annotated[
        str | None, typer.Option(help="Column of identifiers; file:row when left out.")
    ] = None,
    label: Annotated[str | None, typer.Option(help="Column (or ending) of labels.")] = None,
    pairs: Annotated[
        bool, typer.Option("--pairs", help="A dataset's items begin with their identifier.")
    ] = False,
    transform: Annotated[
        str | None,
        typer.Option(help="module:function from an image's bytes or a text to a tensor."),
    ] = None,
    image_size: Annotated[int, typer.Option(help="Pixels a side of a decoded image.", min=1)] = 32,
    head: Annotated[
        str | None, typer.Option(help="The last linear layer's name; found when left out.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Names every random draw.", min=0)] = 0,
    batch_size: Annotated[
        int | None, typer.Option(help="Rows of a forward pass or a block.", min=1)
    ] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, …")] = None,
    exclude: Annotated[
        Path | None, typer.Option(help="A file of identifiers not to be picked, one a line.")
    ] = None,
    on_error: Annotated[
        OnErrors, typer.Option(help="Stop at what cannot be read, or skip and count it.")
    ] = OnErrors.stop,
    engine: Annotated[Engines, typer.Option(help="Who works on the shards.")] = Engines.local,
    address: Annotated[str | None, typer.Option(help="Of the Ray cluster.")] = None,
    workers: Annotated[
        int | None, typer.Option(help="Shards at a time; one a core when left out.", min=1)
    ] = None,
    shortlist: Annotated[
        int | None,
        typer.Option(
            help="A batch rule picks from this many rows, the rows of largest gradient.", min=1
        ),
    ] = None,
    cache_gib: Annotated[
        float, typer.Option(help="The most disk a batch rule's cache of the pool may take.", min=0)
    ] = CACHE_LIMIT / 2**30,
    id_check: Annotated[
        bool, typer.Option("--id-check/--no-id-check", help="Compare all identifiers of the pool.")
    ] = True,
    restart: Annotated[
        bool, typer.Option("--restart", help="Begin anew, whatever a stopped pass left.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="The summary as one JSON object.")] = False,
) -> int:
    """Pick the rows of a pool to label next. A stopped pass goes on by the same command."""
    kind = out.suffix.removeprefix(".")
    render([], kind)  # refuse an unknown ending before the pass, not after it
    columns = _columns(features), _columns(logits), image, text, id
    naming = Naming(*columns, None, transform, image_size, pairs)
    source = open_source(pool, naming)
    if not id_check and not source.unique_ids:
        raise InputError(
            "--no-id-check is for identifiers that differ by construction (file:row, paths of images); "
            "these may occur twice"
        )
    seen = None if labeled is None else open_source(labeled, _labelled(naming, label), labeled=True)
    total = rows_in(source.shards)
    rule = strategies.get(strategy, **_values(option))
    bar = None if json else Rate(f"select · {rule.name}", total)
    with resumable(bar, str(ledger_path(out))):
        picks = select_from(
            source,
            n,
            labeled=seen,
            model=_recipe(model, weights, model_option),
            strategy=rule,
            head=head,
            seed=seed,
            exclude=_lines(exclude),
            batch_size=batch_size,
            device=device,
            engine=_engine(engine, address, workers),
            on_error="skip" if on_error is OnErrors.skip else "raise",
            shortlist=shortlist,
            cache_limit=int(cache_gib * 2**30),
            check_ids=id_check,
            resume=ledger_path(out),
            restart=restart,
            watch=None if bar is None else bar.shard,
        )
    atomic_write(out, render(picks.rows(), kind))
    picks.finished()
    _show(picks, out, json)
    return 0


def _columns(given: list[str] | None) -> tuple[str, ...]:
    names = (name.strip() for text in given or () for name in text.split(","))
    return tuple(name for name in names if name)


def _labelled(naming: Naming, label: str | None) -> Naming:
    return replace(naming, label=label, id=None)


def _values(options: list[str] | None) -> dict[str, Any]:
    """NAME=VALUE pairs; a value is JSON where it can be, else a text."""
    found: dict[str, Any] = {}
    for text in options or ():
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise InputError(f"an option is NAME=VALUE, got {text!r}")
        try:
            found[name] = jsonlib.loads(value)
        except ValueError:
            found[name] = value
    return found


def _recipe(
    model: str | None, weights: str | None, options: list[str] | None
) -> ModelRecipe | None:
    if model is None:
        if weights is not None or options:
            raise InputError("weights and model options belong to a model; name it with --model")
        return None
    return ModelRecipe(model, weights, tuple(_values(options).items()))


def _lines(path: Path | None) -> list[str]:
    if path is None:
        return []
    try:
        return [line for line in path.read_text(encoding="utf-8").splitlines() if line]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error})") from error


def _engine(kind: Engines, address: str | None, workers: int | None) -> Any:
    if kind is Engines.local:
        if address is not None:
            raise InputError("--address is of a Ray cluster; say --engine ray as well")
        return LocalEngine(workers)
    from askance.connect.ray_engine import RayEngine

    return RayEngine(address=address, workers=workers)


def _show(picks: PoolSelection, out: Path, as_json: bool) -> None:
    whole = [skip for skip in picks.skipped if skip.shard]
    lost = sum(skip.rows or 0 for skip in picks.skipped)
    summary = {
        "strategy": picks.strategy.name,
        "picked": len(picks),
        "rows": picks.leaders.rows,
        "excluded": picks.leaders.excluded,
        "skipped_rows": lost,
        "skipped_shards": len(whole),
        "skipped": [skip.what for skip in picks.skipped],
        "how": picks.how,
        "engine": picks.engine,
        "seconds": round(picks.seconds, 3),
        "out": str(out),
    }
    if as_json:
        console.as_json(summary)
        return
    rate = picks.leaders.rows / max(picks.seconds, 1e-9)
    console.line(
        f"{picks.strategy.name}: {len(picks):,} picked of {picks.leaders.rows:,} rows in "
        f"{picks.seconds:.1f} s ({rate:,.0f} rows/s), engine {picks.engine}"
    )
    if picks.how:
        console.line(f"Picked {picks.how}.")
    if picks.leaders.excluded:
        console.line(f"Excluded: {picks.leaders.excluded:,} rows.")
    if picks.skipped:
        console.line(f"Skipped: {lost:,} rows, {len(whole):,} whole shards among them:")
        for skip in picks.skipped[:_NAMED]:
            console.line(f"  {skip.what}")
        if len(picks.skipped) > _NAMED:
            console.line(f"  … and {len(picks.skipped) - _NAMED:,} more")
    console.line(f"Picks: {out}")
