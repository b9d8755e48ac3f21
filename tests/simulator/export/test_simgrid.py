"""Time-independent traces, read back by a reader written from SimGrid's smpi_replay.cpp."""

import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.errors import HopmapWarning
from hopmap.simulator import Op, Parameters, lower, program_of, simulate
from hopmap.simulator.export.simgrid import (
    ENVELOPE,
    FLOPS,
    platform_xml,
    smpirun_options,
    write,
)
from hopmap.simulator.parameters.settings import configure
from hopmap.simulator.run_plan import absorb, paths, speeds
from hopmap.topologies import TopologyError, haec, mesh, topology_from_spec, torus
from hopmap.traces import TraceError
from hopmap.traces.nas.benchmarks import nas_folded
from support.made_traces import fence, put, window_trace
from support.slow import examples


def lines_of(folder):
    names = (folder / "traces.txt").read_text().splitlines()
    return [(folder / name).read_text().splitlines() for name in names]


def read_tit(folder):
    """Return the lists of `program_of`; a wait takes the oldest request of its ends and tag."""
    lists = []
    for rank, lines in enumerate(lines_of(folder)):
        words = [line.split() for line in lines]
        assert {word[0] for word in words} == {str(rank)}
        assert (words[0][1:], words[-1][1:]) == (["init"], ["finalize"])
        made, requests = [], {}
        for _, action, *given_ in words[1:-1]:
            if action == "compute":
                made.append(("compute", float(given_[0]) / FLOPS))
                continue
            if action == "wait":
                made.append(("wait", requests[tuple(map(int, given_))].pop(0)))
                continue
            peer, tag, size = map(int, given_)
            if action in ("isend", "irecv"):
                ends = (rank, peer) if action == "isend" else (peer, rank)
                requests.setdefault((*ends, tag), []).append(len(made))
            made.append((action, peer, size, tag))
        lists.append(made)
    return lists


def test_every_action_as_smpirun_reads_it(tmp_path):
    program = program_of(
        "all",
        [
            [("compute", 0.5), ("send", 1, 100, 7), ("irecv", 1, 0, 3), ("wait", 2)],
            [("recv", 0, 1, 7), ("isend", 0, 20, 3), ("compute", 0.25), ("wait", 1)],
        ],
    )
    write(tmp_path / "out", program, Parameters(), None)
    # Tags are numbered from 0; a receive has the size of the message that it takes.
    assert lines_of(tmp_path / "out") == [
        [
            "0 init",
            "0 compute 500000000.0",
            "0 send 1 1 100",
            "0 irecv 1 0 20",
            "0 wait 1 0 0",
            "0 finalize",
        ],
        [
            "1 init",
            "1 recv 0 1 100",
            "1 isend 0 0 20",
            "1 compute 250000000.0",
            "1 wait 1 0 0",
            "1 finalize",
        ],
    ]


def test_loops_are_written_out(tmp_path):
    body = [("compute", 1.0), ("isend", 1, 8), ("wait", 1)]
    program = program_of("loop", [[("repeat", 3, body)], [("repeat", 3, [("recv", 0, 8)])]])
    write(tmp_path / "out", program, Parameters(), None)
    first, second = lines_of(tmp_path / "out")
    assert first[1:-1] == ["0 compute 1000000000.0", "0 isend 1 0 8", "0 wait 0 1 0"] * 3
    assert second[1:-1] == ["1 recv 0 0 8"] * 3


def test_waits_out_of_order_find_their_own_request(tmp_path):
    # A wait of the format is for the oldest request: these need tags of their own.
    ends = [("isend", 1, 10), ("isend", 1, 20), ("wait", 1), ("wait", 0), ("send", 1, 30)]
    program = program_of("back", [ends, [("recv", 0, 0)] * 3])
    write(tmp_path / "out", program, Parameters(), None)
    (_, a, b, waits_b, waits_a, last, _), received = lines_of(tmp_path / "out")
    assert waits_b.split()[-1] == b.split()[3] != a.split()[3] == waits_a.split()[-1]
    tags = [line.split()[3] for line in (a, b, last)]
    assert [line.split()[3] for line in received[1:-1]] == tags


