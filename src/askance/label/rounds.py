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
from askance.label import words
from askance.label.book import replayed
from askance.label.guesses import HeldGuesses, Known
from askance.label.items import Items
from askance.label.learner import Outcome, Task
from askance.label.records import Guess, HeldGuess, Pick, Version, now
from askance.label.worker import Worker
from askance.seeding import Draws

if TYPE_CHECKING:
    from askance.label.desk import Desk

log = logging.getLogger(__name__)

MODELS = "models"
_AGAIN = 5.0  # seconds between a failed training and the next try


class Rounds:
    """The queue and the thread that fills it. All but that thread hold the desk's turn."""

    def __init__(self, desk: Desk, versions: Sequence[Version], picks: Sequence[Pick]) -> None:
        self.desk, self.versions = desk, list(versions)
        self.training = False
        self.error: str | None = None
        self.unreadable: frozenset[str] = frozenset()
        self._queue = list(picks)
        self.held_guesses = HeldGuesses.of_rows(
            (version.version for version in versions), desk.store.held_guesses()
        )
        self._trained = self._trained_before()
        self._changed = self._differing()
        self.known = self._known_before()
        self._starving = False
        self._not_before = 0.0
        self._closing = False
        self._wake = threading.Condition(desk.turn)
        self._worker: Worker | None = None
        self._thread = threading.Thread(target=self._run, name="askance-rounds", daemon=True)

    def start(self, worker: Worker) -> None:
        self._worker = worker
        with self.desk.turn:
            new = not self._queue and not self.versions
            if new and self.desk.options.first == "random":
                self._draw_first()
        self._thread.start()

    def close(self) -> None:
        with self.desk.turn:
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
        asked, lost = self.desk.book.asked, self.unreadable
        return (
            item for item in self.desk.shares.held_out if item not in asked and item not in lost
        )

    def next_pick(self, drawn: set[str]) -> Pick | None:
        """The best pick that was not asked."""
        asked, here = self.desk.book.asked, self.desk.items.position
        while self._queue and (self._queue[0].item in asked or self._queue[0].item not in here):
            self._queue.pop(0)
        return next((p for p in self._queue if p.item not in drawn and p.item not in asked), None)

    def left(self, drawn: set[str]) -> bool:
        """Whether there is an item to train with that nobody was asked about."""
        asked, ids = self.desk.book.asked, self.desk.items.ids
        return any(
            ids[row] not in asked and ids[row] not in drawn and ids[row] not in self.unreadable
            for row in self.desk.shares.trained
        )

    @property
    def queued(self) -> int:
        asked, here = self.desk.book.asked, self.desk.items.position
        return sum(1 for pick in self._queue if pick.item not in asked and pick.item in here)

    @property
    def due_in(self) -> int:
        """Changed labels until the next training."""
        return max(0, self.desk.options.batch - len(self._changed))

    def guess(self, item: str) -> tuple[int | None, Guess | None]:
        """The latest model's number and its guess on an item."""
        if self.known is None or item not in self.desk.items.position:
            return None, None
        return self.known.version, self.known.guess(item)

    def changed(self, item: str) -> None:
        """Told of every act, with its item."""
        if not self._trainable(item):
            return
        if self.desk.book.labels.get(item) == self._trained.get(item):
            self._changed.discard(item)
        else:
            self._changed.add(item)
        if self._due():
            self._wake.notify_all()

    def renewed(self, before: Items) -> None:
        """Told that the desk has the data as it is now, and what it had before."""
        now = self.desk.items
        self.unreadable = frozenset(
            item for item in self.unreadable if now.name(item) == before.name(item)
        )
        self._changed = self._differing()
        self._wake.notify_all()

    def starve(self) -> None:
        """Somebody waits and nothing is queued."""
        if not any(map(self._trainable, self.desk.book.labels)) and not self.training:
            self._draw_first()
            return
        self._starving = True
        self._wake.notify_all()

    def wait(self, version: int, seconds: float = 60.0) -> None:
        """Until that version is there and nothing is being trained; for scripts and tests."""
        end = time.monotonic() + seconds
        while True:
            with self.desk.turn:
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
        trainable = any(map(self._trainable, self.desk.book.labels))
        return trainable and (len(self._changed) >= self.desk.options.batch or self._starving)

    def _to_cover(self) -> bool:
        """Whether the first batch is to come from k-center and has not."""
        new = not self.versions and not self.desk.book.asked and not self._queue
        return new and self.desk.options.first == "kcenter"

    def _trainable(self, item: str) -> bool:
        return item not in self.desk.shares.held and item in self.desk.items.position

    def _differing(self) -> set[str]:
        """Items whose label is another than the last model was trained on."""
        labels, trained = self.desk.book.labels, self._trained
        return {
            item
            for item in {*trained, *labels}
            if trained.get(item) != labels.get(item) and self._trainable(item)
        }

    def _run(self) -> None:
        while True:
            with self.desk.turn:
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
                with self.desk.turn:
                    self.error = str(error) if known else f"{type(error).__name__}: {error}"
                    self._not_before = time.monotonic() + _AGAIN
                    self.training = False
                    self.desk.stamp += 1

    def _round(self) -> None:
        assert self._worker is not None
        desk = self.desk
        with desk.turn:
            self._starving = False
            covering = self._to_cover()
            items, task, event = desk.items, self._task(), desk.book.last_event
            self.training = True
            desk.stamp += 1
        self._worker.take(items)
        unreadable = self._worker.unreadable()
        with desk.turn:
            self.unreadable = frozenset(unreadable)
        if covering:
            self._cover(task)
            return
        outcome = self._worker.learn(task)
        known = Known(task.version, outcome.ids, outcome.guesses, outcome.confidence)
        known.save(_beside(task.out))
        with desk.turn:
            if self._closing:
                return
            options = desk.options
            version = Version(
                task.version,
                now(),
                event,
                len(task.items),
                len(task.classes),
                options.model_for(desk.items.kind),
                options.strategy,
                outcome.seconds,
            )
            names = (item for item, _ in task.items)
            trained = dict(zip(names, task.labels.tolist(), strict=True))
            self._take_in(version, outcome, known, trained)

    def _task(self) -> Task:
        desk = self.desk
        position, digests = desk.items.position, desk.items.digests
        labels = {item: label for item, label in desk.book.labels.items() if self._trainable(item)}
        number = len(self.versions) + 1
        return Task(
            number,
            tuple((item, digests[position[item]]) for item in labels),
            np.asarray(list(labels.values()), np.int64),
            tuple(each.name for each in desk.book.classes),
            desk.shares.held.union(desk.book.asked),
            desk.options.batch * (1 + desk.options.ahead),
            self._file(number),
        )

    def _take_in(
        self,
        version: Version,
        outcome: Outcome,
        known: Known,
        trained: dict[str, int],
    ) -> None:
        desk, here = self.desk, self.desk.items.position  # as it is now: it may have changed
        held = [
            HeldGuess(item, guess)
            for item in desk.shares.held_out
            if (guess := known.guess(item)) is not None
        ]
        picks = [
            Pick(
                version.version,
                rank,
                item,
                words.reasoned(why, rank, version.strategy),
                words.numbers_of(why, rank),
                known.guess(item),
            )
            for rank, (item, why) in enumerate(
                zip(outcome.picks, outcome.explanations, strict=True)
            )
            if item in here
        ]
        desk.store.add_version(version, picks, held)
        self.versions.append(version)
        self.held_guesses.add({told.item: told.guess.choice for told in held})
        self._queue, self.known, self._trained = picks, known, trained
        self._changed = self._differing()
        self._done()
        self._clear_old(version.version)

    def _done(self) -> None:
        self.training, self.error, self._starving = False, None, False
        self.desk.stamp += 1

    def _cover(self, task: Task) -> None:
        """A first batch by k-center on the raw inputs."""
        assert self._worker is not None
        items = self._worker.first(task.n, task.exclude)
        with self.desk.turn:
            self._first_picks(items, words.COVERED)
            self._done()

    def _draw_first(self) -> None:
        """Random picks; the first batch is that of `askance.loop` with the same rows and seed."""
        desk, asked = self.desk, self.desk.book.asked
        draws, batch = Draws(desk.options.seed), desk.options.batch
        free = np.asarray(
            [row for row in desk.shares.trained if desk.items.ids[row] not in asked], np.int64
        )
        start = draws.generator("start").choice(len(free), min(batch, len(free)), replace=False)
        rest = np.setdiff1d(np.arange(len(free)), start)
        spare = draws.generator("spare").permutation(rest)[: batch * desk.options.ahead]
        rows = free[np.concatenate([start, spare]).astype(np.int64)]
        why = words.SPARE if asked else words.FIRST
        self._first_picks([desk.items.ids[row] for row in rows], why)

    def _first_picks(self, items: Sequence[str], why: str) -> None:
        self._queue = [Pick(0, rank, item, why) for rank, item in enumerate(items)]
        self.desk.stamp += 1

    # At the start

    def _trained_before(self) -> dict[str, int]:
        """What the last version was trained on: the labels as they stood after its event."""
        if not self.versions:
            return {}
        store, last = self.desk.store, self.versions[-1].event
        events = (event for event in store.events() if event.id <= last)
        labels = replayed((), store.questions(), events).labels
        return {item: label for item, label in labels.items() if self._trainable(item)}

    def _known_before(self) -> Known | None:
        if not self.versions:
            return None
        number = self.versions[-1].version
        return Known.load(_beside(self._file(number)), number)

    def _file(self, version: int) -> Path:
        return self.desk.folder / MODELS / f"model-{version:05d}.safetensors"

    @property
    def model_file(self) -> Path | None:
        """The latest model; None before there is one."""
        return self._file(self.versions[-1].version) if self.versions else None

    def _clear_old(self, version: int) -> None:
        keep = {self._file(v).stem for v in (version, version - 1)}
        for path in (self.desk.folder / MODELS).glob("*model-*"):  # half-written ones are hidden
            if path.name.removeprefix(".").split(".")[0] not in keep:
                path.unlink(missing_ok=True)


def _beside(model: Path) -> Path:
    """Where a model's guesses lie."""
    return model.with_suffix(".npz")
