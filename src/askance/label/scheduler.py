"""The thread that trains when it is due. People go on answering meanwhile.

`planning` decides what is due, a `Worker` does it, and a new `TrainingState` says what came of it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from askance.errors import AskanceError
from askance.label import messages, planning
from askance.label.guesses import HeldOutGuesses, ModelGuesses
from askance.label.items import Items
from askance.label.learner import TrainingOutcome, TrainingTask
from askance.label.likeness import Likeness
from askance.label.planning import ProjectView, Step, TrainingState
from askance.label.records import HeldOutGuess, ModelVersion, now
from askance.label.source import LabelingOptions
from askance.label.state import replayed
from askance.label.store import ProjectStore
from askance.label.worker import Worker

log = logging.getLogger(__name__)

MODELS = "models"
_RETRY_AFTER = 5.0  # seconds between a failed training and the next try


@dataclass(frozen=True, eq=False)
class _Work:
    """What the thread does next, of the data and the labels as they were when it was decided."""

    step: Step
    items: Items
    task: TrainingTask
    last_event: int


class TrainingScheduler:
    """Trains in a thread of its own, or in the worker's process.

    Args:
        store: where models, picks and held-out guesses are kept.
        options: how often to train, and how.
        view: the project as it is now; called while the lock is held.
        lock: whoever changes the project holds it.
    """

    def __init__(
        self,
        store: ProjectStore,
        options: LabelingOptions,
        view: Callable[[], ProjectView],
        lock: threading.RLock,
    ) -> None:
        self._store, self._options, self._view, self._lock = store, options, view, lock
        self.revision = 0  # rises with every change of the state
        self.state = self._stored_state()
        self._changed = planning.changed_labels(view(), self.state)
        self._picks_requested = False
        self._rest_requested = False  # somebody asked for a training on what has changed
        self._last_change = time.monotonic()
        self._began: float | None = None  # when the training that runs began
        self._failures = 0
        self._retry_at = 0.0
        self._closing = False
        self._news = threading.Condition(lock)  # something changed that somebody may wait for
        self._worker: Worker | None = None
        self._prepared: Items | None = None  # the items whose features are there
        self.likeness: Likeness | None = None  # how the items look, once that is known
        self._likeness_of: Items | None = None
        self._thread = threading.Thread(target=self._run, name="askance-training", daemon=True)

    def start(self, worker: Worker) -> None:
        """Begin to train when it is due; draw random picks for a new project."""
        self._worker = worker
        with self._lock:
            new = not self.state.picks and not self.state.versions
            if new and self._options.first in (None, "random"):
                self._update(picks=planning.random_picks(self._view(), self._options))
        self._thread.start()

    def close(self) -> None:
        """End the thread and the worker."""
        with self._lock:
            self._closing = True
            self._news.notify_all()
        if self._worker is not None:
            self._worker.close()
        if self._thread.is_alive():
            # A training in this process cannot be stopped; when it ends it finds this closed.
            self._thread.join(5)

    # What the session says and asks

    @property
    def due_in(self) -> int:
        """Changed labels until the next training."""
        return max(0, self._options.batch - len(self._changed))

    @property
    def n_untrained(self) -> int:
        """How many labels are not as the newest model was trained on."""
        return len(self._changed)

    @property
    def running_for(self) -> float | None:
        """Seconds since the training that runs now began."""
        began = self._began
        return None if began is None else time.monotonic() - began

    @property
    def idle(self) -> bool:
        """Whether nothing is being trained, and nothing is due."""
        with self._lock:
            busy = self.state.running or self.state.preparing is not None
            return not busy and self._next_step() is None

    @property
    def model_file(self) -> Path | None:
        """The newest model; None before there is one."""
        versions = self.state.versions
        return self._file(versions[-1].version) if versions else None

    def label_may_have_changed(self, item: str) -> None:
        """Take note of an act about this item."""
        with self._lock:
            if planning.label_changed(self._view(), self.state, item):
                self._changed.add(item)
            else:
                self._changed.discard(item)
            self._last_change = time.monotonic()
            self._news.notify_all()

    def train_now(self) -> bool:
        """Train soon on what has changed, be it fewer than a batch; False where nothing has."""
        with self._lock:
            if not self._changed or not planning.has_labels(self._view()):
                return False
            self._rest_requested, self._retry_at = True, 0.0
            self._news.notify_all()
            return True

    def catch_up(self, seconds: float = 120.0) -> None:
        """Train on every label there is now, and wait for that model; an error where it fails."""
        with self._lock:
            latest, failures = self._view().annotations.last_event, self._failures
            if not self.train_now():
                return

            def over() -> bool:
                versions = self.state.versions
                there = not self._changed or (bool(versions) and versions[-1].event >= latest)
                return self._closing or self._failures > failures or there

            done = self._news.wait_for(over, seconds)
            if self._failures > failures or self._closing or not done:
                n = "1 answer" if self.n_untrained == 1 else f"{self.n_untrained} answers"
                why = self.state.error or f"it takes longer than {seconds:.0f} s"
                raise AskanceError(f"{n} could not be trained on before the export: {why}")

    def items_changed(self, before: Items) -> None:
        """Take note that the view has other items than those before."""
        with self._lock:
            view = self._view()
            still = (i for i in self.state.unreadable if view.items.name(i) == before.name(i))
            self._changed = planning.changed_labels(view, self.state)
            self._update(unreadable=frozenset(still))

    def request_picks(self) -> None:
        """Get picks soon: somebody waits and nothing is queued."""
        with self._lock:
            view, running = self._view(), self.state.running
            if self._due_step(view) == "cover" and self._options.first is not None:
                return  # the thread makes the first batch, or tries again
            if self._must_prepare(view) or (not running and not planning.has_labels(view)):
                self._update(picks=planning.random_picks(self._view(), self._options))
                return
            self._picks_requested = True
            self._news.notify_all()

    def wait(self, version: int, seconds: float = 60.0) -> None:
        """Wait until that version is there and nothing is being trained; for scripts and tests."""
        with self._lock:
            self._news.wait_for(lambda: self._is_there(version), seconds)
            if self.state.error is not None:
                raise AskanceError(self.state.error)
            if not self._is_there(version):
                raise AskanceError(f"model {version} was not there after {seconds:.0f} s")

    def _is_there(self, version: int) -> bool:
        if self.state.error is not None:
            return True
        return len(self.state.versions) >= version and self.idle

    # The thread

    def _run(self) -> None:
        while (work := self._next_work()) is not None:
            try:
                self._do(work)
            except Exception as error:  # shown on the page; answering goes on
                log.info("training failed", exc_info=True)
                expected = isinstance(error, AskanceError)
                text = str(error) if expected else f"{type(error).__name__}: {error}"
                with self._lock:
                    self._failures += 1
                    self._began = None
                    self._retry_at = time.monotonic() + _RETRY_AFTER
                    self._update(error=text, running=False, preparing=None)

    def _next_work(self) -> _Work | None:
        """Wait until a training is due; None when this is closed."""
        with self._lock:
            while not self._closing:
                step, pause = self._next_step(), self._retry_at - time.monotonic()
                if step is not None and pause <= 0:
                    return self._begin(step)
                self._news.wait(self._until_rest() if step is None else pause)
        return None

    def _until_rest(self) -> float | None:
        """Seconds until the last answers are trained on if nobody gives another; None: never."""
        if not (self._options.pause and self._changed and self.state.versions):
            return None
        return max(0.0, self._last_change + self._options.pause - time.monotonic())

    def _next_step(self) -> Step | None:
        view = self._view()
        if self._must_prepare(view):
            return "prepare"
        return self._due_step(view)

    def _due_step(self, view: ProjectView) -> Step | None:
        """What is due once the items are prepared."""
        if not self._changed:
            self._rest_requested = False
        wanted = self._rest_requested or self._until_rest() == 0
        return planning.next_step(
            view, self.state, self._options, len(self._changed), self._picks_requested, wanted
        )

    def _must_prepare(self, view: ProjectView) -> bool:
        """Whether there are items whose features a pretrained encoder has not made yet."""
        return self._options.encodes and view.items is not self._prepared

    def _begin(self, step: Step) -> _Work:
        view, version = self._view(), len(self.state.versions) + 1
        task = planning.training_task(view, self._options, version, self._file(version))
        if step == "prepare":
            self._update(preparing=(0, len(view.items)))
        else:
            self._picks_requested = self._rest_requested = False
            self._began = time.monotonic()
            self._update(running=True)
        return _Work(step, view.items, task, view.annotations.last_event)

    def _do(self, work: _Work) -> None:
        assert self._worker is not None
        self._worker.take(work.items)
        if work.step == "prepare":
            left_out = frozenset(self._worker.prepare(self._report_progress))
            with self._lock:
                self._prepared = work.items
                self._update(preparing=None, unreadable=left_out, error=None)
            self._find_likeness(work.items)
            return
        unreadable = frozenset(self._worker.unreadable())
        with self._lock:
            self._update(unreadable=unreadable)
        if work.step == "cover":
            items = self._worker.first(work.task.n, work.task.exclude)
            with self._lock:
                far = self._options.first == "kcenter"
                why = messages.FAR_APART if far else messages.COVERING
                self._finish(picks=planning.first_picks(items, why), covered=True)
            return
        outcome = self._worker.learn(work.task)
        version = work.task.version
        guesses = ModelGuesses(
            version, outcome.ids, outcome.guesses, outcome.confidence, outcome.support
        )
        guesses.save(_guesses_file(work.task.out))
        with self._lock:
            if not self._closing:
                self._take_in(work, outcome, guesses)
        self._find_likeness(work.items)

    def _find_likeness(self, items: Items) -> None:
        """Find out how the items look, once for each state of the data."""
        if items is self._likeness_of or self._closing:
            return
        assert self._worker is not None
        likeness = self._worker.likeness()
        with self._lock:
            self._likeness_of = items
            self.likeness = likeness
            self.revision += 1

    def _report_progress(self, done: int, total: int) -> None:
        with self._lock:
            if self._closing:
                raise AskanceError("the page was closed while items were prepared")
            self._update(preparing=(done, total))

    def _take_in(self, work: _Work, outcome: TrainingOutcome, guesses: ModelGuesses) -> None:
        """Keep a new model, with what it asks and what it says of the held-out items."""
        view, task = self._view(), work.task  # the data may have changed since the task was made
        version = ModelVersion(
            task.version,
            now(),
            work.last_event,
            len(task.items),
            len(task.classes),
            self._options.described_model(view.items.kind),
            self._options.strategy,
            outcome.seconds,
        )
        held = [
            HeldOutGuess(version.version, item, guess)
            for item in view.split.held_out
            if (guess := guesses.guess(item)) is not None
        ]
        picks = planning.model_picks(view, version, outcome, guesses)
        self._store.add([version, *held, *picks])
        names = (item for item, _ in task.items)
        before = self.state.held_out_guesses
        self._finish(
            versions=(*self.state.versions, version),
            picks=picks,
            guesses=guesses,
            held_out_guesses=before.with_version({each.item: each.guess.choice for each in held}),
            trained_labels=dict(zip(names, task.labels.tolist(), strict=True)),
        )
        self._clear_old(version.version)

    def _finish(self, **changes: Any) -> None:
        self._picks_requested, self._began = False, None
        self._update(running=False, error=None, **changes)
        self._changed = planning.changed_labels(self._view(), self.state)

    def _update(self, **changes: Any) -> None:
        self.state = replace(self.state, **changes)
        self.revision += 1
        self._news.notify_all()

    # At the start, and on the disk

    def _stored_state(self) -> TrainingState:
        versions = tuple(self._store.versions())
        picks = tuple(self._store.picks())
        numbers = (version.version for version in versions)
        held_out_guesses = HeldOutGuesses.of_rows(numbers, self._store.held_out_guesses())
        if not versions:
            return TrainingState(picks=picks, held_out_guesses=held_out_guesses)
        last = versions[-1]
        guesses = ModelGuesses.load(_guesses_file(self._file(last.version)), last.version)
        # The last model was trained on the labels as they stood after its event.
        events = (event for event in self._store.events() if event.id <= last.event)
        labels = replayed((), self._store.questions(), events, self._store.groups()).labels
        trainable = self._view().trainable
        trained = {item: label for item, label in labels.items() if trainable(item)}
        return TrainingState(versions, picks, guesses, held_out_guesses, trained)

    @property
    def _folder(self) -> Path:
        return self._store.path.parent / MODELS

    def _file(self, version: int) -> Path:
        return self._folder / f"model-{version:05d}.safetensors"

    def _clear_old(self, version: int) -> None:
        keep = {self._file(v).stem for v in (version, version - 1)}
        for path in self._folder.glob("*model-*"):  # half-written ones are hidden
            if path.name.removeprefix(".").split(".")[0] not in keep:
                path.unlink(missing_ok=True)


def _guesses_file(model: Path) -> Path:
    """Where a model's guesses are kept, beside it."""
    return model.with_suffix(".npz")
