"""The network of a Slurm cluster, from its topology.conf or topology.yaml.

topology.conf is one switch, block or ring a line. What ``scontrol show topology`` prints is read as
well: there a switch has a Level, one above others lists the hosts below them too, and a block has a
BlockIndex and its size. topology.yaml is several topologies by name, torus3d among them.

`tree`: every switch of the file is a switch, and hosts and switches below it have a link each way
to it; a tree whose switches of one level are equal becomes a fat tree of one parent, of any size,
others a graph. `block`: the hosts of a block are behind one switch, blocks that Slurm pairs behind
another, level by level as the block sizes say, and all behind one; Slurm says which hosts are
close, not by what cables. `ring`: a ring. `torus3d`: a torus: node k of it, or of a region of it,
is at x + X (y + Y z) = k, which is our numbering. LinkSpeed has no unit and is not used, as in
Slurm itself. Node n of the topology is the n-th name in `Topology.names`.

Sources: Slurm 26.11, topology.conf(5), topology.yaml(5), scontrol(1); src/common/parse_config.c for
what a line is, src/plugins/topology/tree/switch_record.c and block/block_record.c for what scontrol
prints, src/plugins/topology/torus3d.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from hopmap.errors import choice, needs
from hopmap.topologies.families.graph import from_networkx
from hopmap.topologies.families.grid import torus
from hopmap.topologies.families.switched import fat_tree
from hopmap.topologies.topology import Topology, TopologyError

from .hosts import LIMIT, expand, expect_distinct

if TYPE_CHECKING:
    import networkx as nx


def is_slurm_yaml(text: str) -> bool:
    """Whether a text looks like a topology.yaml."""
    return re.search(r"(?m)^\s*-?\s*topology\s*:", text) is not None


def from_slurm_yaml(text: str, spec: str, name: str = "") -> Topology:
    """Network of a topology.yaml: the topology of that name, or the ring or torus in one.

    Without a name, the topology with ``cluster_default: true``, or the first.
    """
    try:
        return _network(text, spec, name)
    except TopologyError:
        raise
    except ValueError as error:  # YAML can say whole numbers that Python does not print
        raise TopologyError(f"{spec}: {error}") from None


def _network(text: str, spec: str, part_name: str) -> Topology:
    with needs("slurm", "reading a topology.yaml"):
        import yaml

    try:
        document = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        reason = " ".join(str(error).split())[:120]
        raise TopologyError(f"{spec}: cannot be read as YAML ({reason})") from None
    topologies = [(_mapping(entry, spec, "topology"), entry) for entry in _list(document, spec)]
    named = [(name, entry) for name, entry in topologies if name == part_name]
    default = [(name, entry) for name, entry in topologies if entry.get("cluster_default") is True]
    inside = [(name, entry) for name, entry in topologies if part_name in _inner_names(entry)]
    taken = (named or inside) if part_name else (default or topologies)
    if not taken:
        names = [name for name, _ in topologies]
        raise TopologyError(choice(f"{spec}: no topology", part_name, names))
    name, entry = taken[0]
    where = f"{spec}: topology {name}"
    inner = "" if named else part_name
    if "tree" in entry:
        switches = _parts(entry["tree"], "switches", "switch", where)
        return tree(switches_of(switches), spec)
    if "block" in entry:
        blocks = _parts(entry["block"], "blocks", "block", where)
        sizes = _hosts_text(entry["block"].get("block_sizes"))
        return block(blocks, sizes.split(",") if sizes else [], spec)
    if "ring" in entry:
        return ring(choose_part(_parts(entry["ring"], "rings", "ring", where), inner, where), spec)
    if "torus3d" in entry:
        return _torus3d(entry["torus3d"], inner, where, spec)
    raise TopologyError(f"{where}: expected tree, block, ring or torus3d, which say who is close")


def _list(value: object, location: str) -> list[Any]:
    if not isinstance(value, list) or not value or not all(isinstance(e, dict) for e in value):
        raise TopologyError(f"{location}: expected a list of mappings, - key: value")
    return value


def _mapping(entry: Mapping[str, Any], location: str, key: str) -> str:
    """Name of an entry."""
    name = entry.get(key, entry.get("name"))
    if name is None or isinstance(name, list | dict):
        raise TopologyError(f"{location}: {str(entry)[:60]}: expected {key}: NAME")
    return str(name)


def _inner_names(entry: Mapping[str, Any]) -> list[str]:
    """Names of the rings or toruses of a topology."""
    names = []
    for outer, many, one in (("ring", "rings", "ring"), ("torus3d", "toruses", "name")):
        inside = entry.get(outer)
        listed = inside.get(many) if isinstance(inside, dict) else None
        for part in listed if isinstance(listed, list) else []:
            if isinstance(part, dict):
                names.append(str(part.get(one, part.get("name"))))
    return names


def _parts(value: object, many: str, one: str, location: str) -> list[Part]:
    """Read the switches, blocks or rings of a topology."""
    listed = value.get(many) if isinstance(value, dict) else None
    parts = []
    for entry in _list(listed, f"{location}: {many}"):
        name = _mapping(entry, f"{location}: {many}", one)
        nodes, switches = (_hosts_text(entry.get(key)) for key in ("nodes", "children"))
        parts.append(Part(name, nodes, switches, f"{location}: {one} {name}"))
    return parts


def _hosts_text(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value or "")


def _torus3d(value: object, name: str, location: str, spec: str) -> Topology:
    listed = value.get("toruses") if isinstance(value, dict) else None
    entries = _list(listed, f"{location}: toruses")
    parts = [Part(_mapping(e, f"{location}: toruses", "name"), "", "", location) for e in entries]
    entry = entries[parts.index(choose_part(parts, name, location))]
    location = f"{location}: torus {entry['name']}"
    dims = _triple(entry.get("dims"), 1, f"{location}: dims")
    count = dims[0] * dims[1] * dims[2]
    if count > LIMIT:
        raise TopologyError(f"{location}: {count} places: expected at most {LIMIT}")
    names = [""] * count
    regions = entry.get("regions")
    if regions is None:
        regions = [{**entry, "anchor": {"x": 0, "y": 0, "z": 0}}]
    for k, region in enumerate(_list(regions, f"{location}: regions")):
        here = location if entry.get("regions") is None else f"{location}: region {k}"
        _fill(names, dims, region, here)
    if "" in names:
        x, y, z = _place(names.index(""), dims)
        raise TopologyError(
            f"{location}: no node at ({x}, {y}, {z}): expected one at each of {count} places"
        )
    expect_distinct(names, location)
    return replace(torus(dims), spec=spec, names=tuple(names))


def _fill(names: list[str], dims: tuple[int, ...], region: Mapping[str, Any], where: str) -> None:
    """Put the nodes of a region, x fastest, to their places."""
    anchor = _triple(region.get("anchor"), 0, f"{where}: anchor")
    size = _triple(region.get("dims"), 1, f"{where}: dims")
    nodes = hosts_of(_hosts_text(region.get("nodes")), where)
    if len(nodes) != size[0] * size[1] * size[2]:
        raise TopologyError(
            f"{where}: {len(nodes)} nodes: expected {size[0]} x {size[1]} x {size[2]}"
        )
    for k, node in enumerate(nodes):
        at = [a + p for a, p in zip(anchor, _place(k, size), strict=True)]
        if any(a >= d for a, d in zip(at, dims, strict=True)):
            raise TopologyError(f"{where}: node {node} at {tuple(at)}: expected within {dims}")
        index = (at[2] * dims[1] + at[1]) * dims[0] + at[0]
        if names[index]:
            raise TopologyError(
                f"{where}: {node} and {names[index]} at {tuple(at)}: expected one node"
            )
        names[index] = node


def _place(index: int, dims: tuple[int, ...]) -> tuple[int, int, int]:
    return index % dims[0], index // dims[0] % dims[1], index // (dims[0] * dims[1])


def _triple(value: object, least: int, location: str) -> tuple[int, int, int]:
    """Read x, y and z."""
    values: list[Any] = [value.get(axis) for axis in "xyz"] if isinstance(value, dict) else []
    if not values or any(type(v) is not int or not least <= v <= 65535 for v in values):
        raise TopologyError(f"{location} {str(value)[:40]}: expected whole numbers x, y and z")
    return values[0], values[1], values[2]


_KEYS = {
    "switchname": ("switches", "nodes", "linkspeed", "level"),
    "blockname": ("nodes", "blockindex", "blocksize"),
    "ringname": ("nodes",),
    "blocksizes": (),
}
_PAIR = re.compile(r'(?<!\S)([\w.]+)\s*=\s*(?:"([^"]*)"|(\S+))(?:\s+|$)')


def is_slurm_conf(text: str) -> bool:
    """Whether a text looks like a topology.conf."""
    return re.search(rf"(?im)^\s*({'|'.join(_KEYS)})\s*=", text) is not None


def from_slurm_conf(text: str, spec: str, name: str = "") -> Topology:
    """Network of a topology.conf, of several rings the one of that name."""
    parts: dict[str, list[Part]] = {}
    above: list[Part] = []
    sizes = ""
    for number, line in _lines(text):
        where = f"{spec}: line {number}"
        pairs = _PAIR.findall(line)
        fields = {key.lower(): quoted or plain for key, quoted, plain in pairs}
        kind = next(iter(fields), "")
        known = _KEYS.get(kind, ())
        wrong = [key for key in list(fields)[1:] if key not in known] or _PAIR.sub("", line)
        if kind not in _KEYS or wrong or len(fields) != len(pairs) or not all(fields.values()):
            raise TopologyError(
                f"{where} is {line.strip()[:60]!r}: expected SwitchName=, BlockName= or RingName= "
                f"with Nodes= or Switches=, or BlockSizes="
            )
        if kind == "blocksizes":
            sizes = fields[kind]
            continue
        nodes, switches = fields.get("nodes", ""), fields.get("switches", "")
        if fields.get("level", "0") != "0" and not switches:
            raise TopologyError(
                f"{where}: Level={fields['level']} without Switches=: expected the whole output of "
                f"scontrol show topology"
            )
        if "level" in fields and switches:  # as scontrol prints it
            above.append(Part(fields[kind], nodes, switches, where))
            nodes = ""
        part = Part(fields[kind], nodes, switches, where)
        parts.setdefault(kind, []).append(part)
    if len(parts) != 1 or (sizes and "blockname" not in parts):
        found = ", ".join(sorted(parts)) or "none of them"
        raise TopologyError(f"{spec}: {found}: expected switches, blocks or rings, and only one")
    ((kind, entries),) = parts.items()
    if name and kind != "ringname":
        raise TopologyError(f"{spec}: #{name} requires a file of several rings")
    if kind == "switchname":
        graph = switches_of(entries)
        expect_below(graph, above)
        return tree(graph, spec)
    if kind == "blockname":
        return block(entries, re.split(r",\s*", sizes) if sizes else [], spec)
    return ring(choose_part(entries, name, spec), spec)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines that say something, without comments; one that ends in a backslash goes on."""
    begun, first = "", 0
    for number, line in enumerate([*text.splitlines(), ""], 1):
        said = line.partition("#")[0].rstrip()
        first = first or number
        if said.endswith("\\"):
            begun += said[:-1]
            continue
        if (begun + said).strip():
            yield first, (begun + said).strip()
        begun, first = "", 0


