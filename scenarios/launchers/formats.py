"""Mappings as launchers read them: the table of formats, written and read back.

Every format says its direction, because they differ: most list rank -> node, Cray's rank order
position -> rank, the inverse permutation. The formats are in launchers_*.py, a family each.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hopmap.topologies import MappingError, Topology, did_you_mean

from . import json_plan, torchrun
from .coordinates import read_map, read_vcoords, write_map, write_vcoords
from .cray import read_rank_order, write_rank_order
from .hostfiles import read_hosts, write_hosts, write_machines
from .node_names import NAME, check_names, compress, node_names
from .openmpi import read_rankfile, write_rankfile
from .text import (
    FORMAT,
    MAPPING,
    NODES,
    USE,
    LauncherFile,
    Place,
    comment,
    comments,
    content,
    names_comment,
)


@dataclass(frozen=True)
class Launcher:
    """A format to write and to read.

    Attributes
    ----------
    name, summary : str
        For `hopmap list formats`.
    direction : str
        What a line says, and of what: "rank -> node: ...".
    command : str
        How the file is used, with {file}, its {stem} (no suffix), the {module} beside it, {ranks},
        {nodes} that are used, their {nodelist} and {each}, the most ranks on one.
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
    """

    name: str
    summary: str
    direction: str
    command: str
    source: str
    write: Callable[[NDArray[np.int64], Topology, Sequence[str]], list[str]]
    read: Callable[[LauncherFile], list[Place]]
    begins: str = ""
    called: str = ""
    commented: bool = True
    named: bool = True


def export_mapping(
    launcher: str,
    node_of: NDArray[np.int64],
    topology: Topology,
    hosts: Sequence[str] | None = None,
    file: str = "FILE",
) -> str:
    """Return the text of a launcher's file.

    Parameters
    ----------
    launcher : str
        A name of `LAUNCHERS`.
    hosts : sequence of str, optional
        Name of every node in order of node numbers; node0, node1, ... when left out.
    file : str
        What the file will be called, for the command in its comments.
    """
    form = find_launcher(launcher)
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


def find_launcher(name: str) -> Launcher:
    """Return the format of that name, or say which there are."""
    if name not in LAUNCHERS:
        hint = did_you_mean(name, [*LAUNCHERS, *OWN])
        known = ", ".join(LAUNCHERS)
        raise MappingError(f"launcher {name!r}{hint}: expected one of {known}, csv or maplib")
    return LAUNCHERS[name]


def usage(form: Launcher, node_of: NDArray[np.int64], file: str, hosts: Sequence[str]) -> str:
    """Return the command that uses a file."""
    used, ranks_on = np.unique(node_of, return_counts=True)
    hosts_of = Counter(torchrun.host_of(hosts[node]) for node in node_of)
    return form.command.format(
        hosts=len(hosts_of),
        processes=max(hosts_of.values()),
        file=shlex.quote(file),
        stem=shlex.quote(str(Path(file).with_suffix(""))),
        module=_module(Path(file), MODULES.get(form.name, "")),
        ranks=len(node_of),
        nodes=len(used),
        nodelist=shlex.quote(",".join(compress([hosts[node] for node in used]))),
        each=ranks_on.max(),
    )


def _module(file: Path, kind: str) -> str:
    """Name of the module beside a file, which Python can import whatever the file's."""
    name = re.sub(r"\W", "_", file.stem)
    return f"{'_' * name[:1].isdigit()}{name}_{kind}"


def recognise(lines: Sequence[str], name: str = "") -> str | None:
    """Return the launcher whose file this is: by its comment, its first line, or its name.

    Of Cray's rank order the lines do not tell: ``0,3`` may be anything.
    """
    named = comments(lines).get(FORMAT, "").partition(",")[0]
    if named in LAUNCHERS:
        return named
    first = next(filter(None, map(content, lines)), "")
    for launcher, form in LAUNCHERS.items():
        if form.begins and re.match(form.begins, first):
            return launcher
    for launcher, form in LAUNCHERS.items():
        if form.called and name.upper().startswith(form.called):
            return launcher
    return None


def beside(launcher: str, topology: Topology, out: Path, hosts: Sequence[str]) -> dict[Path, str]:
    """Return the files that a launcher needs beside the mapping's, and their text.

    The lines of Python beside JSON and torchrun's; the platform beside SimGrid's hosts, with the
    parameters that the network gives, else the default ones.
    """
    paths = paths_beside(launcher, out)
    if launcher in SNIPPETS:
        return dict.fromkeys(paths, SNIPPETS[launcher].format(file=out.name))
    if launcher == "simgrid":
        from hopmap.simulator.export import EXPORTS
        from hopmap.simulator.parameters.settings import configure

        text = "".join(
            EXPORTS["simgrid"].load().platform_xml(*configure(topology, ()), names=hosts)
        )
        return dict.fromkeys(paths, text)
    return {}


