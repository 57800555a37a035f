"""A look at the data every few seconds, while a page is served: what changed there is taken up.

A look costs one `stat` a file. Only when two looks in a row agree on what has changed is the data read
again, so that a file that is still being copied is waited for. All of it happens in a thread beside
the answering, which waits for nothing but the moment in which the new items take the old ones' place.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import Protocol

from askance.errors import AskanceError
from askance.label.contents import Digests, Mark, marks_of
from askance.label.items import Items, read

log = logging.getLogger(__name__)

PAUSE = 2.0  # seconds between two looks
_SHARE = 20  # a pause is at least so many times as long as a look


class WatchedData(Protocol):
    """Who has the items, and is told what became of them."""

    items: Items

    def replace_items(self, items: Items) -> None:
        """The data is these items now."""

    def report_trouble(self, why: str | None) -> None:
        """The data cannot be read now, and why; None: it is as it was."""


class DataWatcher:
    """Starts with `start`, ends with `close`; `look` looks once."""

    def __init__(self, data: WatchedData, digests: Digests) -> None:
        self._data, self._digests = data, digests
        self._last: dict[str, Mark] | None = None  # the marks at the last look
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="askance-watch", daemon=True)

    def start(self) -> None:
        """Begin to look every few seconds."""
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join(5)

    def look(self) -> None:
        """Look; what has changed is taken up when the look before saw the same."""
        source = self._data.items.source
        marks = marks_of(source.path)
        before, self._last = self._last, marks
        if marks == self._data.items.marks:
            self._data.report_trouble(None)
        elif marks == before:
            try:
                self._data.replace_items(read(source, self._digests))
                self._digests.save()
            except (AskanceError, OSError) as error:  # tried again at the next look
                log.info("the data cannot be read again", exc_info=True)
                self._data.report_trouble(str(error))

    def _run(self) -> None:
        pause, logged = PAUSE, ""
        while not self._closing.wait(pause):
            began = time.monotonic()
            try:
                self.look()
            except Exception as error:  # shown on the page; answering goes on
                text = f"{type(error).__name__}: {error}"
                if text != logged:
                    log.warning("the data could not be looked at", exc_info=True)
                logged = text
                self._data.report_trouble(text)
            pause = max(PAUSE, _SHARE * (time.monotonic() - began))