class Part(NamedTuple):
    """A switch, block, ring or torus of the file; `where` is for messages."""

    name: str
    nodes: str
    switches: str
    where: str


def hosts_of(text: str, location: str) -> list[str]:
    """Expand a list of hosts; messages say where it stands."""
    try:
        return expand(text)
    except TopologyError as error:
        raise TopologyError(f"{location}: {error}") from None


def choose_part(parts: list[Part], name: str, location: str) -> Part:
    """Return the ring or torus of that name, or the only one."""
    named = [part for part in parts if part.name == name]
    if (name and not named) or (not name and len(parts) > 1):
        names = ", ".join(part.name for part in parts)
        raise TopologyError(
            f"{location}: {len(parts)} networks without a link between them: expected "
            f"file:PATH#NAME with one of {names}"
        )
    return (named or parts)[0]


def switches_of(parts: Iterable[Part]) -> nx.DiGraph[str]:
    """Return what is below what; vertices are ("switch", name) and ("host", name)."""
    import networkx as nx

    graph: nx.DiGraph[str] = nx.DiGraph()
    for part in parts:
        if graph.nodes.get(("switch", part.name), {}).get("listed"):
            raise TopologyError(f"{part.where}: listed twice: expected once")
        graph.add_node(("switch", part.name), listed=True, where=part.where)
        below = (
            [("switch", s) for s in hosts_of(part.switches, part.where)] if part.switches else []
        )
        below += [("host", n) for n in hosts_of(part.nodes, part.where)] if part.nodes else []
        if not below:
            raise TopologyError(f"{part.where}: nothing below it: expected Nodes or Switches")
        graph.add_edges_from((("switch", part.name), child) for child in below)
    for kind, name in graph:
        if kind == "switch" and not graph.nodes[kind, name].get("listed"):
            above = next(graph.predecessors((kind, name)))
            raise TopologyError(
                f"{graph.nodes[above]['where']}: there is no switch {name!r}: expected one"
            )
    return graph


