"""The datasets by name."""

from __future__ import annotations

from askance.data.entry import Entry
from askance.data.official import (
    cifar10,
    cinic10,
    digits,
    german,
    gisette,
    gtsrb,
    idx,
    isolet,
    newsgroups,
    pokerhand,
    stl10,
    svhn,
)
from askance.errors import UnknownError

ENTRIES: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        newsgroups.ENTRY,
        isolet.ENTRY,
        pokerhand.ENTRY,
        cifar10.ENTRY,
        svhn.ENTRY,
        stl10.ENTRY,
        gtsrb.ENTRY,
        cinic10.ENTRY,
        idx.MNIST,
        german.ENTRY,
        gisette.ENTRY,
        digits.ENTRY,
        idx.FASHION_MNIST,
    )
}


def names() -> list[str]:
    """The names of all datasets, in the protocol's order."""
    return list(ENTRIES)


def entry(name: str) -> Entry:
    if name not in ENTRIES:
        raise UnknownError.of("dataset", name, ENTRIES)
    return ENTRIES[name]
