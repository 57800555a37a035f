"""The paper's datasets, and your own, as one record.

Example:
    >>> from askance import data
    >>> data.load("digits")
    Dataset(digits: 1295 train, 143 val, 359 test, 10 classes; scikit-learn)
"""

from askance.data.catalog import names, overlaps
from askance.data.folder import from_image_folder
from askance.data.load import Description, describe, fetch, load
from askance.data.record import Dataset, Split
from askance.data.splits import Imbalance
from askance.data.table import from_table

__all__ = [
    "Dataset",
    "Description",
    "Imbalance",
    "Split",
    "describe",
    "fetch",
    "from_image_folder",
    "from_table",
    "load",
    "names",
    "overlaps",
]
