"""The network of a Slurm cluster, from its topology.conf or topology.yaml.

`tree`: every switch of the file is a switch, and hosts and switches below it have a link each way
to it; a tree whose switches of one level are alike becomes a fat tree of one parent, of any size,
others a graph. `block`: the hosts of a block are behind one switch, blocks that Slurm pairs behind
another, level by level as the block sizes say, and all behind one; Slurm says which hosts are
close, not by what cables. `ring`: a ring. `torus3d`: a torus, whose numbers are ours, x fastest.
LinkSpeed has no unit and is not used, as in Slurm itself. Node n of the topology is the n-th name
in `Topology.names`.

Sources: Slurm 26.11, topology.conf(5), topology.yaml(5), src/plugins/topology/torus3d.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from hopmap.topologies.families.graph import from_networkx
from hopmap.topologies.families.grid import torus
from hopmap.topologies.families.switched import fat_tree
from hopmap.topologies.topology import Topology, TopologyError

from .hosts import expand

if TYPE_CHECKING:
    import networkx as nx


class Part(NamedTuple):
    """A switch, block, ring or torus of the file; `where` is for messages."""

    name: str
    nodes: str
    switches: str
    where: str


def hosts_of(text: str, where: str) -> list[str]:
    """Expand a list of hosts; messages say where it stands."""
    try:
        return expand(text)
    except TopologyError as error:
        raise TopologyError(f"{where}: {error}") from None


def chosen(parts: list[Part], wanted: str, where: str) -> Part:
    """Return the ring or torus of that name, or the only one."""
    named = [part for part in parts if part.name == wanted]
    if (wanted and not named) or (not wanted and len(parts) > 1):
        names = ", ".join(part.name for part in parts)
        raise TopologyError(
            f"{where}: {len(parts)} networks without a link between them: expected file:PATH#NAME "
            f"with one of {names}"
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
    """Hierarchy of blocks, pairs of blocks, ..., by the ratios of the block sizes."""
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
    graph = switches_of(parts)
    tops = [("switch", part.name) for part in parts]
    for level, ratio in enumerate([*ratios, len(tops)]):
        if len(tops) > 1:
            groups = [tops[k : k + ratio] for k in range(0, len(tops), ratio)]
            tops = [("pair", f"{level}:{k}") for k in range(len(groups))]
            for top, group in zip(tops, groups, strict=True):
                graph.add_edges_from((top, child) for child in group)
    return tree(graph, spec)


def tree(graph: nx.DiGraph[Any], spec: str) -> Topology:
    """Fat tree of one parent where all switches of a level are alike, else a graph."""
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
    """Children of a switch, level by level from the hosts; None where a level's are not alike."""
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


def expect_distinct(names: Sequence[str], where: str) -> None:
    """Raise `TopologyError` for a host that is listed twice."""
    twice, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise TopologyError(f"{where}: node {twice} twice: expected once")
