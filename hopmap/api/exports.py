"""What is written: mappings and programs for other tools, traces, traffic; mappings read back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from hopmap.errors import HopmapError, expect_between, expect_one_of
from hopmap.launchers import formats, mapping_files
from hopmap.launchers.coordinates import maplib_text
from hopmap.launchers.formats import NODES
from hopmap.launchers.node_names import check_names, node_names
from hopmap.simulator.export import EXPORTS, WRITERS, Placed
from hopmap.topologies import Mapping, MappingError, Topology
from hopmap.topologies.readers.node import Domain, read_node
from hopmap.traces import Traffic, save_traffic, traffic_of, write_trace
from hopmap.traces.safety.atomic_files import write_text

from .input_kinds import MappingLike, kind_of
from .machine import Machine, MachineLike, nodes_of_ranks, on_network_of
from .workload import Workload, WorkloadLike

MOST_THREADS = 4096  # of a rank

TEXTS = {"csv": mapping_files.mapping_text, "maplib": maplib_text}


class ExportError(HopmapError, ValueError):
    """What was asked for cannot be written so."""


class Exported(NamedTuple):
    """A mapping as a launcher reads it."""

    text: str
    launcher: str
    command: str  # Which uses the file; empty for hopmap's own format.
    files: tuple[Path, ...]  # That were written.
    extra_files: tuple[str, ...]  # Names of the other files that the launcher needs.
    ranks: int
    made_up: str  # Generated node names, node0 to node15; "" if the input names the nodes.
    notes: tuple[str, ...] = ()  # What the file binds, or which option of the launcher replaces it.

    def to_dict(self) -> dict[str, Any]:
        """Return what ``export --json`` prints: the file, or its text if none was written."""
        text = {"out": str(self.files[0])} if self.files else {"text": self.text}
        fields = {"launcher": self.launcher, "ranks": self.ranks, "command": self.command}
        more = {"notes": list(self.notes), "extra_files": list(self.extra_files)}
        return fields | more | text


class Converted(NamedTuple):
    """A program as another simulator reads it, and the command that replays it there."""

    out: Path
    ranks: int
    command: str

    def to_dict(self) -> dict[str, Any]:
        """Return what ``convert --json`` prints."""
        return self._asdict() | {"out": str(self.out)}


def export_mapping(
    mapping: MappingLike,
    to: str,
    machine: MachineLike | None = None,
    *,
    out: str | Path | None = None,
    form: str | None = None,
    node: str | Path | None = None,
    threads: int | None = None,
) -> Exported:
    """Write a mapping as a launcher reads it, from any format.

    Parameters
    ----------
    mapping : file, array or Placement
    to : str
        A launcher, "csv" or "maplib"; see ``hopmap list formats``.
    machine : Machine, str or Topology, optional
        If the mapping does not name it. No rank may leave its hosts.
    out : path, optional
        File to write; only the text is returned when left out.
    form : str, optional
        Launcher whose file `mapping` is, if it does not show that.
    node : path or str, optional
        What a node has, for rankfiles: the XML file of lstopo, or "numa=4x16,gpu=4".
    threads : int, optional
        Threads of a rank, for the command, and for the cores that a rankfile binds it to.

    Raises
    ------
    MappingError
        An unknown launcher, ranks that leave their hosts, or a mapping that names no machine.
    ExportError
        `node` or `threads` for a format that has none.
    """
    if not isinstance(to, str):
        kind = kind_of(to) or "value"
        raise MappingError(f"{type(to).__name__}: a {kind}, where a launcher is expected")
    domains = read_binding(to, node, threads)
    machine = machine_of(mapping, machine)
    network = machine.network
    node_of = _read(mapping, network, None if form in TEXTS else form)
    called = str(out or "FILE")
    files: dict[Path, str] = {}
    extra: tuple[str, ...] = ()
    made_up = ""
    notes: tuple[str, ...] = ()
    if to in TEXTS:
        text, command = TEXTS[to](node_of, network), ""
    else:
        all_names = node_names(network)
        form_to = formats.get_launcher(to)
        own = to == "simgrid"  # whose platform has the nodes by these names
        if form_to.named and not own and not network.names and not machine.is_named:
            made_up = f"{all_names[0]} to {all_names[-1]}"
        launch = formats.Launch(node_of, network, all_names, called, threads, domains, made_up)
        launch = formats.place_on_hosts(form_to, launch)
        text = formats.write_launch(form_to, launch)
        command = formats.usage(form_to, launch)
        notes = tuple(formats.notes(form_to, launch))
        if needed := formats.companion(form_to, called):
            extra = (str(Path(called).with_name(needed)),)
        if out is not None:
            files = formats.companions(form_to, Path(out), launch)
    if out is not None:
        files = {Path(out): text, **files}
    for path, content in files.items():
        write_text(path, content)
    return Exported(text, to, command, tuple(files), extra, len(node_of), made_up, notes)


def read_binding(to: str, node: str | Path | None, threads: int | None) -> Sequence[Domain] | None:
    """Return what a node has; raise `ExportError` for what a format does not say of cores."""
    form = None if to in TEXTS else formats.get_launcher(to)
    if threads is not None and (form is None or not form.threaded):
        known = [each.name for each in formats.launchers() if each.threaded]
        raise ExportError(f"threads: {to} starts none: expected one of {', '.join(known)}")
    expect_between(ExportError, f"threads {threads}", threads or 1, 1, MOST_THREADS)
    if node is None:
        return None
    if form is None or not form.binds:
        known = [each.name for each in formats.launchers() if each.binds]
        raise ExportError(f"node: {to} binds no ranks to cores: expected {', '.join(known)}")
    return read_node(node)


def read_mapping(
    path: str | Path, machine: MachineLike | None = None, *, form: str | None = None
) -> Mapping:
    """Read a mapping: hopmap's CSV, MapLib's file, or a launcher's.

    Parameters
    ----------
    machine, form : see `export_mapping`

    Returns
    -------
    ndarray(int64, shape=(ranks,))
        Node of each rank.
    """
    return _read(path, machine_of(path, machine).network, form)


def write_mapping(
    path: str | Path, mapping: MappingLike, machine: MachineLike | None = None
) -> None:
    """Write a mapping as hopmap's CSV ``rank,node``, which names its topology.

    Raises
    ------
    MappingError
        No machine, and the mapping names none.
    OSError
        The file cannot be written.
    """
    export_mapping(mapping, "csv", machine, out=path)


def machine_of(mapping: MappingLike, machine: MachineLike | None) -> Machine:
    """Return the machine, its nodes called as it says, else as a file's comment does."""
    machine = on_network_of(mapping, Machine() if machine is None else Machine.of(machine))
    if machine.names is not None or not isinstance(mapping, str | Path):
        return machine
    commented = mapping_files.read_host_names(mapping)
    plain = replace(machine, hosts=None, nodelist=None).network
    if not commented or commented == node_names(plain):
        return machine
    check_names(commented, plain, f"{mapping!s}: {NODES}")
    named = replace(plain, names=tuple(commented))
    return replace(machine, topology=named, settings={}, failures=None)


