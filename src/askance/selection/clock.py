"""Seconds in each phase, and a progress bar."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from askance.embedding import Embedding

_PHASES = ("labeled", "forward", "score", "select")


class Clock:
    """Seconds spent in each phase; a CUDA device is waited for where a phase ends."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(_PHASES, 0.0)
        self.device: torch.device | None = None

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the time inside as `name`."""
        start = time.perf_counter()
        try:
            yield
        finally:
            if self.device is not None and self.device.type == "cuda":
                torch.cuda.synchronize(self.device)
            self.seconds[name] += time.perf_counter() - start

    def add(self, seconds: Mapping[str, float]) -> None:
        """Add what another clock, perhaps another process's, measured."""
        for name, more in seconds.items():
            self.seconds[name] += more

    def timing(self, name: str, blocks: Iterator[Embedding]) -> Iterator[Embedding]:
        """The same blocks; the time to make each counts as `name`."""
        while True:
            with self.phase(name):
                block = next(blocks, None)
            if block is None:
                return
            yield block


@contextmanager
def progress_bar(
    blocks: Iterator[Embedding], total: int | None, name: str
) -> Iterator[Iterator[Embedding]]:
    """The same blocks; a bar on the screen, or in the notebook, advances by their rows."""
    with _bar() as bar:
        task = bar.add_task(f"select · {name}", total=total)

        def shown() -> Iterator[Embedding]:
            for block in blocks:
                yield block
                bar.advance(task, len(block))

        yield shown()


@contextmanager
def encoding_bar(shown: bool, name: str) -> Iterator[Callable[[int, int], None] | None]:
    """What an encoder tells how far it is, which moves a bar; None where none is shown."""
    if not shown:
        yield None
        return
    with _bar() as bar:
        task = bar.add_task(f"encode · {name}", total=None)

        def advance(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield advance


def _bar() -> Any:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    return Progress(*columns, transient=True)
