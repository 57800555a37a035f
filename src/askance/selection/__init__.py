"""The question askance answers: model + labelled set + pool → the points to label next."""

from askance.selection.embed import embed
from askance.selection.many import select_many
from askance.selection.select import select
from askance.selection.selection import Explanation, Selection

__all__ = ["Explanation", "Selection", "embed", "select", "select_many"]