def paths_beside(launcher: str, out: Path) -> list[Path]:
    """Return the names of the files that `beside` makes."""
    names = {launcher: f"{_module(out, kind)}.py" for launcher, kind in MODULES.items()}
    names["simgrid"] = f"{out.stem}_platform.xml"
    return [out.with_name(names[launcher])] if launcher in names else []


OWN = ("csv", "maplib")
"""Forms of mappings that no launcher reads."""
MODULES = {"json": "mpi4py", "torchrun": "torchrun"}
"""What the names of the modules beside files end in."""
SNIPPETS = {"json": json_plan.SNIPPET, "torchrun": torchrun.SNIPPET}

LAUNCHERS: dict[str, Launcher] = {
    launcher.name: launcher
    for launcher in (
        Launcher(
            "openmpi",
            "Open MPI 4 and 5 (PRRTE) rankfile",
            "rank -> node: a line says host and slot (logical core) of a rank",
            "mpirun --map-by rankfile:file={file} ./a.out   (Open MPI 4: mpirun -rf {file})",
            "Open MPI 4.1, mpirun(1); PRRTE, detail-placement-rankfiles.rst",
            write_rankfile,
            read_rankfile,
            r"rank\s+\d+\s*=",
        ),
        Launcher(
            "slurm",
            "Slurm hostfile for arbitrary distribution",
            "rank -> node: line r is the host of rank r",
            "SLURM_HOSTFILE={file} srun --ntasks={ranks} --distribution=arbitrary ./a.out",
            "Slurm, srun(1), --distribution=arbitrary",
            write_hosts,
            read_hosts,
            rf"(?=[A-Za-z]){NAME.pattern}(\*\d+)?(,{NAME.pattern}(\*\d+)?)*$",
        ),
        Launcher(
            "cray",
            "Cray MPICH rank order",
            "position -> rank, the inverse of rank -> node: places in order of names of nodes",
            "MPICH_RANK_REORDER_METHOD=3 MPICH_RANK_REORDER_FILE={file} srun --nodes={nodes} "
            "--nodelist={nodelist} --ntasks={ranks} --ntasks-per-node={each} --distribution=block "
            "./a.out",
            "HPE, intro_mpi(3) and grid_order(1); ARCHER2 and LUMI documentation",
            write_rank_order,
            read_rank_order,
            called="MPICH_RANK_ORDER",
        ),
        Launcher(
            "intel",
            "Intel MPI and MPICH machinefile",
            "rank -> node: line r is the host of rank r",
            "mpirun -machinefile {file} -n {ranks} ./a.out   (MPICH: mpiexec -f {file} ...)",
            "Intel MPI Developer Reference, Global Hydra Options",
            write_machines,
            read_hosts,
            rf"(?=[A-Za-z]){NAME.pattern}:\d+$",
        ),
        Launcher(
            "fugaku",
            "Fugaku and FX1000 vcoordfile",
            "rank -> node: line r is (x,y,z) of rank r",
            "mpiexec -n {ranks} --vcoordfile {file} ./a.out",
            "RIKEN, Fugaku User's Guide, Rank assignment",
            write_vcoords,
            read_vcoords,
            r"\(\s*\d",
            commented=False,
            named=False,
        ),
        Launcher(
            "bluegene",
            "Blue Gene map file",
            "rank -> node: line r is x y z t of rank r",
            "runjob --np {ranks} --ranks-per-node {each} --mapping {file} : ./a.out",
            "as LLNL/rubik writes it",
            write_map,
            read_map,
            r"\d+(\s+\d+)+$",
            commented=False,
            named=False,
        ),
        Launcher(
            "simgrid",
            "SimGrid hostfile, with the platform beside it",
            "rank -> node: line r is the host of rank r",
            "smpirun -hostfile {file} -platform {stem}_platform.xml ./a.out",
            "SimGrid, smpirun",
            write_hosts,
            read_hosts,
            commented=False,
        ),
        Launcher(
            "json",
            "JSON in both directions, with lines of mpi4py beside it",
            "rank -> node is node_of, position -> rank is rank_at",
            "from {module} import comm   (C: MPI_Comm_split(MPI_COMM_WORLD, 0, "
            "rank_at[process], &comm))",
            "MPI 4.1, MPI_COMM_SPLIT",
            json_plan.write_json,
            json_plan.read_json,
            r"\{",
            commented=False,
            named=False,
        ),
        Launcher(
            "torchrun",
            "torchrun: hosts with their ranks, with lines of Python beside it",
            "host -> ranks of its processes, by LOCAL_RANK; hosts by --node-rank",
            "torchrun --nnodes={hosts} --nproc-per-node={processes} --node-rank=K ... train.py   "
            "(train.py begins with: import {module})",
            "PyTorch, torchrun, environment variables",
            torchrun.write_processes,
            torchrun.read_processes,
            torchrun.BEGINS,
        ),
    )
}