@st.composite
def programs(draw):
    """Ranks that exchange messages, under few tags, and wait for them in any order."""
    ranks = draw(st.integers(1, 4))
    messages = draw(
        st.lists(
            st.tuples(
                st.integers(0, ranks - 1),
                st.integers(0, ranks - 1),
                st.integers(0, 10**5),
                st.integers(0, 2),
            ).filter(lambda m: m[0] != m[1]),
            max_size=12,
        )
        if ranks > 1
        else st.just([])
    )
    lists = []
    for r in range(ranks):
        posted = [("irecv", s, 0, tag) for s, t, _, tag in messages if t == r]
        posted += [("isend", t, size, tag) for s, t, size, tag in messages if s == r]
        waits = [("wait", k) for k in draw(st.permutations(range(len(posted))))]
        lists.append([*posted, ("compute", draw(st.integers(0, 9)) * 1e-6), *waits])
    return lists


@examples(60)
@given(lists=programs(), eager=st.sampled_from([0, 10**4, 10**6]))
def test_what_is_read_back_replays_alike(tmp_path_factory, lists, eager):
    program = program_of("random", lists)
    folder = tmp_path_factory.mktemp("tit") / "out"
    write(folder, program, Parameters(), None)
    again = program_of("again", read_tit(folder))
    assert again.kind.tolist() == program.kind.tolist()
    assert again.target.tolist() == program.target.tolist()
    ends = [
        simulate(p, mesh((5,)), range(len(lists)), parameters=Parameters(eager_limit=eager)).finish
        for p in (program, again)
    ]
    assert ends[0] == pytest.approx(ends[1], rel=1e-12)


@pytest.mark.parametrize("name", ["lu.S.4", "mg.S.16", "is.S.16"])
def test_a_recorded_trace_keeps_all_its_messages(tmp_path, lowered, name):
    program = lowered(name)
    write(tmp_path / "out", program, Parameters(), None)
    again = program_of(name, read_tit(tmp_path / "out"))
    for matrix in ("src", "dst", "messages", "bytes"):
        assert np.array_equal(getattr(again.traffic(), matrix), getattr(program.traffic(), matrix))
    assert again.compute.sum() == pytest.approx(program.compute.sum(), rel=1e-12)
    # Messages meet the same receives, found by place among the sends and among all operations.
    assert again.receives().tolist() == program.receives().tolist()


def test_compute_is_scaled_and_left_out_at_zero(tmp_path):
    program = lower(nas_folded("lu.S.4", steps=1))
    for scale in (2.0, 0.0):
        write(
            tmp_path / "out", absorb(program, Parameters(compute_scale=scale)), Parameters(), None
        )
        found = [
            float(line.split()[2])
            for lines in lines_of(tmp_path / "out")
            for line in lines
            if " compute " in line
        ]
        done = simulate(program, mesh((4,)), range(4)).compute.sum()
        assert sum(found) == pytest.approx(done * scale * FLOPS, rel=1e-12)
        assert bool(found) == (scale > 0)


def test_what_goes_on_in_the_background_cannot_be_said(tmp_path, lowered):
    program = lowered("edge.X.8")
    assert (program.kind == Op.START).any()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "kept").write_text("as it was")
    with pytest.raises(
        TraceError, match=r"rank 0 begins a non-blocking collective, or has threads:"
    ):
        write(tmp_path / "out", program, Parameters(), None)
    assert (tmp_path / "out" / "kept").read_text() == "as it was"


def test_what_others_put_and_get_cannot_be_said_either(tmp_path):
    program = lower(window_trace([[put(0, 1, 8), fence(0)], [fence(0)]]))
    said = "made: rank 1 is the target of one-sided operations: expected"
    puts = "made: 2 puts, and answers of memory, are written as standard"
    with pytest.warns(HopmapWarning, match=puts), pytest.raises(TraceError, match=said):
        write(tmp_path / "out", program, Parameters(), None)


