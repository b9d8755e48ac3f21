"""The runtime on several networks over a parameter, with the values at which the order changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, LogLocator

from hopmap.units import runtime, time_unit

from .style import INK, SMALL, label, legend, mark, new_figure, set_ticks, style
from .tips import add_points

_ROW = 0.19  # inches a line of the legend
SAME = 0.01  # of their values: lines nearer than this hide each other


class Crossing(NamedTuple):
    """Where two networks are equally fast; the first is the faster one below it."""

    at: float
    faster_below: str
    faster_above: str


def crossings(
    values: Sequence[float], runtimes: Mapping[str, Sequence[float]], relevance: float = 0.0
) -> Iterator[Crossing]:
    """Yield where the runtimes of two networks cross, by straight lines in logarithms.

    Values rise, and are all above 0; runtimes are seconds at each. They have to differ by a share
    of `relevance` at the values on both sides.
    """
    x = np.log(np.asarray(values, dtype=np.float64))
    for one, other in combinations(runtimes, 2):
        ahead = np.log(np.asarray(runtimes[one])) - np.log(np.asarray(runtimes[other]))
        apart = np.abs(ahead) >= np.log1p(relevance)
        for left in np.flatnonzero((ahead[:-1] * ahead[1:] < 0) & apart[:-1] & apart[1:]).tolist():
            share = ahead[left] / (ahead[left] - ahead[left + 1])
            names = (one, other) if ahead[left] < 0 else (other, one)
            yield Crossing(float(np.exp(x[left] + share * (x[left + 1] - x[left]))), *names)


def hidden_below(rows: Sequence[Sequence[float]]) -> list[int]:
    """Return how many later lines would hide each one: they run within 1 % over two values."""
    logs = np.log(np.asarray(rows, dtype=np.float64))
    near = np.abs(logs[:, None, :] - logs[None, :, :]) < SAME
    hidden = (near[:, :, 1:] & near[:, :, :-1]).any(axis=2)
    return [int(np.count_nonzero(hidden[k, k + 1 :])) for k in range(len(logs))]


@style()
def runtime_over(
    values: Sequence[float],
    runtimes: Mapping[str, Sequence[float]],
    marked: Sequence[Crossing],
    *,
    title: str,
    name: str,
    text: Callable[[float], str],
) -> Figure:
    """Draw the shortest runtime of each network over a parameter; mark the crossings.

    `name` is what the parameter is called, `text` writes a value of it.
    """
    scale, unit = time_unit(max(max(row) for row in runtimes.values()))
    figure = new_figure(2.9 + _ROW * len(runtimes), title)
    axes = figure.subplots()
    rims = hidden_below(list(runtimes.values()))
    for place, ((network, row), rim) in enumerate(zip(runtimes.items(), rims, strict=True)):
        looks = mark(place) | {"linestyle": "-", "linewidth": 1.1 + 2.2 * rim}
        looks |= {"markersize": 4.6 + 3.4 * rim, "label": label(network, 46, 1)}
        y = np.asarray(row) / scale
        axes.plot(values, y, **looks)
        said = [f"{network}, {text(x)}: {runtime(s)}" for x, s in zip(values, row, strict=True)]
        add_points(axes, values, y, said)
    axes.set_xscale("log")
    axes.set_yscale("log")
    named = 0.0
    for crossing in sorted(marked):
        axes.axvline(crossing.at, color=INK, linewidth=0.8, linestyle=(0, (2, 2)), zorder=0)
        if crossing.at < named:
            continue  # no room for its value
        named = crossing.at * (values[-1] / values[0]) ** 0.05
        look: dict[str, Any] = {"size": SMALL, "ha": "right", "va": "top", "rotation": 90}
        at_top = axes.get_xaxis_transform()
        axes.text(crossing.at, 1.0, f"{text(crossing.at)} ", transform=at_top, **look)
    few = values if len(values) <= 4 else values[:: -(-len(values) // 4)]
    set_ticks(axes.xaxis, text, FixedLocator(list(few)))
    set_ticks(axes.yaxis, "{:,.4g}".format, LogLocator(subs=(1, 2, 5)))
    axes.set_xlabel(name)
    axes.set_ylabel(f"simulated runtime ({unit})")
    axes.grid(axis="y")
    legend(figure, axes.get_legend_handles_labels()[0], 1)
    return figure
