"""Mappings as launchers read them: the table of formats, written and read back.

Every format says its direction, because they differ: most list rank -> node, Cray's rank order
position -> rank, the inverse permutation. The table holds names of objects; a package enters its
`Launcher` under the group of entry points ``hopmap.launchers``.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hopmap.arrays import Ints
from hopmap.plugins import load_entry_points, load_named
from hopmap.topologies import MappingError, Topology, did_you_mean

from .launcher import (
    FORMAT,
    MAPPING,
    NODES,
    USE,
    Launcher,
    comment,
    comments,
    content,
    names_comment,
)
from .node_names import NAME, check_names, compress, host_of, node_names

GROUP = "hopmap.launchers"
TABLE = {  # module beside this one, and the `Launcher` in it
    "openmpi": "hostfiles:OPENMPI",
    "slurm": "hostfiles:SLURM",
    "cray": "cray:CRAY",
    "intel": "hostfiles:INTEL",
    "fugaku": "coordinates:FUGAKU",
    "bluegene": "coordinates:BLUEGENE",
    "simgrid": "hostfiles:SIMGRID",
    "json": "reordering:PLAN",
    "torchrun": "reordering:TORCHRUN",
}
OWN = ("csv", "maplib")
"""Forms of mappings that no launcher reads."""
_OTHERS: dict[str, Launcher] = {}


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
    form = launcher_named(launcher)
    names = node_names(topology) if hosts is None else list(hosts)
    check_names(names, topology, launcher)
    if form.named and (odd := [name for name in names if not NAME.fullmatch(name)]):
        raise MappingError(f"{launcher}: host {odd[0]!r}: expected other names: --hosts FILE")
    lines = form.write(node_of, topology, names)
    if form.commented:
        lines = [
            MAPPING + topology.spec,
            comment(FORMAT, f"{form.name}, {form.direction}"),
            comment(USE, usage(form, node_of, file, names)),
            *names_comment(NODES, names),
            *lines,
        ]
    return "\n".join(lines) + "\n"


def launcher_named(name: str) -> Launcher:
    """Return a launcher; those of installed packages are loaded for a name that hopmap has not."""
    if name not in TABLE and name not in _others():
        hint = did_you_mean(name, [*TABLE, *_OTHERS, *OWN])
        known = ", ".join((*TABLE, *_OTHERS))
        raise MappingError(f"launcher {name!r}{hint}: expected one of {known}, csv or maplib")
    found: Launcher = load_named(__package__, TABLE[name]) if name in TABLE else _OTHERS[name]
    return found


def launchers() -> list[Launcher]:
    """Return all launchers, those of installed packages last."""
    return [launcher_named(name) for name in (*TABLE, *_others())]


def _others() -> dict[str, Launcher]:
    load_entry_points(GROUP, _enter)
    return _OTHERS


def _enter(name: str, offered: Any) -> None:
    if not isinstance(offered, Launcher):
        raise TypeError(f"{offered!r}: expected a Launcher")
    _OTHERS[name] = offered


def usage(form: Launcher, node_of: Ints, file: str, hosts: Sequence[str]) -> str:
    """Return the command that uses a file."""
    used, ranks_on = np.unique(node_of, return_counts=True)
    hosts_of = Counter(host_of(hosts[node]) for node in node_of)
    return form.command.format(
        hosts=len(hosts_of),
        processes=max(hosts_of.values()),
        file=shlex.quote(file),
        stem=shlex.quote(str(Path(file).with_suffix(""))),
        module=companion(form, file).removesuffix(".py"),
        ranks=len(node_of),
        nodes=len(used),
        nodelist=shlex.quote(",".join(compress([hosts[node] for node in used]))),
        each=ranks_on.max(),
    )


def companion(form: Launcher, file: str) -> str:
    """Return the name of the file that a launcher needs beside its own, "" where there is none.

    Python can import a module of that name, whatever the file's.
    """
    stem = Path(file).stem
    word = re.sub(r"\W", "_", stem)
    return form.companion.format(stem=stem, module="_" * word[:1].isdigit() + word)


def companions(
    form: Launcher, out: Path, topology: Topology, hosts: Sequence[str]
) -> dict[Path, str]:
    """Return the files that a launcher needs beside the mapping's, and their text."""
    if form.companion_text is None:
        return {}
    text = form.companion_text(out.name, topology, hosts)
    return {out.with_name(companion(form, out.name)): text}


def recognise(lines: Sequence[str], name: str = "") -> str | None:
    """Return the launcher whose file this is: by its comment, its first line, or its name.

    Of Cray's rank order the lines do not tell: ``0,3`` may be anything.
    """
    named = comments(lines).get(FORMAT, "").partition(",")[0]
    if named in TABLE or named in _others():
        return named
    first = next(filter(None, map(content, lines)), "")
    known = launchers()
    for form in known:
        if form.begins and re.match(form.begins, first):
            return form.name
    for form in known:
        if form.called and name.upper().startswith(form.called):
            return form.name
    return None
