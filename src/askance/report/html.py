"""A report as one HTML file: no script, nothing loaded from anywhere, as a policy in it demands."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from html import escape
from importlib.resources import files

from askance.report.elements import (
    Block,
    Bullets,
    Code,
    Details,
    Heading,
    Page,
    PickedItems,
    Picture,
    Pictures,
    Section,
    Text,
    TextTable,
    Tiles,
)

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"

STYLE = files("askance.report").joinpath("report.css").read_text(encoding="utf-8")

_COLUMNS = {1: "one", 2: "two", 3: "three"}


def render(page: Page) -> str:
    """The page, whole."""
    links = "".join(f'<a href="#{escape(s.anchor)}">{escape(s.anchor)}</a>' for s in page.sections)
    warnings = "".join(f'<p class="warning">{escape(text)}</p>' for text in page.warnings)
    return (
        "<!doctype html>\n"
        '<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><title>{escape(page.title)}</title>'
        f"<style>{STYLE}</style></head>\n<body><header><h1>{escape(page.title)}</h1>"
        f'<div class="subtitle">{escape(page.subtitle)}</div>'
        f'<p class="introduction">{escape(page.introduction)}</p>{warnings}<nav>{links}</nav></header>'
        f"<main>{''.join(map(_section, page.sections))}</main>\n"
        f"<footer>{escape(page.footer)}</footer></body></html>\n"
    )


def _section(section: Section) -> str:
    return (
        f'<section id="{escape(section.anchor)}"><h2>{escape(section.title)}</h2>'
        f"{_blocks(section.blocks)}</section>\n"
    )


def _blocks(blocks: Sequence[Block]) -> str:
    return "\n".join(map(_block, blocks))


def _block(block: Block) -> str:
    match block:
        case Heading(text):
            return f"<h3>{escape(text)}</h3>"
        case Text(text, kind):
            name = f' class="{escape(kind)}"' if kind else ""
            return f"<p{name}>{escape(text)}</p>"
        case Bullets(items):
            return "<ul>" + "".join(f"<li>{escape(item)}</li>" for item in items) + "</ul>"
        case Tiles(tiles):
            return '<div class="tiles">' + "".join(
                f'<div class="tile"><b>{escape(tile.value)}</b><span>{escape(tile.label)}</span>'
                f"<small>{escape(tile.detail)}</small></div>"
                for tile in tiles
            ) + "</div>"  # fmt: skip
        case TextTable():
            return _table(block)
        case Picture():
            return _pictures([block], 1)
        case Pictures(pictures, columns):
            return _pictures(pictures, columns)
        case PickedItems():
            return _picks(block)
        case Code(text):
            return f"<pre><code>{escape(text)}</code></pre>"
        case Details(title, blocks):
            return f"<details><summary>{escape(title)}</summary>{_blocks(blocks)}</details>"


def _table(table: TextTable) -> str:
    left = ' class="left"'

    def cells(values: Sequence[str], tag: str) -> str:
        return "".join(
            f"<{tag}{left if place < table.left else ''}>{escape(value)}</{tag}>"
            for place, value in enumerate(values)
        )

    facts = ' class="facts"' if not any(table.columns) else ""
    rows = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in table.rows)
    caption = f"<figcaption>{escape(table.caption)}</figcaption>" if table.caption else ""
    return (
        f'<div class="scroll" tabindex="0"><table{facts}><thead><tr>{cells(table.columns, "th")}</tr>'
        f"</thead><tbody>{rows}</tbody></table></div>{caption}"
    )


def _pictures(pictures: Sequence[Picture], columns: int) -> str:
    figures = []
    for picture in pictures:
        source = _data("image/svg+xml", picture.drawing.svg)
        caption = f"<figcaption>{escape(picture.caption)}</figcaption>" if picture.caption else ""
        figures.append(
            f'<figure><img class="figure" src="{source}" alt="{escape(picture.alt)}">{caption}</figure>'
        )
    return f'<div class="pictures {_COLUMNS[columns]}">{"".join(figures)}</div>'


def _picks(found: PickedItems) -> str:
    head = (
        f'<h4><span class="dot" style="background:{escape(found.colour)}"></span>'
        f"{escape(found.rule)}</h4>"
    )
    if all(pick.image is not None for pick in found.picks):
        shown = "".join(
            f'<div><img src="{_data("image/png", pick.image or b"")}" alt="">'
            f"{escape(pick.answer)}</div>"
            for pick in found.picks
        )
        return f'<div class="picks">{head}<div class="thumbs">{shown}</div></div>'
    shown = "".join(
        f"<li><b>{escape(pick.answer)}</b>{escape(pick.text or '')}</li>" for pick in found.picks
    )
    return f'<div class="picks">{head}<ul class="texts">{shown}</ul></div>'


def _data(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{b64encode(content).decode()}"
