"""What a report is made of, before it is HTML or Markdown. Text is plain; who renders it escapes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from askance.figures.lazy import LazyFigure


@dataclass(frozen=True)
class Section:
    """A heading with an anchor, and what stands under it."""

    anchor: str
    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Heading:
    """A heading inside a section."""

    text: str


@dataclass(frozen=True)
class Text:
    """A paragraph; `kind` is "lead" for the first words of a page, "note" for an aside, "warning"."""

    text: str
    kind: str = ""


@dataclass(frozen=True)
class Bullets:
    """A list with bullets."""

    items: Sequence[str]


@dataclass(frozen=True)
class Tile:
    """A number to be seen first: the number, what it is, and how sure it is."""

    value: str
    label: str
    detail: str = ""


@dataclass(frozen=True)
class Tiles:
    """Tiles side by side."""

    tiles: Sequence[Tile]


@dataclass(frozen=True)
class TextTable:
    """Rows of text; the columns after the first `left` hold numbers."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 1
    caption: str = ""


@dataclass(frozen=True)
class Picture:
    """A figure, drawn when it is rendered; `alt` says in words what it shows."""

    name: str
    figure: LazyFigure
    alt: str
    caption: str = ""


@dataclass(frozen=True)
class Pictures:
    """Pictures side by side where there is room for `columns` of them."""

    pictures: Sequence[Picture]
    columns: int = 2


@dataclass(frozen=True)
class PickedItem:
    """Something a rule asked for: a thumbnail or a text, and the answer."""

    answer: str
    image: bytes | None = None
    text: str | None = None


@dataclass(frozen=True)
class PickedItems:
    """The first picks of one rule, best first."""

    rule: str
    colour: str
    picks: Sequence[PickedItem]


@dataclass(frozen=True)
class Code:
    """Code or a command, to be copied."""

    text: str


@dataclass(frozen=True)
class Details:
    """Blocks under a title that opens and closes them."""

    title: str
    blocks: Sequence[Block] = field(default_factory=tuple)


Block = Heading | Text | Bullets | Tiles | TextTable | Pictures | PickedItems | Code | Details


@dataclass(frozen=True)
class Page:
    """A whole report; `answer` is its first sentence: whether it was worth it."""

    title: str
    subtitle: str
    answer: str
    introduction: str
    warnings: Sequence[str]
    sections: Sequence[Section]
    footer: str
