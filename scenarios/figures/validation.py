"""Figure of a validation: predicted over measured times, and the errors over size below."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from hopmap.simulator.measured.files import Measured
from hopmap.simulator.measured.prediction import Prediction
from hopmap.units import show_seconds

from .style import CYCLE, GREY, WIDTH, new_figure, style

_HEIGHT, _LEFT = 7.2, 0.8  # inches
_MOST = 4.0  # times too long or too short, at the ends of the lower axis
_BINARY = ("B", "KiB", "MiB", "GiB")
_TIMES = (0.25, 0.5, 0.8, 1.0, 1.25, 2.0, 4.0)


def validation_figure(measured: Measured, prediction: Prediction) -> Figure:
    """Draw every collective as a series; what is beyond the lower axis stands at its end."""
    there = np.isfinite(prediction.time) & (prediction.time > 0)
    names = sorted({measured.collective[k] for k in np.flatnonzero(there).tolist()})
    ratio = prediction.time / measured.time
    width, left = (WIDTH - _LEFT - 0.14) / WIDTH, _LEFT / WIDTH
    with style():
        figure = new_figure(_HEIGHT)
        top = figure.add_axes((left, 3.15 / _HEIGHT, width, 3.3 / _HEIGHT))
        below = figure.add_axes((left, 0.7 / _HEIGHT, width, 1.8 / _HEIGHT))
        for place, name in enumerate(names):
            rows = there & np.array([c == name for c in measured.collective])
            colour = CYCLE[place % len(CYCLE)]
            mark = "osv^D"[place // len(CYCLE) % 5]
            top.plot(
                measured.time[rows], prediction.time[rows], mark, ms=2, color=colour, label=name
            )
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
            axis.set_major_formatter(FuncFormatter(lambda value, _: show_seconds(value)))
            axis.set_minor_locator(NullLocator())
        top.set_xlabel("measured; dotted: 25 % too long, too short", labelpad=2)
        top.set_ylabel("predicted")
        below.axhline(1, color=GREY, lw=0.7)
        below.set(xscale="log", yscale="log", ylim=(1 / _MOST / 1.1, _MOST * 1.1))
        below.set_yticks(_TIMES, [f"{t:g}" for t in _TIMES])
        below.yaxis.set_minor_locator(NullLocator())
        powers = [k for k in range(0, 40, 4) if (measured.size >> k).any()]
        words = [f"{1 << k % 10} {_BINARY[k // 10]}" for k in powers]
        below.set_xticks([1 << k for k in powers], words, rotation=45, ha="right")
        below.xaxis.set_minor_locator(NullLocator())
        below.set_xlabel("whole buffer", labelpad=2)
        below.set_ylabel("predicted / measured")
        for axes in (top, below):
            axes.grid(True)
        figure.legend(loc="upper left", bbox_to_anchor=(0.02, 1.0), ncols=3, handlelength=1)
    return figure