def test_modes_that_the_format_lacks_are_told(tmp_path):
    program = program_of("modes", [[("bsend", 1, 8)], [("recv", 0, 8)]])
    with pytest.warns(HopmapWarning, match="modes: 1 buffered, synchronous or ready sends are"):
        write(tmp_path / "written", program, Parameters(), None)


# Where the models coincide: eager messages, no overheads, nothing but links that SimGrid has.
ALIKE = Parameters(
    overhead_send=0,
    overhead_recv=0,
    injection_bandwidth=1e15,
    injection_latency=0,
    ejection_bandwidth=1e15,
    ejection_latency=0,
    eager_limit=2**30,
    flow_sharing="round_trip",
)
needs_smpirun = pytest.mark.skipif(shutil.which("smpirun") is None, reason="SimGrid not installed")


def document(topology, parameters=ALIKE, zone="routes"):
    return ET.fromstring("".join(platform_xml(topology, parameters, zone)))


@pytest.mark.parametrize("spec", ["torus:4x3", "mesh:2x2*3", "haec:2x2x2", "fattree:4x2"])
def test_routes_of_the_platform_are_those_of_the_topology(spec):
    topology, parameters = topology_from_spec(spec), Parameters(memory_latency=3e-7)
    zone = document(topology, parameters).find("zone")
    speed = {
        link.get("id"): (link.get("bandwidth"), link.get("latency")) for link in zone.iter("link")
    }
    routes = {
        (route.get("src"), route.get("dst")): [c.get("id") for c in route]
        for route in zone.iter("route")
    }
    assert len(routes) == topology.nodes**2
    for (source, target), crossed in routes.items():
        ends = [int(name.removeprefix("node")) for name in (source, target)]
        _, links = topology.routes(ends[:1], ends[1:])
        kinds = [topology.kinds[k] for k in topology.link_kind[links]]
        if source == target:
            expected = [(20e9, 3e-7)]
        else:
            ways = [(kind.bandwidth, kind.latency) for kind in kinds]
            expected = [(24e9, 200e-9), *ways, (24e9, 200e-9)]
            assert crossed[1:-1] == [f"s{link}" for link in links]
        assert [speed[name] for name in crossed] == [(f"{b!r}Bps", f"{t!r}s") for b, t in expected]
    assert [host.get("core") for host in zone.iter("host")] == [str(s) for s in topology.slots]


def test_a_torus_of_simgrid_has_the_links_of_the_topology():
    (cluster,) = document(torus((4, 3, 2), slots=2).with_links(bandwidth=5e9), zone="torus")
    assert cluster.attrib == {
        "id": "network",
        "prefix": "node",
        "suffix": "",
        "radical": "0-23",
        "speed": "1000000000.0f",
        "core": "2",
        "topology": "TORUS",
        "topo_parameters": "4,3,2",
        "bw": "5000000000.0Bps",
        "lat": "1e-07s",
        "sharing_policy": "SPLITDUPLEX",
        "loopback_bw": "20000000000.0Bps",
        "loopback_lat": "2e-07s",
    }


@pytest.mark.parametrize("zone", ["routes", "torus"])
def test_a_platform_says_that_its_figures_are_assumed_and_who_writes_others(zone):
    text = "".join(platform_xml(torus((3,)), Parameters(), zone))
    (said,) = re.findall("<!-- (.*?) -->", text, flags=re.DOTALL)
    for part in ("Assumed", "hopmap list parameters", "1e+09 flop/s", "hopmap convert"):
        assert part in said
    assert "--" not in said


