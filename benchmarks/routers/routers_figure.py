"""What `routers.py` found, as a table and a figure.

``python benchmarks/routers/routers_figure.py PICTURE OUT...``
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter
from routers import SIZES, Row

from hopmap.scenarios.figures.style import CYCLE, GREY, SMALL, WIDTH, new_figure, style, svg_text

MARKERS = "osD^v"
KINDS = {sizes: f"packets of {sizes[0]}, buffers of {sizes[1]} flits" for sizes in sorted(SIZES)}


def read(files: list[Path]) -> list[Row]:
    """Rows of all files, each case once, sorted."""
    rows = {}
    for file in files:
        with file.open(newline="") as lines:
            for topology, pattern, channels, size, buffer, *values in csv.reader(lines):
                case = (topology, pattern, int(channels), int(size), int(buffer))
                row = Row(*case, *map(float, values))
                rows[row[:5]] = row
    return sorted(rows.values(), key=lambda row: (row.size, row.buffer, row[:5]))


def table(rows: list[Row]) -> str:
    """Write the rows as Markdown."""
    lines = [
        "| packet | buffer | network | channels | pattern | BookSim2 saturates | hopmap | ratio "
        "| BookSim2's latency | hopmap's | ratio |",
        "|" + "---|" * 11,
    ]
    for row in rows:
        saturation = row.saturation / row.booksim_saturation
        latency = row.latency / row.booksim_latency
        lines.append(
            f"| {row.size} | {row.buffer} | {row.topology} | {row.channels} | {row.pattern} "
            f"| {row.booksim_saturation:.3f} | {row.saturation:.3f} | {saturation:.2f} "
            f"| {row.booksim_latency:.1f} | {row.latency:.1f} | {latency:.2f} |"
        )
    return "\n".join(lines)


def drawn(rows: list[Row]) -> Figure:
    """Draw hopmap's saturation and latency over BookSim2's; bands are 5 and 10 % wide."""
    panels = (
        (
            "saturation, flits per source and cycle",
            "saturation",
            0.05,
            (0.02, 1.2),
            (0.03, 0.1, 0.3, 1),
        ),
        ("latency at 0.8 of it, cycles", "latency", 0.10, (9, 90), (10, 20, 40, 80)),
    )
    with style():
        figure = new_figure(3.4, 2 * WIDTH)
        for number, (title, what, band, (low, high), ticks) in enumerate(panels):
            axes = figure.add_axes((0.08 + 0.5 * number, 0.3, 0.41, 0.61))
            ends = [low, high]
            axes.fill_between(
                ends,
                [(1 - band) * end for end in ends],
                [(1 + band) * end for end in ends],
                color=GREY,
                alpha=0.25,
                linewidth=0,
            )
            axes.plot(ends, ends, color=GREY, linewidth=0.8)
            for place, (sizes, name) in enumerate(KINDS.items()):
                shown = [row for row in rows if (row.size, row.buffer) == sizes]
                if shown:
                    axes.plot(
                        [getattr(row, f"booksim_{what}") for row in shown],
                        [getattr(row, what) for row in shown],
                        MARKERS[place],
                        color=CYCLE[place],
                        markersize=4.6,
                        markeredgecolor="white",
                        markeredgewidth=0.4,
                        label=name,
                    )
            axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends, xlabel="BookSim2")
            axes.set_ylabel("hopmap")
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_locator(FixedLocator(ticks))
                axis.set_major_formatter(StrMethodFormatter("{x:g}"))
                axis.set_minor_locator(NullLocator())
            axes.set_title(title, pad=5)
        handles, names = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="lower center", ncols=2, fontsize=SMALL)
    return figure


if __name__ == "__main__":
    found = read([Path(name) for name in sys.argv[2:]])
    print(table(found))
    Path(sys.argv[1]).write_text(svg_text(drawn(found)))
