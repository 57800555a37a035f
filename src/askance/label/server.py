"""A session on a socket: uvicorn in a thread, for as long as a context lasts."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from askance.errors import AskanceError, InputError
from askance.label.safety import TokenAuth, is_loopback
from askance.label.session import LabelingSession

_STARTED_WITHIN = 30.0
_AT_ONCE = 50  # connections taken up at once; with those that are open, few enough for any system
_QUEUE = 1024  # connections that wait for that: of more, some wait for seconds


def check_installed() -> None:
    """Raise where the extra's packages are missing, before anything is opened."""
    missing = [name for name in ("fastapi", "uvicorn", "safetensors") if find_spec(name) is None]
    if missing:
        raise InputError(f'askance label needs {", ".join(missing)}: pip install "askance[label]"')


def check_address(host: str, token: str | None) -> None:
    """Another address than loopback only with a token."""
    if not is_loopback(host) and token is None:
        raise InputError(
            f"{host} can be reached by others, so a token is needed: --token auto makes one. "
            f"Answers travel unencrypted; on a network you do not trust, use 127.0.0.1 and a tunnel"
        )


def bound(host: str, port: int) -> socket.socket:
    """A socket at the address; an error says what to do where that cannot be."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        # Header and body of a reply are two writes: else the second waits some 40 ms for the receipt of
        # the first. Connections inherit it, and asyncio sets it where the protocol says TCP.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_QUEUE)
    except (OSError, OverflowError) as error:
        listener.close()
        why = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"cannot listen at {host}:{port} ({why}); is another server there? Choose another with "
            f"--port, or let one be found with --port 0"
        ) from error
    return listener


@contextmanager
def serving(
    session: LabelingSession, *, host: str = "127.0.0.1", port: int = 0, token: str | None = None
) -> Iterator[str]:
    """The address of a server for this session; port 0 finds a free one.

    Where a token is in force the address is a link that works once. The caller closes the session.
    """
    check_installed()
    check_address(host, token)
    import uvicorn

    from askance.label.app import create_app
    from askance.label.connections import FewOfEach, TimedProtocol

    with bound(host, port) as listener:
        number = listener.getsockname()[1]
        auth = None if token is None else TokenAuth(token, number)
        app = create_app(session, host=host, port=number, auth=auth)
        config = uvicorn.Config(
            app,
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            lifespan="off",
            ws="none",
            http=TimedProtocol,
            loop="asyncio",
            backlog=_AT_ONCE,
            timeout_graceful_shutdown=2,
        )
        loggers, few = (
            [logging.getLogger(name) for name in ("uvicorn.error", "asyncio")],
            FewOfEach(),
        )
        for logger in loggers:
            logger.addFilter(few)
        server = uvicorn.Server(config)
        thread = threading.Thread(
            target=server.run, kwargs={"sockets": [listener]}, name="askance-label", daemon=True
        )
        thread.start()
        try:
            _await_start(server, thread)
            listener.listen(_QUEUE)  # asyncio takes up as many at once as it was told to queue
            shown = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
            shown = f"[{shown}]" if ":" in shown else shown
            yield f"http://{shown}:{number}{auth.ticket() if auth else '/'}"
        finally:
            server.should_exit = True
            thread.join(10)
            for logger in loggers:
                logger.removeFilter(few)


def _await_start(server: object, thread: threading.Thread) -> None:
    end = time.monotonic() + _STARTED_WITHIN
    while not getattr(server, "started", False):
        if not thread.is_alive() or time.monotonic() > end:
            raise AskanceError("the server did not start; run with --verbose to see why")
        time.sleep(0.01)
