"""A launcher's file: comments that say what it is, lines that are read, and what a format is.

The comments name the topology, the format with its direction, the command that uses the file, and
the names of the nodes, so that a file that hopmap wrote is read back without being told any.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from hopmap.arrays import Ints
from hopmap.topologies import MappingError, Topology

from .node_names import check_names, compress, expand, node_names

MAPPING = "# hopmap mapping on "
FORMAT, USE, NODES = "format", "use it", "nodes"
WIDTH = 78  # of a comment with names: Slurm reads lines of limited length

Place = tuple[int, int, int]  # line of the file, rank, node


def comment(key: str, value: str) -> str:
    """Return the comment ``# key: value`` on one line."""
    return f"# {key}: {' '.join(value.split())}"


def names_comment(key: str, names: Sequence[str]) -> list[str]:
    """Return comments ``# key: node[0-3],...``, as many as lines of `WIDTH` need."""
    lines: list[str] = []
    for item in compress(names):
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
    """A launcher's file that is being read.

    Attributes
    ----------
    name : str
        For messages.
    text : sequence of str
        All lines.
    lines : list of (int, str)
        Number and text of every line that says something, without comments.
    said : mapping
        What its comments say, by key.
    topology : Topology
        The network whose nodes it places ranks on.
    nodes : mapping
        Number of the node that each host name stands for.
    """

    name: str
    text: Sequence[str]
    lines: list[tuple[int, str]]
    said: Mapping[str, str]
    topology: Topology
    nodes: Mapping[str, int]

    def wrong(self, number: int, expected: str) -> NoReturn:
        """Raise `MappingError` for a line."""
        found = dict(self.lines).get(number, "")
        raise MappingError(f"{self.name}: line {number} is {found[:40]!r}: expected {expected}")

    def node(self, where: str, host: str) -> int:
        """Return the node of a host that is named there."""
        if host not in self.nodes:
            first, *_, last = (*self.nodes, *self.nodes)
            raise MappingError(
                f"{self.name}: {where}: host {host[:40]!r}: expected a name from {first} to "
                f"{last} (other names: hopmap export {self.name} --hosts FILE --to csv)"
            )
        return self.nodes[host]


@dataclass(frozen=True)
class Launcher:
    """A format to write and to read; the table of them is in `formats.py`.

    Attributes
    ----------
    name, summary : str
        For `hopmap list formats`.
    direction : str
        What a line says, and of what: "rank -> node: ...".
    command : str
        How the file is used, with {file}, its {stem} (no suffix), the {module} beside it, {ranks},
        {nodes} that are used, their {nodelist} and {each}, the most ranks on one; {hosts} of these
        nodes, and {processes}, the most ranks on one host.
    source : str
        Where the format is described.
    write : callable
        ``(node_of, topology, hosts) -> lines``; `MappingError` for what the format cannot say.
    read : callable
        ``(file) -> places``, the inverse.
    begins : str
        Regular expression of a first line that no other format has; "" where there is none.
    called : str
        What the names of its files begin with, where the launcher asks for one.
    commented : bool
        Whether its readers know comments.
    named : bool
        Whether it says nodes by their names.
    companion : str
        Name of the file that it needs beside its own, with {stem} and {module} of that; "" where
        there is none.
    companion_text : callable, optional
        ``(name of its file, topology, hosts) -> text`` of that file.
    """

    name: str
    summary: str
    direction: str
    command: str
    source: str
    write: Callable[[Ints, Topology, Sequence[str]], list[str]]
    read: Callable[[LauncherFile], list[Place]]
    begins: str = ""
    called: str = ""
    commented: bool = True
    named: bool = True
    companion: str = ""
    companion_text: Callable[[str, Topology, Sequence[str]], str] | None = None


def launcher_file(
    name: str, text: Sequence[str], topology: Topology, hosts: Sequence[str] | None = None
) -> LauncherFile:
    """Take a file apart; its own comment names the nodes, else `hosts`, else node0, node1, ..."""
    said = comments(text)
    if NODES in said:
        hosts = expand(said[NODES], f"{name}: {NODES}")
        check_names(hosts, topology, name)
    elif hosts is None:
        hosts = node_names(topology)
    lines = [(number, content(line)) for number, line in enumerate(text, 1) if content(line)]
    return LauncherFile(
        name, text, lines, said, topology, {h: node for node, h in enumerate(hosts)}
    )
