"""Commands for other tools: export, what advise and robust write for launchers; check, convert."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .console import INTERRUPTED, note, print_json, say, say_written, working
from .options import (
    AsJson,
    Balanced,
    MachineOptions,
    MappingFile,
    NodeOptions,
    ReplayOptions,
    Seed,
    Trace,
    check_no_picture,
    check_out,
    complete_launchers,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from hopmap.api.advice import Advice
    from hopmap.api.comparison import InterruptedComparison
    from hopmap.api.exports import Exported
    from hopmap.api.input_kinds import MappingLike
    from hopmap.api.mapping import Placement
    from hopmap.api.robust.robust import Choice


NOT_OBEYED = 3  # exit code
UnnamedTopology = Annotated[
    str | None,
    typer.Option("--topology", "-t", help="Topology, if the mapping file does not name it."),
]


@dataclass(frozen=True)
class BestOptions:
    """Which mapping of a folder of results is taken."""

    best: Annotated[
        bool,
        typer.Option(
            "--best",
            help="Take the fastest mapping of MAPPING, a results folder of hopmap run; -t, --trace "
            "and --variant select among several networks, traces and varied parameters.",
        ),
    ] = False
    trace: Annotated[str | None, typer.Option(help="With --best: trace in the results.")] = None
    variant: Annotated[
        str | None, typer.Option(help="With --best: varied parameters, as the report names them.")
    ] = None

    def __post_init__(self) -> None:
        for flag, value in (("--trace", self.trace), ("--variant", self.variant)):
            if value is not None and not self.best:
                raise typer.BadParameter(f"{flag} requires --best")


@dataclass(frozen=True)
class BindingOptions:
    """What ranks get of their nodes."""

    node: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|SHAPE",
            help="What a node has, for rankfiles: the XML file of lstopo, or numa=4x16,gpu=4 (NUMA "
            "domains x cores, GPUs).",
        ),
    ] = None
    threads: Annotated[
        int | None,
        typer.Option(min=1, help="Threads of a rank: in the command, and cores in a rankfile."),
    ] = None


def export(
    mapping: MappingFile,
    machine: NodeOptions,
    results: BestOptions,
    binding: BindingOptions,
    to: Annotated[
        str,
        typer.Option(
            help="Launcher, csv (hopmap's own) or maplib; see: list formats.",
            autocompletion=complete_launchers,
        ),
    ],
    topology: UnnamedTopology = None,
    form: Annotated[
        str | None,
        typer.Option("--from", help="Launcher format of MAPPING, if the file does not show it."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File to write; stdout when left out.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write a mapping as a launcher reads it, from any format."""
    from hopmap.api.exports import export_mapping
    from hopmap.launchers.formats import NAME_THEM, get_launcher

    check_no_picture(out)
    check_out(out, *companions(to, out))
    out = None if str(out) == "-" else out
    if (mapping / "plan.json").is_file() and not results.best:
        raise typer.BadParameter(f"{mapping}: a folder of results requires --best")
    chosen: MappingLike = mapping
    if results.best:
        from hopmap.scenarios.results.ranking import best_run

        chosen, network, about = best_run(mapping, results.trace, topology, results.variant)
        note(f"best of {about}")
        place = replace(machine.machine(None), topology=network)
    else:
        place = machine.machine(topology)
    done = export_mapping(
        chosen, to, place, out=out, form=form, node=binding.node, threads=binding.threads
    )
    if done.extra_files and out is None:
        note(f"--out FILE also writes {', '.join(done.extra_files)}, which the launcher needs")
    if as_json:
        print_json(done.to_dict())
        return
    if not done.files:
        if done.command and not get_launcher(to).commented:
            note(f"use it: {done.command}")
        for line in done.notes:
            note(line)
        if done.made_up and not get_launcher(to).commented:
            note(f"nodes {done.made_up} are placeholders: {NAME_THEM}")
        say(done.text.rstrip("\n"))
    _say_exported(done)


