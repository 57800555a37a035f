"""Every exception askance raises on purpose.

    AskanceError (a ValueError)
    ├── InputError      a wrong shape, type, count or index
    │   └── KindError   (also a TypeError) an object of a kind that cannot be used here
    ├── NonFiniteError  NaN or infinity where a number is needed
    ├── LabelError      labelled points missing, or labels that cannot be
    ├── HeadError       the classifier's last linear layer was not found, or not one alone
    ├── UnknownError    a name that is not registered; the closest known ones are listed
    ├── DataError       a dataset that is missing, damaged, or not what its format says
    │   └── ShardError  a shard of a pool that is damaged, changed, gone, or unlike the others
    ├── ExtraError      (also an ImportError) an optional package that is not installed
    ├── SpecError       an experiment's description with an unknown key or an impossible value
    └── StoreError      a store that is locked, damaged, of another experiment, or cannot be written

A message says what was expected, what came, and what to do. What is allowed and rarely meant is said by
a warning, `SelectionWarning` (a UserWarning).
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class SelectionWarning(UserWarning):
    """The picks are an answer, and probably to another question than was meant."""


class AskanceError(ValueError):
    """Base of all errors raised by askance."""


class InputError(AskanceError):
    """A wrong shape, type, count or index."""


class KindError(InputError, TypeError):
    """An object of a kind that cannot be used here; scikit-learn's users expect a TypeError."""


class NonFiniteError(AskanceError):
    """NaN or infinity where a number is needed."""


class LabelError(AskanceError):
    """Labelled points are missing, or a label cannot be what it says."""


class HeadError(AskanceError):
    """The classifier's last linear layer was not found, or not one alone."""


class UnknownError(AskanceError):
    """A name that is not registered."""

    @classmethod
    def of(cls, kind: str, name: object, registered: Iterable[str]) -> UnknownError:
        """The error for `name`, with the closest known names first."""
        names = sorted(registered)
        close = get_close_matches(str(name).lower(), names, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(map(repr, close))}? " if close else ""
        return cls(f"unknown {kind} {name!r}: {hint}known: {', '.join(names) or 'none'}")


class DataError(AskanceError):
    """A dataset is missing, damaged, or not what its format says."""


class ShardError(DataError):
    """A shard of a pool is damaged, changed, gone, or unlike the others."""


class ExtraError(AskanceError, ImportError):
    """An optional package is not installed."""

    @classmethod
    def of(cls, package: str, extra: str) -> ExtraError:
        """The error for `package`, which `askance[extra]` brings."""
        return cls(f'{package} is not installed; install it with: pip install "askance[{extra}]"')


class SpecError(AskanceError):
    """An experiment's description has an unknown key or an impossible value."""


class StoreError(AskanceError):
    """A store is locked, damaged, of another experiment, or cannot be written."""
