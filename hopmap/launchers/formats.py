"""Mappings as launchers read them: the table of formats, written and read back.

Every format says its direction, because they differ: most list rank -> node, Cray's rank order
position -> rank, the inverse permutation. Comments of a file name the topology, the format with its
direction, the command that uses it, and the nodes, so that it can be read back on its own.
The table holds names of objects; a package enters its `Launcher` under the group of entry points
``hopmap.launchers``.
"""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from hopmap.arrays import Ints
from hopmap.plugins import load_entry_points, load_named
from hopmap.topologies import MappingError, Topology, did_you_mean
from hopmap.topologies.readers.node import Domain

from . import gpus
from .node_names import NAME, check_names, compress, expand, host_of, node_names

GROUP = "hopmap.launchers"
TABLE = {  # module of this package, and the `Launcher` in it
    "openmpi": "hostfiles:OPENMPI",
    "slurm": "hostfiles:SLURM",
    "cray": "reordering:CRAY",
    "intel": "hostfiles:INTEL",
    "fugaku": "coordinates:FUGAKU",
    "bluegene": "coordinates:BLUEGENE",
    "simgrid": "hostfiles:SIMGRID",
    "json": "reordering:PLAN",
    "torchrun": "reordering:TORCHRUN",
    "ray": "ray:RAY",
    "flux": "flux:FLUX",
    "pals": "reordering:PALS",
    "jsrun": "resource_sets:JSRUN",
    "prrte": "sequential:PRRTE",
    "mpijob": "sequential:MPIJOB",
    "likwid": "sequential:LIKWID",
}
OWN = ("csv", "maplib")
"""Forms of mappings that no launcher reads."""
_OTHERS: dict[str, Launcher] = {}
MAPPING = "# hopmap mapping on "
FORMAT, USE, NODES = "format", "use it", "nodes"
ALL_NODES = "all nodes"  # of the network, in order of their numbers, where the file uses fewer
NAME_THEM = "give yours with --nodelist, --hosts or --names"
WIDTH = 78  # of a comment with names: Slurm reads lines of limited length

Place = tuple[int, int, int]  # line of the file, rank, node


def comment(key: str, value: str) -> str:
    """Return the comment ``# key: value`` on one line."""
    return f"# {key}: {' '.join(value.split())}"


def names_comment(key: str, names: Sequence[str]) -> list[str]:
    """Return comments ``# key: node[0-3],...``, as many as lines of `WIDTH` need."""
    return split_comment(key, compress(names))


def split_comment(key: str, items: Sequence[str]) -> list[str]:
    """Return comments ``# key: item,item``, as many as lines of `WIDTH` need."""
    lines: list[str] = []
    for item in items:
        if lines and len(lines[-1]) + len(item) < WIDTH:
            lines[-1] += f",{item}"
        else:
            lines.append(f"# {key}: {item}")
    return lines


def content(line: str) -> str:
    """Return a line without its comment."""
    return line.partition("#")[0].strip()


def comments(lines: Sequence[str]) -> dict[str, str]:
    """Return what comments ``# key: value`` say; values of a key on several lines are joined."""
    said: dict[str, list[str]] = {}
    for line in lines:
        match = re.fullmatch(r"#\s*([a-z][a-z ]*):\s*(.*)", line.strip())
        if match:
            said.setdefault(match[1], []).append(match[2].strip())
    return {key: ",".join(values) for key, values in said.items()}


def json_document(lines: Sequence[str], name: str) -> dict[str, object]:
    """Return the object that a file is in JSON."""
    try:
        document = json.loads("\n".join(lines))
    except (ValueError, RecursionError) as error:
        line = f"line {error.lineno}: " if isinstance(error, json.JSONDecodeError) else ""
        raise MappingError(f"{name}: {line}expected a JSON object with node_of") from None
    if not isinstance(document, dict):
        raise MappingError(f"{name}: expected a JSON object with node_of")
    return document


@dataclass(frozen=True)
class LauncherFile:
    """A launcher's file that is being read."""

    name: str  # for messages
    text: Sequence[str]  # all lines
    lines: list[tuple[int, str]]  # number and text of those that say more than comments
    said: Mapping[str, str]  # what its comments say, by key
    topology: Topology  # the network whose nodes it places ranks on
    nodes: Mapping[str, int]  # number of the node that each host name stands for

    def wrong(self, number: int, expected: str) -> NoReturn:
        """Raise `MappingError` for a line."""
        found = dict(self.lines).get(number, "")
        raise MappingError(f"{self.name}: line {number} is {found[:40]!r}: expected {expected}")

    def node(self, location: str, host: str) -> int:
        """Return the node of a host that is named there."""
        if host not in self.nodes:
            first, *_, last = (*self.nodes, *self.nodes)
            raise MappingError(
                f"{self.name}: {location}: host {host[:40]!r}: expected a name from {first} to "
                f"{last} (other names: hopmap export {self.name} --hosts FILE --to csv)"
            )
        return self.nodes[host]


