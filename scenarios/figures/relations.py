"""Figures of metrics against outcomes: Kendall's tau, scatter, and what varying does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from hopmap.scenarios.quantities import MISSING, compact, time_unit
from hopmap.scenarios.studies.correlation import METRICS, OUTCOMES, Relation, Tau
from hopmap.units import show_bytes

from .style import (
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
    style,
)

_ROW, _LINE, _COLUMNS = 0.22, 0.19, 2  # inches a row of cells, a line of a legend; its columns
LETTERS = 38  # of the smallest text that fit side by side below an axis


def diverging() -> Colormap:
    """Orange for −1, white for 0, blue for +1."""
    return LinearSegmentedColormap.from_list("hopmap_tau", [ORANGE, "#ffffff", BLUE])


class _Block(NamedTuple):
    title: str
    rows: list[tuple[str, list[Tau | None]]]


def tau_map(relations: Sequence[Relation], *, title: str) -> Figure:
    """Draw tau of every metric with runtime and energy, a column a case.

    Bold figures are unlikely to be chance (p below 5 %); a dash is for what is the same for all
    mappings.
    """
    blocks = [
        _Block(
            f"with {name}",
            [(METRICS[m], [r.taus.get((m, outcome)) for r in relations]) for m in METRICS],
        )
        for outcome, name in OUTCOMES.items()
        if any((m, outcome) in r.taus for r in relations for m in METRICS)
    ]
    pairs: list[tuple[str, list[Tau | None]]] = [
        ("hop-bytes, busiest link", [r.between for r in relations]),
        ("runtime, energy", [r.outcomes for r in relations]),
    ]
    known = [row for row in pairs if any(tau.known for tau in row[1] if tau)]
    blocks += [_Block("of each other", known)] * bool(known)
    common, variants = shared([r.case.variant for r in relations])
    heads = [
        "\n".join(label(line, 21, 1) for line in (r.case.topology, variant) if line)
        for r, variant in zip(relations, variants, strict=True)
    ]
    head = 0.072 * max((len(line) for text in heads for line in text.split("\n")), default=0)
    width = max(WIDTH, 2.17 + 0.44 * len(relations))
    lines = sum(len(block.rows) + 1.1 for block in blocks)
    with style():
        figure = new_figure(0.5 + head + lines * _ROW, title, width)
        ratios = [len(block.rows) for block in blocks]
        panels = figure.subplots(len(blocks), 1, height_ratios=ratios, squeeze=False)[:, 0]
        for axes, block in zip(panels, blocks, strict=True):
            _draw_block(axes, block)
        panels[0].set_xticks(np.arange(len(heads)) + 0.5, heads, rotation=90)
        panels[0].xaxis.tick_top()
        panels[0].set_xlabel(label(common, 26), loc="left", fontsize=SMALL)
        panels[0].xaxis.set_label_position("top")
    return figure


def _draw_block(axes: Axes, block: _Block) -> None:
    """Draw a row of cells for each metric, coloured by tau."""
    axes.spines[:].set_visible(False)
    axes.set_facecolor("#f3f5f6")
    axes.set_title(block.title, fontsize=SMALL, pad=3)
    axes.set_yticks(np.arange(len(block.rows)) + 0.5, [name for name, _ in block.rows])
    axes.set_xticks([])
    axes.tick_params(length=0)
    values = [[t.value if t and t.known else np.nan for t in taus] for _, taus in block.rows]
    cells = np.ma.masked_invalid(np.array(values, dtype=float))
    axes.pcolormesh(cells, cmap=diverging(), vmin=-1, vmax=1, edgecolors="white", linewidth=0.8)
    axes.invert_yaxis()
    for row, (_, taus) in enumerate(block.rows):
        for column, tau in enumerate(taus):
            axes.text(
                column + 0.5,
                row + 0.5,
                _signed(tau),
                ha="center",
                va="center_baseline",
                size=SMALL,
                weight="bold" if tau is not None and tau.clear else "normal",
                color="white" if tau is not None and tau.known and tau.value > 0.75 else INK,
            )


def _signed(tau: Tau | None) -> str:
    return f"{tau.value:+.2f}".replace("-", "−") if tau is not None and tau.known else MISSING


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
    with style():
        figure = new_figure(2.75 + _LINE * -(-len(drawn) // _COLUMNS), title)
        for axes, (column, name, text) in zip(
            figure.subplots(1, 2, sharey=True), panels, strict=True
        ):
            for mapper in drawn:
                own = runs[runs["mapper"] == mapper]
                axes.plot(own[column], own["makespan"] / scale, **mark(mappers.index(mapper)))
            plain_title(axes, f"τ {_signed(relation.taus[column, 'makespan'])}", SMALL, 2)
            axes.set_xlabel(name)
            axes.grid(visible=True)
            axes.margins(0.08)
            axes.xaxis.set_major_locator(MaxNLocator(3))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _, text=text: text(v)))
            axes.yaxis.set_major_locator(MaxNLocator(5))
            axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.6g}"))
        figure.axes[0].set_ylabel(f"simulated runtime ({unit})")
        _legend(figure, drawn, mappers)
    return figure


def variation(
    points: Sequence[str], runtimes: Mapping[str, Sequence[float | None]], *, title: str
) -> Figure:
    """Draw the runtime of every mapper at each point of what varies.

    Parameters
    ----------
    points : sequence of str
        Labels, in order.
    runtimes : mapping of str to sequence
        By mapper: seconds at each point, the mean over its seeds; None where it was not run.
    """
    known = [value for row in runtimes.values() for value in row if value is not None]
    scale, unit = time_unit(max(known, default=1.0))
    mappers = list(runtimes)
    common, rests = shared(points)
    letters = min(max(LETTERS // max(len(points), 1) - 1, 6), 16)
    ticks = [label(rest, letters) for rest in rests]
    foot = 0.14 * max((tick.count("\n") for tick in ticks), default=0)
    with style():
        figure = new_figure(3.05 + foot + _LINE * -(-len(mappers) // _COLUMNS), title)
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
        _legend(figure, mappers, mappers)
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


def _legend(figure: Figure, shown: Sequence[str], mappers: Sequence[str]) -> None:
    handles = [
        Line2D([], [], label=label(mapper, 21, 1), **mark(mappers.index(mapper)))
        for mapper in shown
    ]
    legend(figure, handles, _COLUMNS)
