"""Options of workloads and machines, declared once for all commands.

A command takes a dataclass of options as one parameter; `takes_options` gives the command line its
fields.
"""

from __future__ import annotations

import atexit
import inspect
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import StrEnum
from functools import cache, wraps
from glob import escape, glob
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer

from hopmap.plugins import add_plugin

from .console import note
from .overwriting import NEVER_FORCED, OUTPUTS, Force, expect_free, guard_inputs

if TYPE_CHECKING:
    from hopmap.api.machine import Machine
    from hopmap.api.workload import Workload


PICTURES = (".svg", ".png", ".pdf")
Argument = TypeVar("Argument", str, Path)
BEGINS = {b"PK": ".npz", b"%%MatrixMarket": ".mtx"}


def from_stdin(argument: Argument) -> Argument:
    """Return the file of what stdin holds for ``-``, and all else as it is."""
    if str(argument) != "-":
        return argument
    if _folder.cache_info().currsize:
        raise typer.BadParameter("-: expected at most one argument that reads stdin")
    content = sys.stdin.buffer.read()
    suffix = next((end for start, end in BEGINS.items() if content.startswith(start)), ".csv")
    file = _folder() / f"stdin{suffix}"
    file.write_bytes(content)
    return type(argument)(file)


def readable(line: str) -> str:
    """Return a message with ``-`` for the file that stands for it."""
    if not _folder.cache_info().currsize:
        return line
    for suffix in (*BEGINS.values(), ".csv"):
        line = line.replace(str(_folder() / f"stdin{suffix}"), "-")
    return line


def forget() -> None:
    """Let the next command read stdin again."""
    _folder.cache_clear()


@cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="hopmap-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def complete_mappers(incomplete: str) -> list[str]:
    """Complete the last mapper of a pipeline."""
    from hopmap.mappers import all_mappers

    before, bar, last = incomplete.rpartition("|")
    space = " " * (len(last) - len(last.lstrip()))
    start = f"{before}{bar}{space}"
    return [f"{start}{name}" for name in sorted(all_mappers()) if name.startswith(last.lstrip())]


def complete_topologies(incomplete: str) -> list[str]:
    """Complete a family, or the name of a preset."""
    from hopmap.topologies import FAMILIES, PRESETS

    known = [*(f"{family}:" for family in FAMILIES), *(f"preset:{name}" for name in PRESETS)]
    return [name for name in known if name.startswith(incomplete)]


def complete_engines(incomplete: str) -> list[str]:
    """Complete an engine."""
    from hopmap.simulator import ENGINES

    return [name for name in ENGINES if name.startswith(incomplete)]


def complete_scenarios(incomplete: str) -> list[str]:
    """Complete a shipped scenario, or a TOML file of a folder."""
    from hopmap.scenarios.sweep import SHIPPED

    shipped = [name for name in sorted(SHIPPED) if name.startswith(incomplete)]
    here = glob(f"{escape(incomplete)}*.toml")  # noqa: PTH207 Path takes no place from the root
    return [*shipped, *sorted(here)]


def complete_launchers(incomplete: str) -> list[str]:
    """Complete a format to export to."""
    from hopmap.launchers.formats import OWN, TABLE

    return [name for name in (*TABLE, *OWN) if name.startswith(incomplete)]


