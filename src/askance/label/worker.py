"""Where a model is trained: in a thread of the server, or in a process that the page never waits for.

A worker touches neither the store nor the list of items. It is given the items, again when the data has
changed, so that both sides speak of the same. The process ignores Ctrl-C, which is the server's to
hear, and ends with the server however that ends: the pipe between them is then closed.

A process that gives no sign for too long is killed, and started again for the next call. Too long is
`patience` at first, and once a training has ended 30 times as long as the longest took, but a minute at
least. After a kill it is twice as long, so that a training that is only slow comes through.
"""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Iterable
from multiprocessing.connection import Connection
from typing import Any

from askance._io.processes import die_with_parent, interrupts_blocked
from askance.errors import AskanceError
from askance.label.items import Items
from askance.label.learner import Learner, TrainingOutcome, TrainingTask
from askance.label.likeness import Likeness
from askance.label.pretrained import Progress
from askance.label.source import LabelingOptions

_MINUTE = 60.0


class SubprocessWorker:
    """Trains in a process that has the data. It starts when it is needed, also after it died."""

    def __init__(self, items: Items, options: LabelingOptions) -> None:
        self._items, self._options = items, options
        self._process: Any = None
        self._pipe: Connection | None = None
        self._limit = options.patience  # seconds without a sign
        self._longest = 0.0  # seconds that a training took

    def take(self, items: Items) -> None:
        """Go on with the data as it is now."""
        if items is self._items:
            return
        self._items = items
        if self._pipe is not None:
            self._call("take", items.for_training())

    def prepare(self, progress: Progress | None = None) -> list[str]:
        """Make the inputs ready, and name the items that cannot be read."""
        return self._call("prepare", progress=progress)

    def learn(self, task: TrainingTask) -> TrainingOutcome:
        """Train, and pick what to ask next."""
        began = time.monotonic()
        outcome: TrainingOutcome = self._call("learn", task)
        self._longest = max(self._longest, time.monotonic() - began)
        self._limit = min(self._options.patience, max(_MINUTE, 30 * self._longest))
        return outcome

    def first(self, n: int, exclude: Iterable[str]) -> list[str]:
        """A first batch that covers the data."""
        return self._call("first", n, frozenset(exclude))

    def likeness(self) -> Likeness:
        """How the items look."""
        return self._call("likeness")

    def unreadable(self) -> list[str]:
        """Images that cannot be read."""
        return self._call("unreadable")

    def close(self) -> None:
        """End the process."""
        if self._process is None:
            return
        process, self._process, self._pipe = self._process, None, None
        process.kill()
        process.join()

    def _call(self, name: str, *arguments: Any, progress: Progress | None = None) -> Any:
        try:
            pipe = self._started()
            pipe.send((name, arguments))
            done, value = self._sign(pipe, self._limit)
            while done is None:
                if progress is not None and value is not None:
                    progress(*value)
                done, value = self._sign(pipe, self._limit)
        except (EOFError, OSError) as error:
            self.close()
            raise AskanceError(
                "the process that trains has ended, perhaps for want of memory; answers are safe, "
                "and it is started again for the next training"
            ) from error
        if not done:
            raise AskanceError(value)
        return value

    def _sign(self, pipe: Connection, limit: float) -> Any:
        """What the process sends next; it is killed where nothing comes for too long."""
        if pipe.poll(limit):
            return pipe.recv()
        self.close()
        self._limit = 2 * limit
        raise AskanceError(
            f"the process that trains gave no sign for {limit:.0f} s and was ended; answers are safe, "
            f"and it is started again"
        )

    def _started(self) -> Connection:
        if self._pipe is not None:
            return self._pipe
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, self._options), daemon=True)
        with interrupts_blocked():
            process.start()
        theirs.close()
        self._process, self._pipe = process, ours
        ours.send(self._items.for_training())
        self._sign(ours, max(self._options.patience, self._limit))  # libraries are loaded
        return ours


# Answers one call at a time; slow. A `Learner` trains in the thread that calls it.
Worker = Learner | SubprocessWorker


def open_worker(items: Items, options: LabelingOptions) -> Worker:
    """The worker these options ask for."""
    kind = Learner if options.worker == "here" else SubprocessWorker
    return kind(items, options)


def _serve(pipe: Connection, options: LabelingOptions) -> None:
    """The other process: the items, then a call, an answer, until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    die_with_parent()
    import torch

    torch.set_num_threads(1)  # the other core is the page's
    learner: Learner | None = None
    try:
        items = pipe.recv()
    except EOFError:
        return
    pipe.send((None, None))
    while True:
        try:
            name, arguments = pipe.recv()
        except EOFError:
            return
        if name == "prepare":
            arguments = (lambda *progress: pipe.send((None, progress)),)
        try:
            learner = learner or Learner(items, options, lambda: pipe.send((None, None)))
            answer = (True, getattr(learner, name)(*arguments))
        except AskanceError as error:
            answer = (False, str(error))
        except Exception as error:  # whatever it is, the person at the page must hear of it
            answer = (False, f"{type(error).__name__}: {error}")
        pipe.send(answer)
