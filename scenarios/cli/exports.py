"""Commands for other tools: export, and what advise and choose write for launchers; convert."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from .checks import check_out
from .console import note, print_json, say, working
from .listing import complete_launchers
from .options import AsJson, MachineOptions, MappingFile, ReplayOptions, Trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from hopmap.scenarios.exports import Exported
    from hopmap.scenarios.input_kinds import MappingLike
    from hopmap.scenarios.mapping import Placement

To: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Launcher to write the best for (see: list formats), in TRACE.LAUNCHER when there is "
        "no --out; csv, hopmap's own, when there is only --out.",
        autocompletion=complete_launchers,
    ),
]


def export(
    mapping: MappingFile,
    machine: MachineOptions,
    to: Annotated[
        str,
        typer.Option(
            help="Launcher, csv (hopmap's own) or maplib; see: list formats.",
            autocompletion=complete_launchers,
        ),
    ],
    topology: Annotated[
        str | None, typer.Option("--topology", "-t", help="If the mapping file does not name it.")
    ] = None,
    best: Annotated[
        bool,
        typer.Option(
            "--best",
            help="MAPPING is a folder of hopmap run: its fastest mapping, where -t, --trace and "
            "--variant choose among several networks, traces and parameters that vary.",
        ),
    ] = False,
    trace: Annotated[
        str | None, typer.Option(help="Of --best: which trace of the results.")
    ] = None,
    variant: Annotated[
        str | None, typer.Option(help="Of --best: which of what varies, as the report calls it.")
    ] = None,
    form: Annotated[
        str | None,
        typer.Option("--from", help="Launcher whose file MAPPING is, if it does not show that."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File to write; stdout when left out.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write a mapping as a launcher reads it, from any format."""
    from hopmap.scenarios.exports import export_mapping
    from hopmap.scenarios.launchers.formats import launcher_named

    check_out(out)
    out = None if str(out) == "-" else out
    for flag, value in (("--trace", trace), ("--variant", variant)):
        if value is not None and not best:
            raise typer.BadParameter(f"{flag} requires --best")
    if (mapping / "plan.json").is_file() and not best:
        raise typer.BadParameter(f"{mapping}: results of many runs: --best takes the fastest")
    chosen: MappingLike = mapping
    if best:
        from hopmap.scenarios.results.best_run import best_run

        chosen, network, about = best_run(mapping, trace, topology, variant)
        note(f"best of {about}")
        place = replace(machine.machine(None), topology=network)
    else:
        place = machine.machine(topology)
    done = export_mapping(chosen, to, place, out=out, form=form)
    if done.beside and out is None:
        note(f"--out FILE writes {', '.join(done.beside)} as well, which is needed beside it")
    if as_json:
        print_json(done.to_dict())
        return
    if not done.files:
        if done.command and not launcher_named(to).commented:
            note(f"use it: {done.command}")
        say(done.text.rstrip("\n"))
    say_written(done, machine.told)


def file_for(trace: str, out: Path | None, to: str | None) -> Path | None:
    """Return the file that is to be written, if any is; checked before the work is done."""
    from hopmap.scenarios.launchers.formats import OWN, launcher_named

    form = None if to is None or to in OWN else launcher_named(to)
    if out is None and to is not None:
        name = re.sub(r"[^A-Za-z0-9_.-]+", "-", Path(trace).name)
        out = Path(f"{form.called}.{name}" if form and form.called else f"{name}.{to}")
    check_out(out)
    return out


def answer(
    best: Placement,
    out: Path | None,
    to: str | None,
    verdict: str,
    facts: dict[str, Any] | None,
    show: Callable[[], None],
    *,
    told: bool,
) -> None:
    """Write the mapping, and print the answer: the file alone where it goes to stdout.

    Parameters
    ----------
    verdict : str
        The sentence, which is said besides the file on stdout.
    facts : dict, optional
        What is printed as JSON.
    show : callable
        Prints the answer as text.
    told : bool
        Whether any option says what nodes are called.
    """
    from hopmap.scenarios.exports import export_mapping

    aloud = str(out) == "-"
    done = None
    if out is not None:
        done = export_mapping(best, to or "csv", best.topology, out=None if aloud else out)
    if aloud and done is not None:
        note(verdict)
        say(done.text.rstrip("\n"))
    elif facts is not None:
        written = {"command": done.command, "out": str(out)} if done else {}
        print_json(facts | written)
    else:
        show()
        if done is not None:
            say_written(done, told)


def say_written(done: Exported, told: bool) -> None:
    """Say what was written, how it is used, and what would say what nodes are called."""
    for path in done.files:
        say(f"written: {path}")
    if done.files and done.command:
        say(f"use it:  {done.command}")
    if done.files and done.made_up and not told:
        say(f"nodes:   {done.made_up} are made up: --nodelist, --hosts or --names tells yours")


def convert(
    trace: Trace,
    replay: ReplayOptions,
    machine: MachineOptions,
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
    as_json: AsJson = False,
) -> None:
    """Write a trace as another simulator reads it, collectives as their messages."""
    from hopmap.scenarios.exports import convert as write

    check_out(out, folder=to != "goal")
    if topology is not None and mapping is None:
        raise typer.BadParameter("--topology requires --mapping FILE")
    place = machine.machine(topology)
    with working("writing"):
        done = write(replay.workload(trace), to, out, machine=place, mapping=mapping, zone=zone)
    if as_json:
        print_json(done.to_dict())
        return
    say(f"written: {out}")
    how = "" if to == "goal" else ", with a platform and hosts"
    say(f"use it there{how}: {done.command}")