@dataclass(frozen=True)
class Launch:
    """A mapping that is to be launched."""

    node_of: Ints
    topology: Topology
    hosts: Sequence[str]  # names of all nodes, in order of their numbers
    file: str = "FILE"  # what the launcher's file will be called
    threads: int | None = None  # of a rank; None says nothing of them
    node: Sequence[Domain] | None = None  # what a node has, if it is described
    made_up: str = ""  # node0 to node15, if the input names no nodes
    all_names: Sequence[str] = ()  # of all nodes, where `hosts` has hosts in place of their GPUs
    gpus: gpus.Merged | None = None  # of each rank on its host, in that case

    @property
    def used(self) -> list[str]:
        """The nodes that are used, in order of their numbers."""
        return [self.hosts[node] for node in np.unique(self.node_of)]

    @property
    def nodelist(self) -> str:
        """The nodes that are used, as Slurm's list in a shell."""
        return shlex.quote(",".join(compress(self.used)))


@dataclass(frozen=True)
class Launcher:
    """A format to write and to read; the table of them is in `formats.py`."""

    name: str
    summary: str
    direction: str  # what a line says, and of what: "rank -> node: ..."
    # how the file is used, with {file}, its {stem} (no suffix), the companion {module}, {ranks},
    # {nodes} that are used, their {nodelist} and {each}, the most ranks on one; {hosts} of these
    # nodes, and {processes}, the most ranks on one host; {pack} is Slurm's where nodes fill up
    command: str
    source: str  # where the format is described
    write: Callable[[Launch], list[str]]  # lines; `MappingError` for what the format cannot say
    read: Callable[[LauncherFile], list[Place]]  # the inverse
    begins: str = ""  # regular expression of a first line that no other format has
    called: str = ""  # what the names of its files begin with, where the launcher asks for one
    commented: bool = True  # whether its readers know comments
    named: bool = True  # whether it says nodes by their names
    on_gpus: bool = False  # whether it places ranks on nodes that are GPUs, called HOST-gpuN
    companion: str = ""  # companion file that it needs, with {stem} and {module} of its own file
    companion_text: Callable[[Launch], str] | None = None
    threaded: str = ""  # the command for {threads} a rank, where the launcher documents it
    binds: bool = False  # whether its file binds ranks to cores
    notes: Callable[[Launch], list[str]] | None = None  # what to know of this mapping's file


def launcher_file(
    name: str, text: Sequence[str], topology: Topology, hosts: Sequence[str] | None = None
) -> LauncherFile:
    """Take a file apart; its own comment names the nodes, else `hosts`, else node0, node1, ..."""
    said = comments(text)
    if commented := commented_names(said, name):
        hosts = commented
        check_names(hosts, topology, name)
    elif hosts is None:
        hosts = node_names(topology)
    lines = [(number, content(line)) for number, line in enumerate(text, 1) if content(line)]
    nodes = {h: node for node, h in enumerate(hosts)}
    if gpus.KEY in said:
        nodes = gpus.first_of_hosts(hosts) | nodes
    return LauncherFile(name, text, lines, said, topology, nodes)


def commented_names(said: Mapping[str, str], name: str) -> list[str] | None:
    """Return the names of all nodes that comments of a file say, None without them."""
    key = ALL_NODES if ALL_NODES in said else NODES
    return expand(said[key], f"{name}: {key}") if key in said else None


def place_on_hosts(form: Launcher, launch: Launch) -> Launch:
    """Return a launch whose nodes are hosts, for formats that do not know GPUs called HOST-gpuN."""
    merged = gpus.merge(launch.node_of, launch.hosts, launch.topology.slots)
    if form.on_gpus or not form.named or merged is None:
        return launch
    if launch.node is not None and not merged.in_order:
        problem = "ranks of a host are not on its GPUs in order: expected no --node"
        raise MappingError(f"{form.name}: {problem}, whose nearest GPUs would be others")
    network = replace(launch.topology, slots=merged.slots)
    return replace(
        launch, node_of=merged.node_of, topology=network, hosts=merged.names,
        all_names=launch.hosts, gpus=merged,
    )  # fmt: skip


def export_mapping(
    launcher: str,
    node_of: Ints,
    topology: Topology,
    hosts: Sequence[str] | None = None,
    file: str = "FILE",
) -> str:
    """Return the text of a launcher's file.

    Hosts are the names of all nodes in order of their numbers; node0, node1, ... when left out. The
    command in its comments has what the file will be called.
    """
    names = node_names(topology) if hosts is None else list(hosts)
    form = get_launcher(launcher)
    made_up = "" if topology.names or hosts is not None else f"{names[0]} to {names[-1]}"
    launch = Launch(node_of, topology, names, file, made_up=made_up)
    return write_launch(form, place_on_hosts(form, launch))


