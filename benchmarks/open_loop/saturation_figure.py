"""Figure of saturation: latency over offered load, one panel a network, as textbooks draw it.

Dally and Towles, Principles and Practices of Interconnection Networks, 2004, section 23.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, MultipleLocator
from open_loop import Load

from hopmap.figures.style import (
    CYCLE,
    GREY,
    INK,
    WIDTH,
    label,
    legend,
    new_figure,
    style,
)

MARKERS = "osD^vPX"
COLOURS = (*CYCLE, INK)
ROW, FOOT = 2.2, 1.0  # inches of a row of panels; of the title and the legend


def latency_throughput(
    curves: Mapping[str, Mapping[str, Sequence[Load]]],
    limits: Mapping[str, Mapping[str, float]],
    accepted: Mapping[str, Mapping[str, Sequence[Load]]],
    *,
    title: str,
    most: float = 24.0,
) -> Figure:
    """Draw latency over offered load per network; last, of all, what is accepted.

    Parameters
    ----------
    curves, accepted : mapping of network to mapping of pattern to sequence of Load
        What is drawn in the panels of the networks, and in the last one.
    limits : mapping of network to mapping of pattern to float
        1/gamma: dashed asymptotes, and the unit of the last panel.
    most : float
        Latency at the top; curves leave the panel there.
    """
    rows = -(-(len(curves) + 1) // 2)
    patterns = list(dict.fromkeys(pattern for loads in curves.values() for pattern in loads))
    look = {
        pattern: {
            "color": COLOURS[k % len(COLOURS)],
            "marker": MARKERS[k % len(MARKERS)],
            # Curves that coincide: the markers of the earlier one show around the later one's.
            "markersize": 5.6 - 0.45 * (k % len(MARKERS)),
            "zorder": 3 + 0.1 * k,
        }
        for k, pattern in enumerate(patterns)
    }
    with style():
        figure = new_figure(rows * ROW + FOOT, title, 2 * WIDTH)
        grid = figure.add_gridspec(rows, 2)
        panels = [figure.add_subplot(grid[divmod(k, 2)]) for k in range(len(curves) + 1)]
        for axes, (network, loads) in zip(panels, curves.items(), strict=False):
            _latencies(axes, loads, limits[network], look, most)
            axes.set_title(label(network, 40, 1), pad=5)
        _accepted(panels[-1], accepted, limits, look)
        handles = [
            Line2D([], [], linewidth=1.2, markeredgecolor="white", markeredgewidth=0.4, label=name)
            for name in (pattern.replace("_", " ") for pattern in patterns)
        ]
        for handle, pattern in zip(handles, patterns, strict=True):
            handle.set(color=look[pattern]["color"], marker=look[pattern]["marker"], markersize=4.6)
        handles.append(Line2D([], [], color=GREY, linewidth=0.9, linestyle=(0, (4, 2))))
        handles[-1].set_label("1 / γ, the limit")
        legend(figure, handles, 4)
    return figure


def _latencies(
    axes: Axes,
    loads: Mapping[str, Sequence[Load]],
    limits: Mapping[str, float],
    look: Mapping[str, Mapping[str, object]],
    most: float,
) -> None:
    for limit in sorted(set(limits.values())):
        axes.axvline(limit, color=GREY, linewidth=0.9, linestyle=(0, (4, 2)), zorder=1)
    for pattern, points in loads.items():
        axes.plot(
            [point.offered for point in points],
            [point.latency for point in points],
            linewidth=1.2,
            markeredgecolor="white",
            markeredgewidth=0.4,
            **look[pattern],  # type: ignore[arg-type]
        )
    axes.set_xlim(0, max(limits.values()) * 1.05)
    axes.set_ylim(0, most)
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_locator(MultipleLocator(most / 4))
    axes.grid(axis="y")
    axes.set_xlabel("offered, packets per node and packet time", labelpad=2)
    axes.set_ylabel("latency, packet times")


def _accepted(
    axes: Axes,
    accepted: Mapping[str, Mapping[str, Sequence[Load]]],
    limits: Mapping[str, Mapping[str, float]],
    look: Mapping[str, Mapping[str, object]],
) -> None:
    """Draw all curves in units of their limit, where they should fall on one."""
    for network, loads in accepted.items():
        for pattern, points in loads.items():
            limit = limits[network][pattern]
            axes.plot(
                [point.offered / limit for point in points],
                [point.accepted / limit for point in points],
                linewidth=0.9,
                color=str(look[pattern]["color"]),
                alpha=0.8,
            )
    axes.axhline(1, color=GREY, linewidth=0.9, linestyle=(0, (4, 2)), zorder=1)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MultipleLocator(0.25))
    axes.set_ylim(0, 1.15)
    axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2.5, 5, 10]))
    axes.grid(axis="y")
    count = sum(len(loads) for loads in accepted.values())
    axes.set_title(f"accepted by the worst flow, all {count}", pad=5)
    axes.set_xlabel("offered × γ", labelpad=2)
    axes.set_ylabel("accepted × γ")
