"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from .console import note
from .listing import complete_engines, complete_topologies
from .stdin import from_stdin

PICTURES = (".svg", ".png", ".pdf")


class Collectives(StrEnum):
    """Whether traffic counts what collectives send."""

    AUTO = "auto"
    IGNORE = "ignore"
    EXPAND = "expand"


class Rma(StrEnum):
    """Whether traffic counts what one-sided operations move."""

    INCLUDE = "include"
    IGNORE = "ignore"


TRACE_HELP = (
    "An OTF2 archive, a benchmark like lu.C.64, traffic (.npz, .mtx, .csv, .graph, .grf, .prof), "
    "or stencil:12x11x8,7pt,periodic=y; - reads a .csv, .npz or .mtx from stdin."
)
MAPPING_HELP = "Mapping file: rank,node, MapLib's format, or a launcher's file; - is stdin."

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
Topology = Annotated[
    str,
    typer.Option(
        "--topology",
        "-t",
        help="The machine, like torus:4x4x4 or haec:4x4x4*2.",
        autocompletion=complete_topologies,
    ),
]
OfMapping = Annotated[
    str | None,
    typer.Option(
        "--topology",
        "-t",
        help="The machine, like torus:4x4x4; that of the mapping's file when left out.",
        autocompletion=complete_topologies,
    ),
]
Engine = Annotated[
    str | None,
    typer.Option(
        help="compiled when left out, simpy is the reference; see: list engines.",
        autocompletion=complete_engines,
    ),
]
TrafficArgument = Annotated[
    str,
    typer.Argument(
        metavar="TRAFFIC",
        help="Traffic (.npz, .mtx, .csv, .graph, .grf, .prof), an OTF2 archive, a benchmark like "
        "lu.C.64, or stencil:12x11x8,7pt,periodic=y; - reads a .csv, .npz or .mtx from stdin.",
        callback=from_stdin,
    ),
]
TraceOrTraffic = Annotated[
    str,
    typer.Argument(
        metavar="TRACE",
        help=TRACE_HELP,
        callback=from_stdin,
    ),
]
MappingArgument = Annotated[
    Path,
    typer.Argument(
        metavar="MAPPING",
        help=MAPPING_HELP,
        callback=from_stdin,
    ),
]
TraceOrJobs = Annotated[
    str | None, typer.Argument(metavar="TRACE", help=TRACE_HELP, callback=from_stdin)
]
MappingOrJobs = Annotated[
    Path | None, typer.Argument(metavar="MAPPING", help=MAPPING_HELP, callback=from_stdin)
]
Names = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|LIST",
        help="What all nodes of the machine are called, in order of their numbers: a file, one a "
        "line, or a list as Slurm writes it.",
    ),
]
Hosts = Annotated[
    Path | None, typer.Option(help="Nodes that the job has, one host a line; else all.")
]
Nodelist = Annotated[
    str | None, typer.Option(help="The same as Slurm lists them: node[01-32],gpu7.")
]
Failures = Annotated[
    str | None,
    typer.Option(
        "--failures",
        metavar="FILE|ITEMS",
        help="What is down: link=3-4,node=12, degraded: link=3-4*0.5, or drawn: links=3,nodes=1,"
        "degraded=2,factor=0.5,seed=0; or a file of such items.",
    ),
]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="A parameter, like link.bandwidth=10GB/s, or FILE.toml for its table parameters, as "
        "calibrate writes it; may be repeated (see: list parameters).",
    ),
]
Steps = Annotated[
    int | None, typer.Option(min=1, help="Time steps of a benchmark, instead of all.")
]
Rounds = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Rounds in which a file of traffic is sent, 1 for all at once; when left out, one "
        "message of a pair in each.",
    ),
]
Repeat = Annotated[
    int,
    typer.Option(
        min=0,
        metavar="N",
        help="Replay N times with noise besides, 6 at least, for a median and its interval of "
        "95 %; see --set noise.compute, noise.overhead, noise.start, noise.seed.",
    ),
]
CollectivesOption = Annotated[
    Collectives,
    typer.Option(
        "--collectives",
        help="Of a trace's collectives, count no messages, all that they send, or (auto) that only "
        "where it is more than the messages.",
    ),
]
RmaOption = Annotated[
    Rma, typer.Option("--rma", help="Count what one-sided operations put and get, or not.")
]
Algorithms = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="collective.OPERATION=ALGORITHM",
        help="Of collectives that are counted; may be repeated (see: list algorithms).",
    ),
]
MapSets = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="With --objective makespan or energy any parameter (see: list parameters); else "
        "collective.OPERATION=ALGORITHM, which counts collectives; may be repeated.",
    ),
]


