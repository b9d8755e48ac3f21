"""How figures look: one style, colours that colour-blind eyes tell apart, SVG text.

Figures are made through matplotlib's `Figure`, never through pyplot: no backend is chosen and no
state is kept. Each is as wide as a phone's page; pages put several side by side.
"""

from __future__ import annotations

import io
import math
import re
import unicodedata
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator
from numpy.typing import NDArray

WIDTH = 3.66  # inches: 351 CSS pixels, what a phone's page has
SMALL = 8.25  # points, the smallest text: 11 CSS pixels

# Okabe and Ito's palette.
BLUE, ORANGE, GREEN, RED, SKY, PURPLE = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#56B4E9",
    "#CC79A7",
)
GREY, PALE, INK = "#8a949c", "#d9dee2", "#22282d"
CYCLE = (BLUE, ORANGE, GREEN, PURPLE, RED, SKY)

STYLE: Any = {
    "font.family": ["DejaVu Sans"],
    "font.size": 8.5,
    "text.parse_math": False,
    "text.usetex": False,
    "text.color": INK,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 8.5,
    "axes.labelcolor": INK,
    "axes.edgecolor": GREY,
    "axes.linewidth": 0.7,
    "axes.facecolor": "white",
    "axes.axisbelow": True,
    "axes.grid": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.formatter.useoffset": False,
    "grid.color": "#e4e8eb",
    "grid.linewidth": 0.7,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "legend.fontsize": SMALL,
    "legend.frameon": False,
    "figure.facecolor": "white",
    "figure.dpi": 100,
    "figure.constrained_layout.use": False,
    "figure.autolayout": False,
    "savefig.dpi": 150,
    "savefig.facecolor": "white",
    "savefig.bbox": None,
    "svg.fonttype": "none",
    "svg.hashsalt": "hopmap",
    "image.composite_image": False,
}


def sequential(low: float = 0.06, high: float = 0.92) -> Colormap:
    """Light yellow to dark violet, monotone in lightness (inferno without its extremes)."""
    source = mpl.colormaps["inferno_r"]
    stops = [source(low + (high - low) * i / 31) for i in range(32)]
    return LinearSegmentedColormap.from_list("hopmap", stops)


@contextmanager
def style() -> Iterator[None]:
    """Style of all figures, whatever the user's matplotlibrc says."""
    with mpl.rc_context(STYLE):
        yield


def new_figure(height: float, width: float = WIDTH) -> Figure:
    """Empty figure, sizes in inches."""
    return Figure(figsize=(width, height))


def headline(figure: Figure, title: str) -> None:
    """Write a title at the top, cut to what a figure's width holds."""
    top = 1 - 0.08 / figure.get_figheight()
    figure.text(0.08 / WIDTH, top, label(title, 45), va="top", weight="bold")


def sheet(figure: Figure) -> Axes:
    """Axes over the whole figure, in inches from its lower left corner, without ticks.

    Many pictures in one sheet are drawn much faster than each in axes of its own.
    """
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    width, height = figure.get_size_inches()
    axes.set_xlim(0, width)
    axes.set_ylim(0, height)
    return axes


def picture(
    axes: Axes,
    values: NDArray[Any],
    box: tuple[float, float, float, float],
    norm: Normalize,
    cmap: Colormap,
    title: str,
) -> None:
    """Image of (y, x), y upwards, with a frame and a title, in the box left, bottom, width, height.

    Masked cells stay white.
    """
    left, bottom, width, height = box
    limits = axes.get_xlim(), axes.get_ylim()
    axes.imshow(
        values,
        norm=norm,
        cmap=cmap,
        origin="lower",
        interpolation="nearest",
        aspect="auto",
        extent=(left, left + width, bottom, bottom + height),
    )
    axes.set(xlim=limits[0], ylim=limits[1])
    axes.add_patch(Rectangle(box[:2], width, height, fill=False, edgecolor=PALE, linewidth=0.7))
    axes.text(left, bottom + height + 0.03, title, fontsize=SMALL, va="bottom")


