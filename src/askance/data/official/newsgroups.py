"""20 Newsgroups, the split by date: a tar of messages in folders 20news-bydate-<split>/<group>."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from askance.data.archives import GIB, tar_members
from askance.data.columns import column
from askance.data.encode import weighted_words
from askance.data.entry import Compact, Entry, Parts, Remote, Rows
from askance.errors import DataError

_ARCHIVE = "20news-bydate.tar.gz"
_SPLITS = ("train", "test")
CLASSES = (
    "alt.atheism",
    "comp.graphics",
    "comp.os.ms-windows.misc",
    "comp.sys.ibm.pc.hardware",
    "comp.sys.mac.hardware",
    "comp.windows.x",
    "misc.forsale",
    "rec.autos",
    "rec.motorcycles",
    "rec.sport.baseball",
    "rec.sport.hockey",
    "sci.crypt",
    "sci.electronics",
    "sci.med",
    "sci.space",
    "soc.religion.christian",
    "talk.politics.guns",
    "talk.politics.mideast",
    "talk.politics.misc",
    "talk.religion.misc",
)


def stripped(message: str) -> str:
    """A message without header, signature and quoted lines, as scikit-learn cuts them."""
    from sklearn.datasets import _twenty_newsgroups as newsgroups

    body = newsgroups.strip_newsgroup_footer(newsgroups.strip_newsgroup_header(message))
    return str(newsgroups.strip_newsgroup_quoting(body))


def parse(paths: Mapping[str, Path]) -> Parts:
    path = paths[_ARCHIVE]
    messages: dict[str, dict[tuple[int, str], str]] = {split: {} for split in _SPLITS}
    for name, data in tar_members(path, lambda name: True, limit=GIB):
        split, group, message = _place(name, path)
        messages[split][CLASSES.index(group), message] = stripped(data.decode("latin-1"))
    empty = [split for split in _SPLITS if not messages[split]]
    if empty:
        raise DataError(f"{path.name}: no messages of {', '.join(empty)}")
    return Parts(*(_rows(messages[split], path) for split in _SPLITS))


def _place(name: str, path: Path) -> tuple[str, str, str]:
    parts = PurePosixPath(name).parts[-3:]
    split = parts[0].removeprefix("20news-bydate-")
    if len(parts) < 3 or split not in _SPLITS or parts[1] not in CLASSES:
        raise DataError(
            f"{path.name}: {name} is not a message of 20news-bydate-<split>/<group>/<number>"
        )
    return split, parts[1], parts[2]


def _rows(messages: dict[tuple[int, str], str], path: Path) -> Rows:
    order = sorted(messages)
    return Rows.of(
        [messages[key] for key in order],
        [label for label, _ in order],
        classes=len(CLASSES),
        where=path.name,
    )


def _stripped_column(table: Any, where: str) -> list[str]:
    return [stripped(text) for text in column(table, "text", where).to_pylist()]


ENTRY = Entry(
    name="20newsgroups",
    kind="text",
    classes=CLASSES,
    official=(11_314, 7_532),
    licence="research use with citation; the messages are their authors'",
    citation="K. Lang, NewsWeeder: Learning to Filter Netnews, ICML 1995",
    homepage="http://qwone.com/~jason/20Newsgroups/",
    parse=parse,
    encode=weighted_words,
    files=(
        Remote(
            _ARCHIVE,
            "https://ndownloader.figshare.com/files/5975967",
            "sha256:8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610",
        ),
    ),
    # The homepage gives none; this is scikit-learn's copy of its archive.
    checksums="sklearn/datasets/_twenty_newsgroups.py",
    compact=Compact(_stripped_column),
    noun="messages",
)
