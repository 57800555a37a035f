"""Rounds beside the answering: when to train, on what, and what to ask next.

Training starts when the labels of `batch` items have changed since the last one began (given, undone,
changed or come to a tie), or when somebody waits and nothing is queued. Picks come as one batch and
`ahead` more; the rest of an older model's picks is dropped when a newer one's arrive. A rule's first n
of m picks are its n picks, so with a person slower than the training this is Algorithm 1.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from askance.errors import AskanceError
from askance.label import messages
from askance.label.guesses import HeldOutGuesses, ModelGuesses
from askance.label.items import Items
from askance.label.learner import TrainingOutcome, TrainingTask
from askance.label.records import Guess, HeldOutGuess, ModelVersion, RankedPick, now
from askance.label.state import replayed
from askance.label.worker import Worker
from askance.seeding import Draws

if TYPE_CHECKING:
    from askance.label.session import LabelingSession

log = logging.getLogger(__name__)

MODELS = "models"
_AGAIN = 5.0  # seconds between a failed training and the next try


class TrainingScheduler:
    """The queue and the thread that fills it. All but that thread hold the desk's turn."""

    def __init__(
        self,
        session: LabelingSession,
        versions: Sequence[ModelVersion],
        picks: Sequence[RankedPick],
    ) -> None:
        self.session, self.versions = session, list(versions)
        self.training = False
        self.error: str | None = None
        self.unreadable: frozenset[str] = frozenset()
        self._queue = list(picks)
        self.held_guesses = HeldOutGuesses.of_rows(
            (version.version for version in versions), session.store.held_guesses()
        )
        self._trained = self._trained_before()
        self._changed = self._differing()
        self.known = self._known_before()
        self._starving = False
        self._not_before = 0.0
        self._closing = False
        self._wake = threading.Condition(session.lock)
        self._worker: Worker | None = None
        self._thread = threading.Thread(target=self._run, name="askance-rounds", daemon=True)

    def start(self, worker: Worker) -> None:
        self._worker = worker
        with self.session.lock:
            new = not self._queue and not self.versions
            if new and self.session.options.first == "random":
                self._draw_first()
        self._thread.start()

    def close(self) -> None:
        with self.session.lock:
            self._closing = True
            self._wake.notify_all()
        if self._worker is not None:
            self._worker.close()
        if self._thread.is_alive():
            # A training in this process cannot be stopped; it finds the desk closed when it is done.
            self._thread.join(5)

    # What the desk asks

    @property
    def held_left(self) -> Iterator[str]:
        """Held-out items nobody was asked about, in their random order."""
        asked, lost = self.session.annotations.asked, self.unreadable
        return (
            item for item in self.session.shares.held_out if item not in asked and item not in lost
        )

    def next_pick(self, drawn: set[str]) -> RankedPick | None:
        """The best pick that was not asked."""
        asked, here = self.session.annotations.asked, self.session.items.position
        while self._queue and (self._queue[0].item in asked or self._queue[0].item not in here):
            self._queue.pop(0)
        return next((p for p in self._queue if p.item not in drawn and p.item not in asked), None)

    def left(self, drawn: set[str]) -> bool:
        """Whether there is an item to train with that nobody was asked about."""
        asked, ids = self.session.annotations.asked, self.session.items.ids
        return any(
            ids[row] not in asked and ids[row] not in drawn and ids[row] not in self.unreadable
            for row in self.session.shares.trained
        )

    @property
    def queued(self) -> int:
        asked, here = self.session.annotations.asked, self.session.items.position
        return sum(1 for pick in self._queue if pick.item not in asked and pick.item in here)

    @property
    def due_in(self) -> int:
        """Changed labels until the next training."""
        return max(0, self.session.options.batch - len(self._changed))

    def guess(self, item: str) -> tuple[int | None, Guess | None]:
        """The latest model's number and its guess on an item."""
        if self.known is None or item not in self.session.items.position:
            return None, None
        return self.known.version, self.known.guess(item)

    def changed(self, item: str) -> None:
        """Told of every act, with its item."""
        if not self._trainable(item):
            return
        if self.session.annotations.labels.get(item) == self._trained.get(item):
            self._changed.discard(item)
        else:
            self._changed.add(item)
        if self._due():
            self._wake.notify_all()

    def renewed(self, before: Items) -> None:
        """Told that the desk has the data as it is now, and what it had before."""
        now = self.session.items
        self.unreadable = frozenset(
            item for item in self.unreadable if now.name(item) == before.name(item)
        )
        self._changed = self._differing()
        self._wake.notify_all()

    def request_picks(self) -> None:
        """Somebody waits and nothing is queued."""
        if not any(map(self._trainable, self.session.annotations.labels)) and not self.training:
            self._draw_first()
            return
        self._starving = True
        self._wake.notify_all()

    def wait(self, version: int, seconds: float = 60.0) -> None:
        """Until that version is there and nothing is being trained; for scripts and tests."""
        end = time.monotonic() + seconds
        while True:
            with self.session.lock:
                if self.error is not None:
                    raise AskanceError(self.error)
                if len(self.versions) >= version and not self.training and not self._due():
                    return
            if time.monotonic() > end:
                raise AskanceError(f"model {version} was not there after {seconds:.0f} s")
            time.sleep(0.005)

    # The thread

    def _due(self) -> bool:
        if self._to_cover():
            return True
        trainable = any(map(self._trainable, self.session.annotations.labels))
        return trainable and (len(self._changed) >= self.session.options.batch or self._starving)

    def _to_cover(self) -> bool:
        """Whether the first batch is to come from k-center and has not."""
        new = not self.versions and not self.session.annotations.asked and not self._queue
        return new and self.session.options.first == "kcenter"

    def _trainable(self, item: str) -> bool:
        return item not in self.session.shares.held and item in self.session.items.position

    def _differing(self) -> set[str]:
        """Items whose label is another than the last model was trained on."""
        labels, trained = self.session.annotations.labels, self._trained
        return {
            item
            for item in {*trained, *labels}
            if trained.get(item) != labels.get(item) and self._trainable(item)
        }

    def _run(self) -> None:
        while True:
            with self.session.lock:
                while not self._closing and not (
                    self._due() and time.monotonic() >= self._not_before
                ):
                    self._wake.wait(1.0 if self._due() else None)
                if self._closing:
                    return
            try:
                self._round()
            except Exception as error:  # shown on the page; answering goes on
                log.info("training failed", exc_info=True)
                known = isinstance(error, AskanceError)
                with self.session.lock:
                    self.error = str(error) if known else f"{type(error).__name__}: {error}"
                    self._not_before = time.monotonic() + _AGAIN
                    self.training = False
                    self.session.revision += 1

    def _round(self) -> None:
        assert self._worker is not None
        session = self.session
        with session.lock:
            self._starving = False
            covering = self._to_cover()
            items, task, event = session.items, self._task(), session.annotations.last_event
            self.training = True
            session.revision += 1
        self._worker.take(items)
        unreadable = self._worker.unreadable()
        with session.lock:
            self.unreadable = frozenset(unreadable)
        if covering:
            self._cover(task)
            return
        outcome = self._worker.learn(task)
        known = ModelGuesses(task.version, outcome.ids, outcome.guesses, outcome.confidence)
        known.save(_beside(task.out))
        with session.lock:
            if self._closing:
                return
            options = session.options
            version = ModelVersion(
                task.version,
                now(),
                event,
                len(task.items),
                len(task.classes),
                options.model_for(session.items.kind),
                options.strategy,
                outcome.seconds,
            )
            names = (item for item, _ in task.items)
            trained = dict(zip(names, task.labels.tolist(), strict=True))
            self._take_in(version, outcome, known, trained)

    def _task(self) -> TrainingTask:
        session = self.session
        position, digests = session.items.position, session.items.digests
        labels = {
            item: label
            for item, label in session.annotations.labels.items()
            if self._trainable(item)
        }
        number = len(self.versions) + 1
        return TrainingTask(
            number,
            tuple((item, digests[position[item]]) for item in labels),
            np.asarray(list(labels.values()), np.int64),
            tuple(each.name for each in session.annotations.classes),
            session.shares.held.union(session.annotations.asked),
            session.options.batch * (1 + session.options.ahead),
            self._file(number),
        )

    def _take_in(
        self,
        version: ModelVersion,
        outcome: TrainingOutcome,
        known: ModelGuesses,
        trained: dict[str, int],
    ) -> None:
        session, here = (
            self.session,
            self.session.items.position,
        )  # as it is now: it may have changed
        held = [
            HeldOutGuess(item, guess)
            for item in session.shares.held_out
            if (guess := known.guess(item)) is not None
        ]
        picks = [
            RankedPick(
                version.version,
                rank,
                item,
                messages.reasoned(why, rank, version.strategy),
                messages.numbers_of(why, rank),
                known.guess(item),
            )
            for rank, (item, why) in enumerate(
                zip(outcome.picks, outcome.explanations, strict=True)
            )
            if item in here
        ]
        session.store.add_version(version, picks, held)
        self.versions.append(version)
        self.held_guesses.add({told.item: told.guess.choice for told in held})
        self._queue, self.known, self._trained = picks, known, trained
        self._changed = self._differing()
        self._done()
        self._clear_old(version.version)

    def _done(self) -> None:
        self.training, self.error, self._starving = False, None, False
        self.session.revision += 1

    def _cover(self, task: TrainingTask) -> None:
        """A first batch by k-center on the raw inputs."""
        assert self._worker is not None
        items = self._worker.first(task.n, task.exclude)
        with self.session.lock:
            self._first_picks(items, messages.COVERED)
            self._done()

    def _draw_first(self) -> None:
        """Random picks; the first batch is that of `askance.loop` with the same rows and seed."""
        session, asked = self.session, self.session.annotations.asked
        draws, batch = Draws(session.options.seed), session.options.batch
        free = np.asarray(
            [row for row in session.shares.trained if session.items.ids[row] not in asked], np.int64
        )
        start = draws.generator("start").choice(len(free), min(batch, len(free)), replace=False)
        rest = np.setdiff1d(np.arange(len(free)), start)
        spare = draws.generator("spare").permutation(rest)[: batch * session.options.ahead]
        rows = free[np.concatenate([start, spare]).astype(np.int64)]
        why = messages.SPARE if asked else messages.FIRST
        self._first_picks([session.items.ids[row] for row in rows], why)

    def _first_picks(self, items: Sequence[str], why: str) -> None:
        self._queue = [RankedPick(0, rank, item, why) for rank, item in enumerate(items)]
        self.session.revision += 1

    # At the start

    def _trained_before(self) -> dict[str, int]:
        """What the last version was trained on: the labels as they stood after its event."""
        if not self.versions:
            return {}
        store, last = self.session.store, self.versions[-1].event
        events = (event for event in store.events() if event.id <= last)
        labels = replayed((), store.questions(), events).labels
        return {item: label for item, label in labels.items() if self._trainable(item)}

    def _known_before(self) -> ModelGuesses | None:
        if not self.versions:
            return None
        number = self.versions[-1].version
        return ModelGuesses.load(_beside(self._file(number)), number)

    def _file(self, version: int) -> Path:
        return self.session.folder / MODELS / f"model-{version:05d}.safetensors"

    @property
    def model_file(self) -> Path | None:
        """The latest model; None before there is one."""
        return self._file(self.versions[-1].version) if self.versions else None

    def _clear_old(self, version: int) -> None:
        keep = {self._file(v).stem for v in (version, version - 1)}
        for path in (self.session.folder / MODELS).glob("*model-*"):  # half-written ones are hidden
            if path.name.removeprefix(".").split(".")[0] not in keep:
                path.unlink(missing_ok=True)


def _beside(model: Path) -> Path:
    """Where a model's guesses lie."""
    return model.with_suffix(".npz")
