"""How the studies' figures look: one colour a rule, few lines, the user's settings left alone.

Figures are made without pyplot, so that no window system is asked for and no global state is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

R = TypeVar("R")

# Okabe and Ito's colours, which people with any colour vision tell apart.
COLOURS = {
    "random": "#000000",
    "entropy": "#E69F00",
    "badge": "#56B4E9",
    "kcenter": "#009E73",
    "grad": "#D55E00",
    "powergrad": "#0072B2",
    "margin": "#CC79A7",
}
OTHER = "#7F7F7F"
POOL = "#C9C9C9"
INSIDE, OUTSIDE = "#0072B2", "#D55E00"

# Any: matplotlib's types list every setting there is.
_STYLE: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    # The ids inside an SVG are hashes; without a salt they are drawn anew each time.
    "svg.hashsalt": "askance",
}


def colour(rule: str) -> str:
    return COLOURS.get(rule, OTHER)


def styled(draw: Callable[[R], Figure]) -> Callable[[R], Figure]:
    """The same function, drawing in this style whatever the user's settings are."""

    @wraps(draw)
    def drawn(result: R) -> Figure:
        import matplotlib

        with matplotlib.rc_context(_STYLE):
            return draw(result)

    return drawn


def canvas(width: float, height: float) -> Figure:
    """An empty figure, in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def panel(axis: Axes, title: str | None = None, grid: str | None = "y") -> None:
    """A quiet grid, and a title on the left."""
    if title is not None:
        axis.set_title(title, loc="left")
    if grid is not None:
        axis.grid(axis=grid, color="#E6E6E6", linewidth=0.7)  # type: ignore[arg-type]


def save(figure: Figure, stem: Path) -> list[Path]:
    """`stem`.png and `stem`.svg, the same bytes for the same figure."""
    import matplotlib

    png, svg = stem.with_suffix(".png"), stem.with_suffix(".svg")
    with matplotlib.rc_context(_STYLE):
        figure.savefig(png, dpi=160)
        figure.savefig(svg, metadata={"Date": None})
    return [png, svg]
