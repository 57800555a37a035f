"""`askance select`: a pool of any size, a model or an encoder, a rule → the rows to label next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from askance import strategies
from askance._io.atomic import atomic_write
from askance.cli import console
from askance.cli.options import grouped
from askance.cli.picked import identifiers_in, render
from askance.cli.progress import Rate, resumable
from askance.cli.select_options import (
    ConstraintOptions,
    ModelOptions,
    PassOptions,
    PoolOptions,
    option_values,
)
from askance.embedding.factory import import_from
from askance.errors import InputError, LabelError, UnknownError
from askance.pools import open_source, select_from
from askance.pools.joined import JoinedSource
from askance.pools.opening import kind_of
from askance.pools.parquet import Columns, ParquetSource
from askance.pools.resume import forget, resume_path
from askance.pools.source import Source, rows_in
from askance.selection import Selection

_NAMED = 5


@grouped
def select(
    *,
    pool: Annotated[
        str,
        typer.Option(
            help="Pool: a file or folder (Parquet, CSV, tar, images, .npy), or module:function."
        ),
    ],
    n: Annotated[int, typer.Option("--n", help="Number of rows to pick.", min=1)],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="File to write: .jsonl, .csv or .parquet.")
    ],
    labeled: Annotated[
        str | None, typer.Option(help="Labelled set, in any form of a pool.")
    ] = None,
    items: PoolOptions,
    network: ModelOptions,
    strategy: Annotated[
        str | None,
        typer.Option(
            help="Rule that picks (`askance list strategies`; default: one that reads once)."
        ),
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Option of the rule. Repeatable.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed.", min=0)] = 0,
    exclude: Annotated[
        Path | None,
        typer.Option(
            help="Identifiers to leave out: a file with one a line, a table with the column --id or "
            "`id`, or an earlier file of picks."
        ),
    ] = None,
    constraints: ConstraintOptions,
    options: PassOptions,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the file of picks if it exists.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> int:
    """Pick the rows of a pool to label next. The same command continues a stopped pass."""
    kind = out.suffix.removeprefix(".")
    render([], kind)  # refuse an unknown ending before the pass, not after it
    if out.exists() and not overwrite:
        raise InputError(f"{out} exists; name another file, or replace it with --overwrite")
    import_from(Path.cwd())  # a network or a dataset of one's own may lie there
    model = network.source
    source = open_source(pool, items.naming)
    if not options.id_check and not source.unique_ids:
        raise InputError(
            "--no-id-check is for identifiers that differ by construction (file:row, paths of images); "
            "these may occur twice"
        )
    seen = None if labeled is None else _labeled_source(labeled, items, source)
    total = rows_in(source.shards)
    left_out = [] if exclude is None else identifiers_in(exclude, items.id)
    if option and strategy is None:
        raise InputError("--option is an option of a rule: name the rule with --strategy")
    rule = None if strategy is None else strategies.get(strategy, **option_values(option))
    bar = None if json else Rate(f"select · {strategy or 'default'}", total, network.encoder)
    with resumable(bar, str(resume_path(out))), _forgotten_if_refused(resume_path(out)):
        picks = select_from(
            source,
            n,
            labeled=seen,
            model=model,
            strategy=rule,
            head=network.head,
            seed=seed,
            exclude=left_out,
            classes=network.names,
            constraints=constraints.given,
            resume=resume_path(out),
            watch=None if bar is None else bar.shard,
            encoding=None if bar is None else bar.encoding,
            **options.arguments(),
        )
    atomic_write(out, render(picks.rows(), kind))
    forget(resume_path(out))
    joined = seen.ids if isinstance(seen, JoinedSource) else []
    lost = len({*left_out, *joined}) - picks.read.excluded
    if left_out and lost > 0:
        picks = replace(picks, notes=(*picks.notes, _not_there(left_out, lost, exclude, picks)))
    _show(picks, out, json)
    return 0


@contextmanager
def _forgotten_if_refused(resume: Path) -> Iterator[None]:
    """What a question leaves that is refused goes, so that it does not stand in the next one's way.

    A pass that was there before stays: it may be of another question, and hours of work.
    """
    was_there = resume.exists()
    try:
        yield
    except (InputError, LabelError, UnknownError):
        if not was_there:
            forget(resume)
        raise


def _labeled_source(address: str, items: PoolOptions, pool: Source) -> Source:
    """The labelled set, with the pool's column of identifiers where it has that too.

    A table of identifiers and labels alone is joined to the pool.
    """
    if items.id is not None and kind_of(address) == "parquet":
        named = open_source(address, replace(items.labelled, id=items.id), labeled=True)
        if not any(shard.fault for shard in named.shards):
            return named
        alone = ParquetSource.open(address, Columns(id=items.id, label=items.label), labeled=True)
        if not any(shard.fault for shard in alone.shards):
            return JoinedSource.of(alone, pool)
    source = open_source(address, items.labelled, labeled=True)
    faults = [shard.fault for shard in source.shards if shard.fault]
    if faults and items.id is None and "no column" in faults[0]:
        raise InputError(
            f"{faults[0]}. A table of identifiers and labels is joined to the pool if --id names its "
            f"column of identifiers, which the pool must have as well"
        )
    return source


def _not_there(left_out: list[str], lost: int, exclude: Path | None, picks: Selection) -> str:
    """That identifiers to leave out are not in the pool."""
    like = f", the pool's are like {picks.ids[0]!r}" if picks.ids else ""
    count = len(set(left_out))
    return (
        f"{lost:,} of {count:,} identifiers in {exclude} are not in the pool (they are like "
        f"{left_out[0]!r}{like})"
    )


def _show(picks: Selection, out: Path, as_json: bool) -> None:
    whole = [skip for skip in picks.read.skipped if skip.shard]
    lost = sum(skip.rows or 0 for skip in picks.read.skipped)
    summary = {
        "strategy": picks.strategy.name,
        "chosen": picks.chosen,
        "picked": len(picks),
        "rows": picks.read.rows,
        "excluded": picks.read.excluded,
        "skipped_rows": lost,
        "skipped_shards": len(whole),
        "skipped": [skip.what for skip in picks.read.skipped],
        "how": picks.how,
        "notes": list(picks.notes),
        "already_labeled": len(picks.already_labeled),
        "engine": picks.engine,
        "seconds": round(picks.seconds, 3),
        "out": str(out),
    }
    if as_json:
        console.as_json(summary)
        return
    rate = picks.read.rows / max(picks.seconds, 1e-9)
    chosen = f" ({picks.chosen})" if picks.chosen else ""
    console.line(
        f"{picks.strategy.name}{chosen}: {len(picks):,} picked of {picks.read.rows:,} rows in "
        f"{picks.seconds:.1f} s ({rate:,.0f} rows/s), engine {picks.engine}"
    )
    if picks.how:
        console.line(f"Picked {picks.how}.")
    for note in picks.notes:
        console.line(f"Note: {note}.")
    if picks.read.excluded:
        console.line(f"Excluded: {picks.read.excluded:,} rows.")
    if picks.read.skipped:
        console.line(f"Skipped: {lost:,} rows, {len(whole):,} whole shards among them:")
        for skip in picks.read.skipped[:_NAMED]:
            console.line(f"  {skip.what}")
        if len(picks.read.skipped) > _NAMED:
            console.line(f"  … and {len(picks.read.skipped) - _NAMED:,} more")
    console.line(f"Picks: {out}")
