"""The compiled engine against the reference: the same bits, or the same words if a run is stuck."""

from __future__ import annotations

from dataclasses import fields, replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopmap.simulator import (
    ALGORITHMS,
    DeadlockError,
    Op,
    ParameterError,
    Parameters,
    Program,
    program_of,
    simulate,
)
from hopmap.simulator.collectives.algorithms import choose
from hopmap.simulator.packets import compiled_engine
from hopmap.simulator.programs.from_collectives import template_of
from hopmap.topologies import from_networkx, mesh, topology_from_spec, torus
from hopmap.traces import Collective

SPECS = [
    *("mesh:6", "torus:4x2*2", "mesh:3x3", "torus:5,ties=parity", "haec:2x2x2*2", "mesh:1*9"),
    *("hypercube:3", "cluster:2*3+1*2", "dragonfly:1x2x1*2"),
    *("fattree:2x4", "fattree:3x3:1x2:1x2,routing=ecmp,seed=1"),
]
SLOW_LINK = {"kind": "slow", "bandwidth": 3e8, "latency": 2e-6}
COMMUNICATORS = 2  # contexts of the applications' own messages; collectives come behind


def outcome(program, topology, node_of, parameters, engine, **more):
    """All that a run says: bytes of every column, or the message of a stuck one."""
    try:
        result = simulate(program, topology, node_of, parameters=parameters, engine=engine, **more)
    except DeadlockError as error:
        return str(error)
    said = {}
    for field in fields(result):
        value = getattr(result, field.name)
        if isinstance(value, np.ndarray):
            value = (value.dtype, value.tobytes())
        elif isinstance(value, tuple):
            value = [(np.asarray(part).dtype, np.asarray(part).tobytes()) for part in value]
        said[field.name] = value
    del said["engine"], said["wall_seconds"]
    return said


def agree(program, topology, node_of, parameters, **more):
    one, other = (
        outcome(program, topology, node_of, parameters, engine, **more)
        for engine in ("simpy", "compiled")
    )
    assert one == other
    return one


class Rank:
    """Operations of a rank and of its background strands, as (kind, handle, pause, columns)."""

    def __init__(self):
        self.main, self.sides = [], []

    def add(self, kind, handle=None, pause=0.0, strand=None, **columns):
        operations = self.main if strand is None else self.sides[strand]
        operations.append((kind, handle, pause, columns))


