"""Networks of files: what is in a file decides how it is read, not its name.

``file:PATH``, or ``file:PATH#NAME`` for one of several networks of a Slurm file, which may be
followed by ``*S`` for S slots a node: Slurm's files say nothing of cores, the others do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from hopmap.errors import choice
from hopmap.topologies.topology import Topology, TopologyError, check_size

# What `hopmap list formats` prints.
NETWORK_FORMATS: Mapping[str, str] = {
    "GraphML": "any connected graph, of networkx and others",
    "hwloc XML": "cores of a machine: lstopo machine.xml",
    "SimGrid platform": "XML; clusters, tori, fat trees, zones of routes",
    "node table": "lines of NODE n ... CELL c ... SWITCH s: a Dragonfly+",
    "scontrol show topology": "Slurm, what it prints: tree, block",
    "topology.conf": "Slurm: tree, block, ring",
    "topology.yaml": "Slurm: tree, block, ring, torus3d",
}
LARGEST = 2**27  # bytes


def file_and_name(path: str) -> tuple[Path, str]:
    """File and name of PATH#NAME*S; a file that is there under the whole word has no name."""
    word, _ = _without_slots(path)
    file, _, name = word.rpartition("#")
    return (Path(word), "") if Path(word).exists() or not file else (Path(file), name)


def _without_slots(path: str) -> tuple[str, int | None]:
    """Split PATH*S; a file that is there under the whole word has no slots behind it."""
    match = re.fullmatch(r"(.+)\*([1-9]\d{0,8})", path)
    return (match[1], int(match[2])) if match and not Path(path).exists() else (path, None)


def from_file(path: str) -> Topology:
    """Network of a file: GraphML, hwloc's XML, SimGrid's platform, Slurm's topology files.

    Raises
    ------
    TopologyError
        No such file, none of these, or one that its reader refuses.
    """
    from xml.etree import ElementTree

    # Imported here: what they import takes a tenth of a second, and few commands name a file.
    from hopmap.topologies.families.graph import from_graphml

    from .hwloc import from_hwloc
    from .node_table import from_node_table, is_node_table
    from .simgrid_platform import from_platform
    from .slurm_conf import from_slurm_conf, is_slurm_conf
    from .slurm_yaml import from_slurm_yaml, is_slurm_yaml

    of_xml = {"graphml": from_graphml, "topology": from_hwloc, "platform": from_platform}
    spec = f"file:{path}"
    plain, slots = _without_slots(path)
    file, wanted = file_and_name(path)
    try:
        with file.open("rb") as stream:
            content = stream.read(LARGEST + 1)
        text = content.decode("utf-8-sig", errors="replace")
    except OSError as error:
        raise TopologyError(f"{spec}: cannot be read ({error.strerror})") from None
    if len(content) > LARGEST:
        raise TopologyError(f"{spec}: more than {LARGEST >> 20} MiB: expected less")
    if not text.lstrip().startswith("<"):
        for known, read in (
            (is_node_table, from_node_table),
            (is_slurm_conf, from_slurm_conf),
            (is_slurm_yaml, from_slurm_yaml),
        ):
            if known(text):
                return _with_slots(read(text, spec, wanted), slots or 1)
    elif wanted:
        raise TopologyError(f"{spec}: #{wanted}: expected that of Slurm's files only")
    else:
        try:
            root = ElementTree.fromstring(content)
        except (ElementTree.ParseError, ValueError, LookupError) as error:
            raise TopologyError(f"{spec}: cannot be read as XML ({error})") from None
        tag = re.sub(r"\{.*\}", "", root.tag)
        if tag not in of_xml:
            raise TopologyError(choice(f"{spec}: root element", tag, of_xml))
        if slots is not None:
            raise TopologyError(
                f"{spec}: *{slots} is for Slurm's files, others say slots themselves (GraphML: the "
                f"attribute slots of a node, SimGrid: core of a host): expected file:{plain}"
            )
        return of_xml[tag](root, spec)
    raise TopologyError(f"{spec}: expected one of {', '.join(NETWORK_FORMATS)}")


def _with_slots(topology: Topology, slots: int) -> Topology:
    nodes = topology.nodes
    check_size(topology.spec, nodes=nodes, links=topology.links, slots=nodes * slots)
    return replace(topology, slots=np.full(nodes, slots, dtype=np.int64))
