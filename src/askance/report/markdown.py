"""A report as Markdown, with its pictures in a folder beside it."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from urllib.parse import quote

from PIL import Image

from askance._io.atomic import atomic_write
from askance._io.filenames import file_name
from askance.figures.style import save
from askance.report import elements

SIDE, GAP = 48, 4  # pixels of a thumbnail, and between two


def render(page: elements.Page, files: Path) -> str:
    """The page; its pictures are written into `files`."""
    files.mkdir(parents=True, exist_ok=True)
    parts = [f"# {plain(page.title)}", plain(page.subtitle), f"**{plain(page.answer)}**"]
    parts.append(plain(page.introduction))
    parts += [f"> **{plain(text)}**" for text in page.warnings]
    numbers = count()
    for section in page.sections:
        parts.append(f"## {plain(section.title)}")
        parts += [_block(block, files, numbers) for block in section.blocks]
    parts.append(f"*{plain(page.footer.replace('one file, ', ''))}*")
    return "\n\n".join(part for part in parts if part) + "\n"


def _block(block: elements.Block, files: Path, numbers: Iterator[int]) -> str:
    match block:
        case elements.Heading(text):
            return f"### {plain(text)}"
        case elements.Text(text, kind):
            return {"lead": "**{}**", "note": "*{}*"}.get(kind, "{}").format(plain(text))
        case elements.Bullets(items):
            return "\n".join(f"- {plain(item)}" for item in items)
        case elements.Tiles(tiles):
            return table(["", "", ""], [[t.value, t.label, t.detail] for t in tiles], left=3)
        case elements.TextTable(columns, rows, left, caption):
            return table(columns, rows, left) + _caption(caption)
        case elements.Pictures(pictures):
            return "\n\n".join(_picture(picture, files) for picture in pictures)
        case elements.PickedItems():
            return _picks(block, files, next(numbers))
        case elements.Code(text):
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
            return f"{fence}\n{text.rstrip()}\n{fence}"
        case elements.Details(title, blocks):
            inside = "\n\n".join(_block(inner, files, numbers) for inner in blocks)
            return f"**{plain(title)}**\n\n{inside}"


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Rows of text; the columns after the first `left` hold numbers."""
    marks = ["---" if place < left else "--:" for place in range(len(columns))]
    lines = [list(map(plain, columns)), marks, *(list(map(plain, row)) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _picture(picture: elements.Picture, files: Path) -> str:
    vector = _saved(picture, files)
    return f"![{plain(picture.alt)}]({_link(vector)}){_caption(picture.caption)}"


def _caption(text: str) -> str:
    return f"\n\n*{plain(text)}*" if text else ""


def _saved(picture: elements.Picture, files: Path) -> Path:
    vector, _ = save(picture.figure(), files / f"{file_name(picture.name)}.svg")
    return vector


def _picks(picked: elements.PickedItems, files: Path, number: int) -> str:
    if not all(pick.image is not None for pick in picked.picks):
        lines = [f"- {plain(pick.answer)}: {plain(pick.text or '')}" for pick in picked.picks]
        return "\n".join([f"**{plain(picked.rule)}**\n", *lines])
    strip = Image.new("RGB", ((SIDE + GAP) * len(picked.picks), SIDE), "white")
    for place, pick in enumerate(picked.picks):
        image = Image.open(io.BytesIO(pick.image or b"")).convert("RGB")
        shown = image.resize((SIDE, SIDE), Image.Resampling.NEAREST)
        strip.paste(shown, (place * (SIDE + GAP), 0))
    content = io.BytesIO()
    strip.save(content, "PNG", optimize=True)
    path = files / f"picks-{number:03d}.png"
    atomic_write(path, content.getvalue())
    answers = ", ".join(pick.answer for pick in picked.picks)
    return f"**{plain(picked.rule)}**: {plain(answers)}\n\n![{plain(picked.rule)}]({_link(path)})"


def plain(text: str) -> str:
    """Text that Markdown and HTML take for nothing but text."""
    return re.sub(r"([\\`*_{}\[\]<>|#~])", r"\\\1", " ".join(text.split()))


def _link(path: Path) -> str:
    return quote(f"{path.parent.name}/{path.name}")
