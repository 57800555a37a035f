"""The paper: its experiments, studies and claims. No package but the command line knows it.

Importing it lets the experiments in `experiments/` be loaded by name: the 18 of the suite, and our
variants of them, whose names are longer.

Example:
    >>> from askance import paper
    >>> from askance.experiments import spec
    >>> spec.load("svhn-lenet").dataset
    'svhn'
    >>> len(paper.SUITE.experiments)
    18
"""

from importlib.resources import files

from askance.experiments import spec
from askance.paper.suite import SUITE

spec.register(files(__name__) / "experiments")

__all__ = ["SUITE"]
