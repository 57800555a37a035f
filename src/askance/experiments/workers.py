"""Where rounds are run: in this process, in processes beside it, or on a `Cluster`.

A small network keeps one core busy and no more, so on a CPU several are trained at a time, each in a
process with one thread. A worker never touches the store; it dies with the process that started it.
"""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager, suppress
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any, Protocol

import torch

from askance._io.processes import cores, die_with_parent, interrupts_blocked
from askance.errors import AskanceError
from askance.experiments.rounds import LoadedExperiment, Progress
from askance.experiments.spec import Spec
from askance.training import Engine

Task = Callable[..., Any]
"""Work for one worker: it can be pickled, and is called as `task(experiment, progress=progress)`."""

Workers = Callable[[Sequence[Task]], Iterator[Any]]
"""Does tasks; their results come in any order, each as soon as it is there."""

Event = tuple[int, int] | Future[Any]
"""An epoch that ended in a worker, as `Progress` takes it, or a task that is done."""

Events = SimpleQueue[Event]


class Cluster(Protocol):
    """Workers that the caller provides, such as those of a Ray cluster."""

    @property
    def device(self) -> torch.device:
        """Where each of them trains."""
        ...

    @property
    def n_workers(self) -> int:
        """How many tasks they do at a time."""
        ...

    def workers(
        self, experiment: LoadedExperiment, progress: Progress
    ) -> AbstractContextManager[Workers]:
        """The workers, for the time of the context; `experiment` is on their device."""
        ...


@contextmanager
def workers(
    experiment: LoadedExperiment, count: int, data_dir: Any, progress: Progress
) -> Iterator[Workers]:
    """Start `count` workers for the time of the context; several are processes of their own.

    `progress` is called in the thread that goes through the results, wherever the epoch ended.
    """
    threads = torch.get_num_threads()
    if experiment.device.type == "cpu":
        # The number of threads decides how sums are split, hence their last digits: always one.
        torch.set_num_threads(1)
    try:
        if count <= 1:
            yield lambda tasks: (task(experiment, progress=progress) for task in tasks)
            return
        context = multiprocessing.get_context("spawn")
        receiver, sender = context.Pipe(duplex=False)
        events: Events = SimpleQueue()
        listener = threading.Thread(target=_listen, args=(receiver, events), daemon=True)
        listener.start()
        arguments = (experiment.spec, experiment.engine, data_dir, sender, context.Lock())
        pool = ProcessPoolExecutor(count, context, _start, arguments)
        try:
            yield lambda tasks: _as_they_come(pool, tasks, events, progress)
        except BaseException:
            for process in list((pool._processes or {}).values()):
                process.kill()
            raise
        finally:
            pool.shutdown(cancel_futures=True)
            # With the workers gone this is the pipe's last end, so the listener hears it close. To
            # tell it something would take the lock, which a worker may have held when it was killed.
            sender.close()
            listener.join()
        while not events.empty():  # a result may overtake its last epochs, which come another way
            _tell(events.get(), progress)
    finally:
        torch.set_num_threads(threads)


def count_for(experiment: LoadedExperiment, workers: int | None, runs: int) -> int:
    """How many workers to start: on a CPU one for each core, but no more than runs; else one."""
    if experiment.device.type != "cpu" or experiment.engine != "one":
        return 1
    return min(workers or cores(), max(runs, 1))


def _as_they_come(
    pool: ProcessPoolExecutor, tasks: Sequence[Task], events: Events, progress: Progress
) -> Iterator[Any]:
    """Each result as soon as it is there; between them `progress` is called, in this thread."""
    try:
        with interrupts_blocked():  # the pool starts workers here; who holds the store decides
            left = {pool.submit(_do, task) for task in tasks}
        for future in left:
            future.add_done_callback(events.put)
        while left:
            event = events.get()
            _tell(event, progress)
            if event in left:
                left.remove(event)
                yield event.result()
    except BrokenProcessPool as error:
        raise AskanceError(
            "a worker process died or could not start, perhaps for want of memory; what is stored "
            "is safe: run the same command again, with --workers 1 if it happens again. A script "
            'of your own that calls run must do so under `if __name__ == "__main__":`'
        ) from error


def _tell(event: Event, progress: Progress) -> None:
    """Call `progress` where the event is an epoch."""
    if isinstance(event, tuple):
        progress(*event)


def _listen(receiver: Connection, events: Events) -> None:
    with receiver, suppress(EOFError):
        while True:
            events.put(receiver.recv())


# In a worker process

_experiment: LoadedExperiment | None = None
_progress: Progress | None = None


def _start(spec: Spec, engine: Engine, data_dir: Any, sender: Connection, lock: Any) -> None:
    global _experiment, _progress
    die_with_parent()
    torch.set_num_threads(1)

    def progress(epoch: int, points: int) -> None:
        with lock:
            sender.send((epoch, points))

    _progress = progress
    _experiment = LoadedExperiment.of(spec, torch.device("cpu"), engine, data_dir)


def _do(task: Task) -> Any:
    assert _experiment is not None
    assert _progress is not None
    return task(_experiment, progress=_progress)
