"""One evaluation pass of any model over any data, and the record it leaves."""

from askance.embedding.forward import Evaluation, concatenated, embed
from askance.embedding.record import Block, Embedding, check_finite

__all__ = ["Block", "Embedding", "Evaluation", "check_finite", "concatenated", "embed"]
