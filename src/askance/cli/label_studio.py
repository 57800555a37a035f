"""`askance label-studio push|pull|sync`: people answer in Label Studio."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from askance.cli import console
from askance.cli.ingest import IN_PART
from askance.errors import AskanceError, InputError

app = typer.Typer(help="Ask in Label Studio, and take the answers back.", no_args_is_help=True)

_REFUSED = 10  # of what is refused, how many are named

Project = Annotated[Path, typer.Argument(help="The folder of a labelling project (askance label).")]
Url = Annotated[
    str | None,
    typer.Option(envvar="LABEL_STUDIO_URL", help="The server, like http://127.0.0.1:8080."),
]
Token = Annotated[
    str | None,
    typer.Option(
        envvar="LABEL_STUDIO_API_KEY",
        show_envvar=True,
        help="API key, from Account & Settings; in the environment others cannot see it.",
    ),
]
To = Annotated[
    str | None,
    typer.Option(
        "--project", help="Its id or title there; that of the last time, or askance FOLDER."
    ),
]
N = Annotated[int, typer.Option(help="Tasks that shall wait for an answer.", min=1)]
Data = Annotated[Path | None, typer.Option(help="Where the data is, if no longer where it was.")]
Text = Annotated[str | None, typer.Option(help="The column of texts.")]
Features = Annotated[str | None, typer.Option(help="The column of feature vectors (Parquet).")]
Id = Annotated[str | None, typer.Option(help="The column that names items.")]
Model = Annotated[str | None, typer.Option(help="lenet, resnet18, …, or module:function.")]
Strategy = Annotated[str | None, typer.Option(help="The rule that asks.")]
Batch = Annotated[int | None, typer.Option(help="Answers between trainings.", min=1)]
Repeat = Annotated[
    float | None, typer.Option(help="The share of items a second person is asked about too.")
]
Epochs = Annotated[int | None, typer.Option(help="Epochs of each training.", min=1)]
LearningRate = Annotated[float | None, typer.Option(help="Learning rate of SGD.")]
Device = Annotated[str | None, typer.Option(help="Device: cpu, cuda, …; CUDA where there is one.")]


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
    """Send what the model wants to know as tasks, best first, with its guesses.

    What is said of data and training is remembered for the next time.
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
    """Keep what people answered; pulling again changes nothing.

    Exit code 4 says that some annotations were refused; the others are kept.
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
        int | None, typer.Option(help="Do it again every so many seconds, until Ctrl-C.", min=1)
    ] = None,
) -> int:
    """Pull, train a model where enough answers have come, and push until n tasks wait.

    Data and training are as the last push had them; a network of your own is named again.
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
