"""One evaluation pass of any model over any data, and the record it leaves."""

from askance.embedding.checks import LogitsCheck, check_finite, check_logits, check_range
from askance.embedding.forward import Evaluation, embed
from askance.embedding.ids import Ids, Listed
from askance.embedding.record import Embedding, concatenated, positions_array, texts

__all__ = [
    "Embedding",
    "Evaluation",
    "Ids",
    "Listed",
    "LogitsCheck",
    "check_finite",
    "check_logits",
    "check_range",
    "concatenated",
    "embed",
    "positions_array",
    "texts",
]
