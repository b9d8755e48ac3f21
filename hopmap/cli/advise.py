"""The command advise: the answer first, then the figures and the file that a launcher reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hopmap.units import show_seconds

from .console import print_table, say, working
from .exports import AnswerOptions
from .listing import complete_engines, complete_mappers
from .options import MachineOptions, ReplayOptions, Topology, Trace

if TYPE_CHECKING:
    from hopmap.api.advice import Advice


def advise(
    trace: Trace,
    topology: Topology,
    replay: ReplayOptions,
    machine: MachineOptions,
    options: AnswerOptions,
    mapper: Annotated[
        list[str] | None,
        typer.Option(
            "--mapper",
            "-m",
            help="Pipeline to try; may be repeated. Three usual ones.",
            autocompletion=complete_mappers,
        ),
    ] = None,
    repeat: Annotated[
        int, typer.Option(min=6, help="Replays with noise, for the interval of the gain.")
    ] = 20,
    engine: Annotated[
        str | None,
        typer.Option(
            help="Of the replays: compiled, or flow where messages are long; see: list engines.",
            autocompletion=complete_engines,
        ),
    ] = None,
) -> None:
    """Say which mapping to use, what it buys, and whether that is worth it."""
    from hopmap.api.advice import MAPPERS
    from hopmap.api.advice import advise as advised

    options = options.checked(trace)
    place = machine.machine(topology, balanced=options.spread)
    with working("advising") as progress:
        found = advised(
            replay.workload(trace),
            place,
            mapper or MAPPERS,
            seed=options.seed,
            seconds=options.seconds,
            repeat=repeat,
            engine=engine,
            progress=progress,
        )
    fixed = place.parameters.network_routing == "deterministic"
    best, facts = found.best.placement, found.to_dict()
    options.answer(best, _said(found), facts, lambda: _show(found, fixed))


def _said(found: Advice) -> str:
    return f"{found.name} on {found.launched.placement.topology.spec}: {found.verdict}"


def _show(found: Advice, fixed: bool) -> None:
    """Print the verdict, the two mappings side by side, and what else was tried.

    `fixed` says whether the run's routes are those that static figures are of.
    """
    from hopmap.api.provenance import format_keys
    from hopmap.simulator import DEFAULT_ENGINE

    say(_said(found))
    rests = format_keys(found.best.result.assumed)
    share = f"{100 * found.network_share:.1f} % of the run as launched is the network's"
    say(f"{share} ({f'assumed: {rests}' if rests else 'nothing assumed'})")
    say("")
    best = found.best.placement.mapper
    columns = [("as launched", found.launched)]
    if found.best is not found.launched:
        columns.append((f"best: {best}", found.best))
    rows: list[tuple[object, ...]] = [
        ("makespan", *(show_seconds(each.result.makespan) for _, each in columns))
    ]
    if found.best is not found.launched:
        gain = "{:.2f} % ({:.2f} to {:.2f} %)".format(*(100 * each for each in found.gain))
        rows.append(("shorter by", None, show_seconds(found.saved)))
        rows.append(("  with noise, 95 %", None, gain))
    static = "" if fixed else " (deterministic routes)"
    names = (f"hop-bytes{static}", "dilation"), (f"busiest link, bytes{static}", "congestion")
    for name, of in names:
        rows.append(
            (name, *(_bytes(each.placement.metrics().to_dict(), of) for _, each in columns))
        )
    print_table(("", *(name for name, _ in columns)), rows)
    for each in found.tried:
        say(f"tried, too: {each.placement.mapper}, {show_seconds(each.result.makespan)}")
    if found.engine != DEFAULT_ENGINE:
        say(f"replayed by engine {found.engine}; --engine {DEFAULT_ENGINE} replays packets")
    for line in map(str, found.best.result.left_out):
        say(line)


def _bytes(metrics: dict[str, dict[str, dict[str, int]]], of: str) -> int:
    return metrics["bytes"][of]["sum" if of == "dilation" else "max"]
