"""The network of an InfiniBand fabric, from what ``ibnetdiscover`` prints.

A block a switch, a line a port: ``[3] "S-..."[7] # "name" lid 4 4xHDR``, or ``"H-..."[1](...)`` of
a host, whose name and adapter are in quotes behind the sign: "node17 mlx5_0". Ports whose text is
not such a pair have no host: switches that add up (SHARP), adapters without a name. They are left
out, and so are the blocks of adapters, which say the same links again.

A host has one port here: the first by the adapter's name, or that of ``#ADAPTER`` behind the path.
Where leaves (switches with hosts) have cables to spines alone, and spines to leaves alone, it is a
fat tree of two levels: each leaf and spine have a link, as wide as their cables together, and the
target's number chooses the spine. A pair without a cable is a link that is down. With more levels
the switches above the same leaves are merged, level by level, into one that is joined to those
below it by links as wide as all cables: a tree, as if messages spread evenly. A fabric with cables
within a level is a graph, in which all messages between two switches take the same shortest way.
Speeds are data rates a lane times lanes.

Sources: linux-rdma, rdma-core, infiniband-diags/ibnetdiscover.c and man page; InfiniBand
architecture specification, volume 2, for rates.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hopmap.arrays import Floats
from hopmap.errors import HopmapWarning
from hopmap.topologies.failures import degrade, reroute
from hopmap.topologies.families.graph import from_networkx
from hopmap.topologies.families.switched import from_leaves
from hopmap.topologies.topology import Topology, TopologyError

RATES = {  # Gbit/s of data a lane
    "SDR": 2.0, "DDR": 4.0, "QDR": 8.0, "FDR10": 10.0, "FDR": 13.64, "EDR": 25.0, "HDR": 50.0,
    "NDR": 100.0, "XDR": 200.0,
}  # fmt: skip
_BLOCK = re.compile(r'(Switch|Ca|Rt)\s+\d+\s+"([^"]{1,40})"\s*(?:#.*)?')
_PORT = re.compile(
    r'\[(\d{1,4})\](?:\[ext \d+\])?\s*"([SHR])-([0-9a-fA-F]{1,16})"\[(\d{1,4})\](?:\[ext \d+\])?'
    r'(?:\([^)]*\))?\s*#\s*"([^"]*)"\s+lid\s+\d+\s+(\d{1,2})x(\w+)\s*(?:[sp]\S*\s*)*'
)
_HEAD = re.compile(r"(vendid|devid|sysimgguid|switchguid|caguid|rtguid)=\S+")
_HOST = re.compile(r"([A-Za-z0-9][\w.-]*) ([A-Za-z]\w*(?:-\w+)*)")  # its name and the adapter's
_PARTS = re.compile(r"\d+|\D+")


@dataclass
class Fabric:
    """What the ports of switches lead to."""

    switches: list[str] = field(default_factory=list)
    # (switch, port): (the other, its port, Gbit/s)
    cables: dict[tuple[str, int], tuple[str, int, float]] = field(default_factory=dict)
    ports: list[tuple[str, str, str, float]] = field(default_factory=list)  # switch, host, adapter
    unnamed: int = 0  # ports that lead to no host

    def rates(self) -> dict[str, Counter[str]]:
        """Gbit/s from each switch to each that it has cables to."""
        found: dict[str, Counter[str]] = {switch: Counter() for switch in self.switches}
        for (switch, _), (other, _, rate) in self.cables.items():
            found[switch][other] += rate  # type: ignore[assignment]
        return found


def is_ibnetdiscover(text: str) -> bool:
    """Whether a text looks like ibnetdiscover's output."""
    return re.search(r'(?m)^(Switch|Ca)\s+\d+\s+"[SH]-', text) is not None


