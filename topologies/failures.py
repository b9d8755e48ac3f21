"""Networks with links and nodes that are down, and links that are degraded.

Items, with commas between them, or one a line of a file, where ``#`` begins a comment:

    link=3-4        the cable between vertices 3 and 4, both ways; s2 is switch 2
    link=3>4        one way only
    link=3-4*0.5    degraded to half of its bandwidth
    node=12         no ranks there; its router still passes on what comes by
    links=3, nodes=1, degraded=2, factor=0.5, seed=0     so many, drawn; factor of the degraded

Of several cables between two vertices one fails for each item. Links that are drawn cut no node
off: those that would stay. Routes that met a link that is down take the shortest way round, of
several that to the lowest vertex first; all others stay as they are. ``failed:ITEMS@SPEC`` is such
a network.

Finding the routes that are met costs nodes^2 walks (0.1 s for 512 nodes), the ways round a search
for every target; what is kept are the routes that changed. So nodes are limited.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from zlib import crc32

import numpy as np

from hopmap.arrays import Bools, Floats, Ints, Ints32, equals_before

from .topology import LinkKind, Topology, TopologyError

MOST = 2**13  # nodes, of whose pairs all routes are walked
LINK = re.compile(r"(s?\d{1,9})([->])(s?\d{1,9})(?:\*(\S+))?")
DRAWN = {"links": 0, "nodes": 0, "degraded": 0, "seed": 0}
EXPECTED = (
    "link=3-4 (both ways), link=3>4, link=3-4*0.5, node=12, links=3, nodes=1, degraded=2, "
    "factor=0.5, seed=0"
)


def apply_failures(items: str, machine: str, build: Callable[[str], Topology]) -> Topology:
    """Network of a machine with links and nodes down, others degraded; routes go round them."""
    return with_failures(build(machine), items)


def with_failures(topology: Topology, items: str) -> Topology:
    """Return a network without the links that are down; its spec is "failed:ITEMS@SPEC".

    Items are as the top of this file says, or the path of a file with them; `TopologyError` names
    one that is not there.
    """
    written, where = _read_items(items)
    damage = _Damage(topology, where)
    damage.enter(written)
    slots = topology.slots.copy()
    slots[damage.nodes] = 0
    if not slots.any():
        raise TopologyError(
            f"{where}: no node is left that ranks can sit on: expected one at least"
        )
    spec = f"failed:{','.join(written)}@{topology.spec}"
    network = degrade(replace(topology, spec=spec, slots=slots), damage.share)
    return reroute(network, damage.down, where) if damage.down.any() else network


def _read_items(items: str) -> tuple[list[str], str]:
    """Return the items, and what to call the text that they are from."""
    path, where = Path(items), f"failures {items[:60]}"
    if "=" not in items:
        where = items
        try:
            items = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is no text"
            raise TopologyError(
                f"{where}: cannot be read ({reason}): expected a file, or {EXPECTED}"
            ) from None
    lines = (line.partition("#")[0] for line in items.splitlines())
    parts = (item for line in lines for item in line.split(","))
    found = ["".join(item.split()) for item in parts if item.strip()]
    return found, where


class _Damage:
    """What has failed: links that are down, what is left of each link's bandwidth, nodes."""

    def __init__(self, topology: Topology, location: str) -> None:
        self.topology, self.where = topology, location
        self.cables = _cables(topology)
        self.down, self.share = np.zeros(topology.links, np.bool_), np.ones(topology.links)
        self.nodes: list[int] = []

    def enter(self, items: Sequence[str]) -> None:
        """Let all that is listed fail, then what is drawn."""
        drawn, factor = dict(DRAWN), 0.5
        for item in items:
            key, _, value = item.partition("=")
            where = f"{self.where}: {item}"
            if key == "link" and (match := LINK.fullmatch(value)):
                self._take(match, where)
            elif key == "node":
                self.nodes.append(_vertex(self.topology, value, where, most=self.topology.nodes))
            elif key in DRAWN and re.fullmatch(r"\d{1,9}", value):
                drawn[key] = int(value)
            elif key == "factor":
                factor = _share(value, where)
            else:
                raise TopologyError(f"{self.where}: {item[:60]!r}: expected {EXPECTED}")
        self._draw(drawn, factor)

    def _take(self, match: re.Match[str], location: str) -> None:
        """Let the first cable between two vertices fail that has not, or be degraded."""
        topology = self.topology
        one, other = (_vertex(topology, match[place], location) for place in (1, 3))
        wanted = {(one, other), (other, one)} if match[2] == "-" else {(one, other)}
        for cable in self.cables.tolist():
            chosen = [
                link
                for link in cable
                if link >= 0 and (topology.link_from[link], topology.link_to[link]) in wanted
            ]
            if chosen and not self._has_failed(chosen):
                if match[4] is None:
                    self.down[chosen] = True
                else:
                    self.share[chosen] = _share(match[4], location)
                return
        raise TopologyError(f"{location}: no such link, or none that has not failed: expected one")

    def _has_failed(self, links: Sequence[int] | Ints) -> bool:
        return bool(self.down[links].any() or (self.share[links] < 1).any())

    def _draw(self, drawn: dict[str, int], factor: float) -> None:
        """Draw cables and nodes that have not failed, and no cable whose loss cuts a node off."""
        rng = np.random.default_rng(np.random.SeedSequence([drawn["seed"], crc32(b"failures")]))
        rest = {"links": drawn["links"], "degraded": drawn["degraded"]}
        for cable in self.cables[rng.permutation(len(self.cables))]:
            links = cable[cable >= 0]
            if self._has_failed(links):
                continue
            if rest["links"]:
                self.down[links] = True
                if _find_cut_off(self.topology, self.down) is None:
                    rest["links"] -= 1
                    continue
                self.down[links] = False
            if rest["degraded"]:
                self.share[links] = factor
                rest["degraded"] -= 1
            if not any(rest.values()):
                break
        free = np.setdiff1d(np.flatnonzero(self.topology.slots), self.nodes)
        rest["nodes"] = max(0, drawn["nodes"] - len(free))
        for key, missing in rest.items():
            if missing:
                raise TopologyError(
                    f"{self.where}: {key}={drawn[key]}: expected at most {drawn[key] - missing} on "
                    f"{self.topology.spec}, others would cut nodes off or have failed"
                )
        self.nodes.extend(rng.permutation(free)[: drawn["nodes"]].tolist())