Collectives = StrEnum("Collectives", "AUTO IGNORE EXPAND")
"""Whether traffic counts what collectives send."""
Rma = StrEnum("Rma", "INCLUDE IGNORE")
"""Whether traffic counts what one-sided operations move."""
TRACE_HELP = (
    "An OTF2 archive, a benchmark like lu.C.64, traffic (.npz, .mtx, .csv, .graph, .grf, .prof), "
    "or stencil:12x11x8,7pt,periodic=y; - reads a .csv, .npz or .mtx from stdin."
)
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
Trace = Annotated[str, typer.Argument(metavar="TRACE", help=TRACE_HELP, callback=from_stdin)]
OptionalTrace = Annotated[
    str | None, typer.Argument(metavar="TRACE", help=TRACE_HELP, callback=from_stdin)
]
MAPPING_HELP = "Mapping file: rank,node, MapLib's format, or a launcher's file; - is stdin."
MappingFile = Annotated[
    Path, typer.Argument(metavar="MAPPING", help=MAPPING_HELP, callback=from_stdin)
]
OptionalMapping = Annotated[
    Path | None, typer.Argument(metavar="MAPPING", help=MAPPING_HELP, callback=from_stdin)
]
Engine = Annotated[
    str,
    typer.Option(
        help="Engine of the replay; simpy is the reference; see: list engines.",
        autocompletion=complete_engines,
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
Plugins = Annotated[
    list[str] | None,
    typer.Option(
        "--plugin",
        metavar="FILE|MODULE",
        help="Python file or module with mappers or topologies of your own; may be repeated.",
        callback=lambda files: [add_plugin(each) for each in files or ()] and files,
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Same seed, same result.")]


Topology = Annotated[
    str,
    typer.Option(
        "--topology",
        "-t",
        help="The machine, like torus:4x4x4 or haec:4x4x4*2.",
        autocompletion=complete_topologies,
    ),
]
TopologyOfMapping = Annotated[
    str | None,
    typer.Option(
        "--topology",
        "-t",
        help="The machine, like torus:4x4x4; default: as the mapping file names it.",
        autocompletion=complete_topologies,
    ),
]
Balanced = Annotated[
    bool,
    typer.Option("--balanced", help="Same number of ranks on every node; else nodes may fill up."),
]


@dataclass(frozen=True)
class ReplayOptions:
    """How a workload is replayed."""

    steps: Annotated[
        int | None, typer.Option(min=1, help="Time steps of a benchmark, instead of all.")
    ] = None
    rounds: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Rounds in which a traffic file is sent; 1 sends all at once. Default: one "
            "message of a pair in each.",
        ),
    ] = None

    def workload(self, trace: str) -> Workload:
        """Return a trace, taken as the options say."""
        from hopmap.api.workload import Workload

        return Workload(trace, self.steps, self.rounds)


@dataclass(frozen=True)
class TrafficOptions(ReplayOptions):
    """What the traffic of a workload counts."""

    collectives: Annotated[
        Collectives,
        typer.Option(
            help="Traffic of a trace's collectives: ignore it, expand it into messages, or (auto) "
            "expand it only where it exceeds the messages."
        ),
    ] = Collectives.AUTO
    rma: Annotated[
        Rma, typer.Option(help="Count what one-sided operations put and get, or not.")
    ] = Rma.INCLUDE

    def workload(self, trace: str) -> Workload:
        """Return a trace, taken as the options say."""
        return replace(super().workload(trace), collectives=self.collectives, rma=self.rma)


@dataclass(frozen=True)
class NodeOptions:
    """Nodes, names and failures of a machine."""

    failures: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|ITEMS",
            help="Failures: down, link=3-4,node=12; degraded, link=3-4*0.5; or random, links=3,"
            "nodes=1,degraded=2,factor=0.5,seed=0; or a file of such items.",
        ),
    ] = None
    names: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|LIST",
            help="Names of all nodes of the machine, in order of their numbers: a file, one a "
            "line, or a Slurm node list.",
        ),
    ] = None
    hosts: Annotated[
        Path | None,
        typer.Option(
            help="File of the job's hosts, one a line, or a line for each slot; default: all nodes."
        ),
    ] = None
    nodelist: Annotated[
        str | None, typer.Option(help="The job's hosts as a Slurm node list: node[01-32],gpu7.")
    ] = None

    @property
    def settings(self) -> dict[str, str | int | float]:
        """What ``--set`` sets, by key."""
        return {}

    def machine(self, topology: str | None, engine: str = "", **more: Any) -> Machine:
        """Return a machine of a topology as the options say; note settings without effect."""
        from hopmap.api.machine import Machine
        from hopmap.simulator.parameters.settings import without_effect

        settings = self.settings
        for line in without_effect(settings, engine):
            note(line)
        own = {name: getattr(self, name) for name in ("failures", "names", "hosts", "nodelist")}
        return Machine(topology, settings, **own, **more)


@dataclass(frozen=True)
class MachineOptions(NodeOptions):
    """The same, and parameters."""

    sets: Sets = None

    @property
    def settings(self) -> dict[str, str | int | float]:
        """What ``--set`` sets, by key."""
        return settings_of(self.sets)


