"""The command choose: the mapping that holds whatever the machine is, then how others fare."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .console import print_table, say, working
from .exports import AnswerOptions
from .listing import complete_mappers
from .options import Engine, MachineOptions, ReplayOptions, Topology, Trace

if TYPE_CHECKING:
    from hopmap.api.robust.choose import Choice


@dataclass(frozen=True)
class ModelOptions:
    """Models of the machine that mappings are compared under."""

    draws: Annotated[int, typer.Option(min=1, help="Models to draw.")] = 100
    replays: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="How many at most; when left out, so many that the last two candidates have "
            "every model. Candidates times draws replay everything.",
        ),
    ] = None
    ranges: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.toml",
            help=r'Table \[ranges] of what is not known, like "network.buffer" = [0, 1, 4]; usual '
            "ones when left out.",
        ),
    ] = None


def choose(
    trace: Trace,
    topology: Topology,
    replay: ReplayOptions,
    machine: MachineOptions,
    options: AnswerOptions,
    models: ModelOptions,
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
    engine: Engine = "compiled",
) -> None:
    """Choose the mapping that is never far behind the best, whatever the machine is."""
    from hopmap.api.robust.choose import CANDIDATES, Sampling
    from hopmap.api.robust.choose import choose as chosen

    options = options.checked(trace)
    # commas between candidates, not those within the parentheses of a mapper's options
    words = [word for each in candidates or [] for word in re.split(r",(?![^(]*\))", each)]
    with working("choosing") as progress:
        found = chosen(
            replay.workload(trace),
            machine.machine(topology, balanced=options.spread),
            [word.strip() for word in words if word.strip()] or CANDIDATES,
            sampling=Sampling(models.draws, models.replays, models.ranges),
            seed=options.seed,
            seconds=options.seconds,
            engine=engine,
            progress=progress,
        )
    options.answer(found.best, _said(found), found.to_dict(), lambda: _show(found))


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
