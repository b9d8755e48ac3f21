"""What `routers.py` found, as a table and a figure.

``python benchmarks/routers/routers_figure.py PICTURE OUT...``
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import groupby, pairwise
from pathlib import Path
from typing import NamedTuple

from cases import GRID, GROUP_CHANNELS, GROUPS, Case
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter
from routers import SATURATED, Point, read

from hopmap.figures.style import CYCLE, GREY, SMALL, WIDTH, new_figure, style, svg_text

COLOURS = dict(zip(dict.fromkeys(GRID + GROUPS), [*CYCLE, GREY], strict=False))
BELOW = 0.8  # of saturation, where latencies are compared
ROUTINGS = {"min": "minimal", "valiant_group": "Valiant", "ugal_group": "UGAL", "ugal": "its UGAL"}


class Row(NamedTuple):
    """A case: loads in flits per source and cycle, latencies in cycles.

    Attributes
    ----------
    worst : float
        Ratio of latencies that is farthest from 1, of all loads up to `BELOW`.
    """

    case: Case
    booksim_saturation: float
    saturation: float
    booksim_latency: float
    latency: float
    worst: float


def crossing(points: Sequence[Point], which: str) -> float:
    """Load at which the latency is that of saturation, on straight lines between the points."""
    limit = SATURATED * points[0].zero
    for low, high in pairwise(points):
        # an aborted run counts as twice the limit
        below, above = (min(getattr(each, which), 2 * limit) for each in (low, high))
        if below < limit <= above:
            part = low.part + (high.part - low.part) * (limit - below) / (above - below)
            return min(part * low.saturation, 1.0)
    return points[-1].part * points[-1].saturation


def rows(points: Sequence[Point]) -> list[Row]:
    """Sum up the points of every case."""
    found = []
    for case, some in groupby(sorted(points), key=lambda point: point.case):
        each = sorted(some, key=lambda point: point.part)
        mine, other = crossing(each, "latency"), crossing(each, "booksim_latency")
        most = BELOW * min(mine, other) * 1.03  # 0.8 is of hopmap's, to 2 %
        under = [point for point in each if point.part * point.saturation <= most]
        ratios = [point.latency / point.booksim_latency for point in under]
        worst = max(ratios, key=lambda ratio: abs(ratio - 1))
        last = under[-1]
        found.append(Row(case, other, mine, last.booksim_latency, last.latency, worst))
    return found


def table(found: list[Row]) -> str:
    """Write the rows as Markdown."""
    lines = [
        "| network | channels | packet | buffer | pattern | BookSim2 saturates | hopmap | ratio "
        "| BookSim2's latency | hopmap's | ratio | farthest |",
        "|" + "---|" * 12,
    ]
    for row in found:
        case = row.case
        network = f"{case.network} {ROUTINGS.get(case.routing, '')}".strip()
        lines.append(
            f"| {network} | {case.channels} | {case.size} | {case.buffer} | {case.pattern} "
            f"| {row.booksim_saturation:.3f} | {row.saturation:.3f} "
            f"| {row.saturation / row.booksim_saturation:.2f} | {row.booksim_latency:.1f} "
            f"| {row.latency:.1f} | {row.latency / row.booksim_latency:.2f} | {row.worst:.2f} |"
        )
    return "\n".join(lines)


def summary(found: list[Row]) -> str:
    """How many cases are within the bounds."""
    near = [abs(row.saturation / row.booksim_saturation - 1) <= 0.05 for row in found]
    similar = [abs(row.worst - 1) <= 0.10 for row in found]
    both = sum(a and b for a, b in zip(near, similar, strict=True))
    return f"{len(found)} cases: saturation {sum(near)}, latency {sum(similar)}, both {both}"


def panels(points: Sequence[Point]) -> dict[str, list[Point]]:
    """Points of each panel: dragonflies by routing, grids by packets and buffers."""
    sizes = dict.fromkeys((p.case.size, p.case.buffer) for p in points if p.case.channels == 2)
    shown = {
        f"dragonfly, {ROUTINGS[routing]}": [
            p for p in points if p.case.routing == routing and p.case[4:] == (1, 256)
        ]
        for routing in GROUP_CHANNELS
    }
    for network in ("mesh", "torus"):
        for size, buffer in sorted(sizes):
            some = [p for p in points if p.case[:2] == (network, "dim_order")]
            some = [p for p in some if p.case[3:] == (2, size, buffer)]
            shown[f"{network}, packets {size}, buffers {buffer}"] = some
    return {name: some for name, some in shown.items() if some}


def panel(axes: Axes, points: list[Point]) -> None:
    """Draw latency over load: hopmap as lines, BookSim2 as circles."""
    for case, some in groupby(points, key=lambda point: point.case):
        each = sorted(some, key=lambda point: point.part)
        load = [point.part * point.saturation for point in each]
        mine = [point.latency / each[0].zero for point in each]
        other = [point.booksim_latency / each[0].zero for point in each]
        colour = COLOURS[case.pattern]
        axes.plot(load, mine, "-", color=colour, linewidth=1.1)
        axes.plot(load, other, "o", color=colour, markersize=3.4, markerfacecolor="none")
    axes.axhline(SATURATED, color=GREY, linewidth=0.6, linestyle=":")
    axes.set(xscale="log", xlim=(0.015, 1.2), ylim=(0.8, 4.2))
    axes.xaxis.set_major_locator(FixedLocator([0.02, 0.1, 0.5]))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_locator(NullLocator())


def drawn(points: Sequence[Point]) -> Figure:
    """Draw latencies over loads in panels, three in a row."""
    shown = panels(points)
    columns, lines = 3, -(-len(shown) // 3)
    with style():
        figure = new_figure(1.75 * lines + 0.75, width=2 * WIDTH)
        grid = figure.add_gridspec(lines, columns)
        for number, (name, some) in enumerate(shown.items()):
            axes = figure.add_subplot(grid[divmod(number, columns)])
            panel(axes, some)
            axes.set_title(name, pad=3)
        figure.supylabel("latency, in that of an empty network", fontsize=SMALL)
        lines_of = [Line2D([], [], color=COLOURS[p], label=p) for p in COLOURS]
        what = [
            Line2D([], [], color=GREY, label="hopmap"),
            Line2D([], [], color=GREY, marker="o", ls="", mfc="none", label="BookSim2"),
        ]
        figure.legend(
            handles=[*lines_of, *what], loc="outside lower center", ncols=4, fontsize=SMALL,
            title="load, flits per source and cycle", title_fontsize=SMALL,
        )  # fmt: skip
    return figure


if __name__ == "__main__":
    known = read([Path(name) for name in sys.argv[2:]])
    print(table(rows(known)))
    print(summary(rows(known)))
    Path(sys.argv[1]).write_text(svg_text(drawn(known)))