def settings_of(words: Sequence[str] | None) -> dict[str, str | int | float]:
    """Return what ``--set`` sets, by key."""
    from hopmap.simulator.parameters.settings import parse_settings

    return dict(parse_settings(words or []))


def takes_options(command: Callable[..., int | None]) -> Callable[..., int | None]:
    """Give the command line the fields of a command's dataclasses as options of their own.

    Every command gets --plugin as well, and one that writes files --force.
    """
    hints = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    groups: dict[str, Any] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        if not is_dataclass(hints[name]):
            parameters.append(parameter.replace(annotation=hints[name]))
            continue
        groups[name] = hints[name]
        own = get_type_hints(hints[name], include_extras=True)
        parameters += [
            inspect.Parameter(
                each.name, parameter.kind, default=each.default, annotation=own[each.name]
            )
            for each in fields(hints[name])
        ]

    kind = inspect.Parameter.KEYWORD_ONLY
    parameters.append(inspect.Parameter("plugins", kind, default=None, annotation=Plugins))
    writes = any(each.name in OUTPUTS for each in parameters)
    if writes and command.__name__ not in NEVER_FORCED:
        parameters.append(inspect.Parameter("force", kind, default=False, annotation=Force))

    @wraps(command)
    def run(**values: Any) -> int | None:
        force = values.pop("force", False)
        del values["plugins"]  # entered before all others were looked at
        with guard_inputs(values, force):
            made = {
                name: group(**{each.name: values.pop(each.name) for each in fields(group)})
                for name, group in groups.items()
            }
            return command(**made, **values)

    signature = inspect.Signature([each.replace(kind=each.KEYWORD_ONLY) for each in parameters])
    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


def check_options(context: typer.Context, subject: str, has: Sequence[str]) -> None:
    """Raise `typer.BadParameter` for an option that is set although it means nothing here.

    `has` are the parameters that this form of the command understands, by their names in Python.
    --out, --force, --plugin and --json always mean something, and so do arguments.
    """
    flags = {str(option.name): option.opts[0] for option in context.command.params}
    for name, flag in flags.items():
        source = context.get_parameter_source(name)
        is_set = source is not None and source.name == "COMMANDLINE" and flag.startswith("--")
        if is_set and name not in (*has, "out", "force", "plugins", "as_json"):
            known = ", ".join(flags[name] for name in has)
            raise typer.BadParameter(f"{flag}: {subject} has none: expected some of {known}")


def check_picture(plot: Path | None) -> None:
    """Raise `typer.BadParameter` for a figure whose name does not say a format that is known."""
    if plot is not None and plot.suffix not in PICTURES:
        raise typer.BadParameter(f"--plot {plot}: expected a name ending in {' '.join(PICTURES)}")


def check_no_picture(out: Path | None) -> None:
    """Raise `typer.BadParameter` for a mapping to write under the name of a figure."""
    if out is not None and out.suffix in PICTURES:
        raise typer.BadParameter(f"{out}: the name of a figure: expected one of text, like map.csv")


def check_folder(flag: str, folder: Path | None) -> None:
    """Raise `typer.BadParameter` for a folder in whose place is a file, or which is a trace's."""
    places = () if folder is None else (folder, *folder.parents)
    there = next((place for place in places if place.exists()), Path())
    if not there.is_dir():
        what = "" if there == folder else f"{there} "
        raise typer.BadParameter(f"{flag} {folder}: {what}is a file: expected a folder")
    if there == folder and not folder.samefile(Path()):
        for name in sorted(
            path.name for end in ("otf2", "evt") for path in folder.glob(f"*.{end}")
        ):
            raise typer.BadParameter(
                f"{flag} {folder}: holds {name}, a trace: expected another one"
            )


def check_out(*paths: Path | None, folder: bool = False) -> None:
    """Raise `typer.BadParameter` for files, or folders, that cannot or may not be written."""
    for path in filter(None, paths):
        if str(path) == "-":
            continue
        if not path.absolute().parent.is_dir():
            raise typer.BadParameter(f"{path}: there is no folder {path.parent}")
        if path.is_dir() and not folder:
            raise typer.BadParameter(f"{path}: is a folder: expected a file to write")
        if path.is_file() and folder:
            raise typer.BadParameter(f"{path}: is a file: expected a folder to write")
        expect_free(path)
