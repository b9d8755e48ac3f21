"""Networks of files: what is in a file decides how it is read, not its name.

``file:PATH``, or ``file:PATH#NAME`` for one of several networks of a Slurm file, which may be
followed by ``*S`` for S slots a node: files in XML say how many there are, the others do not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hopmap.errors import expect_one_of
from hopmap.topologies.families.hierarchy import tree
from hopmap.topologies.families.switched import from_leaves
from hopmap.topologies.topology import Topology, TopologyError, check_size

if TYPE_CHECKING:
    from xml.etree import ElementTree

# What `hopmap list formats` prints.
NETWORK_FORMATS: Mapping[str, str] = {
    "GraphML": "any connected graph, of networkx and others",
    "hwloc XML": "cores of a machine: lstopo machine.xml",
    "SimGrid platform": "XML; clusters, tori, fat trees, zones of routes",
    "node table": "lines of NODE n ... CELL c ... SWITCH s: a Dragonfly+",
    "ibnetdiscover": "InfiniBand, what it prints: fat trees, other fabrics",
    "Slingshot": "lines of HOST ADDRESS or HOST XNAME: a dragonfly",
    "topograph JSON": "NVIDIA topograph's graph: tree",
    "scontrol show topology": "Slurm, what it prints: tree, block",
    "SLURM_TOPOLOGY_ADDR": "Slurm, what nodes of a job have in it, a line each: tree",
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


def read_bytes(file: Path, name: str) -> bytes:
    """Return what is in a file that is not too large; `name` is for messages."""
    try:
        with file.open("rb") as stream:
            content = stream.read(LARGEST + 1)
    except OSError as error:
        raise TopologyError(f"{name}: cannot be read ({error.strerror})") from None
    if len(content) > LARGEST:
        raise TopologyError(f"{name}: more than {LARGEST >> 20} MiB: expected less")
    return content


def xml_root(content: bytes, name: str) -> ElementTree.Element:
    """Return the outermost element of an XML document; `name` is for messages."""
    from xml.etree import ElementTree

    try:
        return ElementTree.fromstring(content)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise TopologyError(f"{name}: cannot be read as XML ({error})") from None


def from_file(path: str) -> Topology:
    """Network of a file: GraphML, hwloc's XML, SimGrid's platform, Slurm's topology files."""
    # Imported here: what they import takes a tenth of a second, and few commands name a file.
    from hopmap.topologies.families.graph import from_graphml

    from .infiniband import from_ibnetdiscover, is_ibnetdiscover
    from .simgrid import from_platform
    from .slingshot import from_slingshot, is_slingshot
    from .slurm import from_slurm_conf, from_slurm_yaml, is_slurm_conf, is_slurm_yaml
    from .slurm_addresses import from_slurm_addresses, is_slurm_addresses
    from .topograph import from_topograph, is_topograph

    of_xml = {"graphml": from_graphml, "topology": from_hwloc, "platform": from_platform}
    spec = f"file:{path}"
    plain, slots = _without_slots(path)
    file, wanted = file_and_name(path)
    content = read_bytes(file, spec)
    text = content.decode("utf-8-sig", errors="replace")
    if not text.lstrip().startswith("<"):
        for known, read in (
            (is_node_table, from_node_table),
            (is_ibnetdiscover, from_ibnetdiscover),
            (is_topograph, from_topograph),
            (is_slurm_conf, from_slurm_conf),
            (is_slurm_yaml, from_slurm_yaml),
            (is_slingshot, from_slingshot),
            (is_slurm_addresses, from_slurm_addresses),
        ):
            if known(text):
                return _with_slots(read(text, spec, wanted), slots or 1)
    elif wanted:
        raise TopologyError(f"{spec}: #{wanted} requires a file of Slurm's")
    else:
        root = xml_root(content, spec)
        tag = re.sub(r"\{.*\}", "", root.tag)
        expect_one_of(TopologyError, f"{spec}: root element", tag, of_xml)
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
    return replace(topology, slots=topology.slots * slots)


