"""Commands that pick a mapping, advise and robust: the answer first, then figures and a file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hopmap.simulator.uncertainty import RELEVANCE
from hopmap.units import show_seconds

from .console import (
    excess_in_result,
    in_assumed_rounds,
    print_table,
    rests_on,
    say,
    say_omissions,
    working,
)
from .exports import AnswerOptions, say_verdict
from .options import (
    Engine,
    MachineOptions,
    ReplayOptions,
    Topology,
    Trace,
    complete_engines,
    complete_mappers,
)

if TYPE_CHECKING:
    from hopmap.api.advice import Advice
    from hopmap.api.robust.robust import Choice


Ranges = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.toml",
        help=r'Table \[ranges] of uncertain parameters, like "network.buffer" = [0, 1, 4]; '
        "replaces the default ranges.",
    ),
]


@dataclass(frozen=True)
class AdviceModels:
    """Models of the machine that the best mapping is compared under, and which gain matters."""

    samples: Annotated[
        int, typer.Option(min=6, help="Models of the machine to draw, for the gain's interval.")
    ] = 40
    ranges: Ranges = None
    relevance: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            help="Share of the runtime below which a gain makes no practical difference.",
        ),
    ] = RELEVANCE


def advise(
    trace: Trace,
    topology: Topology,
    replay: ReplayOptions,
    machine: MachineOptions,
    options: AnswerOptions,
    models: AdviceModels,
    mapper: Annotated[
        list[str] | None,
        typer.Option(
            "--mapper",
            "-m",
            help="Pipeline to try; may be repeated. Default: three pipelines.",
            autocompletion=complete_mappers,
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            help="Engine of the replays: compiled, or flow for long messages; see: list engines.",
            autocompletion=complete_engines,
        ),
    ] = None,
) -> None:
    """Say which mapping to use, what it buys, and whether that is worth it.

    Ctrl-C ends it with the best mapping so far, which is written; exit code 130.
    """
    from hopmap.api.advice import advise as advised
    from hopmap.api.robust.robust import Sampling

    options = options.check(trace)
    place = machine.machine(topology, balanced=options.balanced)
    with excess_in_result(), options.keeping(), working("advising") as progress:
        found = advised(
            replay.workload(trace),
            place,
            mapper or None,
            seed=options.seed,
            seconds=options.seconds,
            sampling=Sampling(models.samples, ranges=models.ranges),
            engine=engine,
            relevance=models.relevance,
            progress=progress,
        )
    options.answer(found.best.placement, found, show_advice)


def show_advice(advice: Advice) -> None:
    """Print the verdict, the two mappings side by side, and what else was tried."""
    from hopmap.api.provenance import format_keys
    from hopmap.simulator import DEFAULT_ENGINE

    best = advice.best.placement
    if advice.rescaled is not None:
        say(f"recorded on shared cores: {advice.rescaled}")
    say_verdict(best, advice.verdict)
    share = f"{100 * advice.network_share:.1f} % of the run in default order depends on the network"
    say(f"{share} ({rests_on(advice.best.result)})")
    say()
    columns = [("default order", advice.baseline)]
    rows: list[tuple[object, ...]] = []
    if advice.best is not advice.baseline:
        columns.append((f"best: {advice.best.placement.mapper}", advice.best))
        gain = "{:.1f} % ({:.1f} to {:.1f} %)".format(*(100 * each for each in advice.gain))
        rows.append(("shorter by", None, show_seconds(advice.seconds_saved)))
        rows.append((f"  over {len(advice.gains)} models", None, gain))
    fixed = best.machine.parameters.network_routing == "deterministic"
    static = "" if fixed else " (deterministic routes)"  # which static figures are of
    sides = [each.placement.metrics().bytes for _, each in columns]
    rows = [
        ("makespan", *(show_seconds(each.result.makespan) for _, each in columns)),
        *rows,
        (f"hop-bytes{static}", *(side.dilation.sum for side in sides)),
        (f"busiest link, bytes{static}", *(side.congestion.max for side in sides)),
    ]
    print_table(("", *(name for name, _ in columns)), rows)
    for each in advice.candidates:
        say(f"also tried: {each.placement.mapper}, {show_seconds(each.result.makespan)}")
    for placement in (best, *(each.placement for each in advice.candidates)):
        if placement.warning:
            say(placement.warning)
    packets = "" if advice.engine == DEFAULT_ENGINE else f"; --engine {DEFAULT_ENGINE} has packets"
    settled = advice.best.result.extrapolated
    steps = "" if settled is None else f"; {settled}"
    say(f"replayed by engine {advice.engine}{packets}{steps}")
    drawn = sorted({key for model in advice.models for key in model} - {"noise.seed"})
    say(f"models differ in {format_keys(drawn)}; --ranges replaces their ranges")
    if advice.rejected:
        say(f"{len(advice.rejected)} models left out, the first since {advice.rejected[0]}")
    say_omissions(advice.best.result.omitted, {})


@dataclass(frozen=True)
class ModelOptions:
    """Models of the machine that mappings are compared under."""

    samples: Annotated[int, typer.Option(min=1, help="Models to draw.")] = 100
    max_simulations: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Most replays; default: enough for the last two candidates under every model. "
            "Candidates times samples replays everything.",
        ),
    ] = None
    ranges: Ranges = None


def robust(
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
            help="Pipelines and mapping files, separated by commas; may be repeated. Default: five "
            "mappers.",
            autocompletion=complete_mappers,
        ),
    ] = None,
    engine: Engine = "compiled",
) -> None:
    """Choose the mapping that stays close to the best on any machine within the ranges.

    Ctrl-C ends it with the best mapping so far, which is written; exit code 130.
    """
    from hopmap.api.robust.robust import Sampling
    from hopmap.api.robust.robust import robust as choose_robust

    options = options.check(trace)
    # commas between candidates, not those within the parentheses of a mapper's options
    words = [word for each in candidates or [] for word in re.split(r",(?![^(]*\))", each)]
    with excess_in_result(), options.keeping(), working("choosing") as progress:
        found = choose_robust(
            replay.workload(trace),
            machine.machine(topology, balanced=options.balanced),
            [word.strip() for word in words if word.strip()] or None,
            sampling=Sampling(models.samples, models.max_simulations, models.ranges),
            seed=options.seed,
            seconds=options.seconds,
            engine=engine,
            progress=progress,
        )
    options.answer(found.best, found, show_choice)


def show_choice(choice: Choice) -> None:
    """Print the verdict, the candidates, the one to take first, and what was replayed."""
    from hopmap.api.provenance import format_keys
    from hopmap.simulator.uncertainty import percent

    say_verdict(choice.best, choice.verdict)
    if alone := in_assumed_rounds(choice.best.workload.assumed_rounds):
        say(f"replayed: {alone}")
    say()
    print_table(
        ("behind the best", "mean", "worst", "best under", "models"),
        [
            (
                choice.placements[place].mapper,
                percent(each.mean),
                percent(each.worst),
                f"{100 * each.best:.0f} %",
                each.models,
            )
            for place in choice.order
            for each in (choice.standings[place],)
        ],
    )
    for placement in choice.placements:
        if placement.warning:
            say(placement.warning)
    everything = choice.times.size
    say(
        f"{choice.replays:,} of {everything:,} replays; each model's best is the best of those "
        "that were replayed under it"
    )
    say(f"replayed by engine {choice.engine}; {choice.extrapolated:,} replays extrapolated")
    drawn = sorted({key for model in choice.models for key in model} - {"noise.seed"})
    say(f"models differ in {format_keys(drawn)}; --ranges replaces their ranges")
    if choice.rejected:
        say(
            f"{len(choice.rejected)} of {len(choice.models)} models left out, the first since "
            f"{choice.rejected[0]}"
        )