def svg_text(figure: Figure) -> str:
    """Return the figure as an SVG document; the same figure gives the same text."""
    buffer = io.StringIO()
    with style(), warnings.catch_warnings():
        # Letters that DejaVu Sans lacks: text stays text, the reader's own fonts have them.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": "hopmap"})
    text = re.sub("<metadata>.*?</metadata>", "", buffer.getvalue(), flags=re.DOTALL)
    # a hundredth of a point cannot be seen, and is half of the text
    text = re.sub("<[^!>]*>", lambda tag: re.sub(r"(\.\d\d)\d+", r"\1", tag[0]), text)
    text = re.sub(r'<g( clip-path="[^"]*")>\s*((?:<use [^>]*/>\s*)+)</g>', _one_style, text)
    # Verdana has the same widths as DejaVu Sans, for machines without the latter.
    return text.replace("'DejaVu Sans'", "'DejaVu Sans', Verdana, sans-serif")


def _one_style(marks: re.Match[str]) -> str:
    """Write the style of marks once where it is the same for all of them."""
    styles = set(re.findall(' style="[^"]*"', marks[2]))
    if len(styles) != 1:
        return marks[0]
    (same,) = styles
    return f"<g{marks[1]}{same}>{marks[2].replace(same, '')}</g>"


def label(text: str, width: int = 22, lines: int = 2) -> str:
    """Make any name fit a figure: no control characters, broken at bars and commas, cut.

    What tells names apart is often their end, so that it is the middle that is left out.
    """
    clean = "".join(c if unicodedata.category(c)[0] != "C" else " " for c in text)
    clean = " ".join(clean.split())
    if len(clean) <= width:
        return clean
    rows: list[str] = []
    for piece in re.split(r" (?=\| )|(?<=,) ", clean):
        if rows and len(rows[-1]) + 1 + len(piece) <= width:
            rows[-1] += " " + piece
        else:
            rows.append(piece)
    rows = [*rows[: lines - 1], " ".join(rows[lines - 1 :])] if len(rows) > lines else rows
    end = (width - 1) // 2
    return "\n".join(
        row if len(row) <= width else f"{row[: width - 1 - end]}…{row[-end:]}" for row in rows
    )


def margin(labels: Sequence[str], inches_per_letter: float = 0.0735) -> float:
    """Inches that tick labels need left of the axis."""
    letters = max((len(row) for text in labels for row in text.split("\n")), default=0)
    return 0.16 + letters * inches_per_letter


def value_axis(axes: Axes, text: Callable[[float], str], limit: float, ticks: int = 3) -> None:
    """Horizontal axis from 0 to a little above `limit`, ticks written by `text`."""
    axes.set_xlim(0, limit * 1.05 if limit > 0 else 1)
    axes.xaxis.set_major_locator(MaxNLocator(ticks, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))
    axes.grid(axis="x")


def colour_bar(
    figure: Figure,
    axes: Axes,
    norm: Normalize,
    cmap: Colormap,
    text: Callable[[float], str],
    title: str,
) -> None:
    """Horizontal colour bar in `axes`, its title above."""
    bar = figure.colorbar(
        mpl.cm.ScalarMappable(norm, cmap), cax=axes, orientation="horizontal", extend="neither"
    )
    bar.outline.set_visible(False)
    if isinstance(norm, LogNorm):
        decades = math.log10(float(norm.vmax or 1) / float(norm.vmin or 1))
        ends = np.geomspace(norm.vmin or 1, norm.vmax or 1, 3).tolist()
        first, middle, last = map(text, ends)
        if middle in (first, last) or len(middle) > 12:  # says nothing, or needs their room
            ends = [ends[0], ends[2]]
        bar.locator = FixedLocator(ends) if decades < 3 else LogLocator(10, numticks=6)
    else:
        bar.locator = MaxNLocator(4, steps=[1, 2, 2.5, 5, 10])
    bar.formatter = FuncFormatter(lambda value, _: text(value))
    bar.update_ticks()
    if isinstance(bar.locator, FixedLocator):  # ticks at the ends: keep them inside
        ticks = axes.get_xticklabels()
        ticks[0].set_horizontalalignment("left")
        ticks[-1].set_horizontalalignment("right")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_title(title, fontsize=8.5, fontweight="normal", loc="left", pad=3)
