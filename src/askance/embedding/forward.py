"""One evaluation pass of any model over any data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.func import functional_call

from askance._checks import check_whole
from askance.embedding import sources
from askance.embedding.answer import LogitsReader, logits_reader
from askance.embedding.checks import LogitsCheck, check_finite
from askance.embedding.device import scoring_device, usable
from askance.embedding.guard import evaluating, preserved_rng
from askance.embedding.head import HeadRecorder, recording, resolve_head
from askance.embedding.record import Embedding, concatenated
from askance.embedding.wrappers import has_compiled_layer, name_within, unwrapped
from askance.errors import HeadError, InputError, LabelError

_PROBED = 2  # rows of the pass that looks for the head

T = TypeVar("T")


class _OfTheModel(Exception):  # noqa: N818
    """The model does not take these rows; it may take a whole batch."""


class Evaluation:
    """A model held in evaluation mode, its head listened to. Use as a context manager.

    Inside the context a call gives (logits, features) of a batch; on leaving, the model and the
    global random generators are as they were.

    Args:
        model: any `nn.Module`.
        head: the last linear layer's name; found on two rows of the first batch when None.
        device: where to run; the model's own device when None.
        features: whether features are needed. Where they are not, no head is either: the logits are
            what the model returns, and features come along where a head is found.
    """

    def __init__(
        self,
        model: nn.Module,
        head: str | None = None,
        device: torch.device | str | None = None,
        *,
        features: bool = True,
    ) -> None:
        if not isinstance(model, nn.Module):
            raise InputError(
                f"model must be a torch.nn.Module, got {type(model).__name__}; it may be None where "
                f"both pool and labelled points are given as Embedding. scikit-learn's classifiers are "
                f"asked by askance.select where a rule needs logits alone, and by "
                f"askance.integrations.sklearn.Query"
            )
        self.model: nn.Module = unwrapped(model)
        self.head = head if head is None else name_within(self.model, head)
        self._any_model = not features and head is None
        self._reader: LogitsReader | None = None
        self._wanted = None if device is None else usable(device)
        self._recorder: HeadRecorder | None = None
        self._exit = ExitStack()

    def __enter__(self) -> Evaluation:
        with ExitStack() as stack:
            stack.enter_context(preserved_rng())
            if has_compiled_layer(self.model):
                stack.enter_context(torch.compiler.set_stance("force_eager"))
            self.device = stack.enter_context(evaluating(self.model, self._wanted))
            self._exit = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self._recorder = self._reader = None
        self._exit.__exit__(*error)

    @property
    def headless(self) -> bool:
        """Whether the logits are what the model returns, and no layer that was heard gives them."""
        return self._reader is not None and self._reader.head is None

    def prepare(self, inputs: Any) -> Any:
        """A batch as the model wants it: on its device and, for floating inputs, in its dtype."""
        if sources.is_texts(inputs):
            raise InputError(f"the items are texts: {sources.TEXTS}")
        if self.device.type == "cuda":
            inputs = sources.pinned(inputs)
        return sources.to_device(inputs, self.device, self._input_dtype())

    def call(self, inputs: Any, parameters: dict[str, Tensor] | None = None) -> Any:
        """What the model returns for a prepared batch, with its own parameters or with others."""
        named = inputs if isinstance(inputs, dict) else {}
        plain = () if named else inputs if isinstance(inputs, tuple) else (inputs,)
        try:
            if parameters is None:
                return self.model(*plain, **named)
            return functional_call(self.model, parameters, plain, named)
        except Exception as error:  # the model's own, with what it was about
            error.add_note(f"askance called the model with {sources.described(inputs)}")
            raise

    def logits(self, inputs: Any, parameters: dict[str, Tensor]) -> Tensor:
        """Logits of a prepared batch as a function of parameters, for differentiation."""
        recorder = self._recording(inputs)
        self.call(inputs, parameters)
        return recorder.take()[1]

    def __call__(self, inputs: Any) -> tuple[Tensor, Tensor | None]:
        """(logits, features) of a prepared batch: what the head gave and what it received."""
        if self._any_model:
            return self._answer(inputs)
        recorder = self._recording(inputs)
        self.call(inputs)
        features, logits = recorder.take()
        return logits, features

    def _answer(self, inputs: Any) -> tuple[Tensor, Tensor | None]:
        """Logits of a prepared batch as the model returns them, with features where it has a head."""
        if self._reader is None:
            self._reader = self._probed(inputs, lambda run: logits_reader(self.model, run))
            self.head = self._reader.head
        if self.head is None:
            return self._reader(self.call(inputs)), None
        recorder = self._recording(inputs)
        returned = self.call(inputs)
        if self._reader.squashed:
            features, logits = recorder.take()
            return logits, features
        logits = self._reader(returned)
        if len(recorder.calls) == 1:
            heard = recorder.calls[0][0]
            if heard.numel() == len(logits) * heard.shape[-1]:
                return logits, heard.reshape(len(logits), heard.shape[-1])
        return logits, None

    def _recording(self, inputs: Any) -> HeadRecorder:
        if self._recorder is None:
            if self._reader is None:
                self.head = self._probed(
                    inputs, lambda run: resolve_head(self.model, self.head, run)
                )
            assert self.head is not None
            self._recorder = self._exit.enter_context(recording(self.model, self.head))
        self._recorder.calls.clear()
        return self._recorder

    def _probed(self, inputs: Any, look: Callable[[Callable[[], Any]], T]) -> T:
        """What is found by running two rows of a batch; by all of it where the model takes no two."""
        probe = sources.first_rows(inputs, _PROBED)
        if probe is not inputs:
            with suppress(_OfTheModel):
                return look(lambda: self._of_the_model(probe))
        return look(lambda: self.call(inputs))

    def _of_the_model(self, inputs: Any) -> Any:
        try:
            return self.call(inputs)
        except Exception as error:
            raise _OfTheModel from error

    def blocks(
        self,
        data: Any,
        batch_size: int,
        *,
        keep_inputs: bool = False,
        watch: Callable[[Any], None] | None = None,
    ) -> Iterator[Embedding]:
        """The data's embedding, batch by batch, in its own order, numbers as they come.

        `watch` is shown the inputs of each batch as the data gives them.
        """
        start = given = 0
        check = LogitsCheck("the pool")
        for inputs, _ in sources.batches(data, batch_size):
            if watch is not None:
                watch(inputs)
            inputs = self.prepare(inputs)
            with suppress(TypeError, StopIteration):  # inputs that have no length
                given += sources.rows_in(inputs)
            logits, features = self._scored_on(self(inputs))
            if self.headless:
                check.see(logits)
            positions = range(start, start + len(logits))
            kept = inputs if keep_inputs else None
            yield _rows(logits, features, positions=positions, inputs=kept)
            start += len(logits)
        check.end()
        size = sources.size(data)
        if size is not None and given == start != size:
            raise InputError(
                f"the batches held {start} points, the data has {size}: a collate function or a batch "
                f"sampler leaves points out, or adds some. It must make one row of each point"
            )
        if size is not None and start != size:
            source = "model" if self.head is None else f"head {self.head!r}"
            raise HeadError(
                f"the {source} gave {start} rows for {size} points; it must give one "
                f"for each: pool over positions before the head, leave no item out of its batch"
            )

    def labeled(
        self,
        data: Any,
        batch_size: int,
        *,
        keep_inputs: bool = False,
        watch: Callable[[Any], None] | None = None,
    ) -> Embedding:
        """Labelled data as one embedding, with its labels; `watch` as of `blocks`."""
        parts = []
        for inputs, labels in sources.batches(data, batch_size, labeled=True):
            if watch is not None:
                watch(inputs)
            inputs = self.prepare(inputs)
            logits, features = self._scored_on(self(inputs))
            labels = sources.as_labels(labels, len(logits)).to(logits.device)
            kept = inputs if keep_inputs else None
            parts.append(_rows(logits, features, inputs=kept, labels=labels))
        if not parts:
            raise LabelError("labelled data must hold at least one point, it is empty")
        return concatenated(parts).renumbered()

    def _scored_on(self, answers: tuple[Tensor, Tensor | None]) -> tuple[Tensor, Tensor | None]:
        """Logits and features where rules can score them."""
        logits, features = answers
        place = scoring_device(logits.device)
        return logits.to(place), None if features is None else features.to(place)

    def _input_dtype(self) -> torch.dtype | None:
        if torch.is_autocast_enabled(self.device.type):
            return torch.float32
        for parameter in self.model.parameters():
            if parameter.is_floating_point():
                return parameter.dtype
        return None


def _rows(logits: Tensor, features: Tensor | None, **more: Any) -> Embedding:
    """The embedding of a batch; logits (B, M, C) are those of M models."""
    if logits.ndim == 3:
        return Embedding(members=logits, **more)
    return Embedding(logits, features, **more)


def embed(
    model: nn.Module,
    data: Any,
    *,
    head: str | None = None,
    batch_size: int = 256,
    device: torch.device | str | None = None,
) -> Embedding:
    """What `model` says of every point of `data`: head outputs (logits) and head inputs (features).

    Args:
        model: any `nn.Module` with a linear head. It comes back as it was.
        data: an array, a mapping of arrays, a Dataset or a DataLoader of x or (x, ignored).
        head: the name of the last linear layer; found and verified on the first batch when None.
        batch_size: rows of a batch (a DataLoader brings its own).
        device: where to run; the model's own device when None.
    """
    check_whole("batch_size", batch_size, 1)
    with Evaluation(model, head, device) as evaluation:
        embedding = concatenated(list(evaluation.blocks(data, batch_size)))
        assert embedding.logits is not None
        check_finite("logits", embedding.logits, range(len(embedding)))
    return embedding
