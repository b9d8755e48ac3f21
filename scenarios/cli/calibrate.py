"""The command calibrate: ping-pongs or collectives to parameters of the model."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hopmap.units import show_bytes, show_seconds

from .arguments import AsJson, Sets, check_options, check_out, check_picture, settings_given
from .console import print_json, print_table, say, working
from .validate import Allocations, Ranks, calibrate_to_collectives

if TYPE_CHECKING:
    from hopmap.simulator.parameters.calibration import Fit, PingPong

_WORDS = {
    "overhead": "overheads",
    "ends": "latency of injection and ejection",
    "link": "latency of links",
    "memory": "latency of memory",
}


def calibrate(
    context: typer.Context,
    measured: Annotated[
        list[Path],
        typer.Argument(
            metavar="MEASURED...",
            help="A ping-pong: CSV size,time[,hops], or what osu_latency or IMB-MPI1 PingPong "
            "printed. Or collectives: CSV collective,algorithm,buffer_bytes,median_ns[,nodes,"
            "tasks_per_node].",
        ),
    ],
    topology: Annotated[
        list[str] | None,
        typer.Option(
            "--topology", "-t", help="Of collectives: of all files; or repeated, of each."
        ),
    ] = None,
    fit: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY", help="Of collectives: a parameter to fit; may be repeated."),
    ] = None,
    alloc: Allocations = None,
    ranks: Ranks = 0,
    set_: Sets = None,
    out: Annotated[
        Path | None, typer.Option(help="TOML to write, for scenarios and --set FILE.toml.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Figure to write (.svg, .png, .pdf): fit and errors.")
    ] = None,
    hops: Annotated[
        int, typer.Option(min=0, help="Links between the nodes if the file has no such column.")
    ] = 1,
    round_trip: Annotated[
        bool, typer.Option("--round-trip", help="Times are of whole round trips, not of half.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Fit parameters of the model to measured ping-pongs or collectives."""
    from hopmap.simulator.measured.files import is_measured

    if out is not None and out.suffix != ".toml":
        raise typer.BadParameter(f"--out {out}: expected a name ending in .toml, as --set takes it")
    check_out(out, plot)
    if is_measured(measured[0]):
        check_options(
            context, "a fit to collectives", ("topology", "fit", "alloc", "ranks", "set_")
        )
        if not topology:
            raise typer.BadParameter("--topology: a fit to collectives needs one: expected SPEC")
        settings = settings_given(set_)
        calibrate_to_collectives(
            measured, topology, fit or [], alloc, ranks, settings, out, as_json
        )
        return
    check_options(context, "a fit to ping-pongs", ("plot", "hops", "round_trip"))
    if len(measured) > 1:
        raise typer.BadParameter(f"{len(measured)} files: expected one of ping-pongs")
    _pingpong(measured[0], out, plot, hops, round_trip, as_json)


def _pingpong(
    pingpong: Path, out: Path | None, plot: Path | None, hops: int, round_trip: bool, as_json: bool
) -> None:
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
        from hopmap.scenarios.figures.calibration import calibration_figure

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


def show_parameter(key: str, value: float) -> str:
    """Write a fitted parameter for people."""
    if key.endswith("bandwidth"):
        return f"{show_bytes(value)}/s"
    if key.endswith("per_byte"):
        return f"{show_seconds(value * 1e6)}/MB"
    return f"{int(value)} B" if key == "eager_limit" else show_seconds(value)


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
