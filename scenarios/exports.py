"""Mappings and programs for other tools, and mappings read back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from hopmap.errors import HopmapError, choice
from hopmap.simulator.export import EXPORTS, Placed
from hopmap.topologies import Mapping, Topology
from hopmap.traces.safety.atomic_files import replacing

from .given import (
    Given,
    GivenMapping,
    GivenSettings,
    GivenTopology,
    ReplayInput,
    mapping_given,
    replay_given,
)
from .given import (
    topology as built,
)
from .launchers import formats, mapping_files
from .launchers.coordinates import maplib_text
from .launchers.launcher import NODES
from .launchers.node_names import check_names, node_names, on_job
from .mistaken import MAPPING, expect
from .placement import Placement

TEXTS = {"csv": mapping_files.mapping_text, "maplib": maplib_text}


class ExportError(HopmapError, ValueError):
    """What was asked for cannot be written so."""


class Exported(NamedTuple):
    """A mapping as a launcher reads it.

    Attributes
    ----------
    text : str
    command : str
        Which uses the file; empty for hopmap's own format.
    files : tuple of Path
        That were written.
    beside : tuple of str
        Names of the files that the launcher needs beside this one.
    ranks : int
    made_up : str
        Names of nodes in it that nobody gave, node0 to node15; "" where there are none.
    """

    text: str
    command: str
    files: tuple[Path, ...]
    beside: tuple[str, ...]
    ranks: int
    made_up: str


class Converted(NamedTuple):
    """A program as another simulator reads it: its ranks, and the command that replays it."""

    ranks: int
    command: str


def export_mapping(
    mapping: GivenMapping,
    to: str,
    topology: GivenTopology | None = None,
    *,
    out: str | Path | None = None,
    form: str | None = None,
    names: str | Path | None = None,
    hosts: str | Path | None = None,
    nodelist: str | None = None,
) -> Exported:
    """Write a mapping as a launcher reads it, from any format.

    Parameters
    ----------
    mapping : file, array or Placement
    to : str
        A launcher, "csv" or "maplib"; see ``hopmap list formats``.
    topology : str or Topology, optional
        If the mapping does not name it.
    out : path, optional
        File to write; only the text is returned when left out.
    form : str, optional
        Launcher whose file `mapping` is, if it does not show that.
    names : path or str, optional
        What all nodes of the machine are called; see `map_ranks`.
    hosts, nodelist : optional
        The nodes that the job has, which no rank may leave; see `map_ranks`.

    Raises
    ------
    MappingError, TopologyError
        Unknown launcher, or what is given does not fit.
    OSError
        The file cannot be written.
    """
    network = _on_job(mapping, topology, names, hosts, nodelist)
    node_of = _read(mapping, network, None if form in TEXTS else form)
    called = str(out or "FILE")
    files: dict[Path, str] = {}
    beside: tuple[str, ...] = ()
    made_up = ""
    if to in TEXTS:
        text, command = TEXTS[to](node_of, network), ""
    else:
        all_names = node_names(network)
        text = formats.export_mapping(to, node_of, network, all_names, called)
        form_to = formats.launcher_named(to)
        command = formats.usage(form_to, node_of, called, all_names)
        own = to == "simgrid"  # whose platform has the nodes by these names
        if form_to.named and not own and not network.names:
            made_up = f"{all_names[0]} to {all_names[-1]}"
        if needed := formats.companion(form_to, called):
            beside = (str(Path(called).with_name(needed)),)
        if out is not None:
            files = formats.companions(form_to, Path(out), network, all_names)
    if out is not None:
        files = {Path(out): text, **files}
    for path, content in files.items():
        with replacing(path) as partial:
            partial.write_text(content, encoding="utf-8")
    return Exported(text, command, tuple(files), beside, len(node_of), made_up)


def read_mapping(
    path: str | Path,
    topology: GivenTopology | None = None,
    *,
    form: str | None = None,
    names: str | Path | None = None,
    hosts: str | Path | None = None,
    nodelist: str | None = None,
) -> Mapping:
    """Read a mapping: hopmap's CSV, MapLib's file, or a launcher's.

    Parameters
    ----------
    topology, form, names, hosts, nodelist : see `export_mapping`

    Returns
    -------
    ndarray(int64, shape=(ranks,))
        Node of each rank.

    Raises
    ------
    MappingError
        Unreadable or foreign file, or one that does not fit.
    """
    return _read(path, _on_job(path, topology, names, hosts, nodelist), form)


def write_mapping(
    path: str | Path, mapping: GivenMapping, topology: GivenTopology | None = None
) -> None:
    """Write a mapping as hopmap's CSV ``rank,node``, which names its topology.

    Raises
    ------
    MappingError
        No topology: neither given nor the mapping's own.
    OSError
        The file cannot be written.
    """
    export_mapping(mapping, "csv", topology, out=path)


def _network(mapping: GivenMapping, topology: GivenTopology | None) -> Topology:
    expect(MAPPING, mapping)
    if topology is not None:
        return built(topology)
    if isinstance(mapping, Placement):
        return mapping.topology
    if isinstance(mapping, str | Path):
        return mapping_files.network_of(mapping, None)
    raise ExportError("topology: expected one, an array does not name its own")


def _on_job(
    mapping: GivenMapping,
    topology: GivenTopology | None,
    names: str | Path | None,
    hosts: str | Path | None,
    nodelist: str | None,
) -> Topology:
    """Return the network, its nodes called as told, else as a file's comment calls them."""
    network = _network(mapping, topology)
    commented = None
    if names is None and isinstance(mapping, str | Path):
        commented = mapping_files.named_hosts(mapping)
    if commented and commented != node_names(network):
        check_names(commented, network, f"{mapping!s}: {NODES}")
        network = replace(network, names=tuple(commented))
    return on_job(network, names, hosts, nodelist)


