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
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import ticker
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import Colormap, LinearSegmentedColormap, LogNorm, Normalize
from matplotlib.figure import Figure, FigureBase
from matplotlib.layout_engine import ConstrainedLayoutEngine
from numpy.typing import ArrayLike

from hopmap.traces.safety.atomic_files import replacing

from .tips import titles

WIDTH = 3.66  # inches: 351 CSS pixels, what a phone's page has
SMALL = 8.25  # points, the smallest text: 11 CSS pixels
TEXT_LINE, NAMED = 0.155, 5  # inches a line of a list; links that are named

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
YELLOW = "#F0E442"
CYCLE = (BLUE, ORANGE, GREEN, PURPLE, RED, SKY)
MARKERS = "osD^vP"

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
    "figure.titlesize": 8.5,
    "figure.titleweight": "bold",
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
    """Apply the style of all figures, which overrides the user's matplotlibrc."""
    with mpl.rc_context(STYLE):
        yield


class Picture(Figure):
    """A figure whose SVG files say something at the mouse."""

    def savefig(self, fname: Any, **kwargs: Any) -> None:
        """Write a file; see matplotlib, and `svg_text` for names that end in ".svg"."""
        if isinstance(fname, str | Path) and Path(fname).suffix == ".svg" and not kwargs:
            Path(fname).write_text(svg_text(self), encoding="utf-8")
        else:
            super().savefig(fname, **kwargs)


def new_figure(height: float, title: str = "", width: float = WIDTH) -> Figure:
    """Empty figure below a title, sizes in inches; matplotlib lays out what is put into it."""
    layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.05)
    figure = Picture(figsize=(width, height), layout=layout)
    if title:
        figure.suptitle(label(title, int(45 * width / WIDTH)), x=0.08 / width, ha="left")
    return figure


def sheet(axes: Axes, width: float, height: float) -> None:
    """Make axes a sheet of paper in inches from its lower left corner, without ticks.

    Many pictures in one sheet are drawn much faster than each in axes of its own.
    """
    axes.set_axis_off()
    axes.set(xlim=(0, width), ylim=(0, height), aspect="equal", anchor="NW")


def write(axes: Axes, place: ArrayLike, text: str, size: float = SMALL, **look: Any) -> None:
    """Write text around a place."""
    x, y = np.asarray(place)
    axes.text(x, y, text, size=size, ha="center", va="center_baseline", **look)


def svg_text(figure: Figure) -> str:
    """Return the figure as an SVG document, marks with their titles; the same gives the same."""
    buffer = io.StringIO()
    with style(), warnings.catch_warnings():
        # Letters that DejaVu Sans lacks: text stays text, the reader's own fonts have them.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": "hopmap"})
    text = re.sub("<metadata>.*?</metadata>", "", buffer.getvalue(), flags=re.DOTALL)
    # a hundredth of a point cannot be seen, and is half of the text
    text = re.sub("<[^!>]*>", lambda tag: re.sub(r"(\.\d\d)\d+", r"\1", tag[0]), text)
    # matplotlib hashes names from numbers of the layout, whose last digits change from run to run
    names: dict[str, str] = {}
    text = re.sub(
        r'(?<=["#])([hmp])[0-9a-f]{10}\b',
        lambda name: names.setdefault(name[0], f"{name[1]}{len(names)}"),
        text,
    )
    text = re.sub(r'<g( clip-path="[^"]*")>\s*((?:<use [^>]*/>\s*)+)</g>', _one_style, text)
    text = text.replace("</svg>", f"{titles(figure)}</svg>")
    # Verdana has the same widths as DejaVu Sans, for machines without the latter.
    return text.replace("'DejaVu Sans'", "'DejaVu Sans', Verdana, sans-serif")


def write_figure(figure: Figure, path: Path) -> None:
    """Write a figure into a file of the kind that its name ends in, complete or not at all."""
    with replacing(path) as partial:
        if path.suffix == ".svg":
            partial.write_text(svg_text(figure), encoding="utf-8")
        else:
            figure.savefig(partial, dpi=200)


def _one_style(marks: re.Match[str]) -> str:
    """Write the style of marks once where it is the same for all of them."""
    styles = set(re.findall(' style="[^"]*"', marks[2]))
    if len(styles) != 1:
        return marks[0]
    (same,) = styles
    return f"<g{marks[1]}{same}>{marks[2].replace(same, '')}</g>"


