"""SimGrid itself beside the flow engine, where it is installed; its platform files everywhere."""

from __future__ import annotations

import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import chain

import numpy as np
import pytest

from hopmap.simulator import Op, Parameters, program_of, simulate
from hopmap.simulator.export.simgrid_platform import ENVELOPE, platform_xml, smpirun_options
from hopmap.simulator.export.time_independent import write_tit
from hopmap.simulator.parameters.settings import configure
from hopmap.simulator.run_plan import paths, speeds
from hopmap.topologies import TopologyError, haec, mesh, topology_from_spec, torus

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
    with pytest.raises(TopologyError, match=r"unknown zone 'tours': did you mean 'torus'\?"):
        document(torus((4,)), zone="tours")
    with pytest.raises(TopologyError, match=r"1025 nodes: expected at most 1024"):
        document(mesh((1025,)))


def smpirun(folder, program, topology, node_of, parameters=ALIKE, zone="routes"):
    """Makespan by SimGrid, all its rates worked out anew at each event."""
    write_tit(folder, program, compute_scale=parameters.compute_scale)
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
