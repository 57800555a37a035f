"""Figures that are drawn when they are needed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial

from matplotlib.figure import Figure

from askance.figures import style


class LazyFigure:
    """How a figure is drawn: call it for a new one; `svg` is drawn when first asked for, and once."""

    def __init__(self, draw: Callable[..., Figure], *args: object) -> None:
        self._draw = partial(draw, *args)

    def __call__(self) -> Figure:
        return self._draw()

    @cached_property
    def svg(self) -> bytes:
        """The figure as SVG."""
        return style.render(self(), "svg")
