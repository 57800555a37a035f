"""Rounds as TensorBoard curves: one event folder a run, the number of labels as the step.

with TensorBoard("runs/tb") as track:
    for run in askance.loop(X, oracle, batch=50, rounds=5, track=track):
        …
        run.log(accuracy=accuracy)
        run.ask(model)
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from askance._io.atomic import atomic_write
from askance._io.filenames import file_name
from askance.errors import ExtraError, InputError
from askance.tracking import Fact, Round


class TensorBoard:
    """Writes to `folder/[experiment/]rule/seed-K`; continues a folder that is there already.

    Args:
        folder: the folder for `tensorboard --logdir`.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        try:
            import tensorboard  # noqa: F401
        except ImportError as error:
            raise ExtraError.of("tensorboard", "tensorboard") from error
        self.folder = Path(folder)
        self._facts: dict[str, Fact] = {}
        self._writers: dict[tuple[str, int], Any] = {}
        self._logged: dict[tuple[str, int], set[int]] = {}

    def began(self, facts: Mapping[str, Fact]) -> None:
        self._facts = dict(facts)
        if "identity" not in facts:  # a loop, which never continues an earlier one
            run = str(facts.get("strategy")), int(facts.get("seed", 0))
            self._logged[run] = set()
            if run in self._writers:
                self._writers.pop(run).close()

    def round(self, done: Round) -> None:
        run = done.strategy, done.seed
        if run not in self._writers:
            self._open(run)
        if done.round not in self._logged[run]:
            self._logged[run].add(done.round)
            for name, value in done.numbers().items():
                self._writers[run].add_scalar(name, value, global_step=done.labels)
            self._writers[run].flush()
        if done.last:
            self._writers.pop(run).close()

    def close(self) -> None:
        """Close all writers. Every round is on the disk already."""
        while self._writers:
            self._writers.popitem()[1].close()

    def __enter__(self) -> TensorBoard:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def folder_of(self, strategy: str, seed: int) -> Path:
        """The folder of a run's events."""
        name = [str(self._facts["name"])] if "name" in self._facts else []
        return self.folder.joinpath(*map(file_name, (*name, strategy)), f"seed-{seed}")

    def _open(self, run: tuple[str, int]) -> None:
        from torch.utils.tensorboard.writer import SummaryWriter

        folder = self.folder_of(*run)
        if run not in self._logged:
            self._logged[run] = self._rounds_before(folder)
        self._writers[run] = SummaryWriter(str(folder))
        if not self._logged[run]:
            facts = self._facts | {"strategy": run[0], "seed": run[1]}
            self._writers[run].add_text("facts", f"    {json.dumps(facts, ensure_ascii=False)}")

    def _rounds_before(self, folder: Path) -> set[int]:
        """The rounds that the folder has already; raises if they are of another experiment."""
        mark, identity = folder / "askance.json", self._facts.get("identity")
        if mark.exists() and json.loads(mark.read_text())["identity"] != identity:
            raise InputError(
                f"{folder} has the events of another experiment of this name; give another folder"
            )
        folder.mkdir(parents=True, exist_ok=True)
        atomic_write(mark, json.dumps({"identity": identity}).encode())
        return rounds_in(folder)


def rounds_in(folder: Path) -> set[int]:
    """The numbers of the rounds in a folder's events."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    if not folder.is_dir():
        return set()
    events = EventAccumulator(str(folder), size_guidance={"scalars": 0}).Reload()
    if "round" not in events.Tags()["scalars"]:
        return set()
    return {int(event.value) for event in events.Scalars("round")}