def from_ibnetdiscover(text: str, spec: str, adapter: str = "") -> Topology:
    """Network of the hosts of a fabric, by the adapter of that name or by their first."""
    fabric = _parse(text, spec)
    leaf_of, speed = _choose_ports(fabric, spec, adapter)
    rates = fabric.rates()
    leaves = [switch for switch in fabric.switches if switch in set(leaf_of.values())]
    hosts = sorted(leaf_of, key=lambda host: leaves.index(leaf_of[host]))
    others = {switch for switch, *_ in fabric.ports} - set(leaves)  # of other adapters
    level = _levels(rates, leaves, others)
    spines = [switch for switch in fabric.switches if level.get(switch) == 2]
    if any(level[a] == level.get(b) for a in level for b in rates[a]):
        return _graph(rates, leaf_of, hosts, speed, spec)
    if max(level.values()) > 2:
        return _merged(rates, level, leaf_of, hosts, speed, spec)
    network = from_leaves(
        [leaves.index(leaf_of[host]) for host in hosts],
        [0] * len(leaves),
        max(len(spines), 1),
        spec=spec,
    )
    wide = np.array([[rates[leaf][spine] for spine in spines] for leaf in leaves]).reshape(-1)
    return replace(_with_cables(network, wide, speed, spec), names=tuple(hosts))


def _with_cables(network: Topology, wide: Floats, speed: float, spec: str) -> Topology:
    """Set the speeds of links: of ports, and of leaf after leaf to spine after spine."""
    most = float(wide.max(initial=speed))
    kinds = [
        replace(kind, bandwidth=rate * 1.25e8, sources=("ibnetdiscover", kind.sources[1]))
        for kind, rate in zip(network.kinds, (speed, most), strict=True)
    ]
    share = np.ones(network.links)
    if wide.size:
        share[2 * network.nodes :] = np.tile(wide / most, 2)
    down = share == 0
    network = degrade(replace(network, kinds=tuple(kinds)), np.where(down, 1.0, share))
    return reroute(network, down, spec) if down.any() else network


def _levels(
    rates: dict[str, Counter[str]], leaves: Sequence[str], left_out: set[str]
) -> dict[str, int]:
    """Cables from the nearest leaf to every switch, and 1."""
    level = dict.fromkeys(leaves, 1)
    reached = list(leaves)
    for switch in reached:
        for other in rates[switch]:
            if other not in level and other not in left_out:
                level[other] = level[switch] + 1
                reached.append(other)
    return level


def _merged(
    rates: dict[str, Counter[str]],
    level: dict[str, int],
    leaf_of: dict[str, str],
    hosts: list[str],
    speed: float,
    spec: str,
) -> Topology:
    """Return a tree of merged switches, for fabrics of three and more levels."""
    import networkx as nx

    warnings.warn(
        f"{spec}: {max(level.values())} levels of switches: those above the same leaves are "
        "merged, with links as wide as all cables together",
        HopmapWarning,
        stacklevel=2,
    )
    tree: nx.Graph[Any] = nx.Graph()
    tree.add_nodes_from(hosts, host=True)
    tree.add_edges_from(((host, (1, leaf_of[host])) for host in hosts), rate=speed)
    fabric: nx.Graph[str] = nx.Graph()
    top = {switch: (1, switch) for switch, at in level.items() if at == 1}  # merged, by its leaves
    for now in range(2, max(level.values()) + 1):
        fabric.add_nodes_from(switch for switch, at in level.items() if at <= now)
        fabric.add_edges_from((a, b) for a in fabric for b in rates[a] if b in fabric)
        for part in nx.connected_components(fabric):
            merged = (now, min(part))
            wide: Counter[Any] = Counter()
            for switch in part:
                if level[switch] == now:
                    for below, rate in rates[switch].items():
                        if level.get(below) == now - 1:
                            wide[top[below]] += rate
            tree.add_edges_from((below, merged, {"rate": rate}) for below, rate in wide.items())
            if wide:
                top |= dict.fromkeys(part, merged)
    tree.add_nodes_from([v for v in tree if isinstance(v, tuple)], host=False)
    for *_, attributes in tree.edges(data=True):
        attributes["bandwidth"] = attributes.pop("rate") * 1.25e8
    return replace(from_networkx(tree, spec), names=tuple(hosts))


