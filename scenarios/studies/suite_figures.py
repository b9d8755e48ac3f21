"""Figures of a suite: what every mapper has, in metrics and in time, as one thing varies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from hopmap.api.quantities import compact, time_unit
from hopmap.figures.style import label, legend, mark, new_figure, plain_title, set_ticks, style
from hopmap.units import show_seconds


class Panel(NamedTuple):
    """One diagram.

    The unit is "seconds", "ratio", or empty for counts; lines are by mapper: what varies, and the
    value there.
    """

    title: str
    unit: str
    lines: Mapping[str, Sequence[tuple[float, float]]]


@style()
def suite_lines(
    panels: Sequence[Panel], *, varies: str, title: str, logarithmic: bool = False
) -> Figure:
    """Draw a line for every mapper in every panel, one below the other, with one legend.

    Random placement may leave the picture, that the others can be told apart. `varies` says what
    abscissae are; these, and ordinates that are seconds, may be logarithmic.
    """
    mappers = list(dict.fromkeys(mapper for panel in panels for mapper in panel.lines))
    foot = 0.19 * -(-len(mappers) // 2)
    figure = new_figure(0.4 + foot + 2.2 * len(panels), title)
    rows = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
    for axes, panel in zip(rows, panels, strict=True):
        _panel(axes, panel, mappers, varies, logarithmic)
    named = [Line2D([], [], label=label(m, 22, 1), **_line(m, mappers)) for m in mappers]
    legend(figure, named, 2)
    return figure


def _panel(
    axes: Axes, panel: Panel, mappers: Sequence[str], varies: str, logarithmic: bool
) -> None:
    values = [y for line in panel.lines.values() for _, y in line]
    others = [y for mapper, line in panel.lines.items() if mapper != "random" for _, y in line]
    scale, unit = 1.0, panel.unit
    if unit == "seconds" and not logarithmic:
        scale, unit = time_unit(max(values, default=1.0))
    for mapper, line in panel.lines.items():
        x, y = zip(*sorted(line), strict=True)
        axes.plot(x, [value / scale for value in y], **_line(mapper, mappers))
    plain_title(axes, panel.title, pad=4)
    axes.set_xlabel(varies, labelpad=2)
    axes.grid(visible=True)
    if logarithmic:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: compact(v)))
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        axes.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 5, 10]))
    if logarithmic and unit == "seconds":
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(10, numticks=12))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: show_seconds(v)))
        axes.yaxis.set_minor_formatter(NullFormatter())
        return
    if unit == "ratio":
        axes.set_ylim(0.97, 1.15 * max(others, default=2.0) - 0.15)
    else:
        top = min(1.06 * max(values, default=1.0), 1.5 * max(others, default=np.inf))
        axes.set_ylim(0, top / scale or 1)
        if unit:
            axes.set_ylabel(f"simulated time ({unit})")
    set_ticks(axes.yaxis, "{:,.6g}".format, MaxNLocator(5))


def _line(mapper: str, mappers: Sequence[str]) -> dict[str, Any]:
    return mark(mappers.index(mapper)) | {"linestyle": "-", "linewidth": 1.0, "markersize": 4}
