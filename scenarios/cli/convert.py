"""The command convert: a run as another simulator reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .arguments import AsJson, Rounds, Sets, Steps, TraceOrTraffic, check_out, settings_given
from .console import print_json, say, working


def convert(
    trace: TraceOrTraffic,
    to: Annotated[str, typer.Option(help="Simulator: simgrid, or goal (LogGOPSim, ATLAHS).")],
    out: Annotated[
        Path, typer.Option(help="Folder to write, of goal a file; what is there is replaced.")
    ],
    mapping: Annotated[
        Path | None, typer.Option(help="Mapping file: writes the platform and the hosts as well.")
    ] = None,
    topology: Annotated[
        str | None, typer.Option("--topology", "-t", help="If the mapping file does not name it.")
    ] = None,
    zone: Annotated[
        str, typer.Option(help="Platform: routes (as hopmap's), or torus (SimGrid's own).")
    ] = "routes",
    settings: Sets = None,
    steps: Steps = None,
    rounds: Rounds = None,
    as_json: AsJson = False,
) -> None:
    """Write a trace as another simulator reads it, collectives as their messages."""
    from hopmap.scenarios.exports import convert as write

    check_out(out, folder=to != "goal")
    with working("writing"):
        done = write(
            trace,
            to,
            out,
            mapping=mapping,
            topology=topology,
            zone=zone,
            settings=settings_given(settings),
            steps=steps,
            rounds=rounds,
        )
    if as_json:
        print_json({"out": str(out), "ranks": done.ranks, "command": done.command})
        return
    say(f"written: {out}")
    how = "" if to == "goal" else ", with a platform and hosts"
    say(f"use it there{how}: {done.command}")