def _graph(
    rates: dict[str, Counter[str]],
    leaf_of: dict[str, str],
    hosts: list[str],
    speed: float,
    spec: str,
) -> Topology:
    """Return a network of shortest ways, for fabrics of other forms."""
    import networkx as nx

    warnings.warn(
        f"{spec}: cables within a level of switches: all messages between two switches take one "
        "shortest way, where the fabric has several",
        HopmapWarning,
        stacklevel=2,
    )
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(hosts, host=True)
    graph.add_nodes_from((f"S-{switch}" for switch in rates), host=False)
    graph.add_edges_from((host, f"S-{leaf_of[host]}") for host in hosts)
    for switch, others in rates.items():
        for other, rate in others.items():
            graph.add_edge(f"S-{switch}", f"S-{other}", rate=rate)
    for *_, attributes in graph.edges(data=True):
        attributes["bandwidth"] = attributes.get("rate", speed) * 1.25e8
    reachable = nx.node_connected_component(graph, hosts[0])
    return from_networkx(graph.subgraph([v for v in graph if v in reachable or v in leaf_of]), spec)


def _choose_ports(fabric: Fabric, spec: str, adapter: str) -> tuple[dict[str, str], float]:
    """Leaf of every host by one of its ports, and the speed that most of these ports have."""
    by_host: dict[str, list[tuple[tuple[str, ...], str, str, float]]] = {}
    for switch, host, name, rate in fabric.ports:
        order = tuple(part.zfill(9) for part in _PARTS.findall(name))
        by_host.setdefault(host, []).append((order, name, switch, rate))
    chosen: dict[str, tuple[str, float]] = {}
    for host, ports in by_host.items():
        fitting = [port for port in sorted(ports) if adapter in ("", port[1])]
        if fitting:
            chosen[host] = fitting[0][2:]
    if not chosen:
        known = ", ".join(sorted({name for _, _, name, _ in fabric.ports})[:8]) or "none"
        what = f"no host has a port {adapter}" if adapter else "no port leads to a named host"
        raise TopologyError(f"{spec}: {what}: expected one of {known}")
    several = sum(len(by_host[host]) > 1 for host in chosen)
    lost = len(by_host) - len(chosen)
    said = [
        f"{several} of {len(chosen)} hosts have several ports, of which one is used: "
        f"{adapter or 'the first by name'}" * bool(several),
        f"{lost} hosts have no port {adapter} and are left out" * bool(lost),
        f"{fabric.unnamed} ports name no host and are left out" * bool(fabric.unnamed),
    ]
    if any(said):
        text = "; ".join(filter(None, said))
        warnings.warn(f"{spec}: {text}", HopmapWarning, stacklevel=2)
    speeds = Counter(rate for _, rate in chosen.values())
    return {host: switch for host, (switch, _) in chosen.items()}, speeds.most_common(1)[0][0]


def _parse(text: str, spec: str) -> Fabric:
    """Read the blocks of switches; blocks of adapters repeat their links."""
    fabric, switch = Fabric(), ""
    kind = ""
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#") or _HEAD.match(line):
            continue
        if block := _BLOCK.fullmatch(line):
            kind, switch = block[1], block[2].partition("-")[2].lower()
            if kind == "Switch":
                if switch in fabric.switches:
                    raise TopologyError(f"{spec}: line {number}: S-{switch} twice: expected once")
                fabric.switches.append(switch)
        elif kind in ("Ca", "Rt") and line.startswith("["):
            continue
        else:
            port = _PORT.fullmatch(line) if kind else None
            if port is None or port[7] not in RATES:
                raise TopologyError(
                    f"{spec}: line {number} is {line[:60]!r}: expected a switch, or a port like "
                    '[3] "S-0002c9"[7] # "name" lid 4 4xHDR'
                )
            _add_port(fabric, switch, port)
    for (switch, at), (other, there, _) in fabric.cables.items():
        if fabric.cables.get((other, there), ("", 0, 0.0))[:2] != (switch, at):
            raise TopologyError(
                f"{spec}: port {at} of S-{switch} leads to port {there} of S-{other}, which does "
                "not lead back: expected the whole output: it is cut"
            )
    if not fabric.switches:
        raise TopologyError(f"{spec}: no switches: expected the whole output of ibnetdiscover")
    return fabric


def _add_port(fabric: Fabric, switch: str, port: re.Match[str]) -> None:
    rate = int(port[6]) * RATES[port[7]]
    host = _HOST.fullmatch(port[5].strip())
    if port[2] == "S":
        fabric.cables[switch, int(port[1])] = port[3].lower(), int(port[4]), rate
    elif port[2] == "H" and host:
        fabric.ports.append((switch, host[1], host[2], rate))
    else:
        fabric.unnamed += 1
