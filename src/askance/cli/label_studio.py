"""`askance label-studio push|pull|sync`: people answer in Label Studio."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from askance.cli import console
from askance.cli.ingest import IN_PART
from askance.errors import AskanceError, InputError

app = typer.Typer(
    help="Send questions to Label Studio, and fetch the answers.", no_args_is_help=True
)

_REFUSED = 10  # of what is refused, how many are named

Project = Annotated[Path, typer.Argument(help="Folder of the labelling project.")]
Url = Annotated[
    str | None,
    typer.Option(envvar="LABEL_STUDIO_URL", help="Server, such as http://127.0.0.1:8080."),
]
Token = Annotated[
    str | None,
    typer.Option(
        envvar="LABEL_STUDIO_API_KEY",
        show_envvar=True,
        help="API key, from Account & Settings. Other users cannot see it in the environment.",
    ),
]
To = Annotated[
    str | None,
    typer.Option("--project", help="Its id or title in Label Studio (default: as the last time)."),
]
N = Annotated[int, typer.Option(help="Number of tasks that wait for an answer.", min=1)]
Data = Annotated[Path | None, typer.Option(help="Data to label (default: as the last time).")]
Text = Annotated[str | None, typer.Option(help="Column of texts.")]
Features = Annotated[str | None, typer.Option(help="Column of feature vectors (Parquet).")]
Id = Annotated[str | None, typer.Option(help="Column of identifiers.")]
Model = Annotated[str | None, typer.Option(help="Model: lenet, resnet18, …, or module:function.")]
Strategy = Annotated[str | None, typer.Option(help="Rule that chooses the items.")]
Batch = Annotated[int | None, typer.Option(help="New answers for each training.", min=1)]
Repeat = Annotated[
    float | None, typer.Option(help="Share of items that a second person is asked about too.")
]
Epochs = Annotated[int | None, typer.Option(help="Epochs of each training.", min=1)]
LearningRate = Annotated[float | None, typer.Option(help="Learning rate of SGD.")]
Device = Annotated[str | None, typer.Option(help="Device: cpu, cuda, … (CUDA if available).")]


@app.command()
def push(
    project: Project,
    url: Url = None,
    token: Token = None,
    to: To = None,
    n: N = 50,
    data: Data = None,
    text: Text = None,
    features: Features = None,
    id: Id = None,
    model: Model = None,
    strategy: Strategy = None,
    batch: Batch = None,
    repeat: Repeat = None,
    epochs: Epochs = None,
    learning_rate: LearningRate = None,
    device: Device = None,
) -> None:
    """Send the next questions as tasks, best first, with the model's guesses.

    Options for data and training are stored, so you give them once.
    """
    from askance.integrations import label_studio

    source = {"path": data, "text": text, "features": features, "id": id}
    options = {
        "model": model,
        "strategy": strategy,
        "batch": batch,
        "repeat": repeat,
        "epochs": epochs,
        "learning_rate": learning_rate,
        "device": device,
    }
    settings = label_studio.Settings(_given(source), _given(options))
    with _studio(url, token) as studio:
        _tell_push(label_studio.push(project, studio, n, to, settings))


@app.command()
def pull(project: Project, url: Url = None, token: Token = None, to: To = None) -> int:
    """Store the answers that people gave; pulling again changes nothing.

    Exit code 4: some annotations were refused, the others are stored.
    """
    from askance.integrations import label_studio

    with _studio(url, token) as studio:
        pulled = label_studio.pull(project, studio, to)
    _tell_pull(pulled)
    return IN_PART if pulled.answers.refused else 0


@app.command()
def sync(
    project: Project,
    url: Url = None,
    token: Token = None,
    to: To = None,
    n: N = 50,
    model: Model = None,
    watch: Annotated[
        int | None, typer.Option(help="Repeat every so many seconds, until Ctrl-C.", min=1)
    ] = None,
) -> int:
    """Pull the answers, train a model if there are enough new ones, and push new tasks.

    Data and training are those of the last push; only a network of your own is named again.
    """
    from askance.integrations import label_studio

    settings = label_studio.Settings(options=_given({"model": model}))

    def once() -> int:
        with _studio(url, token) as studio:
            pulled, pushed = label_studio.sync(project, studio, n, to, settings)
        if pulled is not None:
            _tell_pull(pulled)
        _tell_push(pushed)
        return IN_PART if pulled is not None and pulled.answers.refused else 0

    code = once()
    while watch is not None:
        time.sleep(watch)
        try:
            once()
        except AskanceError as error:  # a server that is gone for a while may come back
            console.problem(str(error))
    return code


def _studio(url: str | None, token: str | None) -> Any:
    from askance.integrations.label_studio_server import Studio

    if not url:
        raise InputError("no Label Studio is named; give --url or set LABEL_STUDIO_URL")
    if not token:
        raise InputError("no token is given; give --token or set LABEL_STUDIO_API_KEY")
    return Studio(url, token)


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _tell_pull(pulled: Any) -> None:
    done = pulled.answers
    console.line(
        f"pulled: {len(done.applied)} new answers, {len(done.unchanged)} known, "
        f"{len(done.refused)} refused"
    )
    if pulled.withdrawn:
        console.note(f"{pulled.withdrawn} of them were deleted there and count as skips now.")
    if pulled.foreign:
        console.note(f"{pulled.foreign} tasks of {pulled.url} are not this project's; left alone.")
    _tell_refused(done.refused)


def _tell_push(pushed: Any) -> None:
    model = f"model {pushed.version}" if pushed.version else "no model yet"
    console.line(
        f"pushed: {len(pushed.items)} tasks, {pushed.waiting} wait ({model}): {pushed.url}"
    )
    if pushed.guesses:
        console.note(f"{pushed.guesses} waiting tasks have the newest model's guess now.")
    if pushed.finished:
        console.note("There is nothing left to ask.")
    _tell_refused(pushed.unreadable)


def _tell_refused(refused: Any) -> None:
    for where, item, why in refused[:_REFUSED]:
        console.note(f"{f'{where}, ' if where else ''}item {item!r}: {why}")
    if len(refused) > _REFUSED:
        console.note(f"… and {len(refused) - _REFUSED} more")
