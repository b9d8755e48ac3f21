"""Fit the model to ping-pongs, print and write what was found."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopmap.units import show_seconds

from ..checks import check_picture
from ..console import print_json, print_table, say, working
from .arguments import show_parameter

if TYPE_CHECKING:
    from hopmap.simulator.parameters.calibration import Fit, PingPong

_WORDS = {
    "overhead": "overheads",
    "ends": "latency of injection and ejection",
    "link": "latency of links",
    "memory": "latency of memory",
}


def calibrate_to_pingpong(
    pingpong: Path, out: Path | None, plot: Path | None, hops: int, round_trip: bool, as_json: bool
) -> None:
    """Fit parameters to a ping-pong, print and write them."""
    from hopmap.simulator.parameters.calibration import calibrate as fitted
    from hopmap.simulator.parameters.pingpong_files import read_pingpong
    from hopmap.traces.safety.atomic_files import replacing

    check_picture(plot)
    with working("fitting"):
        data = read_pingpong(pingpong, hops=hops, round_trip=round_trip)
        fit = fitted(data, str(pingpong))
    notes = _notes(data, fit)
    if out is not None:
        with replacing(out) as partial:
            partial.write_text(_toml(pingpong, fit, notes), encoding="utf-8")
    if plot is not None:
        from hopmap.scenarios.figures.measured import calibration_figure

        with working("drawing"), replacing(plot) as partial:
            calibration_figure(data, fit, title=pingpong.name).savefig(partial, dpi=200)
    if as_json:
        print_json(_facts(data, fit, notes))
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
            (*row, f"{100 * (guess / time - 1):+.2f} %", f"{weight:.2f}")
            for *row, time, guess, weight in _rows(data, fit)
        ],
        left=0,
    )
    say("")
    for note in notes:
        say(note)
    for path in (out, plot):
        if path is not None:
            say(f"written: {path}")
    if out is not None:
        say(f"use it:  hopmap simulate ... --set {out}")


def _rows(data: PingPong, fit: Fit) -> list[tuple[Any, ...]]:
    """Size, links, both times as text; both as numbers; weight."""
    columns = (data.size, data.hops, data.time, fit.predicted, fit.weight)
    return [
        (size, hops, show_seconds(time), show_seconds(guess), time, guess, weight)
        for size, hops, time, guess, weight in zip(*(c.tolist() for c in columns), strict=True)
    ]


def _errors(data: PingPong, fit: Fit) -> list[float]:
    """Relative errors of the measurements that are not left out as wild."""
    from hopmap.simulator.parameters.calibration import WILD

    errors: list[float] = abs(fit.predicted / data.time - 1)[fit.weight >= WILD].tolist()
    return errors


def _notes(data: PingPong, fit: Fit) -> list[str]:
    """Say how good the fit is, and what these measurements cannot tell."""
    from statistics import median

    error = _errors(data, fit)
    notes = [
        f"error {100 * median(error):.2g} % (median), {100 * max(error):.2g} % at most; "
        f"{len(fit.weight) - len(error)} of {len(fit.weight)} measurements left out as wild"
    ]
    if fit.break_between is None:
        notes.append("eager limit: no break seen; set beyond the largest size")
    else:
        low, high = fit.break_between
        notes.append(f"eager limit: a break between {low:,} and {high:,} bytes; set to the upper")
    if fit.proportioned:
        terms = ", ".join(_WORDS[term] for term in fit.proportioned)
        notes.append(f"known as a sum only, shared out as the defaults are: {terms}")
    notes.append("no ping-pong tells sending from receiving, injection from ejection: halves")
    if "link.bandwidth" in fit.parameters:
        notes.append("nor which of injection, links and ejection is the slowest: all the same")
    return [*notes, "gap, gap_per_byte, control_bytes: left at 0"]


def _facts(data: PingPong, fit: Fit, notes: list[str]) -> dict[str, Any]:
    from statistics import median

    return {
        "parameters": fit.parameters,
        "break_between": fit.break_between,
        "proportioned": fit.proportioned,
        "median_error": median(_errors(data, fit)),
        "notes": notes,
        "measurements": [
            {"size": s, "hops": h, "time": t, "fitted": f, "weight": w}
            for s, h, _, _, t, f, w in _rows(data, fit)
        ],
    }


def _toml(pingpong: Path, fit: Fit, notes: list[str]) -> str:
    lines = [f"# {line}" for line in (f"hopmap calibrate {pingpong.name!r}", *notes)]
    lines.append("[parameters]")
    lines += [f'"{key}" = {value!r}' for key, value in fit.parameters.items()]
    return "\n".join(lines) + "\n"