def _cables(topology: Topology) -> Ints:
    """Both links of every cable, shape (cables, 2); -1 where a link has none that comes back.

    Between two vertices the k-th link there and the k-th one back are a cable.
    """
    ends = np.stack((topology.link_from, topology.link_to)).astype(np.int64)
    low, high = ends.min(axis=0), ends.max(axis=0)
    back = ends[0] > ends[1]
    turn = equals_before(ends[0] * topology.vertices + ends[1])
    keys, cable = np.unique(np.stack((low, high, turn)), axis=1, return_inverse=True)
    found = np.full((keys.shape[1], 2), -1, dtype=np.int64)
    found[cable.ravel(), back.astype(np.int64)] = np.arange(topology.links)
    return found


def _vertex(topology: Topology, text: str, location: str, most: int | None = None) -> int:
    """Return the number of a vertex: of a node, of a node by its name, or s and a switch's."""
    if text in topology.names:
        return topology.names.index(text)
    switch = text.startswith("s")
    digits = text.removeprefix("s")
    vertex = int(digits) + topology.nodes * switch if re.fullmatch(r"\d{1,9}", digits) else -1
    if not 0 <= vertex < (most or topology.vertices) or (not switch and vertex >= topology.nodes):
        known = f"nodes 0 to {topology.nodes - 1}"
        if topology.switches and most is None:
            known += f", switches s0 to s{topology.switches - 1}"
        raise TopologyError(f"{location}: {text}: expected {known}")
    return vertex


