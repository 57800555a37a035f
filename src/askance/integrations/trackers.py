"""Trackers by word: `tensorboard:DIR`, `mlflow:URI`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from askance.errors import InputError, UnknownError


def _tensorboard(where: str) -> Any:
    from askance.integrations.tensorboard import TensorBoard

    return TensorBoard(where)


def _mlflow(where: str) -> Any:
    from askance.integrations.mlflow import Mlflow

    return Mlflow(where)


KINDS: dict[str, Callable[[str], Any]] = {"tensorboard": _tensorboard, "mlflow": _mlflow}


def tracker(text: str) -> Any:
    """The tracker that `KIND:WHERE` names; it is closed by leaving its context."""
    kind, _, where = text.partition(":")
    if kind not in KINDS:
        raise UnknownError.of("tracker", kind, KINDS)
    if not where:
        raise InputError(
            f"a tracker is KIND:WHERE, e.g. tensorboard:runs/tb; {text!r} says no place"
        )
    return KINDS[kind](where)
