"""Progress bars, and what a command says when it is stopped."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

from askance.cli.console import errors, note
from askance.data import Dataset, overlaps
from askance.experiments.records import RoundRecord
from askance.experiments.runner import RunObserver
from askance.experiments.spec import Spec
from askance.pools import Shard
from askance.selection.selection import ReadCounts


def _progress(*columns: ProgressColumn, transient: bool = False) -> Progress:
    """A name, a bar and these columns."""
    name = TextColumn("{task.description}", table_column=Column(no_wrap=True))
    bar = BarColumn(bar_width=None, table_column=Column(min_width=6, max_width=24))
    return Progress(name, bar, *columns, console=errors, transient=transient)


def _time_left() -> ProgressColumn:
    return TimeRemainingColumn(compact=True, table_column=Column(no_wrap=True))


class Bar(RunObserver):
    """A progress bar on standard error."""

    def __init__(self) -> None:
        share = TaskProgressColumn(table_column=Column(no_wrap=True))
        state = TextColumn("{task.fields[state]}", markup=False)
        self.progress = _progress(share, _time_left(), state)
        self.leader = ""
        self._encoding: Progress | None = None

    def encoding(self, spec: Spec, done: int, total: int) -> None:
        if self._encoding is None:
            columns = (MofNCompleteColumn(), _PerSecond(), _time_left())
            self._encoding = _progress(*columns, transient=True)
            self._encoding.add_task(f"encode · {spec.encoder}", total=total, unit="items")
            self._encoding.start()
        self._encoding.update(TaskID(0), completed=done)

    def began(self, spec: Spec, dataset: Dataset, how: str, total: int, done: int) -> None:
        self.epochs, self.rounds = spec.recipe.epochs, spec.schedule.rounds
        self._runs = {(label, seed) for label, _, seed in spec.runs()}
        self._accuracies: dict[int, dict[tuple[str, int], float]] = {}
        self.leader = ""
        self.stage_name = ""
        if self._encoding is not None:
            self._encoding.stop()
        if dataset.subset:
            note(f"{dataset.name}: {dataset.subset}")
        if overlaps(spec.dataset, spec.encoder):
            note(
                f"{dataset.name}: {spec.encoder} was trained on images that overlap with these; "
                "accuracies flatter it"
            )
        if done == total:
            note(f"{spec.name}: all of it is in the store")
        elif done:
            note(f"{spec.name}: {done / total:.0%} are in the store, going on from there")
        self.task = self.progress.add_task(spec.name, total=total, completed=done, state=how)
        self.progress.start()

    def stage(self, stage: str) -> None:
        self.stage_name = f"{stage}/{self.rounds}" if stage.startswith("round") else stage

    def epoch(self, epoch: int, points: int) -> None:
        self.progress.advance(self.task, points)
        so_far = f" · {self.leader}" if self.leader else ""
        at = f" · epoch {epoch}/{self.epochs}" if self.epochs > 1 else ""
        self._state(f"{self.stage_name}{at}{so_far}")

    def swept(self, rate: float, seed: int, accuracy: float) -> None:
        self._state(f"learning rate {rate:g}: validation accuracy {accuracy:.1%}")

    def resumed(self, record: RoundRecord) -> None:
        self.stored(record)

    def stored(self, record: RoundRecord) -> None:
        run = record.strategy, record.seed
        if run not in self._runs:  # a run of the store that this command did not ask for
            return
        accuracies = self._accuracies.setdefault(record.round, {})
        accuracies[run] = record.accuracy
        if len(accuracies) == len(self._runs):
            by_rule: dict[str, list[float]] = {}
            for (rule, _), accuracy in accuracies.items():
                by_rule.setdefault(rule, []).append(accuracy)
            means = {rule: sum(each) / len(each) for rule, each in by_rule.items()}
            best = max(means, key=lambda rule: means[rule])
            self.leader = f"best in round {record.round}: {best}, mean {means[best]:.1%}"

    def close(self) -> None:
        """Stop the bar."""
        if self._encoding is not None:
            self._encoding.stop()
        if self.progress.live.is_started:  # else there is no bar, and an empty line in its place
            self.progress.stop()

    def _state(self, text: str) -> None:
        self.progress.update(self.task, state=text)


class _PerSecond(ProgressColumn):
    """How fast rows or items are done."""

    def render(self, task: Task) -> Text:
        return Text("" if task.speed is None else f"{task.speed:,.0f} {task.fields['unit']}/s")


class Rate:
    """Rows done, rows a second and the time left, on standard error.

    Args:
        name: what is done.
        total: how many rows there are.
        encoder: what encodes them before that, where something does.
    """

    def __init__(self, name: str, total: int | None, encoder: str | None = None) -> None:
        columns = (MofNCompleteColumn(), _PerSecond(), _time_left())
        self.progress = _progress(*columns, transient=True)
        self._encoding = None
        if encoder is not None:
            self._encoding = self.progress.add_task(f"encode · {encoder}", total=None, unit="items")
        self.task = self.progress.add_task(name, total=total, start=encoder is None, unit="rows")
        self.progress.start()

    def encoding(self, done: int, total: int) -> None:
        """Show how many items are encoded."""
        assert self._encoding is not None
        self.progress.update(self._encoding, completed=done, total=total)

    def shard(self, shard: Shard, read: ReadCounts) -> None:
        """Show that a shard is done."""
        self.progress.start_task(self.task)
        self.progress.advance(self.task, read.rows if shard.rows is None else shard.rows)

    def close(self) -> None:
        """Stop the bar."""
        self.progress.stop()


@contextmanager
def resumable(bar: Bar | Rate | None, where: str) -> Iterator[None]:
    """Close the bar at the end. On Ctrl-C, say where the results are and how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        if bar is not None:
            bar.close()  # before anything is said
        again = shlex.join(["askance", *sys.argv[1:]])
        note(f"Stopped. What is done is in {where}; to go on:\n  {again}")
        raise typer.Exit(130) from None
    finally:
        if bar is not None:
            bar.close()