def from_hwloc(root: ElementTree.Element, spec: str) -> Topology:
    """Hierarchy of the cores of one machine, from hwloc's XML: ``lstopo machine.xml``.

    Cores are the nodes. Every object that holds more than one part with cores in it (machine,
    package, die, NUMA node, shared cache, group) is a level; caches and packages of one part are
    none, and neither are memory and devices. Distances are 1, 10, 100, ... from the innermost
    level: the file says nothing of them. Source: hwloc's XML format, versions 1 and 2, which differ
    in names and in where memory stands.
    """
    try:
        sizes = _sizes(root, spec)
    except RecursionError:
        raise TopologyError(f"{spec}: nested too deep: expected hwloc's XML") from None
    if sizes is None:
        raise TopologyError(f"{spec}: no objects of type Core: expected hwloc's XML with cores")
    return replace(tree([size for size in reversed(sizes) if size > 1] or [1]), spec=spec)


def _sizes(element: ElementTree.Element, spec: str) -> tuple[int, ...] | None:
    """Return the parts that hold cores, level by level from the outermost; None without cores."""
    if element.get("type") == "Core":
        return ()
    parts = [_sizes(child, spec) for child in element.findall("object")]
    held = [sizes for sizes in parts if sizes is not None]
    if not held:
        return None
    if len(set(held)) > 1:
        name = f"{element.get('type', element.tag)} {element.get('os_index', '')}".strip()
        raise TopologyError(f"{spec}: the parts of {name} differ: expected equal parts")
    return (len(held), *held[0])


_NEEDED = ("NODE", "CELL", "SWITCH")


def is_node_table(text: str) -> bool:
    """Whether a text begins like a table of nodes."""
    return re.match(r"\s*NODE\s+\S+\s+\S+\s+\S", text) is not None


def from_node_table(text: str, spec: str, per_cell: str = "") -> Topology:
    """Dragonfly+ of a table of nodes with their cell and leaf switch, as sites publish them.

    A line a node, words in pairs: ``NODE 0001 RACK 1 CELL 1 ROW 1 PARTITION 1 SWITCH 10100``, as of
    Leonardo (HLC-Lab/pico). A switch is a leaf of its cell. The table does not say how many spines
    a cell has: as many as leaves in most of the cells, as where a leaf has a link to every spine
    and cells are cabled the same way (Leonardo: 18 and 18). `per_cell` is another number.
    """
    if per_cell and not re.fullmatch(r"[1-9]\d{0,4}", per_cell):
        raise TopologyError(f"{spec}: #{per_cell}: expected the number of spines a cell, like #18")
    node_of: dict[str, tuple[str, str]] = {}  # cell, switch
    cell_of: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words:
            continue
        fields = dict(zip(words[::2], words[1::2], strict=False))
        if len(words) % 2 or not fields.keys() >= set(_NEEDED):
            raise TopologyError(
                f"{spec}: line {number} is {line.strip()[:60]!r}: expected pairs of words with "
                f"{', '.join(_NEEDED)}"
            )
        node, cell, switch = (fields[key] for key in _NEEDED)
        if node in node_of:
            raise TopologyError(f"{spec}: line {number}: node {node} twice: expected once")
        if cell_of.setdefault(switch, cell) != cell:
            raise TopologyError(
                f"{spec}: line {number}: switch {switch} in cell {cell} and in {cell_of[switch]}: "
                f"expected one"
            )
        node_of[node] = (cell, switch)
    cells = list(dict.fromkeys(cell for cell, _ in node_of.values()))
    leaves = sorted(dict.fromkeys(cell_of), key=lambda switch: cells.index(cell_of[switch]))
    place = {switch: leaf for leaf, switch in enumerate(leaves)}
    of_cell = Counter(cells.index(cell_of[switch]) for switch in leaves)
    spines = int(per_cell or Counter(of_cell.values()).most_common(1)[0][0])
    network = from_leaves(
        [place[switch] for _, switch in node_of.values()],
        [cells.index(cell_of[switch]) for switch in leaves],
        spines,
        spec=spec,
    )
    return replace(network, names=tuple(node_of))
