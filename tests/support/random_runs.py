"""Strategies of what a replay takes: messages and collectives of all kinds on any network."""

from __future__ import annotations

import networkx as nx
import numpy as np
from hypothesis import strategies as st

from hopmap.simulator import ALGORITHMS, Op, Parameters, Program
from hopmap.simulator.collectives.algorithms import choose
from hopmap.simulator.programs.from_collectives import template_of
from hopmap.simulator.programs.mpi_calls import SendMode
from hopmap.topologies import from_networkx, topology_from_spec
from hopmap.traces import Collective

SPECS = [
    *("mesh:6", "torus:4x2*2", "mesh:3x3", "torus:5,ties=parity", "haec:2x2x2*2", "mesh:1*9"),
    *("hypercube:3", "cluster:2*3+1*2", "dragonfly:1x2x1*2"),
    *("fattree:2x4", "fattree:3x3:1x2:1x2,routing=ecmp,seed=1"),
]
SLOW_LINK = {"kind": "slow", "bandwidth": 3e8, "latency": 2e-6}
NICS = [{}, {"nic": "round_robin"}, {"nic": "round_robin", "nic_rails": 2}]
COMMUNICATORS = 2  # contexts of the applications' own messages; collectives come behind


class Rank:
    """Operations of a rank and of its background tasks, as (kind, handle, pause, columns)."""

    def __init__(self):
        self.main, self.sides = [], []

    def add(self, kind, handle=None, pause=0.0, task=None, **columns):
        operations = self.main if task is None else self.sides[task]
        operations.append((kind, handle, pause, columns))


def assembled(ranks):
    """Program of such ranks; a WAIT is for the row that carries its handle."""
    tasks = [(r, ops) for r, rank in enumerate(ranks) for ops in (rank.main, *rank.sides)]
    first = np.cumsum([0] + [1 + len(rank.sides) for rank in ranks])
    rows, offsets, of_handle = [], [0], {}
    for r, operations in tasks:
        for kind, handle, pause, columns in operations:
            if kind != Op.WAIT and handle is not None:
                of_handle[handle] = len(rows)
            rows.append((kind, handle, pause, {"rank": r, **columns}))
        rows.append((Op.FINISH, None, 0.0, {}))
        offsets.append(len(rows))

    def target(kind, handle, columns):
        if kind == Op.WAIT:
            return of_handle[handle]
        return first[columns["rank"]] + 1 + columns["side"] if kind == Op.START else -1

    def column(name, missing, dtype):
        return np.array([columns.get(name, missing) for *_, columns in rows], dtype=dtype)

    return Program(
        name="drawn",
        offsets=np.array(offsets, dtype=np.int64),
        rank_of=np.array([r for r, _ in tasks], dtype=np.int32),
        kind=np.array([kind for kind, *_ in rows], dtype=np.uint8),
        compute=np.array([pause for _, _, pause, _ in rows], dtype=np.float64),
        peer=column("peer", -1, np.int32),
        tag=column("tag", -1, np.int32),
        context=column("context", -1, np.int32),
        size=column("size", 0, np.int64),
        target=np.array([target(k, h, c) for k, h, _, c in rows], dtype=np.int64),
        mode=column("mode", SendMode.STANDARD, np.uint8),
        communicators=COMMUNICATORS,
    )


@st.composite
def programs(draw, ranks):
    """Messages and collectives of all kinds; some runs of them get stuck."""
    world = [Rank() for _ in range(ranks)]
    rank, pause = st.integers(0, ranks - 1), st.sampled_from([0.0, 0.0, 1e-6, 3.7e-6])
    late = []  # waits that come at the end
    steps = draw(st.lists(st.booleans(), max_size=14))
    for step, collective in enumerate(steps):
        if collective:
            members = draw(st.lists(rank, min_size=1, max_size=ranks, unique=True))
            add_collective(draw, world, members, step, late)
            continue
        source, target = draw(rank), draw(rank)
        message = {
            "size": draw(st.sampled_from([0, 1, 999, 5000, 70_000])),
            "tag": draw(st.integers(0, 1)),
            "context": draw(st.integers(0, COMMUNICATORS - 1)),
        }
        mode = draw(st.sampled_from([SendMode.STANDARD, *SendMode]))
        # Receives may come first, which is a deadlock if both block or nobody is eager.
        sides = [("SEND", source, target), ("RECV", target, source)]
        of_recv = mode if mode == SendMode.PUT else SendMode.STANDARD
        for word, here, peer in draw(st.permutations(sides)):
            blocking = draw(st.booleans()) and source != target
            handle = None if blocking else (step, word)
            columns = message | {"mode": mode if word == "SEND" else of_recv}
            world[here].add(
                Op[word if blocking else f"I{word}"], handle, draw(pause), peer=peer, **columns
            )
            if handle and draw(st.integers(0, 9)):  # some are never waited for
                late.append((here, handle))
                if draw(st.booleans()):
                    world[here].add(Op.WAIT, handle, draw(pause))
    for here, handle in draw(st.permutations(late)):
        world[here].add(Op.WAIT, handle, draw(pause))
    return assembled(broken(draw, world) if draw(st.integers(0, 3)) == 0 else world)


