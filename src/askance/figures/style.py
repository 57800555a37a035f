"""One style for every figure: a colour, a marker and a dash for each rule, and how a figure is saved.

Colours are Okabe & Ito's, which the common kinds of colour-blindness tell apart; no two rules share a
colour and a marker, so that a print in grey can be read too.
"""

from __future__ import annotations

import io
import os
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Literal, ParamSpec
from zlib import crc32

import matplotlib
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backend_bases import get_registered_canvas_class
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILLION, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#6E6E6E"
POOL = "#C9C9C9"
FORMATS = ("svg", "png")

P = ParamSpec("P")


@dataclass(frozen=True)
class RuleStyle:
    """How a rule is drawn, everywhere."""

    colour: str
    marker: str
    dash: str = "-"

    def line(self) -> dict[str, Any]:
        """The style as arguments of matplotlib's `plot`."""
        return {"color": self.colour, "marker": self.marker, "linestyle": self.dash}


RULE_STYLES = {
    "random": RuleStyle(GREY, "o"),
    "entropy": RuleStyle(ORANGE, "s"),
    "badge": RuleStyle(BLUE, "^"),
    "kcenter": RuleStyle(GREEN, "D"),
    "grad": RuleStyle(VERMILLION, "v"),
    "powergrad": RuleStyle(PURPLE, "P"),
    "grad-spread": RuleStyle(SKY, "X"),
    "gradnorm": RuleStyle(VERMILLION, "<", "--"),
    "margin": RuleStyle(ORANGE, ">", "--"),
    "least-confidence": RuleStyle(ORANGE, "h", ":"),
    "egl": RuleStyle(BLACK, "*", "--"),
    "powermargin": RuleStyle(PURPLE, "o", "--"),
    "bait": RuleStyle(BLACK, "s"),
    "bald": RuleStyle(SKY, "o"),
    "powerbald": RuleStyle(SKY, "s", "--"),
    "cluster-margin": RuleStyle(SKY, "^", "--"),
    "typiclust": RuleStyle(GREEN, "o"),
    "probcover": RuleStyle(GREEN, "s", "--"),
    "maxherding": RuleStyle(BLUE, "o"),
    "uherding": RuleStyle(BLUE, "s", "--"),
    "grad-cover": RuleStyle(VERMILLION, "o"),
    "grad-cover-shortlist": RuleStyle(VERMILLION, "s", "--"),
    "strata": RuleStyle(GREY, "v", "--"),
}
_LONG = re.compile(rb"-?\d+\.\d{3,}")
_OTHERS = (BLACK, SKY, PURPLE, BLUE, GREEN, VERMILLION)
_MARKERS = ("p", "d", "H", "8", "1", "2", "3", "4", "+", "x")

_RC: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # matplotlib's own, so that every machine draws the same
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "savefig.dpi": 200,
    "text.parse_math": False,  # a rule may have a dollar in its name
    # Text that can be searched and copied, in a third less space.
    "svg.fonttype": "none",
    "svg.hashsalt": "askance",  # the same figure is the same bytes
}

DARK: dict[Any, Any] = {
    "figure.facecolor": "#0D1117",
    "axes.facecolor": "#0D1117",
    "grid.color": "#30363D",
    **dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), "#E6EDF3"
    ),
}
"""What differs on a dark page."""


def rule_style(rule: str) -> RuleStyle:
    """The style of a rule; a rule that is not ours, or has options, gets one by its name."""
    if rule in RULE_STYLES:
        return RULE_STYLES[rule]
    digest = crc32(rule.encode())
    colour = _OTHERS[digest % len(_OTHERS)]
    return RuleStyle(colour, _MARKERS[digest // len(_OTHERS) % len(_MARKERS)], "-.")


def shorten(name: str, most: int = 24) -> str:
    """A name as a figure has room for it; matplotlib keeps names that start with _ to itself."""
    name = name if len(name) <= most else name[: most - 1] + "…"
    return f" {name}" if name.startswith("_") else name


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Draw in the one style, whatever the user's own settings."""

    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with matplotlib.rc_context():
            matplotlib.rcdefaults()
            matplotlib.rcParams.update(_RC)
            return draw(*args, **kwargs)

    return drawn


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of that many inches, which pyplot does not know of."""
    return Figure(figsize=(width, height), layout="constrained")


def panel(axis: Axes, title: str | None = None, grid: Literal["x", "y"] | None = "y") -> None:
    """Title a panel, and let its grid follow the axis that is read."""
    if title is not None:
        axis.set_title(title)
    axis.grid(False)
    if grid is not None:
        axis.grid(True, axis=grid)


def plain_numbers(axis: Axis) -> None:
    """0.01 and not a power of ten, which would need the mathematics that names are spared."""
    axis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_minor_formatter(NullFormatter())


def render(figure: Figure, format: str) -> bytes:
    """The figure as "svg", "pdf" or "png"; the same figure gives the same bytes."""
    content = io.BytesIO()
    canvas: Any = get_registered_canvas_class(format)(figure)
    unsaid = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(format, {})
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # a box is drawn for it
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_RC)
        # Not `savefig`, which draws all of it twice: once to lay it out, and again. Drawing does both.
        figure.dpi = _RC["savefig.dpi"]
        getattr(canvas, f"print_{format}")(content, metadata=unsaid)
    return compact(content.getvalue()) if format == "svg" else content.getvalue()


def compact(svg: bytes) -> bytes:
    """Matplotlib's vectors to a hundredth of a point, and with fonts as wide as ours beside it."""
    paths = re.sub(
        rb' d="[^"]*"', lambda path: _LONG.sub(_shorter, path[0]).replace(b" \n", b"\n"), svg
    )
    return paths.replace(b"'DejaVu Sans'", b"'DejaVu Sans', Verdana, sans-serif")


def _shorter(number: re.Match[bytes]) -> bytes:
    return b"%g" % round(float(number[0]), 2)


def save(
    figure: Figure, path: str | os.PathLike[str], formats: Sequence[str] = FORMATS
) -> list[Path]:
    """Write the figure as vectors and as pixels: `path` with .svg and with .png. Returns the files.

    An ending of `path` that is one of these is left off; just one, so that two paths stay two.
    """
    base = Path(path)
    stem = base.stem if base.suffix.removeprefix(".") in FORMATS else base.name
    base.parent.mkdir(parents=True, exist_ok=True)
    written = []
    for format in formats:
        file = base.with_name(f"{stem}.{format}")
        file.write_bytes(render(figure, format))
        written.append(file)
    return written
