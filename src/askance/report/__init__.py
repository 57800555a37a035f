"""Stores as one page that a newcomer understands and a scientist can check.

Example:
    >>> from askance import report
    >>> report.FORMATS
    ('html', 'md')
"""

from askance.report.facts import read
from askance.report.page import FORMATS, write

__all__ = ["FORMATS", "read", "write"]
