"""The question askance answers: model + labelled set + pool → the points to label next."""

from askance.query.many import select_many
from askance.query.select import select
from askance.query.selection import Explanation, Selection

__all__ = ["Explanation", "Selection", "select", "select_many"]
