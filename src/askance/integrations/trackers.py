"""A tracker from its name on the command line: `tensorboard:DIR`, `mlflow:URI`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from askance.errors import InputError, UnknownError

# Kind → the class in the module of that name, which is imported late.
KINDS = {"tensorboard": "TensorBoard", "mlflow": "Mlflow"}


def tracker(text: str) -> Any:
    """The tracker that `KIND:WHERE` names, as a context that closes it."""
    kind, _, where = text.partition(":")
    if kind not in KINDS:
        raise UnknownError.of("tracker", kind, KINDS)
    if not where:
        raise InputError(
            f"a tracker is KIND:WHERE, e.g. tensorboard:runs/tb; {text!r} says no place"
        )
    return getattr(import_module(f"askance.integrations.{kind}"), KINDS[kind])(where)