def assembled(ranks):
    """Program of such ranks; a WAIT is for the row that carries its handle."""
    strands = [(r, ops) for r, rank in enumerate(ranks) for ops in (rank.main, *rank.sides)]
    first = np.cumsum([0] + [1 + len(rank.sides) for rank in ranks])
    rows, offsets, of_handle = [], [0], {}
    for r, operations in strands:
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
        rank_of=np.array([r for r, _ in strands], dtype=np.int32),
        kind=np.array([kind for kind, *_ in rows], dtype=np.uint8),
        compute=np.array([pause for _, _, pause, _ in rows], dtype=np.float64),
        peer=column("peer", -1, np.int32),
        tag=column("tag", -1, np.int32),
        context=column("context", -1, np.int32),
        size=column("size", 0, np.int64),
        target=np.array([target(k, h, c) for k, h, _, c in rows], dtype=np.int64),
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
        # Receives may come first, which is a deadlock if both block or nobody is eager.
        sides = [("SEND", source, target), ("RECV", target, source)]
        for word, here, peer in draw(st.permutations(sides)):
            blocking = draw(st.booleans()) and source != target
            handle = None if blocking else (step, word)
            world[here].add(
                Op[word if blocking else f"I{word}"], handle, draw(pause), peer=peer, **message
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
    template = template_of(chosen.schedule, len(members))
    background = draw(st.booleans())
    for place, here in enumerate(members):
        strand = None
        if background:
            strand = len(world[here].sides)
            world[here].sides.append([])
            world[here].add(Op.START, (step, here), side=strand)
            late.append((here, (step, here)))
        for row in np.flatnonzero(template.member == place):
            kind = Op(int(template.kind[row]))
            if kind == Op.WAIT:
                world[here].add(kind, (step, here, int(template.target[row])), strand=strand)
                continue
            world[here].add(
                kind,
                (step, here, int(row)),
                strand=strand,
                peer=members[template.peer[row]],
                tag=step,
                context=COMMUNICATORS + 1,
                size=int(template.size[row]),
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
def runs(draw):
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
        packet_size=draw(st.sampled_from([700, 8192, 10**6])),
        control_bytes=draw(st.sampled_from([0, 64, 1500])),
        overhead_send=draw(seconds),
        overhead_recv=draw(seconds),
        gap=draw(st.sampled_from([0.0, 0.0, 1e-6])),
        gap_per_byte=draw(st.sampled_from([0.0, 0.0, 2e-10])),
        switching=draw(st.sampled_from(["cut_through", "store_and_forward"])),
    )
    return draw(programs(ranks)), topology, node_of, parameters


@settings(max_examples=300, deadline=None)
@given(runs(), st.booleans(), st.booleans(), st.sampled_from([0, 1, 7, 64]))
def test_both_engines_say_the_same(run, record_messages, record_operations, record_links):
    agree(
        *run,
        record_messages=record_messages,
        record_operations=record_operations,
        record_links=record_links,
    )


def exchange(ranks, size, rounds):
    """Everyone sends to everyone and receives from everyone, all at once."""
    others = [[(r + k) % ranks for k in range(1, ranks)] for r in range(ranks)]
    return program_of(
        "exchange",
        [
            [("irecv", p, size) for p in others[r] * rounds]
            + [("isend", p, size) for p in others[r] * rounds]
            + [("wait", k) for k in range(2 * rounds * (ranks - 1))]
            for r in range(ranks)
        ],
    )


@pytest.mark.parametrize("switching", ["cut_through", "store_and_forward"])
@pytest.mark.parametrize("eager_limit", [0, 10**9])
def test_they_agree_where_many_packets_meet(switching, eager_limit):
    parameters = Parameters(
        packet_size=500, eager_limit=eager_limit, switching=switching, control_bytes=1200
    )
    program, topology = exchange(12, 6_400, 2), torus((3, 2, 2))
    said = agree(
        *(program, topology, np.arange(12), parameters), record_operations=True, record_links=50
    )
    assert said["link_waited"] != np.zeros(topology.links).tobytes()


@pytest.mark.parametrize("eager_limit", [0, 4000, 10**9])
@pytest.mark.parametrize(("gap", "gap_per_byte"), [(3e-6, 0.0), (0.0, 1e-9), (1e-6, 1e-10)])
def test_they_agree_where_messages_queue_at_the_end_points_of_ranks(gap, gap_per_byte, eager_limit):
    parameters = Parameters(
        packet_size=500, eager_limit=eager_limit, gap=gap, gap_per_byte=gap_per_byte
    )
    program, *place = exchange(8, 4_000, 2), torus((2, 2), slots=2), np.arange(8) // 2
    said = agree(program, *place, parameters, record_messages=True)
    without = outcome(program, *place, replace(parameters, gap=0.0, gap_per_byte=0.0), "compiled")
    assert said["makespan"] > without["makespan"]
    assert said["events"] == without["events"]


@pytest.mark.parametrize("eager_limit", [0, 10**9])
def test_stopping_after_every_event_and_short_of_slots_changes_nothing(monkeypatch, eager_limit):
    program, topology = exchange(6, 3000, 3), mesh((3, 2))
    parameters = Parameters(gap=1e-6, eager_limit=eager_limit)
    whole = outcome(program, topology, range(6), parameters, "compiled")
    monkeypatch.setattr(compiled_engine, "SHARE", 1)
    monkeypatch.setattr(compiled_engine, "SPARE", 1)
    calls = []
    pieces = outcome(
        program, topology, range(6), parameters, "compiled", progress=lambda *n: calls.append(n)
    )
    assert pieces == whole
    assert calls == sorted(calls)
    assert calls[-1][1] == 90


def test_slots_are_for_what_is_in_flight_only(monkeypatch):
    tables = []
    enlarged = compiled_engine._enlarged
    monkeypatch.setattr(
        compiled_engine, "_enlarged", lambda *given: tables.append(enlarged(*given)) or tables[-1]
    )
    # A thousand messages of a thousand packets, which leave more slowly than they travel.
    ping = [("send", 1, 10**6), ("recv", 1, 0)] * 1000
    pong = [("recv", 0, 10**6), ("send", 0, 0)] * 1000
    parameters = Parameters(packet_size=1000, eager_limit=10**9, injection_bandwidth=1e9)
    simulate(
        program_of("ping", [ping, pong]),
        mesh((2,)),
        [0, 1],
        engine="compiled",
        parameters=parameters,
    )
    assert len(tables) == 1


def test_an_order_key_beyond_63_bits_is_an_error_of_one_line():
    program = program_of("large", [[("send", 1, 2**62)], [("recv", 0, 0)]])
    with pytest.raises(ParameterError, match=r"packet_size 1: .* expected at least \d+") as error:
        simulate(
            program, mesh((2,)), [0, 1], engine="compiled", parameters=Parameters(packet_size=1)
        )
    assert "\n" not in str(error.value)
