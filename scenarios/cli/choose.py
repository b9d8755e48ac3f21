"""The command choose: the mapping that holds whatever the machine is, then how others fare."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .console import print_table, say, working
from .exports import To, answer, file_for
from .listing import complete_mappers
from .options import AsJson, Balanced, Engine, MachineOptions, ReplayOptions, Seed, Topology, Trace

if TYPE_CHECKING:
    from hopmap.scenarios.robust.choose import Choice


def choose(
    trace: Trace,
    topology: Topology,
    replay: ReplayOptions,
    machine: MachineOptions,
    candidates: Annotated[
        list[str] | None,
        typer.Option(
            "--candidates",
            "-c",
            metavar="MAPPER|FILE,...",
            help="Pipelines and mapping files, with commas between; may be repeated. Five usual "
            "mappers when left out.",
            autocompletion=complete_mappers,
        ),
    ] = None,
    draws: Annotated[int, typer.Option(min=1, help="Models to draw.")] = 100,
    replays: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="How many at most; when left out, so many that the last two candidates have "
            "every model. Candidates times draws replay everything.",
        ),
    ] = None,
    ranges: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.toml",
            help=r'Table \[ranges] of what is not known, like "network.buffer" = [0, 1, 4]; usual '
            "ones when left out.",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File for the mapping that is chosen.")] = None,
    to: To = None,
    seed: Seed = 0,
    seconds: Annotated[float, typer.Option(min=0, help="Time budget of all searches.")] = 10.0,
    spread: Balanced = False,
    engine: Engine = "compiled",
    as_json: AsJson = False,
) -> None:
    """Choose the mapping that is never far behind the best, whatever the machine is."""
    from hopmap.scenarios.robust.choose import CANDIDATES, Sampling
    from hopmap.scenarios.robust.choose import choose as chosen

    out = file_for(trace, out, to)
    # commas between candidates, not those within the parentheses of a mapper's options
    words = [word for each in candidates or [] for word in re.split(r",(?![^(]*\))", each)]
    with working("choosing") as progress:
        found = chosen(
            replay.workload(trace),
            machine.machine(topology, balanced=spread),
            [word.strip() for word in words if word.strip()] or CANDIDATES,
            sampling=Sampling(draws, replays, ranges),
            seed=seed,
            seconds=seconds,
            engine=engine,
            progress=progress,
        )
    facts = found.to_dict() if as_json else None
    answer(found.best, out, to, _said(found), facts, lambda: _show(found), told=machine.told)


def _said(found: Choice) -> str:
    return f"{found.name} on {found.best.topology.spec}: {found.verdict}"


def _show(found: Choice) -> None:
    """Print the sentence, the candidates with the one to take first, and what was replayed."""
    from hopmap.simulator.uncertainty import percent

    say(_said(found))
    say("")
    print_table(
        ("behind the best", "mean", "worst", "best under", "models"),
        [
            (
                found.placements[place].mapper,
                percent(each.mean),
                percent(each.worst),
                f"{100 * each.best:.0f} %",
                each.models,
            )
            for place in found.order
            for each in (found.standings[place],)
        ],
    )
    everything = found.times.size
    say(
        f"{found.replays:,} of {everything:,} replays; each model's best is the best of those that "
        "were replayed under it"
    )
    if found.refused:
        say(
            f"{len(found.refused)} of {len(found.models)} models left out, the first since "
            f"{found.refused[0]}"
        )
