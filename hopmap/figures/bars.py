"""Figures that compare mappers: IeNPC, runtime, also as something varies, mapping time, excess.

Mappers are rows in the order of the arguments, the first on top.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator

from hopmap.arrays import Floats
from hopmap.units import compact, duration, runtime, time_unit

from .style import (
    BLUE,
    CYCLE,
    GREY,
    INK,
    ORANGE,
    RED,
    SKY,
    label,
    legend,
    mark,
    new_figure,
    plain_title,
    set_ticks,
    style,
    value_axis,
)
from .tips import add_bars, add_points

STATISTICS = {"total": "total", "max": "maximum", "avg": "average", "min": "minimum"}
DOTS = 2000  # runs in a figure of excess; more become an image
_TICKS = (0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 1000)  # of an excess
_PARTS = {"compute": "#b4bec6", "communicate": SKY, "wait": ORANGE}
_LINE, _COLUMNS = 0.19, 2  # inches a line of a legend; its columns
LETTERS = 38  # of the smallest text that fit side by side below an axis


class SeedSpread(NamedTuple):
    """A figure over the seeds of a mapper: the one shown, the lowest, the highest."""

    value: float
    low: float
    high: float


@style()
def ienpc_bars(
    mappers: Sequence[str],
    rows: Sequence[Mapping[str, float]],
    *,
    title: str,
    ieplc: float | None = None,
    worst: Sequence[float] | None = None,
    limits: Mapping[str, float] | None = None,
    default: str = "sweep",
) -> Figure:
    """Draw total, maximum, average and minimum IeNPC per mapper, as the HAEC thesis does.

    Rows have "total", "avg", "min", "max" of each mapper's best seed; `worst` the total of its
    worst, drawn as a thin line. `ieplc` is a vertical line among the totals: all messages, the
    least that is possible when every rank has a node of its own. `limits` are the highest values
    of all topologies, to have the same abscissae. The mapper to compare with is grey.
    """
    names = [label(name, 19) for name in mappers]
    panel = _height(names, 0.075)
    colours = [GREY if name == default else BLUE for name in mappers]
    figure = new_figure(2 * panel + 1.4, title)
    panels = figure.subplots(2, 2, sharey=True).ravel()
    for axes, (key, word) in zip(panels, STATISTICS.items(), strict=True):
        values = [float(row[key]) for row in rows]
        y = np.arange(len(values))
        axes.barh(y, values, color=colours, height=0.68)
        if key == "total" and worst is not None:
            spread = np.asarray(worst) > np.asarray(values)
            ends = np.asarray(worst)[spread]
            axes.hlines(y[spread], np.asarray(values)[spread], ends, color=INK, linewidth=1)
            axes.plot(ends, y[spread], "|", color=INK, markersize=4)
        if key == "total" and ieplc:
            axes.axvline(ieplc, color=RED, linewidth=1.3, linestyle=(0, (4, 2)))
        said = [f"{m}: {word} {v:,.6g} messages" for m, v in zip(mappers, values, strict=True)]
        add_bars(axes, np.zeros(len(values)), values, said)
        plain_title(axes, word)
        _rows(axes, names)
        top = (limits or {}).get(key) or max([*values, 0.0])
        value_axis(axes, compact, top)
    handles: list[Any] = []
    if default in mappers:
        handles.append(Patch(color=GREY, label=f"{default} (default)"))
    if ieplc:
        handles.append(
            Line2D([], [], color=RED, linestyle=(0, (4, 2)), label=f"IePLC {compact(ieplc)}")
        )
    if worst is not None and any(w > row["total"] for w, row in zip(worst, rows, strict=True)):
        handles.append(Line2D([], [], color=INK, linewidth=1, label="to the worst seed"))
    legend(figure, handles)
    return figure


@style()
def runtime_bars(
    mappers: Sequence[str],
    parts: Sequence[Sequence[float]],
    makespans: Sequence[SeedSpread],
    *,
    title: str,
    limit: float | None = None,
) -> Figure:
    """Draw the simulated runtime: mean seconds of the ranks, stacked, and the makespan.

    Parts are compute, communicate, wait: means over ranks and seeds. Makespans are the mean over
    the seeds, least, most. The abscissa ends at `limit`.
    """
    names = [label(name, 19) for name in mappers]
    table = np.array(parts, dtype=float).reshape(len(names), 3)
    spans = np.array(makespans, dtype=float).reshape(len(names), 3)
    top = limit or max([float(spans.max(initial=0)), float(table.sum(axis=1).max(initial=0))])
    scale, unit = time_unit(top)
    figure, axes = _rows_figure(names, title)
    y = np.arange(len(names))
    start = np.zeros(len(names))
    ends = zip(mappers, spans.tolist(), strict=True)
    add_points(axes, spans[:, 0] / scale, y, [f"{m}: makespan {_spread(*e)}" for m, e in ends])
    for part, (name, colour) in zip(table.T / scale, _PARTS.items(), strict=True):
        axes.barh(y, part, left=start, color=colour, height=0.68)
        means = zip(mappers, (part * scale).tolist(), strict=True)
        said = [f"{mapper}: {name} {runtime(mean)}, mean over ranks" for mapper, mean in means]
        add_bars(axes, start, start + part, said)
        start += part
    axes.hlines(y, spans[:, 1] / scale, spans[:, 2] / scale, color=INK, linewidth=1)
    axes.plot(spans[:, 0] / scale, y, "D", color=INK, markersize=4.2, markeredgecolor="white")
    value_axis(axes, lambda v: f"{v:,.6g}", top / scale, 5)
    axes.set_xlabel(f"simulated time ({unit})")
    handles: list[Any] = [
        *(Patch(color=colour, label=name) for name, colour in _PARTS.items()),
        Line2D([], [], color=INK, marker="D", markersize=4.2, linewidth=0, label="makespan"),
    ]
    legend(figure, handles)
    return figure


@style()
def mapping_time(
    mappers: Sequence[str],
    topologies: Sequence[str],
    seconds: Sequence[Sequence[SeedSpread | None]],
    *,
    title: str,
) -> Figure:
    """Draw how long each mapper took on each topology, on a logarithmic axis.

    Seconds are by topology, then by mapper; None where nothing was run.
    """
    names = [label(name, 19) for name in mappers]
    shown = topologies[: len(CYCLE)]
    rows = -(-len(shown) // 2)
    figure, axes = _rows_figure(names, title, 0.2 * (rows - 1), len(shown))
    axes.set_xscale("log")
    handles: list[Any] = []
    for place, (topology, spreads) in enumerate(zip(shown, seconds, strict=False)):
        shift = (place - (len(shown) - 1) / 2) * min(0.22, 0.7 / max(len(shown), 1))
        for y, spread in enumerate(spreads):
            if spread is None:
                continue
            # a clock's tick: what took no measurable time has to be somewhere on a log axis
            value, low, high = (max(float(v), 1e-6) for v in spread)
            axes.plot([low, high], [y + shift] * 2, color=CYCLE[place], linewidth=1.2)
            axes.plot(value, y + shift, **mark(place))
            words = f"{mappers[y]} on {topology}: {_spread(*spread)}"
            add_points(axes, [value], [y + shift], [words])
        handles.append(Line2D([], [], label=label(topology, 21, 1), **mark(place)))
    set_ticks(axes.xaxis, duration, LogLocator(10, numticks=5))
    low, high = axes.get_xlim()
    if high / low < 100:
        axes.set_xlim(low / 4, high * 4)
    axes.grid(axis="x")
    axes.set_xlabel("mapping time (log)")
    legend(figure, handles, columns=2)
    return figure


def _spread(value: float, low: float, high: float) -> str:
    """Write a time, and its range over seeds if there is one."""
    same = duration(low) == duration(high)
    return duration(value) + ("" if same else f", {duration(low)} to {duration(high)}")


def _height(names: Sequence[str], gap: float) -> float:
    """Inches that a row for each name takes."""
    lines = max((name.count("\n") + 1 for name in names), default=1)
    return max(len(names), 1) * (gap + 0.125 * lines) + 0.12


def _rows_figure(
    names: Sequence[str], title: str, extra: float = 0, marks: int = 1
) -> tuple[Figure, Axes]:
    """Figure with one panel, a row for each name; `extra` inches below for the legend."""
    panel = max(_height(names, 0.1), 0.075 * marks * len(names))
    figure = new_figure(panel + 0.95 + extra, title)
    axes = figure.subplots()
    _rows(axes, names)
    return figure, axes


def _rows(axes: Axes, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(max(len(names), 1) - 0.45, -0.55)


@style()
def excess_strips(excess: Mapping[str, Sequence[Floats]], *, title: str, what: str) -> Figure:
    """Draw how far the runs of each mapper are behind the best of their case.

    A dot is a run, a case with a seed; dots of a case lie at one height, so that the spread over
    seeds is seen along it. The abscissa is logarithmic in 1 + excess; `what` says of what. Excess
    is by mapper, for each case: how much more than the least each seed takes, 0.05 for 5 %.
    """
    names = [label(name, 19) for name in excess]
    most = max((float(each.max()) for cases in excess.values() for each in cases), default=0.0)
    dots = sum(len(each) for cases in excess.values() for each in cases)
    figure, axes = _rows_figure(names, title)
    for y, (mapper, cases) in enumerate(excess.items()):
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
        said = [f"{mapper}: +{100 * value:,.3g} % {what}" for value in values]
        add_points(axes, np.log1p(values), rows, said)
        middle = np.log1p(np.median(values))
        axes.plot([middle, middle], [y - 0.36, y + 0.36], color=INK, linewidth=1.8)
    right = max(np.log1p(most) * 1.04, np.log1p(0.01))
    axes.set_xlim(-0.03 * right, right)
    set_ticks(axes.xaxis, lambda v: f"+{100 * np.expm1(v):,.3g} %", FixedLocator(_spaced(right)))
    axes.grid(axis="x")
    axes.set_xlabel(what, loc="right")
    handles = [
        Line2D([], [], color=BLUE, marker="o", markersize=3.2, linewidth=0, label="a run"),
        Line2D([], [], color=INK, linewidth=1.8, label="median"),
    ]
    legend(figure, handles)
    return figure


def _spaced(right: float) -> list[float]:
    """Ticks that leave room for their labels."""
    places = [0.0]
    for tick in np.log1p(_TICKS[1:]):
        if tick <= right and tick - places[-1] >= right / 5:
            places.append(float(tick))
    return places


@style()
def variation(
    points: Sequence[str], runtimes: Mapping[str, Sequence[float | None]], *, title: str
) -> Figure:
    """Draw the runtime of every mapper at each point of what varies.

    Runtimes are seconds at each point, the mean over the seeds; None where nothing was run.
    """
    known = [value for row in runtimes.values() for value in row if value is not None]
    scale, unit = time_unit(max(known, default=1.0))
    mappers = list(runtimes)
    common, rests = factor_out(points)
    letters = min(max(LETTERS // max(len(points), 1) - 1, 6), 16)
    marks = [label(rest, letters) for rest in rests]
    foot = 0.14 * max((tick.count("\n") for tick in marks), default=0)
    figure = new_figure(3.05 + foot + height_of_legend(mappers), title)
    axes = figure.subplots()
    x = np.arange(len(points))
    for place, (mapper, row) in enumerate(runtimes.items()):
        values = [np.nan if value is None else value / scale for value in row]
        done = [k for k, value in enumerate(row) if value is not None]
        said = [f"{mapper}, {points[k]}: {runtime(row[k])}" for k in done]
        add_points(axes, x[done], np.asarray(values)[done], said)
        axes.plot(x, values, **mark(place) | {"linestyle": "-", "linewidth": 1.1})
    axes.set_xticks(x, marks)
    axes.set_xlabel(label(common, 40, 1))
    axes.set_xlim(-0.15, len(points) - 0.85)
    axes.grid(axis="y")
    set_ticks(axes.yaxis, "{:,.6g}".format, MaxNLocator(6))
    axes.set_ylabel(f"simulated runtime ({unit})")
    legend_of_mappers(figure, mappers, mappers)
    return figure


def factor_out(points: Sequence[str]) -> tuple[str, list[str]]:
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
    return _format_parts(common), [_format_parts(rest) for rest in rests]


def _is_name(words: Sequence[str]) -> bool:
    """Whether words that stand at one place are the same, and not the number of a value."""
    return len(set(words)) == 1 and not words[0][:1].isdigit()


def _format_parts(parts: Sequence[str]) -> str:
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
