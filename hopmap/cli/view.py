"""The command view: a page to look at a mapping, and at results."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from .console import print_json, say, say_written, warn_of, working
from .options import (
    AsJson,
    MachineOptions,
    OptionalMapping,
    ReplayOptions,
    TopologyOfMapping,
    check_options,
    check_out,
    from_stdin,
)

OF_RESULTS = ("steps", "topology", "trace_name", "variant", "regret")


@dataclass(frozen=True)
class ResultsOptions:
    """Which case of results is shown, and what comes with it."""

    trace_name: Annotated[
        str | None, typer.Option("--trace", help="Of RESULTS: trace, as the report names it.")
    ] = None
    variant: Annotated[
        str | None, typer.Option(help="Of RESULTS: varied parameters, as the report names them.")
    ] = None
    regret: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What hopmap robust --json printed: regrets to show."),
    ] = None

    def expect_none(self) -> None:
        """Raise `typer.BadParameter` for what only results have."""
        for flag, value in (("--trace", self.trace_name), ("--variant", self.variant)):
            if value is not None:
                raise typer.BadParameter(f"{flag} requires RESULTS, a folder of hopmap run")


def view(
    context: typer.Context,
    replay: ReplayOptions,
    machine: MachineOptions,
    results: ResultsOptions,
    trace: Annotated[
        str,
        typer.Argument(
            metavar="TRACE|RESULTS",
            help="Trace, traffic file, benchmark like lu.C.64, training:..., or a results folder "
            "of hopmap run.",
            callback=from_stdin,
        ),
    ],
    out: Annotated[Path, typer.Option(help="HTML page to write.")],
    mapping: OptionalMapping = None,
    topology: TopologyOfMapping = None,
    as_json: AsJson = False,
) -> None:
    """Write one page to explore a mapping next to the default order: links, ranks, traffic."""
    from hopmap.view.explorer import explore
    from hopmap.view.studies import explore_results, read_regrets

    check_out(out)
    is_results = (Path(trace) / "plan.json").is_file()
    if is_results:
        check_options(context, "a page of results", OF_RESULTS)
        if mapping is not None:
            raise typer.BadParameter(f"{mapping}: results have their own mappings: expected none")
    else:
        results.expect_none()
        if mapping is None:
            raise typer.BadParameter("MAPPING: expected TRACE and MAPPING, or a folder of results")
    sections = [] if results.regret is None else [read_regrets(results.regret)]
    with working("replaying") as progress:
        if mapping is None:
            case = results.trace_name, topology, results.variant
            found = explore_results(
                trace, case, steps=replay.steps, sections=sections, progress=progress
            )
        else:
            workload, place = replay.workload(trace), machine.machine(topology)
            found = explore(workload, place, mapping, sections=sections, progress=progress)
    found.write(out)
    warn_of(found.title, found.runs[-1].result.omitted)
    if as_json:
        print_json(found.to_dict() | {"out": str(out)})
        return
    say(f"{found.title}: {found.verdict}")
    say_written(out)
