"""Figures of studies: metrics against outcomes, and what every mapper has as one thing varies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from hopmap.figures.bars import factor_out, height_of_legend, legend_of_mappers
from hopmap.figures.style import (
    BLUE,
    INK,
    ORANGE,
    SMALL,
    WIDTH,
    label,
    legend,
    mark,
    new_figure,
    plain_title,
    set_ticks,
    style,
)
from hopmap.figures.tips import add_points, add_tips
from hopmap.units import MISSING, compact, runtime, show_bytes, show_seconds, time_unit

from .correlation import METRICS, OUTCOMES, Relation, Tau, format_tau

_ROW = 0.22  # inches a row of cells


DIVERGING = LinearSegmentedColormap.from_list("hopmap_tau", [ORANGE, "#ffffff", BLUE])
"""Orange for −1, white for 0, blue for +1."""


_Rows = list[tuple[str, list[Tau | None]]]


@style()
def tau_map(relations: Sequence[Relation], *, title: str) -> Figure:
    """Draw tau of every metric with runtime and energy, a column a case.

    Bold figures are unlikely to be chance (p below 5 %); a dash is for what is the same for all
    mappings.
    """
    blocks: dict[str, _Rows] = {
        f"with {name}": [(METRICS[m], [r.taus.get((m, way)) for r in relations]) for m in METRICS]
        for way, name in OUTCOMES.items()
        if any((m, way) in r.taus for r in relations for m in METRICS)
    }
    pairs: _Rows = [
        ("hop-bytes, busiest link", [r.between for r in relations]),
        ("runtime, energy", [r.outcomes for r in relations]),
    ]
    if known := [row for row in pairs if any(tau.known for tau in row[1] if tau)]:
        blocks["of each other"] = known
    common, variants = factor_out([r.case.variant for r in relations])
    heads = [
        "\n".join(label(line, 21, 1) for line in (r.case.topology, variant) if line)
        for r, variant in zip(relations, variants, strict=True)
    ]
    head = 0.072 * max((len(line) for text in heads for line in text.split("\n")), default=0)
    width = max(WIDTH, 2.17 + 0.44 * len(relations))
    lines = sum(len(rows) + 1.1 for rows in blocks.values())
    figure = new_figure(0.5 + head + lines * _ROW, title, width)
    ratios = [len(rows) for rows in blocks.values()]
    panels = figure.subplots(len(blocks), 1, height_ratios=ratios, squeeze=False)[:, 0]
    for axes, (outcome, rows) in zip(panels, blocks.items(), strict=True):
        _draw_block(axes, outcome, rows)
    panels[0].set_xticks(np.arange(len(heads)) + 0.5, heads, rotation=90)
    panels[0].xaxis.tick_top()
    panels[0].set_xlabel(label(common, 26), loc="left", fontsize=SMALL)
    panels[0].xaxis.set_label_position("top")
    return figure


def _draw_block(axes: Axes, title: str, rows: _Rows) -> None:
    """Draw a row of cells for each metric, coloured by tau."""
    axes.spines[:].set_visible(False)
    axes.set_facecolor("#f3f5f6")
    axes.set_title(title, fontsize=SMALL, pad=3)
    axes.set_yticks(np.arange(len(rows)) + 0.5, [name for name, _ in rows])
    axes.set_xticks([])
    axes.tick_params(length=0)
    values = [[t.value if t and t.known else np.nan for t in taus] for _, taus in rows]
    cells = np.ma.masked_invalid(np.array(values, dtype=float))
    axes.pcolormesh(cells, cmap=DIVERGING, vmin=-1, vmax=1, edgecolors="white", linewidth=0.8)
    axes.invert_yaxis()
    for row, (_, taus) in enumerate(rows):
        for column, tau in enumerate(taus):
            value = MISSING if tau is None else format_tau(tau.value)
            words = f"{rows[row][0]}: τ {value}" + ", unlikely to be chance" * bool(
                tau and tau.clear
            )
            add_tips(axes, [[(column, row), (column + 1, row + 1)]], [words])
            axes.text(
                column + 0.5,
                row + 0.5,
                value,
                ha="center",
                va="center_baseline",
                size=SMALL,
                weight="bold" if tau is not None and tau.clear else "normal",
                color="white" if tau is not None and tau.known and tau.value > 0.75 else INK,
            )


@style()
def scatter(relation: Relation, *, title: str) -> Figure:
    """Draw runtime over hop-bytes, and over the busiest link; a mark a mapping."""
    runs = relation.runs
    mappers = [entry.mapper for entry in relation.case.entries]
    drawn = [mapper for mapper in mappers if (runs["mapper"] == mapper).any()]
    scale, unit = time_unit(float(runs["makespan"].max()))
    panels: tuple[tuple[str, str, Callable[[float], str]], ...] = (
        ("hop_bytes", "hop-bytes", show_bytes),
        ("bytes_congestion_max", "busiest link", show_bytes),
    )
    if not runs["hop_bytes"].any():  # messages without bytes
        panels = (
            ("hop_messages", "hop-messages", compact),
            ("messages_congestion_max", "busiest link, messages", compact),
        )
    figure = new_figure(2.75 + height_of_legend(drawn), title)
    for axes, (column, name, text) in zip(figure.subplots(1, 2, sharey=True), panels, strict=True):
        for mapper in drawn:
            own = runs[runs["mapper"] == mapper]
            axes.plot(own[column], own["makespan"] / scale, **mark(mappers.index(mapper)))
            pairs = zip(own["makespan"], own[column], strict=True)
            said = [f"{mapper}: {runtime(time)}, {name} {text(x)}" for time, x in pairs]
            add_points(axes, own[column], own["makespan"] / scale, said)
        plain_title(axes, f"τ {format_tau(relation.taus[column, 'makespan'].value)}", SMALL, 2)
        axes.set_xlabel(name)
        axes.grid(visible=True)
        axes.margins(0.08)
        set_ticks(axes.xaxis, text, MaxNLocator(3))
        set_ticks(axes.yaxis, "{:,.6g}".format, MaxNLocator(5))
    figure.axes[0].set_ylabel(f"simulated runtime ({unit})")
    legend_of_mappers(figure, drawn, mappers)
    return figure


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

    The axes may cut off random placement, to separate the others. `varies` says what
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
        write = show_seconds if panel.unit == "seconds" else "{:.4g}".format
        said = [f"{mapper}, {at:g}: {write(value)}" for at, value in zip(x, y, strict=True)]
        add_points(axes, x, np.asarray(y) / scale, said)
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
