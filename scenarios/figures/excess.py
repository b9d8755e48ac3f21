"""The figure that compares mappers over all cases and seeds of a study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from numpy.typing import NDArray

from .bars import legend, rows_figure
from .style import BLUE, INK, label, style

DOTS = 2000  # more become an image
_TICKS = (0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 1000)


def excess_strips(
    excess: Mapping[str, Sequence[NDArray[np.float64]]], *, title: str, what: str
) -> Figure:
    """Draw how far the runs of each mapper are behind the best of their case.

    A dot is a run, a case with a seed; dots of a case lie at one height, so that the spread over
    seeds is seen along it. The abscissa is logarithmic in 1 + excess.

    Parameters
    ----------
    excess : mapping of str to sequence of ndarray
        By mapper: for each case, how much more than the least each seed takes, 0.05 for 5 %.
    what : str
        What the excess is of, below the abscissa.
    """
    names = [label(name, 19) for name in excess]
    most = max((float(each.max()) for cases in excess.values() for each in cases), default=0.0)
    dots = sum(len(each) for cases in excess.values() for each in cases)
    with style():
        figure, axes, height = rows_figure(names, title)
        for y, cases in enumerate(excess.values()):
            values = np.concatenate(cases)
            shift = np.linspace(-0.3, 0.3, len(cases)) if len(cases) > 1 else np.zeros(1)
            rows = np.repeat(y + shift, [len(each) for each in cases])
            axes.plot(
                np.log1p(values),
                rows,
                "o",
                color=BLUE,
                alpha=0.45 if dots > 60 else 0.8,
                markersize=2.2 if dots > 300 else 3.2,
                markeredgewidth=0,
                rasterized=dots > DOTS,
            )
            middle = np.log1p(np.median(values))
            axes.plot([middle, middle], [y - 0.36, y + 0.36], color=INK, linewidth=1.8)
        right = max(np.log1p(most) * 1.04, np.log1p(0.01))
        axes.set_xlim(-0.03 * right, right)
        axes.xaxis.set_major_locator(FixedLocator(_apart(right)))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"+{100 * np.expm1(v):,.3g} %"))
        axes.grid(axis="x")
        axes.set_xlabel(what, loc="right")
        handles = [
            Line2D([], [], color=BLUE, marker="o", markersize=3.2, linewidth=0, label="a run"),
            Line2D([], [], color=INK, linewidth=1.8, label="median"),
        ]
        legend(figure, handles, height)
    return figure


def _apart(right: float) -> list[float]:
    """Ticks that leave room for their labels."""
    ticks = [0.0]
    for tick in np.log1p(_TICKS[1:]):
        if tick <= right and tick - ticks[-1] >= right / 5:
            ticks.append(float(tick))
    return ticks