def settings_given(words: Sequence[str] | None) -> dict[str, str | int | float]:
    """Return what ``--set`` sets, by key."""
    from hopmap.simulator.parameters.settings import parse_settings

    return dict(parse_settings(words or []))


def replay_settings(words: Sequence[str] | None) -> dict[str, str | int | float]:
    """Return what ``--set`` sets of a replay, by key; note what changes nothing in it."""
    from hopmap.simulator.parameters.settings import without_effect

    settings = settings_given(words)
    if idle := without_effect(settings):
        note(f"{', '.join(idle)}: without effect where network.buffer is 0, any number of packets")
    return settings


def failing(topology: str, failures: str | None) -> str:
    """Return the spec of a network with failures, if any."""
    return topology if failures is None else f"failed:{failures}@{topology}"


def failing_of(topology: str | None, mapping: Path, failures: str | None) -> str | None:
    """Return the same, the network that of a mapping's file where none is given."""
    if failures is None:
        return topology
    from hopmap.scenarios.launchers.mapping_files import network_of

    return failing(topology or network_of(mapping, None).spec, failures)


def check_options(context: typer.Context, what: str, has: Sequence[str]) -> None:
    """Raise `typer.BadParameter` for an option that is given although it means nothing here.

    --out and --json always mean something, and so do arguments.

    Parameters
    ----------
    what : str
        Which form of the command this is.
    has : sequence of str
        Parameters, by their names in Python, that it understands.
    """
    flags = {str(option.name): option.opts[0] for option in context.command.params}
    for name, flag in flags.items():
        source = context.get_parameter_source(name)
        given = source is not None and source.name == "COMMANDLINE" and flag.startswith("--")
        if given and name not in (*has, "out", "as_json"):
            known = ", ".join(flags[name] for name in has)
            raise typer.BadParameter(f"{flag}: {what} has none: expected some of {known}")


def check_picture(plot: Path | None) -> None:
    """Raise `typer.BadParameter` for a figure whose name does not say a format that is known."""
    if plot is not None and plot.suffix not in PICTURES:
        raise typer.BadParameter(f"--plot {plot}: expected a name ending in {' '.join(PICTURES)}")


def expect_folder(flag: str, folder: Path | None) -> None:
    """Raise `typer.BadParameter` for a folder in whose place, or above it, is a file."""
    places = () if folder is None else (folder, *folder.parents)
    there = next((place for place in places if place.exists()), Path())
    if not there.is_dir():
        what = "" if there == folder else f"{there} "
        raise typer.BadParameter(f"{flag} {folder}: {what}is a file: expected a folder")


def check_out(*paths: Path | None, folder: bool = False) -> None:
    """Raise `typer.BadParameter` for what cannot be written to, before the work is done.

    Parameters
    ----------
    folder : bool
        Whether folders are to be written, not files.
    """
    for path in filter(None, paths):
        if str(path) == "-":
            continue
        if not path.absolute().parent.is_dir():
            raise typer.BadParameter(f"{path}: there is no folder {path.parent}")
        if path.is_dir() and not folder:
            raise typer.BadParameter(f"{path}: is a folder: expected a file to write")