def add_collective(draw, world, members, step, late):
    operation = draw(st.sampled_from(sorted(ALGORITHMS)))
    algorithm = draw(st.sampled_from(sorted(ALGORITHMS[operation])))
    size = np.array(draw(st.lists(st.sampled_from([0, 8, 9000]), min_size=1))) * len(members)
    size = np.resize(size, len(members))
    root = draw(st.integers(0, len(members) - 1))
    chosen = choose(Collective[operation.upper()], root, size, size, {operation: algorithm})
    template = template_of(chosen.schedule)
    background = draw(st.booleans())
    for place, here in enumerate(members):
        task = None
        if background:
            task = len(world[here].sides)
            world[here].sides.append([])
            world[here].add(Op.START, (step, here), side=task)
            late.append((here, (step, here)))
        for row in np.flatnonzero(template.member == place):
            kind = Op(int(template.kind[row]))
            if kind == Op.WAIT:
                world[here].add(kind, (step, here, int(template.target[row])), task=task)
                continue
            world[here].add(
                kind,
                (step, here, int(row)),
                task=task,
                peer=members[template.peer[row]],
                tag=step,
                context=COMMUNICATORS + 1,
                size=int(template.size[row]),
                mode=int(template.mode[row]),
            )


def broken(draw, world):
    """Turn around what one rank does, or leave out one of its operations and the waits for it."""
    main = world[draw(st.integers(0, len(world) - 1))].main
    if not main:
        return world
    gone = draw(st.integers(0, len(main) - 1))
    handle = main[gone][1]
    kept = [op for k, op in enumerate(main) if k != gone and (handle is None or op[1] != handle)]
    if draw(st.booleans()):
        # Every WAIT stays behind what it waits for.
        waits = [op for op in kept if op[0] == Op.WAIT]
        kept = [op for op in kept if op[0] != Op.WAIT][::-1] + waits
    main[:] = kept
    return world


@st.composite
def graphs(draw):
    """Any connected graph: a tree, and edges besides; some vertices are switches."""
    vertices = draw(st.integers(1, 9))
    graph = nx.Graph()
    hosts = draw(st.sets(st.integers(0, vertices - 1), min_size=1))
    for vertex in range(vertices):
        graph.add_node(vertex, host=vertex in hosts, slots=draw(st.integers(1, 3)))
        if vertex:
            graph.add_edge(draw(st.integers(0, vertex - 1)), vertex)
    end = st.integers(0, vertices - 1)
    graph.add_edges_from((a, b) for a, b in draw(st.lists(st.tuples(end, end))) if a != b)
    for a, b in graph.edges:
        graph.edges[a, b].update(draw(st.sampled_from([{}, SLOW_LINK])))
    return from_networkx(graph)


@st.composite
def random_runs(draw):
    """(program, topology, node_of, parameters) of any kind that a replay takes."""
    topology = draw(graphs() | st.sampled_from(SPECS).map(topology_from_spec))
    topology = topology.with_links(
        draw(st.sampled_from([kind.name for kind in topology.kinds])),
        latency=draw(st.sampled_from([0.0, 1e-7])),
        bandwidth=draw(st.sampled_from([1e9, 1e300])),
    )
    slots = np.repeat(np.arange(topology.nodes), topology.slots)
    ranks = draw(st.integers(1, len(slots)))
    node_of = np.array(draw(st.permutations(slots.tolist())))[:ranks]
    seconds = st.sampled_from([0.0, 2e-7, 3e-7])
    bandwidth = st.sampled_from([1e9, 2.4e10, 1e300])
    ends = {
        f"{end}_{what}": draw(values)
        for end in ("injection", "ejection", "memory")
        for what, values in (("latency", seconds), ("bandwidth", bandwidth))
    }
    parameters = Parameters(
        **ends,
        eager_limit=draw(st.sampled_from([0, 2000, 10**6])),
        eager_completion=draw(st.sampled_from([0.0, 0.0, 1e-7, 1e-6])),
        eager_peers=draw(st.sampled_from([0, 0, 1, 2])),
        eager_limit_beyond=draw(st.sampled_from([1, 1000])),
        packet_size=draw(st.sampled_from([700, 8192, 10**6])),
        control_bytes=draw(st.sampled_from([0, 64, 1500])),
        overhead_send=draw(seconds),
        overhead_recv=draw(seconds),
        overhead_per_byte=draw(st.sampled_from([0.0, 0.0, 1e-10])),
        overhead_control=draw(st.sampled_from([0.0, 0.0, 1e-6])),
        overhead_put_latency=draw(st.sampled_from([0.0, 1e-7, 1e-6])),
        gap=draw(st.sampled_from([0.0, 0.0, 1e-6])),
        gap_per_byte=draw(st.sampled_from([0.0, 0.0, 2e-10])),
        switching=draw(st.sampled_from(["cut_through", "store_and_forward"])),
        copy_per_byte=draw(st.sampled_from([0.0, 0.0, 1e-10])),
        progress=draw(st.sampled_from(["asynchronous", "in_mpi_calls"])),
        **draw(st.sampled_from(NICS)),
    )
    return draw(programs(ranks)), topology, node_of, parameters
