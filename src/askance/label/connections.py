"""Connections that cannot hold the page up: slow ones are closed, and of too many the idle ones.

uvicorn times the pause after a reply alone, and its limit counts connections that never ask anything.
Import it late (uvicorn).
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from h11 import LocalProtocolError
from uvicorn.protocols.http.h11_impl import H11Protocol

RECEIVED_WITHIN = 10.0  # seconds for a request to come whole, from the reply before it on
READ_WITHIN = 30.0  # seconds for a client to take up what is waiting for it
MOST_CONNECTIONS = 200  # well under the least number of files that systems let a process open
_LOGGED = 20


class TimedProtocol(H11Protocol):
    """uvicorn's protocol with limits for requests that do not come and replies that are not read."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._waiting: asyncio.TimerHandle | None = None
        self._stuck: asyncio.TimerHandle | None = None
        self.idle_since = self.loop.time()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request; where there are too many connections, one of them ends."""
        super().connection_made(transport)
        self._await_request()
        if len(self.connections) > MOST_CONNECTIONS:
            _to_close(self.connections, self).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let the timers go."""
        for timer in (self._waiting, self._stuck):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        self._await_request()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Begin to wait for the client to read."""
        super().pause_writing()
        self._stuck = self.loop.call_later(READ_WITHIN, self.transport.abort)

    def resume_writing(self) -> None:
        """The client has read enough."""
        super().resume_writing()
        if self._stuck is not None:
            self._stuck.cancel()

    @property
    def answering(self) -> bool:
        """Whether a whole request is here that has no reply yet."""
        cycle = self.cycle
        return cycle is not None and not (cycle.more_body or cycle.response_complete)

    def _await_request(self) -> None:
        self.idle_since = self.loop.time()
        if self._waiting is not None:
            self._waiting.cancel()
        self._waiting = self.loop.call_later(RECEIVED_WITHIN, self._end_unless_answering)

    def _end_unless_answering(self) -> None:
        if not self.answering:
            self.transport.abort()


def _to_close(connections: set[Any], new: TimedProtocol) -> TimedProtocol:
    """The connection without a request that has waited longest, those that never sent one first."""
    idle = [each for each in connections if not each.answering]
    return min(idle, key=lambda each: (each.cycle is not None, each.idle_since), default=new)


class FewOfEach(logging.Filter):
    """Passes the first messages of each kind: whoever can cause them could fill the disk."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[str, int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is one of the first with its text, and no fault of a client."""
        if record.exc_info and isinstance(record.exc_info[1], LocalProtocolError):
            return False  # rubbish came behind a request: uvicorn has closed, and the reply is late
        text = str(record.msg).partition("\n")[0]
        self._seen[text] = self._seen.get(text, 0) + 1
        return self._seen[text] <= _LOGGED
