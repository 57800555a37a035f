"""Options of the labelling commands, in groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from askance.cli.run import Device
from askance.errors import InputError
from askance.label import LabelingOptions

DEFAULT = LabelingOptions()

Model = Annotated[str | None, typer.Option(help="Model: lenet, resnet18, …, or module:function.")]
Encoder = Annotated[
    str | None,
    typer.Option(
        help="Pretrained encoder: minilm, efficientnet-lite0, hf:…, onnx:…, module:function, or none "
        "(default: the project's own)."
    ),
]
Strategy = Annotated[str | None, typer.Option(help="Rule that chooses the items.")]
Batch = Annotated[int | None, typer.Option(help="Number of answers per training.", min=1)]
Repeat = Annotated[
    float | None, typer.Option(help="Share of items that a second person is asked about too.")
]
Epochs = Annotated[int | None, typer.Option(help="Epochs of each training.", min=1)]
LearningRate = Annotated[float | None, typer.Option(help="Learning rate of SGD.")]


@dataclass(frozen=True)
class ItemColumns:
    """Where the items are in a table."""

    text: Annotated[str | None, typer.Option(help="Column of texts.")] = None
    features: Annotated[str | None, typer.Option(help="Column of feature vectors (Parquet).")] = (
        None
    )
    id: Annotated[
        str | None, typer.Option(help="Column of identifiers (default: row numbers).")
    ] = None


@dataclass(frozen=True)
class LabelTraining:
    """`LabelingOptions` as options of `askance label`."""

    model: Annotated[
        str | None,
        typer.Option(
            help="Model: lenet, resnet18, …, or module:function, which use no encoder; or linear "
            "(default: by kind of data)."
        ),
    ] = None
    encoder: Encoder = None
    strategy: Strategy = DEFAULT.strategy
    first: Annotated[
        str | None,
        typer.Option(
            help="Rule for the first batch: random, kcenter or maxherding (default: maxherding with "
            "an encoder)."
        ),
    ] = DEFAULT.first
    batch: Batch = DEFAULT.batch
    pause: Annotated[
        float,
        typer.Option(
            help="Seconds without an answer after which the last few are trained on; 0: never.",
            min=0,
        ),
    ] = DEFAULT.pause
    ahead: Annotated[
        int, typer.Option(help="Number of extra batches picked in advance.", min=0)
    ] = DEFAULT.ahead
    held_out: Annotated[
        float, typer.Option(help="Share of items held out at random, to measure the model.")
    ] = DEFAULT.held_out
    repeat: Repeat = DEFAULT.repeat
    epochs: Epochs = DEFAULT.epochs
    learning_rate: LearningRate = DEFAULT.learning_rate
    seed: Annotated[int, typer.Option(help="Random seed.", min=0)] = DEFAULT.seed
    device: Device = None
    worker: Annotated[
        str, typer.Option(help="Where to train: beside (in a process of its own) or here.")
    ] = DEFAULT.worker
    annotator: Annotated[str | None, typer.Option(help="Name of the annotator (default: you).")] = (
        None
    )


@dataclass(frozen=True)
class PushTraining:
    """What `push` changes in the settings of the last time."""

    encoder: Encoder = None
    model: Model = None
    strategy: Strategy = None
    batch: Batch = None
    repeat: Repeat = None
    epochs: Epochs = None
    learning_rate: LearningRate = None
    device: Device = None


@dataclass(frozen=True)
class StudioOptions:
    """Which server, and which project there."""

    url: Annotated[
        str | None,
        typer.Option(envvar="LABEL_STUDIO_URL", help="Server, such as http://127.0.0.1:8080."),
    ] = None
    token: Annotated[
        str | None,
        typer.Option(
            envvar="LABEL_STUDIO_API_KEY",
            show_envvar=True,
            help="API key, from Account & Settings. Other users cannot see it in the environment.",
        ),
    ] = None
    to: Annotated[
        str | None,
        typer.Option("--project", help="Project in Label Studio: id or title (default: the last)."),
    ] = None

    def connected(self) -> Any:
        """The server, which has accepted the token; to be used in a `with`."""
        from askance.integrations.label_studio_server import Studio

        if not self.url:
            raise InputError("no Label Studio is named; give --url or set LABEL_STUDIO_URL")
        if not self.token:
            raise InputError("no token is given; give --token or set LABEL_STUDIO_API_KEY")
        return Studio(self.url, self.token)


def given(options: object) -> dict[str, Any]:
    """The options of a group that have a value."""
    return {name: value for name, value in vars(options).items() if value is not None}
