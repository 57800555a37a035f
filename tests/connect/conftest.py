"""The command line in this process, as its own tests have it."""

from tests.cli.conftest import askance, tiny

__all__ = ["askance", "tiny"]