def label(text: str, width: int = 22, lines: int = 2) -> str:
    """Make any name fit a figure: no control characters, broken at bars, commas and "on", cut.

    What tells names apart is often their end, so that it is the middle that is left out.
    """
    clean = "".join(c if unicodedata.category(c)[0] != "C" else " " for c in text)
    clean = " ".join(clean.split())
    if len(clean) <= width:
        return clean
    rows: list[str] = []
    for piece in re.split(r" (?=\| |on )|(?<=,) ", clean):
        if rows and len(rows[-1]) + 1 + len(piece) <= width:
            rows[-1] += " " + piece
        else:
            rows.append(piece)
    rows = [*rows[: lines - 1], " ".join(rows[lines - 1 :])] if len(rows) > lines else rows
    end = (width - 1) // 2
    return "\n".join(
        row if len(row) <= width else f"{row[: width - 1 - end]}…{row[-end:]}" for row in rows
    )


def legend(figure: Figure, handles: Sequence[Artist], columns: int | None = None) -> None:
    """Write a legend at the foot of a figure."""
    if not handles:
        return
    figure.legend(
        handles=handles,
        loc="outside lower left",
        ncols=columns or len(handles),
        handlelength=1.3,
        columnspacing=1.1,
        handletextpad=0.5,
        labelspacing=0.3,
        borderaxespad=0,
        borderpad=0.2,
    )


def mark(place: int) -> dict[str, Any]:
    """Colour and marker of a mapper; after six, marks are hollow and colours meet other markers."""
    turn, place = divmod(place, len(CYCLE))
    colour = CYCLE[place]
    return {
        "linestyle": "none",
        "color": colour,
        "marker": MARKERS[(place + turn) % len(MARKERS)],
        "markersize": 4.6,
        "markeredgewidth": 1.1,
        "markerfacecolor": colour if turn % 2 == 0 else "white",
    }


def set_ticks(
    axis: Axis, text: Callable[[float], str], locator: ticker.Locator | None = None
) -> None:
    """Have ticks of an axis written by `text`, and none between them."""
    if locator is not None:
        axis.set_major_locator(locator)
    axis.set_minor_locator(ticker.NullLocator())
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: text(value)))


def value_axis(axes: Axes, text: Callable[[float], str], limit: float, count: int = 3) -> None:
    """Horizontal axis from 0 to a little above `limit`, ticks written by `text`."""
    axes.set_xlim(0, limit * 1.05 if limit > 0 else 1)
    set_ticks(axes.xaxis, text, ticker.MaxNLocator(count, steps=[1, 2, 2.5, 5, 10]))
    axes.grid(axis="x")


def plain_title(axes: Axes, title: str, size: float = 8.5, pad: float = 3) -> None:
    """Write what a part of a figure shows above its left corner."""
    axes.set_title(title, fontsize=size, fontweight="normal", loc="left", pad=pad)


def halves(figure: Figure, *heights: float) -> tuple[FigureBase, FigureBase]:
    """Split a figure into an upper and a lower part, each of which is laid out on its own."""
    upper, lower = figure.subfigures(2, 1, height_ratios=heights, squeeze=False)[:, 0]
    return upper, lower


def colour_bar(
    figure: FigureBase,
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
        bar.locator = (
            ticker.FixedLocator(ends) if decades < 3 else ticker.LogLocator(10, numticks=6)
        )
    else:  # to the maximum, whatever it is
        top = float(norm.vmax or 1)
        marks = np.asarray(ticker.MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]).tick_values(0, top))
        bar.locator = ticker.FixedLocator([*marks[marks < 0.7 * top].tolist(), top])
    bar.formatter = ticker.FuncFormatter(lambda value, _: text(value))
    bar.update_ticks()
    if float(norm.vmax or 1) in list(bar.get_ticks()):  # ticks at the ends: keep them inside
        labels = axes.get_xticklabels()
        labels[0].set_horizontalalignment("left")
        labels[-1].set_horizontalalignment("right")
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    plain_title(axes, title)


def list_busiest(axes: Axes, words: Sequence[str], title: str, letters: int = 52) -> None:
    """Fill axes with a numbered list of links, the busiest first, what is said of them above.

    A line has at most so many `letters`.
    """
    axes.set_axis_off()
    plain_title(
        axes, f"{len(words)} busiest links{title}" if len(words) > 1 else f"busiest link{title}"
    )
    for place, line in enumerate(words):
        y = 1 - (place + 0.5) / NAMED
        axes.text(0, y, f"{place + 1}", fontsize=SMALL, va="center", fontweight="bold")
        axes.annotate(
            label(line, letters, 1),
            (0, y),
            (11, 0),
            textcoords="offset points",
            size=SMALL,
            va="center",
        )
