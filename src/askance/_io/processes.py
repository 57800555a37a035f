"""Processes: how many cores this one may use, and workers that neither outlive it nor hear Ctrl-C."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import wait


def cores() -> int:
    """How many cores this process may use, at least one."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def interrupts_blocked() -> Iterator[None]:
    """A process started meanwhile does not hear Ctrl-C, which a terminal sends to all of them.

    Where signals cannot be blocked (Windows), nothing changes.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def die_with_parent() -> None:
    """End this process as soon as the one that started it ends, however it ends.

    To be called in a process of `multiprocessing`; a thread waits for the other's end.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None
    threading.Thread(target=_exit_after, args=(parent.sentinel,), daemon=True).start()


def _exit_after(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)
