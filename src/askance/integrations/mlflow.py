"""Rounds as MLflow metrics: one MLflow run for each rule and seed, the number of labels as the step.

    with Mlflow("http://127.0.0.1:5000", experiment="birds") as track:
        for run in askance.loop(X, oracle, batch=50, rounds=5, track=track):
            …
            run.log(accuracy=accuracy)
            run.ask(model)

Nothing global is touched: neither MLflow's active run nor its tracking URI.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from askance._io.filenames import file_name
from askance.errors import ExtraError, InputError
from askance.tracking import Fact, Round

_TAG = "askance.run"


class Mlflow:
    """Logs to a tracking server or store; continues runs that are there already.

    Args:
        uri: of the server or store: "http://…", "file:…", "sqlite:///…" (the last one needs all of
            MLflow, not its skinny form).
        experiment: its name in MLflow; if None, the name of the experiment, else "askance".
    """

    def __init__(self, uri: str, experiment: str | None = None) -> None:
        try:
            from mlflow.tracking import MlflowClient
        except ImportError as error:
            raise ExtraError.of("mlflow-skinny", "mlflow") from error
        try:
            self.client = MlflowClient(tracking_uri=uri)
            self.client.search_experiments(max_results=1)
        except Exception as error:
            reason = str(error).strip().partition("\n")[0]
            raise InputError(f"MLflow cannot be reached at {uri!r}: {reason}") from error
        self.experiment = experiment
        self._facts: dict[str, Fact] = {}
        self._runs: dict[tuple[str, int], str] = {}
        self._logged: dict[tuple[str, int], set[int]] = {}

    def began(self, facts: Mapping[str, Fact]) -> None:
        self._facts = dict(facts)
        if "identity" not in facts:  # a loop, which never continues an earlier one
            before = self._runs.pop((str(facts.get("strategy")), int(facts.get("seed", 0))), None)
            if before is not None:
                self.client.set_terminated(before, status="KILLED")

    def round(self, done: Round) -> None:
        from mlflow.entities import Metric

        run = done.strategy, done.seed
        if run not in self._runs:
            self._runs[run] = self._opened(run)
        if done.round not in self._logged[run]:
            self._logged[run].add(done.round)
            now = int(1000 * time.time())
            numbers = done.numbers().items()
            metrics = [Metric(name, value, now, done.labels) for name, value in numbers]
            self.client.log_batch(self._runs[run], metrics=metrics)
        if done.last:
            self.client.set_terminated(self._runs.pop(run))

    def close(self) -> None:
        """Mark unfinished runs as killed; they can be continued."""
        while self._runs:
            self.client.set_terminated(self._runs.popitem()[1], status="KILLED")

    def __enter__(self) -> Mlflow:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _opened(self, run: tuple[str, int]) -> str:
        """The id of the MLflow run of this rule and seed; creates the run if there is none."""
        experiment = self._experiment_id()
        identity = self._facts.get("identity")
        # file_name: the mark is quoted in a query below, and quotes in a label would end the text.
        mark = None if identity is None else f"{identity}/{file_name(run[0])}/{run[1]}"
        stored: Any = []
        if mark is not None:
            query = f"tags.`{_TAG}` = '{mark}'"
            stored = self.client.search_runs([experiment], query, max_results=1)
        if stored:
            run_id = stored[0].info.run_id
            self.client.update_run(run_id, status="RUNNING")
            history = self.client.get_metric_history(run_id, "round")
            self._logged[run] = {int(metric.value) for metric in history}
            return run_id
        tags = {} if mark is None else {_TAG: mark}
        new = self.client.create_run(experiment, tags=tags, run_name=f"{run[0]}, seed {run[1]}")
        for name, value in (self._facts | {"strategy": run[0], "seed": run[1]}).items():
            self.client.log_param(new.info.run_id, name, value)
        self._logged[run] = set()
        return new.info.run_id

    def _experiment_id(self) -> str:
        name = self.experiment or str(self._facts.get("name", "askance"))
        stored = self.client.get_experiment_by_name(name)
        return self.client.create_experiment(name) if stored is None else stored.experiment_id
