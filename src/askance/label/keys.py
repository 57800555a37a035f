"""Which key answers with which class: the keys that the page shows, and no others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from askance.label.records import Class

# The letters are those that the page's own commands leave, see `keys.js`.
KEYS = "1234567890cdfijklmnopqrtvwxy"


def assigned_keys(
    classes: Sequence[Class], chosen: Mapping[int, str] = MappingProxyType({})
) -> dict[int, str]:
    """Class id → its key, as long as there are some.

    A key that somebody chose is that class's. A class named by a key that is free has that key, so that
    7 answers "7"; any other has the first one left. A later class never moves an earlier one's key,
    unless its key is chosen.
    """
    keys = {chosen[each.id]: each.id for each in classes if each.id in chosen}
    for each in sorted(classes, key=lambda each: each.id):
        if each.id in chosen:
            continue
        named = [key for key in KEYS if key == each.name.lower()]
        key = next((key for key in (*named, *KEYS) if key not in keys), None)
        if key is not None:
            keys[key] = each.id
    return {number: key for key, number in keys.items()}
