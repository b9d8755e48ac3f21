"""Figures of measured times over size, with fitted and with predicted times."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator

from hopmap.figures.style import CYCLE, GREY, INK, RED, new_figure, set_ticks, style
from hopmap.simulator.measured.files import Measured
from hopmap.simulator.measured.prediction import Prediction
from hopmap.simulator.parameters.calibration import Fit
from hopmap.simulator.parameters.closed_form import WILD, PingPong
from hopmap.units import show_bytes, show_seconds

_MOST = 4.0  # times too long or too short, at the ends of an axis
_TIMES = (0.25, 0.5, 0.8, 1.0, 1.25, 2.0, 4.0)


@style()
def calibration_figure(data: PingPong, fit: Fit, *, title: str) -> Figure:
    """Draw measured and fitted times over size, and the relative errors below.

    Every number of hops is a series; what has next to no weight is crossed out.
    """
    error = fit.predicted / data.time - 1
    figure = new_figure(4.2, title)
    top, below = figure.subplots(2, 1, height_ratios=[1.75, 1.1])
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
    set_ticks(top.yaxis, show_seconds)
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
    top.legend(
        loc="lower left", bbox_to_anchor=(-0.02, 1), ncols=3, handlelength=1, columnspacing=1
    )
    return figure


def _sizes(axes: Axes, data: PingPong) -> None:
    """Logarithmic axis of sizes, 0 at its left."""
    axes.set_xscale("symlog", base=2, linthresh=1, linscale=0.7)
    axes.set_xlim(-0.3, 1.6 * max(int(data.size.max()), 1))
    sizes = [0, *(2**k for k in range(5, 60, 5) if 2**k <= data.size.max())]
    axes.set_xticks(sizes)
    set_ticks(axes.xaxis, lambda value: _binary(int(value)))
    axes.grid(True)


def _binary(size: int) -> str:
    for power, prefix in ((30, "Gi"), (20, "Mi"), (10, "Ki")):
        if size >= 2**power:
            return f"{size >> power} {prefix}B"
    return show_bytes(size)


@style()
def validation_figure(measured: Measured, prediction: Prediction) -> Figure:
    """Draw predicted over measured times, and the errors over size below.

    Every collective is a series; what is beyond the lower axis stands at its end.
    """
    there = np.isfinite(prediction.time) & (prediction.time > 0)
    names = sorted({measured.collective[k] for k in np.flatnonzero(there).tolist()})
    ratio = prediction.time / measured.time
    figure = new_figure(7.2)
    top, below = figure.subplots(2, 1, height_ratios=[3.3, 1.8])
    for place, name in enumerate(names):
        rows = there & np.array([c == name for c in measured.collective])
        colour = CYCLE[place % len(CYCLE)]
        mark = "osv^D"[place // len(CYCLE) % 5]
        top.plot(measured.time[rows], prediction.time[rows], mark, ms=2, color=colour, label=name)
        below.plot(
            measured.size[rows],
            np.clip(ratio[rows], 1 / _MOST, _MOST),
            mark,
            ms=2,
            color=colour,
        )
    both = np.concatenate((measured.time[there], prediction.time[there], [1e-6, 1e-5]))
    ends = np.array([both.min() / 1.5, both.max() * 1.5])
    top.plot(ends, ends, color=GREY, lw=0.7)
    for factor in (0.75, 1.25):
        top.plot(ends, factor * ends, color=GREY, lw=0.5, ls=":")
    top.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
    for axis in (top.xaxis, top.yaxis):
        set_ticks(axis, show_seconds)
    top.set_xlabel("measured; dotted: 25 % too long, too short", labelpad=2)
    top.set_ylabel("predicted")
    below.axhline(1, color=GREY, lw=0.7)
    below.set(xscale="log", yscale="log", ylim=(1 / _MOST / 1.1, _MOST * 1.1))
    below.set_yticks(_TIMES, [f"{t:g}" for t in _TIMES])
    below.yaxis.set_minor_locator(NullLocator())
    powers = [k for k in range(0, 40, 4) if (measured.size >> k).any()]
    words = [_binary(1 << k) for k in powers]
    below.set_xticks([1 << k for k in powers], words, rotation=45, ha="right")
    below.xaxis.set_minor_locator(NullLocator())
    below.set_xlabel("whole buffer", labelpad=2)
    below.set_ylabel("predicted / measured")
    for axes in (top, below):
        axes.grid(True)
    figure.legend(loc="outside upper left", ncols=3, handlelength=1)
    return figure
