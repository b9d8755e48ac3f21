"""How far the bytes of mappings go: a histogram of hops."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, MaxNLocator

from hopmap.arrays import Floats, Ints
from hopmap.traces import Traffic

from .node_colours import BLOCKS, weight_of
from .style import BLUE, GREY, label, plain_title, set_ticks
from .tips import add_tips

MANY, APART = 32, 14  # bars; distances that have one each, where they are far apart


def share_by_hops(hops: Ints, pairs: Traffic) -> Floats:
    """Return the percentage of the bytes that goes 0, 1, 2, ... hops."""
    weight = np.bincount(hops, weights=weight_of(pairs), minlength=2)
    return np.asarray(100 * weight / max(weight.sum(), 1))


def draw_hops(axes: Axes, series: Sequence[Floats], names: Sequence[str]) -> None:
    """Draw the shares of the bytes by hops, a colour for each of some mappings."""
    longest = max(4, *map(len, series))
    table = np.array([np.pad(share, (0, longest - len(share))) for share in series])
    taken = np.flatnonzero(table.any(axis=0))
    if longest > MANY and len(taken) <= APART:  # such as costs of 1, 10, 100
        far, words = taken, [f"{hops}" for hops in taken]
        table = table[:, taken]
    else:
        several = -(-longest // MANY)  # hops a bar
        far = np.arange(0 if several > 1 or table[:, 0].any() else 1, longest, several)
        table = np.add.reduceat(table, far, axis=1)
        words = [f"{hops}" if several == 1 else f"{hops} to {hops + several - 1}" for hops in far]
    width = 0.8 / len(series)
    for i, (share, name) in enumerate(zip(table, names, strict=True)):
        x = np.arange(len(far)) + (i - (len(series) - 1) / 2) * width
        colour = (BLUE, GREY, *BLOCKS[1:])[i % 8]
        axes.bar(x, share, width=width * 0.95, color=colour, label=label(name, 21, 1))
        bars = [
            [(v - width / 2, 0), (v + width / 2, high)] for v, high in zip(x, share, strict=True)
        ]
        said = [f"{name}: {v:.3g} % over {w} hops" for v, w in zip(share, words, strict=True)]
        add_tips(axes, bars, said)
    axes.set_xlim(-0.6, len(far) - 0.4)
    ticks = MaxNLocator(3, integer=True, steps=[1, 2, 2.5, 5, 10]).tick_values(
        0, max(float(table.max()), 1)
    )
    axes.set_ylim(0, ticks[-1])  # no bar is above the last tick
    step = -(-len(far) // (16 if max(far) < 1000 else 6))
    axes.set_xticks(np.arange(len(far))[::step], [f"{h}" for h in far[::step]])
    set_ticks(axes.yaxis, "{:.0f} %".format, FixedLocator(ticks))
    axes.grid(axis="y")
    axes.set_xlabel("hops", labelpad=1)
    plain_title(axes, "share of the bytes", pad=21)
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1.05),
        ncols=2,
        handlelength=1,
        columnspacing=1,
        borderpad=0,
        borderaxespad=0,
    )
