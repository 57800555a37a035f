"""A look at the data every few seconds, while a page is served: what changed there is taken up.

A look costs one `stat` a file. Only when two looks in a row agree on what has changed is the data read
again, so that a file that is still being copied is waited for. All of it happens in a thread beside
the answering, which waits for nothing but the moment in which the new items take the old ones' place.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from askance.errors import AskanceError
from askance.label.contents import Digests, Mark, marks_of
from askance.label.items import read

if TYPE_CHECKING:
    from askance.label.session import LabelingSession

log = logging.getLogger(__name__)

PAUSE = 2.0  # seconds between two looks
_SHARE = 20  # a pause is at least so many times as long as a look


class DataWatcher:
    """Starts with `start`, ends with `close`; `look` looks once."""

    def __init__(self, session: LabelingSession, digests: Digests) -> None:
        self._desk, self._digests = session, digests
        self._last: dict[str, Mark] | None = None  # what the last look saw
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="askance-watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join(5)

    def look(self) -> None:
        """Look; what has changed is taken up when the look before saw the same."""
        source = self._desk.items.source
        marks = marks_of(source.path)
        before, self._last = self._last, marks
        if marks == self._desk.items.marks:
            self._desk.lose_sight(None)
        elif marks == before:
            try:
                self._desk.renew(read(source, self._digests))
                self._digests.save()
            except (AskanceError, OSError) as error:  # tried again at the next look
                log.info("the data cannot be read again", exc_info=True)
                self._desk.lose_sight(str(error))

    def _run(self) -> None:
        pause = PAUSE
        while not self._closing.wait(pause):
            began = time.monotonic()
            try:
                self.look()
            except Exception as error:  # shown on the page; answering goes on
                log.warning("the data could not be looked at", exc_info=True)
                self._desk.lose_sight(f"{type(error).__name__}: {error}")
            pause = max(PAUSE, _SHARE * (time.monotonic() - began))
