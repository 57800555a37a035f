"""A report as one HTML file: no script, nothing loaded from anywhere, as a policy in it demands."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from html import escape
from importlib.resources import files

from askance.report import elements

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"

STYLE = files("askance.report").joinpath("report.css").read_text(encoding="utf-8")

_COLUMNS = {1: "one", 2: "two", 3: "three"}


def render(page: elements.Page) -> str:
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
        f'<p class="lead">{escape(page.answer)}</p>'
        f'<p class="introduction">{escape(page.introduction)}</p>{warnings}<nav>{links}</nav></header>'
        f"<main>{''.join(map(_section, page.sections))}</main>\n"
        f"<footer>{escape(page.footer)}</footer></body></html>\n"
    )


def _section(section: elements.Section) -> str:
    return (
        f'<section id="{escape(section.anchor)}"><h2>{escape(section.title)}</h2>'
        f"{_blocks(section.blocks)}</section>\n"
    )


def _blocks(blocks: Sequence[elements.Block]) -> str:
    return "\n".join(map(_block, blocks))


def _block(block: elements.Block) -> str:
    match block:
        case elements.Heading(text):
            return f"<h3>{escape(text)}</h3>"
        case elements.Text(text, kind):
            name = f' class="{escape(kind)}"' if kind else ""
            return f"<p{name}>{escape(text)}</p>"
        case elements.Bullets(items):
            return "<ul>" + "".join(f"<li>{escape(item)}</li>" for item in items) + "</ul>"
        case elements.Tiles(tiles):
            return '<div class="tiles">' + "".join(
                f'<div class="tile"><b>{escape(tile.value)}</b><span>{escape(tile.label)}</span>'
                f"<small>{escape(tile.detail)}</small></div>"
                for tile in tiles
            ) + "</div>"  # fmt: skip
        case elements.TextTable():
            return _table(block)
        case elements.Pictures(pictures, columns):
            return _pictures(pictures, columns)
        case elements.PickedItems():
            return _picks(block)
        case elements.Code(text):
            return f"<pre><code>{escape(text)}</code></pre>"
        case elements.Details(title, blocks):
            return f"<details><summary>{escape(title)}</summary>{_blocks(blocks)}</details>"


def _table(table: elements.TextTable) -> str:
    left = ' class="left"'

    def cells(values: Sequence[str], tag: str) -> str:
        return "".join(
            f"<{tag}{left if place < table.left else ''}>{escape(value)}</{tag}>"
            for place, value in enumerate(values)
        )

    facts = ' class="facts"' if not any(table.columns) else ""
    rows = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in table.rows)
    return (
        f'<div class="scroll" tabindex="0"><table{facts}><thead><tr>{cells(table.columns, "th")}</tr>'
        f"</thead><tbody>{rows}</tbody></table></div>{_caption(table.caption)}"
    )


def _pictures(pictures: Sequence[elements.Picture], columns: int) -> str:
    figures = "".join(
        f'<figure><img class="figure" src="{_data("image/svg+xml", picture.figure.svg)}" '
        f'alt="{escape(picture.alt)}">{_caption(picture.caption)}</figure>'
        for picture in pictures
    )
    return f'<div class="pictures {_COLUMNS[columns]}">{figures}</div>'


def _caption(text: str) -> str:
    return f"<figcaption>{escape(text)}</figcaption>" if text else ""


def _picks(picked: elements.PickedItems) -> str:
    head = (
        f'<h4><span class="dot" style="background:{escape(picked.colour)}"></span>'
        f"{escape(picked.rule)}</h4>"
    )
    if all(pick.image is not None for pick in picked.picks):
        shown = "".join(
            f'<div><img src="{_data("image/png", pick.image or b"")}" alt="">'
            f"{escape(pick.answer)}</div>"
            for pick in picked.picks
        )
        return f'<div class="picks">{head}<div class="thumbs">{shown}</div></div>'
    shown = "".join(
        f"<li><b>{escape(pick.answer)}</b>{escape(pick.text or '')}</li>" for pick in picked.picks
    )
    return f'<div class="picks">{head}<ul class="texts">{shown}</ul></div>'


def _data(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{b64encode(content).decode()}"
