"""askance: which examples to label next, by gradient discrepancy and its peers."""

from askance import oracles, strategies
from askance.embedding import Embedding
from askance.embedding.committee import committee
from askance.errors import AskanceError
from askance.gradients.discrepancy import df_scores
from askance.loop import loop
from askance.selection import Explanation, Selection, embed, select

__version__ = "0.1.0"

__all__ = [
    "AskanceError",
    "Embedding",
    "Explanation",
    "Selection",
    "committee",
    "df_scores",
    "embed",
    "loop",
    "oracles",
    "select",
    "strategies",
]
