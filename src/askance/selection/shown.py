"""A selection as a notebook shows it: a table of the picks, with their texts or thumbnails."""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import torch

from askance.embedding.frames import is_frame, is_series
from askance.embedding.rows import rows_at

_ROWS = 20
_LETTERS = 200
_SIDE = 96


def html_table(picks: Any) -> str:
    """The first picks of a `Selection` as an HTML table: rank, item, position, score, reason."""
    shown = cells_of(picks.items, min(len(picks), _ROWS))
    names = picks.ids or tuple(map(str, picks.indices.tolist()))
    head = "".join(
        f"<th>{name}</th>"
        for name in ("", *(["item"] if shown else []), "id" if picks.ids else "position")
    )
    rows = []
    for place, why in enumerate(picks.explain()[:_ROWS]):
        item = f"<td style='text-align:left'>{shown[place]}</td>" if shown else ""
        rows.append(
            f"<tr><td>{place + 1}</td>{item}<td>{escape(names[place])}</td>"
            f"<td>{why.score:.4g}</td><td style='text-align:left'>{escape(why.reason)}</td></tr>"
        )
    more = f"<p>… and {len(picks) - _ROWS:,} more</p>" if len(picks) > _ROWS else ""
    notes = "".join(f"<p>Note: {escape(note)}.</p>" for note in picks.notes)
    title = f"{len(picks):,} picks by {escape(picks.strategy.name)}"
    return (
        f"<p><b>{title}</b></p><table><thead><tr>{head}<th>score</th><th>reason</th></tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>{more}{notes}"
    )


def cells_of(items: Any, count: int) -> list[str]:
    """What a table shows of the first items: a text, a thumbnail, some columns; nothing of numbers."""
    if items is None or count == 0:
        return []
    if is_frame(items):
        first = rows_at(items, np.arange(count))
        columns = list(getattr(first, "column_names", None) or first.columns)
        each = [list(first[name]) for name in columns]
        made = [
            "<br>".join(f"{escape(str(n))}: {_cell(v)}" for n, v in zip(columns, row, strict=True))
            for row in zip(*each, strict=True)
        ]
    elif isinstance(items, list) or is_series(items):
        values = (
            items[:count] if isinstance(items, list) else list(rows_at(items, np.arange(count)))
        )
        made = [_cell(value) for value in values]
    elif isinstance(items, (torch.Tensor, np.ndarray)) and len(items.shape) == 4:
        made = [_cell(np.asarray(item)) for item in items[:count]]
    else:
        return []
    return made if any(made) else []


def _cell(value: Any) -> str:
    """A value as HTML; "" for what has no picture and is no text."""
    picture = _picture(value)
    if picture is not None:
        made = io.BytesIO()
        picture.convert("RGB").save(made, "PNG")
        data = b64encode(made.getvalue()).decode()
        return f"<img src='data:image/png;base64,{data}' alt=''>"
    if isinstance(value, (str, int, float, Path)):
        text = str(value)
        return escape(text[:_LETTERS] + ("…" if len(text) > _LETTERS else ""))
    return ""


def _picture(value: Any) -> Any:
    """A thumbnail of an image in any form; None of anything else."""
    from PIL import Image

    if isinstance(value, Mapping) and {"bytes", "path"} & set(value):
        value = value.get("bytes") or value.get("path")
    try:
        if hasattr(value, "convert") and hasattr(value, "thumbnail"):
            picture = value.copy()
        elif isinstance(value, bytes):
            picture = Image.open(io.BytesIO(value))
        elif isinstance(value, (str, Path)) and len(str(value)) < 4096 and _names_image(value):
            picture = Image.open(value)
        elif isinstance(value, np.ndarray) and value.ndim == 3:
            picture = Image.fromarray(_pixels(value))
        else:
            return None
        picture.thumbnail((_SIDE, _SIDE))
    except (OSError, ValueError, TypeError):
        return None
    return picture


def _names_image(path: str | Path) -> bool:
    from askance.images import SUFFIXES

    return Path(path).suffix.lower() in SUFFIXES and Path(path).is_file()


def _pixels(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """(H, W, 3) uint8 of an image whose channels come first or last, whatever its range."""
    if array.shape[0] in (1, 3) and array.shape[2] not in (1, 3):
        array = array.transpose(1, 2, 0)
    if array.dtype != np.uint8:
        low, high = float(array.min()), float(array.max())
        array = ((array - low) / (high - low or 1.0) * 255).astype(np.uint8)
    return array.repeat(3, axis=2) if array.shape[2] == 1 else array