def _read(mapping: GivenMapping, network: Topology, form: str | None) -> Mapping:
    if isinstance(mapping, str | Path):
        hosts = network.names or None
        return mapping_files.read_mapping(mapping, network, form=form, hosts=hosts)
    return mapping_given(mapping, network, None)


def convert(
    given: Given,
    to: str,
    out: str | Path,
    *,
    mapping: GivenMapping | None = None,
    topology: GivenTopology | None = None,
    zone: str = "routes",
    settings: GivenSettings = None,
    steps: int | None = None,
    rounds: int | None = None,
) -> Converted:
    """Write what is replayed as another simulator reads it, collectives as their messages.

    Parameters
    ----------
    to : {"simgrid", "goal"}
        SimGrid's time-independent traces, a folder; or GOAL, a file.
    mapping, topology : optional
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
        What is given makes no sense, or the place cannot be written.
    """
    from hopmap.simulator.run_plan import computed

    out = Path(out)
    if to not in EXPORTS:
        raise ExportError(choice("unknown simulator", to, EXPORTS))
    export = EXPORTS[to]
    if not export.network and (mapping is not None or topology is not None):
        raise ExportError(f"--mapping, --topology: expected neither, {to} has no network")
    if export.network and mapping is None and (topology is not None or zone != "routes"):
        option = "--topology" if topology is not None else "--zone"
        raise ExportError(f"{option}: expected --mapping FILE as well")
    writer = export.load()
    if not writer.may_write(out):
        raise ExportError(f"--out {out}: expected a new folder, or one written by convert")
    network = "mesh:1" if mapping is None else _network(mapping, topology)
    run = replay_given(given, network, settings=settings, steps=steps, rounds=rounds)
    placed = None if mapping is None else _placed(run, mapping, zone)
    command = writer.write(out, computed(run.program, run.parameters), run.parameters, placed)
    return Converted(run.program.ranks, command)


def _placed(run: ReplayInput, mapping: GivenMapping, zone: str) -> Placed:
    network = run.network
    node_of = mapping_given(mapping, network, run.program.ranks)
    # The platform's names, not those that the network's file may have.
    names = [f"node{node}" for node in range(network.nodes)]
    return Placed(network, zone, formats.export_mapping("simgrid", node_of, network, names))
