"""Figures that are yet to be drawn, and a process that draws some of them meanwhile."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from functools import cached_property, partial

from matplotlib.figure import Figure

from askance.figures import style

MANY = 24  # figures that take longer to draw than a process takes to start


class Drawing:
    """How a figure is drawn: call it for a new one; `svg` is drawn when first asked for, and once."""

    def __init__(self, draw: Callable[..., Figure], *args: object) -> None:
        self._draw = partial(draw, *args)
        self._elsewhere: Future[bytes] | None = None

    def __call__(self) -> Figure:
        return self._draw()

    def start(self, pool: Executor) -> None:
        """Have it drawn by a pool; who asks for it before its turn there has come still draws it."""
        self._elsewhere = pool.submit(_svg, self._draw)

    @cached_property
    def svg(self) -> bytes:
        if self._elsewhere is not None and not self._elsewhere.cancel():
            with suppress(BrokenProcessPool):  # killed, perhaps for want of memory
                return self._elsewhere.result()
        return _svg(self._draw)


@contextmanager
def meanwhile(drawings: Sequence[Drawing]) -> Iterator[None]:
    """A process beside this one draws them, for the time of the context; where they are few, none does.

    It begins with the last, so that it is met and not followed by who asks for the first. The bytes are
    the same wherever a figure is drawn.
    """
    if len(drawings) < MANY:
        yield
        return
    context = multiprocessing.get_context("spawn")
    # Ctrl-C goes to every process of a terminal; this one answers it.
    pool = ProcessPoolExecutor(1, context, signal.signal, (signal.SIGINT, signal.SIG_IGN))
    try:
        for drawing in reversed(drawings):
            drawing.start(pool)
        yield
    finally:
        pool.shutdown(cancel_futures=True)


def _svg(draw: Callable[[], Figure]) -> bytes:
    return style.render(draw(), "svg")