@dataclass(frozen=True)
class AnswerOptions(BindingOptions):
    """How mappings are looked for, and where the best of them goes."""

    out: Annotated[Path | None, typer.Option(help="File for the best mapping.")] = None
    to: Annotated[
        str | None,
        typer.Option(
            help="Launcher format of the best mapping (see: list formats). Without --out, writes "
            "TRACE.LAUNCHER; --out alone writes hopmap's csv.",
            autocompletion=complete_launchers,
        ),
    ] = None
    seed: Seed = 0
    seconds: Annotated[float, typer.Option(min=0, help="Time budget of all searches.")] = 10.0
    balanced: Balanced = False
    as_json: AsJson = False

    def check(self, trace: str) -> AnswerOptions:
        """Return the same with the name of the file, if any is to be written where it can be."""
        from hopmap.api.exports import read_binding
        from hopmap.launchers.formats import OWN, get_launcher

        for flag, value in (("--node", self.node), ("--threads", self.threads)):
            if value is not None and self.to is None:
                raise typer.BadParameter(f"{flag} requires --to LAUNCHER")
        read_binding(self.to or "csv", self.node, self.threads)
        form = None if self.to is None or self.to in OWN else get_launcher(self.to)
        out = self.out
        if out is None and self.to is not None:
            name = re.sub(r"[^A-Za-z0-9_.-]+", "-", Path(trace).name)
            own_name = form and form.called
            out = Path(f"{own_name}.{name}" if own_name else f"{name}.{self.to}")
        check_no_picture(out)
        check_out(out, *companions(self.to, out))
        return replace(self, out=out)

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Have Ctrl-C answer with the best mapping so far, and exit with 130."""
        from hopmap.api.comparison import InterruptedComparison

        try:
            yield
        except InterruptedComparison as end:
            self.answer(end.best, end, lambda end: say_verdict(end.best, end.verdict))
            raise SystemExit(INTERRUPTED) from None

    def answer(
        self,
        best: Placement,
        result: Advice | Choice | InterruptedComparison,
        show: Callable[[Any], None],
    ) -> None:
        """Write the best mapping, and print the answer: the file alone where it goes to stdout."""
        from hopmap.api.exports import export_mapping

        aloud = str(self.out) == "-"
        done = None
        if self.out is not None:
            out = None if aloud else self.out
            done = export_mapping(
                best, self.to or "csv", best.machine, out=out, node=self.node, threads=self.threads
            )
        if aloud and done is not None:
            note(_verdict(best, result.verdict))
            say(done.text.rstrip("\n"))
        elif self.as_json:
            names = ("command", "notes", "out")
            written = {} if done is None else {name: done.to_dict()[name] for name in names}
            print_json(result.to_dict() | written)
        else:
            show(result)
            if done is not None:
                _say_exported(done)


def say_verdict(best: Placement, verdict: str) -> None:
    """Print what was found of a workload on a network, in a sentence."""
    say(_verdict(best, verdict))


def _verdict(best: Placement, verdict: str) -> str:
    return f"{best.name} on {best.topology.spec}: {verdict}"


def companions(to: str | None, out: Path | None) -> list[Path]:
    """Return the files that a launcher needs in addition to one."""
    from hopmap.launchers.formats import OWN, companion, get_launcher

    if to is None or to in OWN or out is None or str(out) == "-":
        return []
    needed = companion(get_launcher(to), str(out))
    return [out.with_name(needed)] if needed else []


def _say_exported(done: Exported) -> None:
    """Print what was written, how to use it, what to know, and which names were generated."""
    from hopmap.launchers.formats import NAME_THEM

    say_written(*done.files)
    if done.files and done.command:
        say(f"use it:  {done.command}")
        for line in done.notes:
            say(f"note:    {line}")
    if done.files and done.made_up:
        say(f"nodes:   {done.made_up} are placeholders: {NAME_THEM}")


def check(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="[LOG] MAPPING",
            help="What ranks or their launcher printed of hosts, or an OTF2 archive; mapping file.",
        ),
    ],
    machine: NodeOptions,
    live: Annotated[
        bool, typer.Option("--live", help="Check the place of this process; run it under mpirun.")
    ] = False,
    topology: UnnamedTopology = None,
    as_json: AsJson = False,
) -> None:
    """Compare the hosts that ranks ran on with a mapping; exit code 3 if they differ."""
    from hopmap.api.launch_check import check_launch, check_rank, expected_hosts
    from hopmap.launchers.observed import read_environment

    if len(files) != (1 if live else 2):
        raise typer.BadParameter("expected LOG MAPPING, or --live MAPPING under a launcher")
    *logs, mapping = files
    place = machine.machine(topology)
    if live:
        here, host = read_environment(os.environ), socket.gethostname()
        obeyed, line = check_rank(here, host, expected_hosts(mapping, place), str(mapping))
        facts: dict[str, Any] = {"obeyed": obeyed, "rank": here.rank, "host": host}
        lines = [line]
    else:
        done = check_launch(logs[0], mapping, place)
        obeyed, facts, lines = done.obeyed, done.to_dict(), done.verdict
    if as_json:
        print_json(facts)
    else:
        say("\n".join(lines))
    if not obeyed:
        raise typer.Exit(NOT_OBEYED)


def convert(
    trace: Trace,
    replay: ReplayOptions,
    machine: MachineOptions,
    to: Annotated[str, typer.Option(help="Simulator: simgrid, or goal (LogGOPSim, ATLAHS).")],
    out: Annotated[Path, typer.Option(help="Folder to write, a file for goal.")],
    mapping: Annotated[
        Path | None, typer.Option(help="Mapping file; also writes the platform and the hosts.")
    ] = None,
    topology: UnnamedTopology = None,
    zone: Annotated[
        str, typer.Option(help="Platform: routes (as hopmap's), or torus (SimGrid's own).")
    ] = "routes",
    as_json: AsJson = False,
) -> None:
    """Write a trace as another simulator reads it, collectives as their messages."""
    from hopmap.api.exports import convert as write

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
