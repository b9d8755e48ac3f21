"""Use of links over time in the compiled engine: `link_use.Bins` by the same additions."""

from __future__ import annotations

from hopmap.compilation import subroutine
from hopmap.simulator.row_pointers import nth

from .state import State


@subroutine
def use(run: State, link: int, start: float, end: float) -> None:
    """Spread a service over the bins that it touches."""
    bins = run.loop["bins"]
    while end > bins * run.loop["width"]:
        _merge(run)
    width, at = run.loop["width"], link * bins
    first, last = int(start / width), int(end / width)
    if start == end:  # perhaps where the last bin ends
        return
    if first == last:
        nth(run.use, at + first)["busy"] += end - start
        return
    nth(run.use, at + first)["busy"] += (first + 1) * width - start
    for k in range(first + 1, last):
        nth(run.use, at + k)["busy"] += width
    if end > last * width:
        nth(run.use, at + last)["busy"] += end - last * width


@subroutine
def _merge(run: State) -> None:
    """Make bins twice as long."""
    bins = run.loop["bins"]
    run.loop["width"] *= 2
    for at in range(0, run.loop["tracked"] * bins, bins):
        for k in range(bins):
            busy = nth(run.use, at + 2 * k)["busy"] if 2 * k < bins else 0.0
            if 2 * k + 1 < bins:
                busy += nth(run.use, at + 2 * k + 1)["busy"]
            nth(run.use, at + k)["busy"] = busy
