"""Which item is which: by name and content, so that an answer stays with what was looked at.

The same content is the same item. An item keeps the id it was given first, its name at that time. So:

- a file that is renamed, or a row that moves, keeps its id, its answers and its part of the split;
- other content under an old name is another item, whose id is NAME@DIGEST; the old one is missing
  with its answers until its content is back;
- of several equal contents each is an item, in their order.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Digest = str | None  # None: kept before images had digests; the name decides


def identified(
    stored: Mapping[str, Digest], names: Sequence[str], digests: Sequence[str]
) -> list[str]:
    """The id of each of these contents, a new one where the project does not have it.

    Args:
        stored: the digest of every item the project ever had, in the order in which they came.
        names: where the contents are now.
        digests: what they are.
    """
    ids: dict[int, str] = {}
    for row, (name, digest) in enumerate(zip(names, digests, strict=True)):
        for item in (name, f"{name}@{digest}"):
            if item in stored and stored[item] in (None, digest):
                ids[row] = item
                break
    used = set(ids.values())
    left = [row for row in range(len(names)) if row not in ids]
    elsewhere: dict[Digest, deque[str]] = defaultdict(deque)
    for item in stored if left else ():
        if item not in used:
            elsewhere[stored[item]].append(item)
    for row in left:
        if elsewhere[digests[row]]:
            ids[row] = elsewhere[digests[row]].popleft()
    used.update(ids.values())
    for row in left:
        if row not in ids:
            item = names[row]
            while item in stored or item in used:
                item = f"{item}@{digests[row]}"
            ids[row] = item
            used.add(item)
    return [ids[row] for row in range(len(names))]


def name_of(item: str, digest: Digest) -> str:
    """The name an item had when it came."""
    return item if digest is None else item.removesuffix(f"@{digest}")


@dataclass(frozen=True)
class DataChanges:
    """How the data differs from what the project had when it was opened: counts of items.

    Args:
        new: never seen before.
        missing: not in the data, by name or by content.
        changed: other content under the old name.
        renamed: elsewhere than when they came.
    """

    new: int = 0
    missing: int = 0
    changed: int = 0
    renamed: int = 0

    @classmethod
    def between(
        cls,
        before: Mapping[str, Digest],
        stored: Mapping[str, Digest],
        ids: Sequence[str],
        names: Sequence[str],
    ) -> DataChanges:
        """What to say of these items, of those stored now and of those stored at the opening."""
        here = set(ids)
        came_as = [name_of(item, stored[item]) for item in ids]
        kept = {name for name, first in zip(names, came_as, strict=True) if name == first}
        gone = {name_of(item, digest) for item, digest in stored.items() if item not in here}
        changed = gone & kept
        new = (name for item, name in zip(ids, came_as, strict=True) if item not in before)
        return cls(
            sum(name not in changed for name in new),
            len(gone - kept),
            len(changed),
            len(ids) - len(kept),
        )