def expect_below(graph: nx.DiGraph[str], parts: Iterable[Part]) -> None:
    """Raise `TopologyError` where a switch names other hosts than the switches below it have."""
    import networkx as nx

    for part in parts:
        below = {v[1] for v in nx.descendants(graph, ("switch", part.name)) if v[0] == "host"}
        named = set(hosts_of(part.nodes, part.where)) if part.nodes else below
        for host in sorted(named ^ below)[:1]:
            where = "is not below" if host in named else "is below, but not named by,"
            raise TopologyError(
                f"{part.where}: host {host!r} {where} switch {part.name!r}: expected the whole "
                f"output of scontrol show topology"
            )


def block(parts: list[Part], sizes: Sequence[str], spec: str) -> Topology:
    """Hierarchy of blocks, pairs of blocks, ..., by the ratios of the block sizes.

    Blocks without nodes, with which topograph fills groups up, only keep their place.
    """
    if not all(re.fullmatch(r"\d{1,9}", size) and int(size) for size in sizes):
        raise TopologyError(f"{spec}: block sizes {','.join(sizes)}: expected whole numbers")
    counts = [int(size) for size in sizes]
    ratios = []
    for low, high in pairwise(counts):
        ratios.append(high // low)
        if high % low or ratios[-1] < 2 or ratios[-1] & (ratios[-1] - 1):
            raise TopologyError(
                f"{spec}: block sizes {low}, {high}: expected each a power of two larger"
            )
    graph = switches_of(part for part in parts if part.nodes or part.switches)
    if not graph:
        raise TopologyError(f"{spec}: no block has nodes: expected at least one")
    tops = [[("switch", part.name)] if part.nodes or part.switches else [] for part in parts]
    for level, ratio in enumerate([*ratios, len(tops)]):
        if len(tops) > 1:
            groups = [list(chain(*tops[k : k + ratio])) for k in range(0, len(tops), ratio)]
            tops = [[("pair", f"{level}:{k}")] if group else [] for k, group in enumerate(groups)]
            for top, group in zip(tops, groups, strict=True):
                graph.add_edges_from((*top, child) for child in group)
    return tree(graph, spec)


def tree(graph: nx.DiGraph[Any], spec: str) -> Topology:
    """Fat tree of one parent where all switches of a level are equal, else a graph."""
    import networkx as nx

    if not nx.is_directed_acyclic_graph(graph):
        raise TopologyError(f"{spec}: a switch is below itself: expected a hierarchy")
    roots = [v for v in graph if not graph.in_degree(v)]
    order = list(dict.fromkeys(v for root in roots for v in nx.dfs_preorder_nodes(graph, root)))
    hosts = [v for v in order if v[0] == "host"]
    for host in hosts:
        if graph.in_degree(host) > 1:  # the graph's routes would lead through it
            one, other = [above[1] for above in graph.predecessors(host)][:2]
            raise TopologyError(
                f"{spec}: host {host[1]!r} is below switches {one!r} and {other!r}: expected one"
            )
    names = tuple(name for _, name in hosts)
    if nx.is_arborescence(graph):
        sizes = _levels(graph, order)
        if sizes is not None:
            return replace(fat_tree(sizes, [1] * len(sizes)), spec=spec, names=names)
    if not nx.is_weakly_connected(graph):
        one, other = (root[1] for root in roots[:2])
        raise TopologyError(
            f"{spec}: nothing joins {one!r} and {other!r}: expected switches with one fabric"
        )
    network = graph.to_undirected()
    plain: nx.Graph[Any] = nx.Graph()
    plain.add_nodes_from((v, {"host": v[0] == "host"}) for v in order)
    plain.add_edges_from(network.edges())
    return replace(from_networkx(plain, spec), names=names)


def _levels(graph: nx.DiGraph[Any], order: list[Any]) -> list[int] | None:
    """Children of a switch, level by level from the hosts; None where a level's differ."""
    below: dict[Any, tuple[int, ...]] = {}
    for vertex in reversed(order):
        shapes = {below[child] for child in graph.successors(vertex)}
        if len(shapes) > 1:
            return None
        below[vertex] = (*shapes.pop(), graph.out_degree(vertex)) if shapes else ()
    return list(below[order[0]])


def ring(part: Part, spec: str) -> Topology:
    """Ring of the hosts of a part, in their order."""
    names = hosts_of(part.nodes, part.where)
    expect_distinct(names, part.where)
    return replace(torus([len(names)]), spec=spec, names=tuple(names))
