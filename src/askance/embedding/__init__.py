"""One evaluation pass of any model over any data, and the record it leaves."""

from askance.embedding.forward import Evaluation, concatenated, embed
from askance.embedding.record import (
    Block,
    Embedding,
    LogitsCheck,
    check_finite,
    check_logits,
    check_range,
)

__all__ = [
    "Block",
    "Embedding",
    "Evaluation",
    "LogitsCheck",
    "check_finite",
    "check_logits",
    "check_range",
    "concatenated",
    "embed",
]