def _share(text: str, location: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 < share < 1:
        raise TopologyError(f"{location}: expected a share of the bandwidth above 0 and below 1")
    return share


def _find_cut_off(topology: Topology, down: Bools) -> int | None:
    """Return a node that some other one cannot reach, or that cannot reach it; None if none."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    ends = topology.link_from[~down], topology.link_to[~down]
    size = (topology.vertices, topology.vertices)
    graph = csr_array((np.ones(len(ends[0]), dtype=np.int8), ends), shape=size)
    _, part = connected_components(graph, directed=True, connection="strong")
    part = part[: topology.nodes]
    if (part == part[0]).all():
        return None
    rarest = np.bincount(part)[part]  # of two parts, the smaller one is cut off
    return int(np.argmin(rarest))


def degrade(topology: Topology, share: Floats) -> Topology:
    """Return a network with a kind of its own for the links of a kind that lost as much."""
    kinds, of_link = list(topology.kinds), topology.link_kind.astype(np.int64)
    for place, factor in sorted(set(zip(of_link.tolist(), share.tolist(), strict=True))):
        if factor == 1:
            continue
        was = topology.kinds[place]
        number = sum(kind.of == was.name for kind in kinds)
        name = f"{was.name}_degraded" + (str(number + 1) if number else "")
        sources = (f"{was.sources[0]}; {factor:g} of it are left", was.sources[1])
        new = LinkKind(name, was.bandwidth * factor, was.latency, sources, was.name, factor)
        of_link[(topology.link_kind == place) & (share == factor)] = len(kinds)
        kinds.append(new)
    if len(kinds) > 256:
        raise TopologyError(f"{topology.spec}: {len(kinds)} kinds of links: expected 256 at most")
    return replace(topology, kinds=tuple(kinds), link_kind=of_link.astype(np.uint8))


def reroute(topology: Topology, down: Bools, location: str) -> Topology:
    """Return a network without the links that are `down`, its routes round them.

    Messages begin with `location`: of a node that is cut off, or too many nodes.
    """
    from .graph_kernels import DetourRouter
    from .routing import routes_met, ways_round

    nodes = topology.nodes
    if nodes > MOST:
        raise TopologyError(
            f"{location}: {topology.spec} has {nodes:,} nodes: expected {MOST:,} at most with "
            "links down, all routes are looked at"
        )
    if (lost := _find_cut_off(topology, down)) is not None:
        raise TopologyError(f"{location}: node {lost} is cut off: expected a way to every node")
    up = np.flatnonzero(~down)
    number = np.full(topology.links, -1, dtype=np.int32)
    number[up] = np.arange(len(up))
    link_from, link_to = topology.link_from[up], topology.link_to[up]
    into, by_to = _group(link_to, link_from, topology.vertices)
    out, by_from = _group(link_from, link_to, topology.vertices)
    pairs = routes_met(topology.router, nodes, down)
    lengths = np.zeros(len(pairs), dtype=np.int64)
    arguments = (pairs, nodes, into, link_from[by_to], out, by_from, link_to, lengths)
    ways_round(*arguments, np.empty(0, dtype=np.int32))
    links = np.empty(int(lengths.sum()), dtype=np.int32)
    ways_round(*arguments, links)
    # by target then source, as they were found, to source then target
    order = np.lexsort((pairs // nodes, pairs % nodes))
    begins = np.concatenate(([0], np.cumsum(lengths[order])))
    old = (np.cumsum(lengths) - lengths)[order]
    places = np.arange(len(links)) + np.repeat(old - begins[:-1], lengths[order])
    router = DetourRouter(
        base=topology.router,
        number=number,
        starts=np.searchsorted((pairs % nodes)[order], np.arange(nodes + 1)).astype(np.int64),
        targets=(pairs // nodes)[order].astype(np.int32),
        begins=begins.astype(np.int64),
        links=links[places],
        link_from=link_from,
        link_to=link_to,
    )
    return replace(
        topology,
        link_from=link_from,
        link_to=link_to,
        link_kind=topology.link_kind[up],
        router=router,
    )


def _group(key: Ints32, then: Ints32, size: int) -> tuple[Ints, Ints]:
    """Return where each key's entries begin, and the entries by key, ascending in the other."""
    order = np.lexsort((then, key)).astype(np.int64)
    return np.searchsorted(key[order], np.arange(size + 1)).astype(np.int64), order
