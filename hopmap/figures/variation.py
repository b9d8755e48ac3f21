"""Figures of what varies: the runtime of every mapper at each point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from hopmap.api.quantities import time_unit

from .style import label, legend, mark, new_figure, style

_LINE, _COLUMNS = 0.19, 2  # inches a line of a legend; its columns
LETTERS = 38  # of the smallest text that fit side by side below an axis


def variation(
    points: Sequence[str], runtimes: Mapping[str, Sequence[float | None]], *, title: str
) -> Figure:
    """Draw the runtime of every mapper at each point of what varies.

    Runtimes are seconds at each point, the mean over the seeds; None where nothing was run.
    """
    known = [value for row in runtimes.values() for value in row if value is not None]
    scale, unit = time_unit(max(known, default=1.0))
    mappers = list(runtimes)
    common, rests = shared(points)
    letters = min(max(LETTERS // max(len(points), 1) - 1, 6), 16)
    ticks = [label(rest, letters) for rest in rests]
    foot = 0.14 * max((tick.count("\n") for tick in ticks), default=0)
    with style():
        figure = new_figure(3.05 + foot + height_of_legend(mappers), title)
        axes = figure.subplots()
        x = np.arange(len(points))
        for place, row in enumerate(runtimes.values()):
            values = [np.nan if value is None else value / scale for value in row]
            axes.plot(x, values, **mark(place) | {"linestyle": "-", "linewidth": 1.1})
        axes.set_xticks(x, ticks)
        axes.set_xlabel(label(common, 40, 1))
        axes.set_xlim(-0.15, len(points) - 0.85)
        axes.grid(axis="y")
        axes.yaxis.set_major_locator(MaxNLocator(6))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.6g}"))
        axes.set_ylabel(f"simulated runtime ({unit})")
        legend_of_mappers(figure, mappers, mappers)
    return figure


def shared(points: Sequence[str]) -> tuple[str, list[str]]:
    """Split labels, part by part, into the words that all begin with, and the rest of each."""
    parts = [point.split(", ") for point in points]
    if len(points) < 2 or len(set(map(len, parts))) > 1:
        return "", list(points)
    common: list[str] = []
    rests: list[list[str]] = [[] for _ in points]
    for column in zip(*parts, strict=True):
        words = [part.split(" ") for part in column]
        same = len(words[0])
        if len(set(column)) > 1:  # a word is left of each
            named = takewhile(_is_name, zip(*(w[:-1] for w in words), strict=False))
            same = len(list(named))
        common.append(" ".join(words[0][:same]))
        for rest, w in zip(rests, words, strict=True):
            rest.append(" ".join(w[same:]))
    return _listed(common), [_listed(rest) for rest in rests]


def _is_name(words: Sequence[str]) -> bool:
    """Whether words that stand at one place are the same, and not the number of a value."""
    return len(set(words)) == 1 and not words[0][:1].isdigit()


def _listed(parts: Sequence[str]) -> str:
    return ", ".join(part for part in parts if part)


def legend_of_mappers(figure: Figure, shown: Sequence[str], mappers: Sequence[str]) -> None:
    """Draw a legend with the marks of the mappers that are shown."""
    handles = [
        Line2D([], [], label=label(mapper, 21, 1), **mark(mappers.index(mapper)))
        for mapper in shown
    ]
    legend(figure, handles, _COLUMNS)


def height_of_legend(mappers: Sequence[str]) -> float:
    """Return the inches that a legend of mappers takes."""
    return _LINE * -(-len(mappers) // _COLUMNS)
