"""`askance label`: a local page where a person answers."""

from __future__ import annotations

import os
import secrets
import sys
import time
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from askance.cli import console
from askance.cli.label_options import ItemColumns, LabelTraining, given
from askance.cli.options import grouped
from askance.label import ItemSource, LabelingOptions, LabelingSession, messages, open_session
from askance.label import goal as goals
from askance.label.chosen_encoder import DEFAULT_ENCODER, missing
from askance.label.goal import Goal
from askance.label.identity import DataChanges
from askance.label.project import OtherClassesError, open_project
from askance.label.safety import TokenAuth
from askance.label.server import check_address, check_installed, serving
from askance.label.source import Kind
from askance.label.store import FILE

PORT = 8765


@grouped
def label(
    project: Annotated[
        Path, typer.Argument(help="Folder of the project; created if it does not exist.")
    ],
    data: Annotated[
        Path, typer.Option(help="Data: a folder of images, or a CSV, TSV or Parquet file.")
    ],
    *,
    classes: Annotated[str, typer.Option(help="Class names to create, separated by commas.")] = "",
    add_classes: Annotated[
        bool, typer.Option("--add-classes", help="Add unknown classes to the project.")
    ] = False,
    goal: Annotated[
        str | None, typer.Option(help="When to stop: 500 answers, or 95% accuracy, such as 95%.")
    ] = None,
    columns: ItemColumns,
    training: LabelTraining,
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
    """Label your own images or texts on a local page. A model chooses the next items."""
    if server:
        check_installed()
    secret = secrets.token_urlsafe(24) if token == "auto" else token
    check_address(host, secret)
    if secret is not None:
        TokenAuth(secret)  # refuses a short one before anything is opened
    options = LabelingOptions(**given(training))
    wanted = None if goal is None else Goal.parse(goal)
    names = [name.strip() for name in classes.split(",") if name.strip()]
    source = ItemSource(data, **vars(columns))
    if not server:
        _create(project, source, names, options, add_classes)
        if wanted is not None:
            goals.save(project, wanted)
        return 0
    session = _open(project, source, names, options, add_classes)
    if wanted is not None:
        session.set_goal(wanted)
    try:
        with serving(session, host=host, port=port, token=secret) as address:
            # In one piece: whoever started this reads it from a pipe.
            os.write(1, f"{address}\n".encode())
            _print_encoder(session.items.kind, options, session.options)
            _print_welcome(session, secret if token == "auto" else None)
            if browser and not webbrowser.open(address):
                console.note("No browser could be opened; open the address above yourself.")
            while True:
                time.sleep(3600)
    except KeyboardInterrupt:
        console.note(f"Stopped. Answers are in {project / FILE}; the same command goes on.")
        raise typer.Exit(130) from None
    finally:
        session.close()


def _open(
    project: Path,
    source: ItemSource,
    classes: list[str],
    options: LabelingOptions,
    add_classes: bool,
) -> LabelingSession:
    """The session; somebody at a terminal is asked whether other classes than before are meant."""
    try:
        return open_session(project, source, classes, options, add_classes=add_classes)
    except OtherClassesError as error:
        if not sys.stdin.isatty():
            raise
        console.note(str(error))
        typer.confirm("Add what is new?", abort=True, err=True)
        return open_session(project, source, classes, options, add_classes=True)


def _create(
    project: Path,
    source: ItemSource,
    classes: list[str],
    options: LabelingOptions,
    add_classes: bool,
) -> None:
    made = open_project(project, source, classes, options, add_classes)
    with made.store as store:
        names = [each.name for each in store.annotations().offered()]
        answers = len(store.answers())
        digests = store.items()
    items = made.items
    _print(messages.left_out(items.left_out))
    _print_changes(DataChanges.between(made.before, digests, items.ids, items.names))
    _print_encoder(items.kind, options, made.options)
    console.line(
        f"{project}: {len(items):,} items, {len(names)} classes ({', '.join(names)}), "
        f"{answers:,} answers"
    )


def _print(text: str) -> None:
    if text:
        console.note(text)


def _print_changes(changes: DataChanges) -> None:
    _print(messages.changed(changes))


def _print_encoder(kind: Kind, given: LabelingOptions, used: LabelingOptions) -> None:
    """Say where a better model is to be had, unless somebody chose this one."""
    default = DEFAULT_ENCODER.get(kind)
    if default and not used.encodes and given.encoder is None and given.model is None:
        console.note(messages.without_encoder(kind, default, bool(missing(default))))


def _print_welcome(session: LabelingSession, secret: str | None) -> None:
    _print(messages.left_out(session.items.left_out))
    _print_changes(session.changes)
    if secret is not None:
        console.note(f"Token, for scripts (Authorization: Bearer …): {secret}")
    console.note(f"Answers: {session.folder / FILE}. Stop with Ctrl-C; nothing is lost.")
