"""`askance label`: a local page where a person answers."""

from __future__ import annotations

import os
import secrets
import time
import webbrowser
from pathlib import Path
from typing import Annotated, Any

import typer

from askance.cli import console
from askance.label import ItemSource, LabelingOptions, LabelingSession, messages, open_session
from askance.label.identity import DataChanges
from askance.label.project import opened
from askance.label.safety import Gate
from askance.label.server import check_address, check_installed, serving
from askance.label.store import FILE

DEFAULT = LabelingOptions()
PORT = 8765


def label(
    project: Annotated[
        Path, typer.Argument(help="Folder of the project; created if it does not exist.")
    ],
    data: Annotated[
        Path, typer.Option(help="Data: a folder of images, or a CSV, TSV or Parquet file.")
    ],
    classes: Annotated[str, typer.Option(help="Class names to create, separated by commas.")] = "",
    text: Annotated[str | None, typer.Option(help="Column of texts.")] = None,
    features: Annotated[
        str | None, typer.Option(help="Column of feature vectors (Parquet).")
    ] = None,
    id: Annotated[
        str | None, typer.Option(help="Column of identifiers (default: row numbers).")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="Model: lenet, resnet18, …, or module:function (default: by kind of data)."
        ),
    ] = None,
    strategy: Annotated[str, typer.Option(help="Rule that chooses the items.")] = DEFAULT.strategy,
    first: Annotated[
        str, typer.Option(help="Rule for the first batch: random or kcenter.")
    ] = DEFAULT.first,
    batch: Annotated[
        int, typer.Option(help="New answers for each training.", min=1)
    ] = DEFAULT.batch,
    ahead: Annotated[
        int, typer.Option(help="Number of extra batches picked in advance.", min=0)
    ] = DEFAULT.ahead,
    held_out: Annotated[
        float, typer.Option(help="Share of items held out at random, to measure the model.")
    ] = DEFAULT.held_out,
    repeat: Annotated[
        float, typer.Option(help="Share of items that a second person is asked about too.")
    ] = DEFAULT.repeat,
    epochs: Annotated[int, typer.Option(help="Epochs of each training.", min=1)] = DEFAULT.epochs,
    learning_rate: Annotated[
        float, typer.Option(help="Learning rate of SGD.")
    ] = DEFAULT.learning_rate,
    seed: Annotated[int, typer.Option(help="Random seed.", min=0)] = DEFAULT.seed,
    device: Annotated[
        str | None, typer.Option(help="Device: cpu, cuda, … (CUDA if available).")
    ] = None,
    worker: Annotated[
        str, typer.Option(help="Where to train: beside (in a process of its own) or here.")
    ] = DEFAULT.worker,
    annotator: Annotated[
        str | None, typer.Option(help="Name of the annotator (default: you).")
    ] = None,
    host: Annotated[str, typer.Option(help="Address; only loopback needs no token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 finds a free one.", min=0, max=65535)] = PORT,
    token: Annotated[str | None, typer.Option(help="Access token; auto makes one.")] = None,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
    ] = True,
    server: Annotated[
        bool,
        typer.Option("--server/--no-server", help="Serve the page, or only create the project."),
    ] = True,
) -> int:
    """Label your own images or texts on a local page; a model chooses the next items."""
    if server:
        check_installed()
    secret = secrets.token_urlsafe(24) if token == "auto" else token
    check_address(host, secret)
    if secret is not None:
        Gate(secret)  # refuses a short one before anything is opened
    choices: dict[str, Any] = {"first": first, "worker": worker}
    if annotator is not None:
        choices["annotator"] = annotator
    options = LabelingOptions(
        batch=batch,
        ahead=ahead,
        held_out=held_out,
        repeat=repeat,
        strategy=strategy,
        model=model,
        epochs=epochs,
        learning_rate=learning_rate,
        seed=seed,
        device=device,
        **choices,
    )
    names = [name.strip() for name in classes.split(",") if name.strip()]
    source = ItemSource(data, text, features, id)
    if not server:
        _make(project, source, names, options)
        return 0
    session = open_session(project, source, names, options)
    try:
        with serving(session, host=host, port=port, token=secret) as address:
            # In one piece: whoever started this reads it from a pipe.
            os.write(1, f"{address}\n".encode())
            _welcome(session, secret if token == "auto" else None)
            if browser and not webbrowser.open(address):
                console.note("No browser could be opened; open the address above yourself.")
            while True:
                time.sleep(3600)
    except KeyboardInterrupt:
        console.note(f"Stopped. Answers are in {project / FILE}; the same command goes on.")
        raise typer.Exit(130) from None
    finally:
        session.close()


def _make(project: Path, source: ItemSource, classes: list[str], options: LabelingOptions) -> None:
    made = opened(project, source, classes, options)
    with made.store as store:
        names = [each.name for each in store.classes()]
        answers = len(store.answers())
        digests = store.items()
    items = made.items
    _tell(DataChanges.between(made.before, digests, items.ids, items.names))
    console.line(
        f"{project}: {len(items):,} items, {len(names)} classes ({', '.join(names)}), "
        f"{answers:,} answers"
    )


def _tell(changes: DataChanges) -> None:
    text = messages.changed(changes)
    if text:
        console.note(text)


def _welcome(session: LabelingSession, secret: str | None) -> None:
    _tell(session.changes)
    if secret is not None:
        console.note(f"Token, for scripts (Authorization: Bearer …): {secret}")
    console.note(f"Answers: {session.folder / FILE}. Stop with Ctrl-C; nothing is lost.")