@pytest.mark.parametrize(
    "spec",
    [
        *("torus:4x3", "mesh:2x2*3", "haec:2x2x2", "hypercube:3", "tree:2:3", "cluster:5*2"),
        *("fattree:4x2", "fattree:3x3:1x2:1x2", "dragonfly:2x4x2", "mesh:2", "mesh:2x1x3*2"),
    ],
)
def test_a_platform_is_read_back_as_the_same_network(tmp_path, spec):
    """Every path crosses servers of the same speeds, shared with the same others."""
    topology, parameters = topology_from_spec(spec), Parameters(memory_latency=3e-7)
    file = tmp_path / "platform.xml"
    file.write_text("".join(platform_xml(topology, parameters)))
    back, given = configure(topology_from_spec(f"file:{file}"), ())
    assert back.slots.tolist() == topology.slots.tolist()
    assert back.names == tuple(f"node{n}" for n in range(topology.nodes))
    u, v = (x.ravel() for x in np.indices((topology.nodes, topology.nodes)))
    assert back.distance(u, v).tolist() == topology.hops(u, v).tolist()
    (starts, ours), (begins, theirs) = paths(topology, u, v), paths(back, u, v)
    assert starts.tolist() == begins.tolist()
    for here, there in zip(speeds(topology, parameters), speeds(back, given), strict=True):
        assert here[ours].tolist() == there[theirs].tolist()
    same = dict(zip(ours.tolist(), theirs.tolist(), strict=True))
    assert [same[server] for server in ours.tolist()] == theirs.tolist()
    assert len(set(same.values())) == len(same)


def test_a_torus_of_simgrid_is_read_back_with_its_slots_and_speeds(tmp_path):
    topology, file = torus((4, 3, 2), slots=2).with_links(bandwidth=5e9), tmp_path / "platform.xml"
    file.write_text("".join(platform_xml(topology, Parameters(), "torus")))
    back = topology_from_spec(f"file:{file}")
    assert (back.dims, back.slots.tolist()) == (topology.dims, topology.slots.tolist())
    assert [(k.bandwidth, k.latency) for k in back.kinds] == [(5e9, 1e-7)]
    assert back.parameters["memory.bandwidth"] == Parameters().memory_bandwidth


def test_what_simgrid_cannot_say_is_refused():
    with pytest.raises(TopologyError, match=r"zone torus: mesh:4: expected a torus"):
        document(mesh((4,)), zone="torus")
    with pytest.raises(TopologyError, match=r"zone torus: haec:2x2x2: expected a torus"):
        document(haec((2, 2, 2)), zone="torus")
    with pytest.raises(TopologyError, match=r"unknown zone 'tours' \(did you mean torus\?\)"):
        document(torus((4,)), zone="tours")
    with pytest.raises(TopologyError, match=r"1025 nodes: expected at most 1024"):
        document(mesh((1025,)))


