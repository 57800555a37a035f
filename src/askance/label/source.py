"""What there is to label, and how: the settings of a project."""

from __future__ import annotations

import getpass
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from askance import strategies
from askance._checks import check_whole
from askance.encoders import check_name
from askance.errors import InputError, UnknownError
from askance.strategies.base import check_one_model

Kind = Literal["image", "text", "features"]

# Where no encoder is used. A column of features may hold any numbers, so a network reads it, which
# learns what is not linear too; on an encoder's features it did as well as the regression.
DEFAULT_MODEL: dict[Kind, str] = {"image": "lenet", "text": "mlp", "features": "mlp"}
LINEAR = "linear"  # the regression of `askance.encoders.linear`
NO_ENCODER = "none"


@dataclass(frozen=True)
class ItemSource:
    """Where the items are.

    Args:
        path: a folder of images, or a CSV, TSV or Parquet file.
        text: the column of texts.
        features: the column of feature vectors (Parquet); such items need no text.
        id: the column that names items; row numbers where there is none.
    """

    path: Path
    text: str | None = None
    features: str | None = None
    id: str | None = None


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may have no name for its user
        return "me"


@dataclass(frozen=True)
class LabelingOptions:
    """How to ask and to train.

    Args:
        batch: answers between two trainings.
        pause: seconds without an answer after which the last ones are trained on, fewer than a batch
            though they may be; 0 for never.
        ahead: batches picked beyond the next one, to answer while a model is trained.
        held_out: the share of items drawn at random to measure with, never trained on.
        repeat: the share of items a second annotator is asked about too.
        strategy: the rule that asks; when left out, the default of `askance.select` for a model with
            features, see `askance.strategies.default`.
        encoder: a pretrained encoder, see `askance.encoders.get`, or "none". When None the project's
            own; a new project has the default of its kind of items where that is installed.
        model: a network of askance's or "module:function", which use no encoder; or "linear". When
            None "linear" with an encoder, else a network by the kind of items.
        first: the first batch: "random", "kcenter" on the raw inputs, or "maxherding", which covers the
            items, on their features. When None "maxherding" with an encoder, and random items are asked
            until its features are there; else "random".
        epochs: passes over the answers at each training.
        learning_rate: of SGD.
        seed: names every draw.
        worker: train "beside", in another process, or "here", in a thread of this one.
        patience: seconds without a sign after which the process that trains is ended and begun again.
        device: where to train; CUDA where there is one when None.
        annotator: the name the page begins with.
        kept_for: seconds a question is kept for a person who does nothing; then others get it too.
    """

    batch: int = 20
    pause: float = 10.0
    ahead: int = 2
    held_out: float = 0.1
    repeat: float = 0.05
    strategy: str = field(default_factory=lambda: strategies.default().name)
    encoder: str | None = None
    model: str | None = None
    first: Literal["random", "kcenter", "maxherding"] | None = None
    epochs: int = 50
    learning_rate: float = 0.01
    seed: int = 0
    worker: Literal["beside", "here"] = "beside"
    patience: float = 600.0
    device: str | None = None
    annotator: str = field(default_factory=_user)
    kept_for: float = 900.0

    def __post_init__(self) -> None:
        for name, least in (("batch", 1), ("ahead", 0), ("epochs", 1), ("seed", 0)):
            check_whole(name, getattr(self, name), least)
        if not 0 <= self.held_out < 1:
            raise InputError(f"held-out must be a share from 0 up to 1, got {self.held_out!r}")
        if not 0 <= self.repeat <= 1:
            raise InputError(f"repeat must be a share from 0 to 1, got {self.repeat!r}")
        if not self.kept_for >= 0:
            raise InputError(f"kept-for must be 0 seconds or more, got {self.kept_for!r}")
        if not 0 <= self.pause < float("inf"):
            raise InputError(
                f"pause must be a number of seconds, or 0 for never, got {self.pause!r}"
            )
        if not 0 < self.patience < float("inf"):
            raise InputError(f"patience must be a number of seconds above 0, got {self.patience!r}")
        if not self.learning_rate > 0:
            raise InputError(f"learning-rate must be above 0, got {self.learning_rate!r}")
        firsts = (None, "random", "kcenter", "maxherding")
        for name, allowed in (("first", firsts), ("worker", ("beside", "here"))):
            if getattr(self, name) not in allowed:
                raise UnknownError.of(name, getattr(self, name), filter(None, allowed))
        check_one_model(strategies.get(self.strategy))
        if self.encoder is not None and self.encoder != NO_ENCODER:
            check_name(self.encoder)
            if self.model not in (None, LINEAR):
                raise InputError(
                    f"the model on an encoder's features is {LINEAR!r}, got {self.model!r}; leave out "
                    f"--model, or name --encoder none"
                )

    @property
    def encodes(self) -> bool:
        """Whether items go through a pretrained encoder."""
        return self.encoder not in (None, NO_ENCODER)

    @property
    def covers_when_ready(self) -> bool:
        """Whether random items are asked until features are there, and then items that cover them."""
        return self.first is None and self.encodes

    def model_for(self, kind: Kind) -> str:
        """The model that is trained on items of this kind."""
        return self.model or (LINEAR if self.encodes else DEFAULT_MODEL[kind])

    def described_model(self, kind: Kind) -> str:
        """The model and, where there is one, the encoder under it."""
        return f"{LINEAR} on {self.encoder}" if self.encodes else self.model_for(kind)
