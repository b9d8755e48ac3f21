"""Figure of a calibration: measured and fitted times over size, and the relative errors below."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from hopmap.simulator.parameters.calibration import WILD, Fit, PingPong
from hopmap.units import show_bytes, show_seconds

from .style import CYCLE, GREY, INK, RED, WIDTH, new_figure, style

_HEIGHT, _LEFT, _RIGHT = 4.2, 0.8, 0.14  # inches


def calibration_figure(data: PingPong, fit: Fit, *, title: str) -> Figure:
    """Draw every number of hops as a series; what has next to no weight is crossed out.

    Parameters
    ----------
    title : str
        Put above the figure.
    """
    error = fit.predicted / data.time - 1
    width = (WIDTH - _LEFT - _RIGHT) / WIDTH
    with style():
        figure = new_figure(_HEIGHT)
        figure.text(0.08 / WIDTH, 1 - 0.08 / _HEIGHT, title, va="top", weight="bold")
        left = _LEFT / WIDTH
        top = figure.add_axes((left, 1.85 / _HEIGHT, width, 1.75 / _HEIGHT))
        below = figure.add_axes((left, 0.5 / _HEIGHT, width, 1.1 / _HEIGHT))
        for k, hops in enumerate(np.unique(data.hops).tolist()):
            rows = np.flatnonzero(data.hops == hops)
            rows = rows[np.argsort(data.size[rows], kind="stable")]
            colour = CYCLE[k % len(CYCLE)]
            name = "one node" if hops == 0 else f"{hops} link{'s' if hops > 1 else ''}"
            top.plot(data.size[rows], data.time[rows], "o", ms=3, color=colour, label=name)
            top.plot(data.size[rows], fit.predicted[rows], "-", lw=1, color=colour)
            below.plot(data.size[rows], 100 * error[rows], "o", ms=3, color=colour)
        wild = fit.weight < WILD
        top.plot(
            data.size[wild],
            data.time[wild],
            "x",
            ms=6,
            color=RED,
            label="left out" if wild.any() else "",
        )
        top.set_yscale("log")
        top.yaxis.set_major_formatter(FuncFormatter(lambda value, _: show_seconds(value)))
        top.yaxis.set_minor_locator(NullLocator())
        typical = 100 * float(np.abs(error[~wild]).max(initial=0.0))
        limit = max(1.3 * typical, 1e-3)
        below.set_ylim(-limit, limit)
        below.axhline(0, color=GREY, lw=0.7)
        below.yaxis.set_major_locator(MaxNLocator(5))
        below.set_ylabel("fitted too long (%)")
        top.set_ylabel("half a round trip")
        limit_seen = "" if fit.break_between is None else ", dotted: eager limit"
        below.set_xlabel(f"size; lines: fitted{limit_seen}", labelpad=2)
        for axes in (top, below):
            _sizes(axes, data)
            if fit.break_between is not None:
                axes.axvline(
                    np.sqrt(np.prod(fit.break_between, dtype=float)), color=INK, lw=0.7, ls=":"
                )
        top.tick_params(labelbottom=False)
        top.legend(loc="upper left", bbox_to_anchor=(-0.02, 1.27), ncols=3, handlelength=1, columnspacing=1)  # fmt: skip  # noqa: E501
    return figure


def _sizes(axes: Axes, data: PingPong) -> None:
    """Logarithmic axis of sizes, 0 at its left."""
    axes.set_xscale("symlog", base=2, linthresh=1, linscale=0.7)
    axes.set_xlim(-0.3, 1.6 * max(int(data.size.max()), 1))
    ticks = [0, *(2**k for k in range(5, 60, 5) if 2**k <= data.size.max())]
    axes.set_xticks(ticks)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _binary(int(value))))
    axes.grid(True)


def _binary(size: int) -> str:
    for power, prefix in ((30, "Gi"), (20, "Mi"), (10, "Ki")):
        if size >= 2**power:
            return f"{size >> power} {prefix}B"
    return show_bytes(size)
