"""askance: which examples to label next, by gradient discrepancy and its peers."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from askance import oracles, strategies
from askance.advice import advise
from askance.embedding import Embedding
from askance.embedding.committee import committee
from askance.errors import AskanceError
from askance.gradients.discrepancy import df_scores
from askance.loop import loop, resume
from askance.selection import Explanation, Selection, embed, select

__version__ = "0.1.0"

__all__ = [
    "AskanceError",
    "Embedding",
    "Explanation",
    "Selection",
    "advise",
    "committee",
    "df_scores",
    "embed",
    "loop",
    "oracles",
    "resume",
    "select",
    "strategies",
]


def __getattr__(name: str) -> Any:
    """`askance.data`, `askance.testing`, …: the other modules, imported where they are first used."""
    if name.startswith("_") or find_spec(f"{__name__}.{name}") is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
