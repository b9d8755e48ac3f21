"""Ranks in an order of the nodes: as numbered, listed or named, at random, `rcm`; curves.

Every node takes as many ranks as it has slots, one after the other, before the order goes on.

Curves through a box of nodes are `scan`, `peano`, `gray` and `hilbert`: an order of the nodes, here
always a sort by the curve's digits, so that any box works. The curve runs through the enclosing
cube (a power of two a side, where it needs one) and the points outside the box are skipped. For
Hilbert's curve on a box of powers of two that is the compact Hilbert index of Hamilton and
Rau-Chaplin (2008). Axes of one node are left out first, so that 8x8x1 is an 8x8 box.
O(nodes log nodes). Source of the curves: HAEC thesis, section 3.3.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Ints
from hopmap.mappers.mapper import mapper
from hopmap.mappers.objectives import ObjectiveName, cost_model, get_objective
from hopmap.mappers.options import Count
from hopmap.mappers.stop import Stop, keep
from hopmap.topologies import Mapping, MappingError, Topology
from hopmap.traces import Traffic

BATCH = 50_000_000  # pairs and slots of random mappings looked at between two looks at the clock


def place_along(order: Ints, traffic: Traffic, topology: Topology) -> Mapping:
    """Place rank after rank on the nodes in this order."""
    return np.repeat(order, topology.slots[order])[: traffic.ranks].astype(np.int64)


@mapper("identity", source="Schulz, Traeff, von Kirchbach 2017")
def identity(traffic: Traffic, topology: Topology) -> Mapping:
    """Rank r on the r-th slot.

    Launchers place ranks so by default. Source: the baseline of Schulz, Traeff and von
    Kirchbach, Better process mapping and sparse quadratic assignment, section 4: as good as the
    numbering of the ranks. On a box it is `sweep`; under a job whose hosts are listed the slots are
    in the list's order. O(ranks).
    """
    order = topology.order
    return place_along(order if order.size else np.arange(topology.nodes), traffic, topology)


@mapper("as_allocated", source="srun(1), --distribution=block")
def as_allocated(traffic: Traffic, topology: Topology) -> Mapping:
    """Hosts in the order in which the job lists them, each filled before the next.

    What Slurm, PBS and mpirun do with the hosts of an allocation: `identity` by this name, the
    baseline of `by_hostname`. Source: Slurm, srun(1), ``--distribution=block``. O(ranks).
    """
    return identity(traffic, topology)


@mapper("by_hostname", source="PyTorch, torch.distributed.elastic")
def by_hostname(traffic: Traffic, topology: Topology) -> Mapping:
    """Hosts in the alphabetical order of their full names, each filled before the next.

    torchrun ranks hosts so with the backend c10d: node10 comes before node2. Nodes called HOST-gpuN
    are the GPUs of a host, in order of N. A name without a domain is compared as with one. Nodes
    without names are node0, node1, ... Source: PyTorch, torch/distributed/elastic/rendezvous/
    dynamic_rendezvous.py, which sorts the participants by address. O(nodes log nodes).
    """
    names = topology.names or [f"node{n}" for n in range(topology.nodes)]

    def full_name(node: int) -> tuple[str, int]:
        gpu = re.search(r"-gpu(\d{1,4})$", names[node])
        host = names[node][: gpu.start()] if gpu else names[node]
        return host if "." in host else f"{host}.", int(gpu[1]) if gpu else 0

    order = np.array(sorted(range(topology.nodes), key=full_name), dtype=np.int64)
    return place_along(order, traffic, topology)


@mapper("sweep", source="HAEC thesis, section 3.3", presets={"thesis": {}})
def sweep(traffic: Traffic, topology: Topology) -> Mapping:
    """Nodes in order: x fastest, then y, then z.

    Source: HAEC thesis, section 3.3 (Mokbel, Aref, Kamel: Performance of multi-dimensional
    space-filling curves, 2002). On any topology nodes in the order of their numbers. O(ranks).
    """
    return place_along(np.arange(topology.nodes), traffic, topology)


@mapper("random", source="HAEC thesis, section 3.1")
def random_mapping(traffic: Traffic, topology: Topology, *, rng: np.random.Generator) -> Mapping:
    """Every rank on a slot drawn at random.

    The baseline of every mapping paper. O(slots).
    """
    slots = np.repeat(np.arange(topology.nodes), topology.slots)
    return rng.permutation(slots)[: traffic.ranks].astype(np.int64)


@mapper("random_sampling", source="HAEC thesis, section 4.1", presets={"thesis": {}})
def random_sampling(
    traffic: Traffic,
    topology: Topology,
    *,
    rng: np.random.Generator,
    samples: Count = 10_000,
    objective: ObjectiveName = "cardinality",
    stop: Stop,
) -> Mapping:
    """Best of `samples` random mappings, the first of equals.

    The thesis takes 10,000 samples, by cardinality, as its successor MapLib shows.
    O(samples * (slots + pairs)).
    """
    from hopmap.mappers import cost_kernels

    model = cost_model(traffic, topology, objective)
    named = get_objective(objective)
    watch = stop.watch()
    slots = np.repeat(np.arange(topology.nodes, dtype=np.int64), topology.slots)
    best, best_cost = rng.permutation(slots), 0
    best_cost = cost_kernels.total_cost(model, best)
    batch = max(1, min(1000, BATCH // 10 // (len(slots) + len(model.peer) + 1)))
    done = 1
    with keep(lambda: best[: traffic.ranks]):
        while done < samples and not watch.over():
            rows = min(batch, samples - done)
            drawn = rng.permuted(np.broadcast_to(slots, (rows, len(slots))), axis=1)
            costs = cost_kernels.total_costs(model, drawn)
            first = int(costs.argmin())
            if costs[first] < best_cost:
                best, best_cost = drawn[first].copy(), int(costs[first])
            done += rows
            watch.report(done, samples, f"{named.name} {named.value(best_cost)}")
    return best[: traffic.ranks]


@mapper("rcm", source="Hoefler, Snir 2011")
def rcm(traffic: Traffic, topology: Topology) -> Mapping:
    """Match the reverse Cuthill-McKee orders of ranks and nodes (LibTopoMap's RCM).

    Source: Hoefler and Snir, Generic topology mapping strategies for large-scale parallel
    architectures (ICS 2011), section "mapping based on graph similarity": both graphs are
    renumbered so that their adjacency matrices have a small bandwidth, and what comes at the same
    place in both orders belongs together. Weights of pairs and distances beyond neighbours play no
    part.

    The orders are scipy's, which begins each component at the vertex of the lowest degree;
    LibTopoMap begins at a pseudo-peripheral one. Switches are vertices of the network that take no
    ranks. Nodes with several slots take as many ranks, one after the other, where LibTopoMap groups
    ranks by a partitioner first. O(pairs + links) plus sorting, memory linear.
    """
    pairs = traffic.without_self()
    nodes = band_order(topology.link_from, topology.link_to, topology.vertices)
    node_of = np.empty(traffic.ranks, dtype=np.int64)
    ranks = band_order(pairs.src, pairs.dst, traffic.ranks)
    node_of[ranks] = place_along(nodes[nodes < topology.nodes], traffic, topology)
    return node_of


def band_order(source: NDArray[np.integer], target: NDArray[np.integer], vertices: int) -> Ints:
    """Vertices in reverse Cuthill-McKee order of the graph with these edges, taken both ways."""
    from scipy.sparse import csr_array  # slow to import, and few commands come here
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    ends = np.concatenate((source, target)), np.concatenate((target, source))
    graph = csr_array((np.ones(len(ends[0]), dtype=np.int8), ends), shape=(vertices, vertices))
    graph.sum_duplicates()
    return reverse_cuthill_mckee(graph, symmetric_mode=True).astype(np.int64)


# Octant (u, v, w) in the order of the curve; its axes as 1, 2, 3 for u, v, w, negative if reversed.
_OCTANTS = (
    ((0, 0, 0), (3, 1, 2)),
    ((0, 1, 0), (2, 3, 1)),
    ((1, 1, 0), (2, 3, 1)),
    ((1, 0, 0), (-1, -2, 3)),
    ((1, 0, 1), (-1, -2, 3)),
    ((1, 1, 1), (2, -3, -1)),
    ((0, 1, 1), (2, -3, -1)),
    ((0, 0, 1), (-3, 1, -2)),
)


def coordinates(topology: Topology, curve: str) -> list[Ints]:
    """Coordinates of all nodes of a box, one array per axis of more than one node, x first."""
    if not topology.dims:
        raise MappingError(
            f"mapper {curve}: {topology.spec} has no coordinates for a curve to run through: "
            "expected a mesh, a torus or a HAEC Box"
        )
    return [
        topology.coords[:, axis].astype(np.int64)
        for axis, nodes in enumerate(topology.dims)
        if nodes > 1
    ]


def on_box(name: str, _: Traffic, topology: Topology) -> None:
    """Raise `MappingError` unless the network is a box of nodes."""
    coordinates(topology, name)


@mapper("scan", source="HAEC thesis, section 3.3", presets={"thesis": {}}, needs=on_box)
def scan(traffic: Traffic, topology: Topology) -> Mapping:
    """Rows to and fro (boustrophedon), continuous on any box.

    One path that turns round at the end of every row, plane, ... Source: Mokbel, Aref and Kamel,
    Performance of multi-dimensional space-filling curves (2002). O(nodes).
    """
    digits: list[Ints] = []
    behind = np.zeros(topology.nodes, dtype=np.int64)  # rows, planes, ... before this node's
    for axis in reversed(coordinates(topology, "scan")):
        nodes = int(axis.max()) + 1
        digit = np.where(behind % 2 == 0, axis, nodes - 1 - axis)
        digits.append(digit)
        behind = behind * nodes + digit
    return place_along(order_by(digits, topology), traffic, topology)


@mapper("peano", source="HAEC thesis, section 3.3", presets={"thesis": {}}, needs=on_box)
def peano(traffic: Traffic, topology: Topology) -> Mapping:
    """Z order (Morton): the bits of the coordinates interleaved.

    Peano is what the field calls the order of Morton (1966). Bit j of x, y, z, ... is bit d*j,
    d*j + 1, d*j + 2, ... of the position on the curve. Source: Mokbel, Aref and Kamel (2002).
    """
    axes = coordinates(topology, "peano")
    digits = [axis >> level & 1 for level in levels(axes) for axis in reversed(axes)]
    return place_along(order_by(digits, topology), traffic, topology)


@mapper("gray", source="HAEC thesis, section 3.3", presets={"thesis": {}}, needs=on_box)
def gray(traffic: Traffic, topology: Topology) -> Mapping:
    """Gray-code order: one bit of the interleaved coordinates changes a step.

    The position r has the Gray code g = r xor (r >> 1); its bits are dealt to x first and then to
    the other axes from the last to the second (x, z, y), lowest bits first; each coordinate is the
    Gray-decoded value of its bits. Source: Faloutsos, Gray codes for partial match and range
    queries (1988); the order of the axes is the thesis'.
    """
    axes = coordinates(topology, "gray")
    coded = [axis ^ axis >> 1 for axis in axes]
    digits = []
    bit = np.zeros(topology.nodes, dtype=np.int64)
    for level in levels(axes):
        # From the highest bit of g down: y, z, ..., x; decoding r is a running xor.
        for code in (*coded[1:], *coded[:1]):
            bit = bit ^ code >> level & 1
            digits.append(bit)
    return place_along(order_by(digits, topology), traffic, topology)


@mapper("hilbert", source="HAEC thesis, section 3.3", presets={"thesis": {}}, needs=on_box)
def hilbert(traffic: Traffic, topology: Topology) -> Mapping:
    """Hilbert's curve, the thesis' variant in three dimensions.

    It is continuous on a cube, and points close on it are close in the cube. In three dimensions
    there are many; the thesis' is a recursion over the octants of a cube spanned by axes (u, v, w),
    each octant with its own axes (Bader: Space-Filling Curves, 2013, section 8). In two dimensions
    there is one up to symmetry. In four and more this is Skilling's (Programming the Hilbert curve,
    AIP Conference Proceedings 707, 2004). Where a side is no power of two or shorter
    than the others the curve jumps at the gaps.
    """
    axes = coordinates(topology, "hilbert")
    digits = octant_digits(axes) if len(axes) == 3 else skilling_digits(axes)
    return place_along(order_by(digits, topology), traffic, topology)


def octant_digits(axes: Sequence[Ints]) -> list[Ints]:
    """Octant number of every point on every level, the coarsest first."""
    number = np.zeros((2, 2, 2), dtype=np.int64)
    turn = np.zeros((8, 3), dtype=np.int64)
    reverse = np.zeros((8, 3), dtype=np.int64)
    for index, (octant, spanned) in enumerate(_OCTANTS):
        number[octant] = index
        turn[index] = [abs(axis) - 1 for axis in spanned]
        reverse[index] = [axis < 0 for axis in spanned]
    points = np.stack(list(axes), axis=1)
    # Of every point's current cube: which coordinate u, v, w is, and whether it is reversed.
    axis_of = np.tile(np.arange(3), (len(points), 1))
    reversed_ = np.zeros_like(axis_of)
    digits = []
    for level in levels(axes):
        side = np.take_along_axis(points, axis_of, axis=1) >> level & 1 ^ reversed_
        digit = number[side[:, 0], side[:, 1], side[:, 2]]
        reversed_ = np.take_along_axis(reversed_, turn[digit], axis=1) ^ reverse[digit]
        axis_of = np.take_along_axis(axis_of, turn[digit], axis=1)
        digits.append(digit)
    return digits


def skilling_digits(axes: Sequence[Ints]) -> list[Ints]:
    """Bits of the Hilbert index in any number of dimensions, the highest first.

    Skilling's AxestoTranspose, on all points at once.
    """
    x = [axis.copy() for axis in axes]
    for level in levels(axes):
        lower = (1 << level) - 1
        for i in range(len(x)):
            high = x[i] >> level & 1 == 1
            exchange = np.where(high, 0, (x[0] ^ x[i]) & lower)
            x[0] = np.where(high, x[0] ^ lower, x[0] ^ exchange)
            if i > 0:
                x[i] = x[i] ^ exchange
    for i in range(1, len(x)):
        x[i] = x[i] ^ x[i - 1]
    flip = np.zeros_like(x[0]) if x else 0
    for level in levels(axes):
        flip = np.where(x[-1] >> level & 1 == 1, flip ^ (1 << level) - 1, flip)
    x = [part ^ flip for part in x]
    return [part >> level & 1 for level in levels(axes) for part in x]


def levels(axes: Sequence[Ints]) -> range:
    """Bit numbers of the enclosing cube's coordinates, highest first."""
    bits = max((int(axis.max()).bit_length() for axis in axes), default=0)
    return range(bits - 1, -1, -1)


def order_by(digits: Sequence[Ints], topology: Topology) -> Ints:
    """Nodes sorted by their digits, the first array being the most significant."""
    if not digits:
        return np.arange(topology.nodes)
    return np.lexsort(tuple(digits)[::-1])
