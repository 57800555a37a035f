"""`askance label-studio push|pull|sync`: people answer in Label Studio."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from askance.cli import console
from askance.cli.ingest import IN_PART
from askance.cli.label_options import (
    Encoder,
    ItemColumns,
    Model,
    PushTraining,
    StudioOptions,
    given,
)
from askance.cli.options import grouped
from askance.errors import AskanceError

app = typer.Typer(
    help="Send questions to Label Studio, and fetch the answers.", no_args_is_help=True
)

_REFUSED = 10  # of what is refused, how many are named

Project = Annotated[Path, typer.Argument(help="Folder of the labelling project.")]
N = Annotated[int, typer.Option(help="Number of tasks that wait for an answer.", min=1)]
Data = Annotated[Path | None, typer.Option(help="Data to label (default: as the last time).")]


@app.command("push")
@grouped
def push(
    project: Project,
    server: StudioOptions,
    *,
    n: N = 50,
    data: Data = None,
    columns: ItemColumns,
    training: PushTraining,
) -> int:
    """Send the next questions as tasks, best first, with the model's guesses.

    Options for data and training are stored, so you give them once.
    """
    from askance.integrations import label_studio, label_studio_settings

    source = given(columns) | ({} if data is None else {"path": data})
    settings = label_studio_settings.Settings(source, given(training))
    with server.connected() as studio:
        _print_push(label_studio.push(project, studio, n, server.to, settings))
    return 0


@app.command("pull")
@grouped
def pull(project: Project, server: StudioOptions) -> int:
    """Store the answers that people gave; pulling again changes nothing.

    Exit code 4: some annotations were refused, the others are stored.
    """
    from askance.integrations import label_studio

    with server.connected() as studio:
        pulled = label_studio.pull(project, studio, server.to)
    _print_pull(pulled)
    return IN_PART if pulled.answers.refused else 0


@app.command("sync")
@grouped
def sync(
    project: Project,
    server: StudioOptions,
    n: N = 50,
    encoder: Encoder = None,
    model: Model = None,
    watch: Annotated[
        int | None, typer.Option(help="Repeat every so many seconds, until Ctrl-C.", min=1)
    ] = None,
) -> int:
    """Pull the answers, train a model if there are enough new ones, and push new tasks.

    Data and training are those of the last push; only a model or encoder of your own is named again.
    """
    from askance.integrations import label_studio, label_studio_settings

    named = {"encoder": encoder, "model": model}
    settings = label_studio_settings.Settings(
        options={name: value for name, value in named.items() if value is not None}
    )

    def once() -> int:
        with server.connected() as studio:
            pulled, pushed = label_studio.sync(project, studio, n, server.to, settings)
        if pulled is not None:
            _print_pull(pulled)
        _print_push(pushed)
        return IN_PART if pulled is not None and pulled.answers.refused else 0

    code = once()
    while watch is not None:
        time.sleep(watch)
        try:
            once()
        except AskanceError as error:  # a server that is gone for a while may come back
            console.problem(str(error))
    return code


def _print_pull(pulled: Any) -> None:
    done = pulled.answers
    console.line(
        f"pulled: {len(done.applied)} new answers, {len(done.unchanged)} known, "
        f"{len(done.refused)} refused"
    )
    if pulled.withdrawn:
        console.note(f"{pulled.withdrawn} of them were deleted there and count as skips now.")
    if pulled.foreign:
        console.note(f"{pulled.foreign} tasks of {pulled.url} are not this project's; left alone.")
    _print_refused(done.refused)


def _print_push(pushed: Any) -> None:
    model = f"model {pushed.version}" if pushed.version else "no model yet"
    console.line(
        f"pushed: {len(pushed.items)} tasks, {pushed.waiting} wait ({model}): {pushed.url}"
    )
    if pushed.guesses:
        console.note(f"{pushed.guesses} waiting tasks have the newest model's guess now.")
    if pushed.finished:
        console.note("There is nothing left to ask.")
    _print_refused(pushed.unreadable)


def _print_refused(refused: Any) -> None:
    for where, item, why in refused[:_REFUSED]:
        console.note(f"{f'{where}, ' if where else ''}item {item!r}: {why}")
    if len(refused) > _REFUSED:
        console.note(f"… and {len(refused) - _REFUSED} more")
