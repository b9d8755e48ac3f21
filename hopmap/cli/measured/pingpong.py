"""Fit the model to ping-pongs, print and write what was found."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hopmap.units import show_seconds

from ..checks import check_picture
from ..console import print_json, print_table, say, working
from .arguments import show_parameter

if TYPE_CHECKING:
    from hopmap.simulator.parameters.calibration import Fit

    from .calibrate import PingPongOptions


def calibrate_to_pingpong(
    pingpong: Path, options: PingPongOptions, out: Path | None, as_json: bool
) -> None:
    """Fit parameters to a ping-pong, print and write them."""
    from hopmap.api.simulation import calibrate
    from hopmap.traces.safety.atomic_files import replacing

    plot = options.plot
    check_picture(plot)
    with working("fitting"):
        fit = calibrate(pingpong, hops=options.hops, round_trip=options.round_trip)
    if out is not None:
        with replacing(out) as partial:
            partial.write_text(_toml(pingpong, fit), encoding="utf-8")
    if plot is not None:
        from hopmap.validation.figures import calibration_figure

        with working("drawing"), replacing(plot) as partial:
            calibration_figure(fit.measured, fit, title=pingpong.name).savefig(partial, dpi=200)
    if as_json:
        print_json(fit.to_dict())
        return
    print_table(
        ("parameter", "value"),
        [(key, show_parameter(key, value)) for key, value in fit.parameters.items()],
        title=str(pingpong),
    )
    say("")
    print_table(
        ("bytes", "links", "measured", "fitted", "error", "weight"),
        [
            (
                *(row["size"], row["hops"], show_seconds(row["time"]), show_seconds(row["fitted"])),
                *(f"{100 * (row['fitted'] / row['time'] - 1):+.2f} %", f"{row['weight']:.2f}"),
            )
            for row in fit.to_dict()["measurements"]
        ],
        left=0,
    )
    say("")
    for note in fit.notes:
        say(note)
    for path in (out, plot):
        if path is not None:
            say(f"written: {path}")
    if out is not None:
        say(f"use it:  hopmap simulate ... --set {out}")


def _toml(pingpong: Path, fit: Fit) -> str:
    lines = [f"# {line}" for line in (f"hopmap calibrate {pingpong.name!r}", *fit.notes)]
    lines.append("[parameters]")
    lines += [f'"{key}" = {value!r}' for key, value in fit.parameters.items()]
    return "\n".join(lines) + "\n"
