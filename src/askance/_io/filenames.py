"""File names made from text that was read: an experiment's name, a rule's label.

A name that every file system takes as it is, and tells from every other, stays as it is. Any other
becomes its letters and digits, two dashes and a digest of the whole. So whatever a file says, what is
written has a name of its own in the folder that was asked for.
"""

from __future__ import annotations

import re
import unicodedata
from hashlib import blake2b

# Characters; with an ending and what marks a half-written file they are well under 255.
LONGEST = 100
_READABLE = 60  # of them, before a digest
_DIGEST = re.compile(r"--[0-9a-f]{32}")

# What Windows takes for a device, whatever comes after a dot.
_DEVICES = frozenset(
    ["con", "prn", "aux", "nul"] + [f"{port}{n}" for port in ("com", "lpt") for n in range(10)]
)


def is_path(text: str) -> bool:
    """Whether a text is a path: it has a separator, a dot or a tilde, and the names here have none."""
    return any(mark in text for mark in "./\\~")


def is_safe(name: str) -> bool:
    """Whether every file system takes the name for one file or folder of that name.

    It begins with a letter or a digit of ASCII, goes on with those and `-`, `_` and `.`, does not end
    in a dot, has at most 100 characters, and is no device of Windows, such as `con` or `nul.txt`.
    """
    plain = re.fullmatch(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9_-])?", name)
    device = name.partition(".")[0].lower() in _DEVICES
    return plain is not None and len(name) <= LONGEST and not device


def file_name(name: str) -> str:
    """The name of a file or folder that stands for `name`, without an ending.

    Different names give different files, also where a file system does not tell `A` from `a`: a safe
    name without capitals, that does not end like a name made here, is left alone.

    Example:
        >>> from askance._io.filenames import file_name
        >>> file_name("curves-my-experiment")
        'curves-my-experiment'
        >>> file_name("../../x")
        'x--9a3d297d687a9f5ba29398f6b8623b90'
    """
    if is_safe(name) and name == name.lower() and not _DIGEST.fullmatch(name[-34:]):
        return name
    # Lone surrogates are no UTF-8, but JSON can hold them.
    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    letters = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    words = re.findall(r"\w+", letters)
    return f"{'-'.join(words)[:_READABLE] or 'name'}--{digest}"
