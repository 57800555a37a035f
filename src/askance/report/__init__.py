"""Stores as one page: what the results are, how sure, and how to repeat them.

Example:
    >>> from askance import report
    >>> report.FORMATS
    ('html', 'md')
"""

from askance.report.facts import read
from askance.report.page import FORMATS, write

__all__ = ["FORMATS", "read", "write"]