def smpirun(folder, program, topology, node_of, parameters=ALIKE, zone="routes"):
    """Makespan by SimGrid, all its rates worked out anew at each event."""
    write(folder, absorb(program, parameters), parameters, None)
    (folder / "platform.xml").write_text("".join(platform_xml(topology, parameters, zone)))
    (folder / "hosts.txt").write_text("".join(f"node{node}\n" for node in node_of))
    files = {"-replay": "traces.txt", "-platform": "platform.xml", "-hostfile": "hosts.txt"}
    options = [*smpirun_options(parameters), "--cfg=network/optim:Full"]
    done = subprocess.run(
        ["smpirun", *chain(*files.items()), *options, "--log=root.fmt:%.15r%e%m%n"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return float(re.findall(r"^([\d.]+) Simulation time", done.stderr + done.stdout, re.M)[-1])


def ours(program, topology, node_of, parameters=ALIKE):
    """Makespan by the flow engine, of messages in SimGrid's envelopes."""
    sends = (program.kind >= Op.SEND) & (program.kind <= Op.IRECV)
    program = replace(program, size=program.size + ENVELOPE * sends)
    parameters = replace(parameters, eager_limit=parameters.eager_limit + ENVELOPE)
    return simulate(program, topology, node_of, parameters=parameters, engine="flow").makespan


def at_once(ranks, messages):
    """Everyone posts all, and waits for all."""
    lists = [
        [("irecv", s, size, k) for k, (s, t, size) in enumerate(messages) if t == r]
        + [("isend", t, size, k) for k, (s, t, size) in enumerate(messages) if s == r]
        for r in range(ranks)
    ]
    waits = [[("wait", k) for k in range(len(posted))] for posted in lists]
    return program_of("at once", [a + b for a, b in zip(lists, waits, strict=True)])


def rounds(ranks, times, rng):
    lists = [[] for _ in range(ranks)]
    for k in range(times):
        target = rng.permutation(ranks)
        for source in np.flatnonzero(target != np.arange(ranks)):
            size = int(rng.integers(1, 10_000))
            lists[source].append(("send", int(target[source]), size, k))
            lists[target[source]].append(("recv", int(source), size, k))
    return program_of("rounds", lists)


RNG = np.random.default_rng(0)
MB = 10**6
CASES = {
    "one message over 1 hop": at_once(16, [(0, 1, MB)]),
    "one message over 4 hops": at_once(16, [(0, 10, MB)]),
    "one message to its own node": at_once(16, [(5, 5, MB)]),
    "an empty message": at_once(16, [(0, 3, 0)]),
    "two flows over one link": at_once(16, [(0, 1, MB), (0, 2, MB)]),
    "incast": at_once(16, [(s, 0, MB) for s in range(1, 16)]),
    "ring shift": at_once(16, [(s, (s + 1) % 16, MB) for s in range(16)]),
    "permutation": at_once(16, [(s, int(t), MB) for s, t in enumerate(RNG.permutation(16))]),
    "pairs": at_once(16, [tuple(map(int, RNG.integers(0, (16, 16, MB)))) for _ in range(99)]),
    "rounds": rounds(16, 20, RNG),
}


@needs_smpirun
@pytest.mark.parametrize("case", CASES)
def test_simgrid_and_the_flow_engine_agree(tmp_path, case):
    node_of, topology = np.random.default_rng(3).permutation(16), torus((4, 4))
    times = (
        smpirun(tmp_path / "tit", CASES[case], topology, node_of),
        ours(CASES[case], topology, node_of),
    )
    assert times[0] == pytest.approx(times[1], rel=1e-9)


@needs_smpirun
def test_they_agree_on_the_ends_of_a_path_and_on_overheads(tmp_path):
    parameters = Parameters(eager_limit=2**30, flow_sharing="round_trip")
    program = program_of(
        "ends",
        [
            [("compute", 1e-3), ("send", 1, MB), ("recv", 1, 1)],
            [("recv", 0, MB), ("send", 0, 1)],
        ],
    )
    topology = mesh((3, 3))
    times = (
        smpirun(tmp_path / "tit", program, topology, [0, 8], parameters),
        ours(program, topology, [0, 8], parameters),
    )
    assert times[0] == pytest.approx(times[1], rel=1e-9)


@needs_smpirun
def test_a_rendezvous_of_simgrid_has_no_handshake(tmp_path):
    # Request and grant cross four links each.
    parameters = replace(ALIKE, eager_limit=0)
    program = program_of("one", [[("send", 1, MB)], [("recv", 0, MB)]])
    topology = mesh((5,))
    alone = smpirun(tmp_path / "tit", program, topology, [0, 4], parameters)
    with_handshake = ours(program, topology, [0, 4], parameters)
    assert with_handshake - alone == pytest.approx(8 * topology.kinds[0].latency, rel=1e-6)


@needs_smpirun
def test_they_agree_on_a_recorded_trace_and_on_a_torus_of_simgrid(tmp_path, lowered):
    program, topology = lowered("lu.S.4"), torus((3, 2))
    node_of = [4, 0, 5, 1]
    mine = ours(program, topology, node_of)
    for zone in ("routes", "torus"):
        theirs = smpirun(tmp_path / zone, program, topology, node_of, zone=zone)
        assert theirs == pytest.approx(mine, rel=1e-6)
