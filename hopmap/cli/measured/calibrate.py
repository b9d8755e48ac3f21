"""The command calibrate: fit the model's parameters to ping-pongs or collectives."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

import typer

from ..checks import check_options, check_out
from ..options import AsJson, Sets
from .arguments import Allocations, Ranks
from .collectives import calibrate_to_collectives
from .pingpong import calibrate_to_pingpong


@dataclass(frozen=True)
class CollectiveOptions:
    """How parameters are fitted to collectives."""

    topology: Annotated[
        list[str] | None,
        typer.Option(
            "--topology", "-t", help="Of collectives: of all files; or repeated, of each."
        ),
    ] = None
    fit: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY", help="Of collectives: a parameter to fit; may be repeated."),
    ] = None
    alloc: Allocations = None
    ranks: Ranks = 0
    sets: Sets = None


@dataclass(frozen=True)
class PingPongOptions:
    """How parameters are fitted to ping-pongs."""

    plot: Annotated[
        Path | None, typer.Option(help="Figure to write (.svg, .png, .pdf): fit and errors.")
    ] = None
    hops: Annotated[
        int, typer.Option(min=0, help="Links between the nodes if the file has no such column.")
    ] = 1
    round_trip: Annotated[
        bool, typer.Option("--round-trip", help="Times are of whole round trips, not of half.")
    ] = False


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
    collectives: CollectiveOptions,
    pingpong: PingPongOptions,
    out: Annotated[
        Path | None, typer.Option(help="TOML to write, for scenarios and --set FILE.toml.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fit parameters of the model to measured ping-pongs or collectives."""
    from hopmap.simulator.measured.files import is_measured

    if out is not None and out.suffix != ".toml":
        raise typer.BadParameter(f"--out {out}: expected a name ending in .toml, as --set takes it")
    check_out(out, pingpong.plot)
    if is_measured(measured[0]):
        check_options(context, "a fit to collectives", _names(CollectiveOptions))
        if not collectives.topology:
            raise typer.BadParameter("--topology: a fit to collectives needs one: expected SPEC")
        calibrate_to_collectives(measured, collectives, out, as_json)
        return
    check_options(context, "a fit to ping-pongs", _names(PingPongOptions))
    if len(measured) > 1:
        raise typer.BadParameter(f"{len(measured)} files: expected one of ping-pongs")
    calibrate_to_pingpong(measured[0], pingpong, out, as_json)


def _names(options: type[CollectiveOptions | PingPongOptions]) -> list[str]:
    return [each.name for each in fields(options)]