def write_launch(form: Launcher, launch: Launch) -> str:
    """Return the text of a launcher's file."""
    names, topology = launch.hosts, launch.topology
    check_names(names, topology, form.name)
    if form.named and (odd := [name for name in names if not NAME.fullmatch(name)]):
        raise MappingError(f"{form.name}: host {odd[0]!r}: expected other names: --hosts FILE")
    lines, everything = form.write(launch), list(launch.all_names or names)
    unnamed = f"# nodes {launch.made_up} are placeholders: {NAME_THEM}"
    if form.commented:
        lines = [
            MAPPING + topology.spec,
            comment(FORMAT, f"{form.name}, {form.direction}"),
            comment(USE, usage(form, launch)),
            *([unnamed] if launch.made_up else []),
            *names_comment(NODES, launch.used),
            *(names_comment(ALL_NODES, everything) if everything != launch.used else []),
            *(split_comment(gpus.KEY, launch.gpus.gpus) if launch.gpus else []),
            *lines,
        ]
    return "\n".join(lines) + "\n"


def notes(form: Launcher, launch: Launch) -> list[str]:
    """Return sentences on what a mapping's file does, or why it is not needed."""
    said = [] if form.notes is None else form.notes(launch)
    return said if launch.gpus is None else [*said, launch.gpus.note]


def get_launcher(name: str) -> Launcher:
    """Return a launcher; load launchers of installed packages if hopmap has none of that name."""
    if name not in TABLE and name not in _extensions():
        hint = did_you_mean(name, [*TABLE, *_OTHERS, *OWN])
        known = ", ".join((*TABLE, *_OTHERS))
        raise MappingError(f"launcher {name!r}{hint}: expected one of {known}, csv or maplib")
    found: Launcher = load_named(__package__, TABLE[name]) if name in TABLE else _OTHERS[name]
    return found


def launchers() -> list[Launcher]:
    """Return all launchers; launchers of installed packages come last."""
    return [get_launcher(name) for name in (*TABLE, *_extensions())]


def _extensions() -> dict[str, Launcher]:
    load_entry_points(GROUP, _enter)
    return _OTHERS


def _enter(name: str, extension: Any) -> None:
    if not isinstance(extension, Launcher):
        raise TypeError(f"{extension!r}: expected a Launcher")
    _OTHERS[name] = extension


def usage(form: Launcher, launch: Launch) -> str:
    """Return the command that uses a file."""
    node_of, hosts, file = launch.node_of, launch.hosts, launch.file
    used, ranks_on = np.unique(node_of, return_counts=True)
    hosts_of = Counter(host_of(hosts[node]) for node in node_of)
    return (form.command if launch.threads is None else form.threaded).format(
        hosts=len(hosts_of),
        processes=max(hosts_of.values()),
        file=shlex.quote(file),
        stem=shlex.quote(str(Path(file).with_suffix(""))),
        module=companion(form, file).removesuffix(".py"),
        ranks=len(node_of),
        nodes=len(used),
        nodelist=launch.nodelist,
        each=ranks_on.max(),
        pack=",Pack" if ranks_on.max() - ranks_on.min() > 1 else "",
        threads=launch.threads,
    )


def companion(form: Launcher, file: str) -> str:
    """Return the name of a launcher's companion file, "" if it needs none.

    Python can import a module of that name, even if it cannot import the file's own name.
    """
    stem = Path(file).stem
    word = re.sub(r"\W", "_", stem)
    return form.companion.format(stem=stem, module="_" * word[:1].isdigit() + word)


def companions(form: Launcher, out: Path, launch: Launch) -> dict[Path, str]:
    """Return the companion files of a mapping file, and their text."""
    if form.companion_text is None:
        return {}
    text = form.companion_text(replace(launch, file=out.name))
    return {out.with_name(companion(form, out.name)): text}


def recognise(lines: Sequence[str], name: str = "") -> str | None:
    """Return the launcher whose file this is: by its comment, its first line, or its name.

    Of Cray's rank order the lines do not tell: ``0,3`` may be anything.
    """
    named = comments(lines).get(FORMAT, "").partition(",")[0]
    if named in TABLE or named in _extensions():
        return named
    first = next(filter(None, map(content, lines)), "")
    known = launchers()
    by_line = (each.name for each in known if each.begins and re.match(each.begins, first))
    by_name = (each.name for each in known if each.called and name.upper().startswith(each.called))
    return next(chain(by_line, by_name), None)