def _read(mapping: MappingLike, network: Topology, form: str | None) -> Mapping:
    if isinstance(mapping, str | Path):
        hosts = network.names or None
        return mapping_files.read_mapping(mapping, network, form=form, hosts=hosts)
    return nodes_of_ranks(mapping, network, None)


def write_workload(workload: WorkloadLike, out: str | Path) -> Traffic:
    """Write a workload as an OTF2 archive of all its calls, or as traffic, by the end of the name.

    Parameters
    ----------
    workload : Workload, str, Path, Source, Trace, Folded, Program or Traffic
        Its `collectives` says what is counted as traffic.
    out : path
        A folder ending in .otf2, or a file of traffic; see ``hopmap list formats``.

    Returns
    -------
    Traffic
        What was written; of an archive, its messages outside of collectives.

    Raises
    ------
    TraceError
        A workload that cannot be read, or that has no calls for an archive.
    """
    workload, out = Workload.of(workload), Path(out)
    trace = workload.trace() if out.suffix == ".otf2" else None
    if trace is not None:
        write_trace(trace, out)
        return traffic_of(trace)
    traffic = workload.sent().traffic
    save_traffic(out, traffic)
    return traffic


def convert(
    workload: WorkloadLike,
    to: str,
    out: str | Path,
    *,
    machine: MachineLike | None = None,
    mapping: MappingLike | None = None,
    zone: str = "routes",
) -> Converted:
    """Write what is replayed as another simulator reads it, collectives as their messages.

    Parameters
    ----------
    to : {"simgrid", "goal"}
        SimGrid's time-independent traces, a folder; or GOAL, a file.
    machine : Machine, str or Topology, optional
        Of SimGrid; that of the mapping when left out. Its parameters count without a mapping, too.
    mapping : optional
        Of SimGrid: writes platform and hosts as well.
    zone : {"routes", "torus"}
        Of SimGrid's platform: hopmap's routes, or SimGrid's own torus.

    Returns
    -------
    Converted
        Ranks, and the command that replays it there.

    Raises
    ------
    ExportError
        Something that the format does not have.
    TraceError, TopologyError, MappingError, SettingError, ParameterError, OSError
        An input is invalid, or the target cannot be written.
    """
    from hopmap.simulator.run_plan import absorb

    out = Path(out)
    workload = Workload.of(workload)
    expect_one_of(ExportError, "unknown simulator", to, EXPORTS)
    if not EXPORTS[to].network and mapping is not None:
        raise ExportError(f"--mapping and --to {to} are mutually exclusive: it has no network")
    if mapping is None and zone != "routes":
        raise ExportError("--zone requires --mapping FILE")
    writer = WRITERS[to]
    if not writer.may_write(out):
        raise ExportError(f"--out {out}: expected a new folder, or one written by convert")
    machine = Machine() if machine is None else Machine.of(machine)
    if mapping is not None:
        machine = on_network_of(mapping, machine)
    elif machine.topology is None:
        machine = replace(machine, topology="mesh:1")
    program, parameters = workload.program(machine.parameters.algorithms), machine.parameters
    placed = None
    if mapping is not None:
        network, node_of = machine.network, machine.mapping(mapping, program.ranks)
        # The platform's names, not those that the network's file may have.
        names = [f"node{node}" for node in range(network.nodes)]
        hosts = formats.export_mapping("simgrid", node_of, network, names)
        placed = Placed(network, zone, hosts)
    command = writer.write(out, absorb(program, parameters), parameters, placed)
    return Converted(out, program.ranks, command)
