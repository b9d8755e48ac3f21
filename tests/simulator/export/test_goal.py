"""GOAL schedules, read back by a reader written from LogGOPSim's txt2bin.re."""

from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopmap.errors import HopmapWarning
from hopmap.simulator import Parameters, lower, program_of, simulate
from hopmap.simulator.export.goal import loggops_options, write_goal
from hopmap.simulator.run_plan import absorb
from hopmap.topologies import cluster
from hopmap.traces import Traffic
from hopmap.traces.nas.benchmarks import nas_folded

OPERATION = re.compile(r"(\w+): (?:(calc) (\d+)|(send|recv) (\d+)b (?:to|from) (\d+) tag (\d+))")
NEED = re.compile(r"(\w+) (i?requires) (\w+)")


def read_goal(path):
    """Operations and needs of every rank; a need is of labels that stand before it."""
    head, *blocks = path.read_text().split("\nrank ")
    ranks = []
    for rank, block in enumerate(blocks):
        first, *lines, last = block.strip().splitlines()
        assert (first, last) == (f"{rank} {{", "}")
        operations, needs = {}, []
        for line in lines:
            need = NEED.fullmatch(line)
            if need is not None:
                assert need[1] in operations
                assert need[3] in operations
                needs.append(need.groups())
                continue
            found = OPERATION.fullmatch(line)
            assert found[1] not in operations
            operations[found[1]] = (found[2] or found[4], *map(int, filter(None, (found[3], *found.group(5, 6, 7)))))  # fmt: skip  # noqa: E501
        ranks.append((operations, needs))
    assert head.strip() == f"num_ranks {len(ranks)}"
    return ranks


def traffic_of_goal(ranks):
    rows = [
        (rank, peer, 1, size)
        for rank, (operations, _) in enumerate(ranks)
        for word, *given_ in operations.values()
        if word == "send"
        for size, peer, _ in [given_]
    ]
    columns = zip(*rows, strict=True) if rows else ((),) * 4
    return Traffic.from_pairs(len(ranks), *(np.array(c, dtype=np.int64) for c in columns))


def test_every_operation_as_txt2bin_reads_it(tmp_path):
    program = program_of(
        "all",
        [
            [("compute", 5e-7), ("isend", 1, 100, 7), ("irecv", 1, 0, 3), ("wait", 1), ("wait", 2)],
            [("recv", 0, 100, 7), ("send", 0, 0, 3), ("compute", 2e-9)],
        ],
    )
    write_goal(tmp_path / "x.goal", program)
    # Tags are numbered, -1 of other rows being number 0.
    assert (
        (tmp_path / "x.goal").read_text()
        == """num_ranks 2

rank 0 {
c0: calc 500
l0: send 100b to 1 tag 2
l0 requires c0
l1: recv 1b from 1 tag 1
l1 irequires l0
l2: calc 0
l2 irequires l1
l2 requires l0
l3: calc 0
l3 requires l2
l3 requires l1
}

rank 1 {
l5: recv 100b from 0 tag 2
l6: send 1b to 0 tag 1
l6 requires l5
c7: calc 2
c7 requires l6
}
"""
    )


@pytest.mark.parametrize("name", ["edge.X.8", "lu.S.4", "is.S.16", "mg.S.16"])
def test_a_recorded_trace_sends_the_same_and_computes_the_same(tmp_path, lowered, name):
    """Non-blocking collectives (edge.X.8) included; the empty message has a byte."""
    program = lowered(name)
    write_goal(tmp_path / "x.goal", absorb(program, Parameters(compute_scale=0.5)))
    ranks, traffic = read_goal(tmp_path / "x.goal"), program.traffic()
    written = traffic_of_goal(ranks)
    assert (written.src.tolist(), written.dst.tolist()) == (
        traffic.src.tolist(),
        traffic.dst.tolist(),
    )
    assert written.messages.tolist() == traffic.messages.tolist()
    empty = written.bytes - traffic.bytes
    assert (empty >= 0).all()
    assert (empty <= traffic.messages).all()
    for rank, (operations, _) in enumerate(ranks):
        worked = sum(given_[0] for word, *given_ in operations.values() if word == "calc")
        rows = program.rank_of_row() == rank
        assert worked == pytest.approx(0.5e9 * program.compute[rows].sum(), abs=50)


def test_loops_are_written_out(tmp_path):
    program = lower(nas_folded("lu.S.4", steps=3))
    write_goal(tmp_path / "x.goal", program)
    sends = traffic_of_goal(read_goal(tmp_path / "x.goal"))
    assert sends.messages.tolist() == program.traffic().messages.tolist()


messages = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 10**6)), max_size=30
)


@settings(deadline=None)
@given(messages)
def test_sends_meet_receives_of_their_size_in_order(tmp_path_factory, rows):
    lists = [[] for _ in range(5)]
    for source, target, size in rows:
        lists[source].append(("isend", target, size, size % 3))
        lists[target].append(("irecv", source, 0, size % 3))
    lists = [posted + [("wait", k) for k in range(len(posted))] for posted in lists]
    path = tmp_path_factory.mktemp("goal") / "x.goal"
    write_goal(path, program_of("any", lists))
    ways = {"send": {}, "recv": {}}
    for rank, (operations, _) in enumerate(read_goal(path)):
        for word, *given_ in operations.values():
            if word in ways:
                size, peer, tag = given_
                ends = (rank, peer) if word == "send" else (peer, rank)
                ways[word].setdefault((*ends, tag), []).append(size)
    assert ways["send"] == ways["recv"]


def reduce_of_8():
    size, sent = 1024, {1: 0, 2: 0, 3: 1, 4: 0, 5: 1, 6: 2, 7: 3}
    lists = [[("recv", s, size) for s in range(7, 0, -1) if sent[s] == r] for r in range(8)]
    for source, target in sent.items():
        lists[source].append(("send", target, size))
    return program_of("reduce", lists)


def loggopsim(folder, program, options, scale=1.0):
    write_goal(folder / "x.goal", absorb(program, Parameters(compute_scale=scale)))
    subprocess.run(["txt2bin", "-i", "x.goal", "-o", "x.bin"], cwd=folder, check=True)
    done = subprocess.run(
        ["LogGOPSim", "-f", "x.bin", *options],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    return [int(time) for time in re.findall(r"Host \d+: (\d+)", done.stdout)]


LOGGP = {
    "overhead_send": 1500e-9,
    "overhead_recv": 1500e-9,
    "gap": 1000e-9,
    "gap_per_byte": 6e-9,
    "eager_limit": 2**30,
    "packet_size": 2**30,
    "injection_bandwidth": 1e300,
    "ejection_bandwidth": 1e300,
    "injection_latency": 1250e-9,
    "ejection_latency": 1250e-9,
}
needs_loggopsim = pytest.mark.skipif(
    not (shutil.which("txt2bin") and shutil.which("LogGOPSim")), reason="LogGOPSim not installed"
)


def test_options_are_those_of_loggopsims_readme():
    options = loggops_options(Parameters(**LOGGP))
    assert options[:4] == [f"--LogGOPS_{k}" for k in ("L=2500", "o=1500", "g=1000", "G=6")]
    assert options[5] == "--LogGOPS_S=1073741823"


@needs_loggopsim
def test_loggopsim_has_the_times_of_its_readme(tmp_path):
    times = loggopsim(tmp_path, reduce_of_8(), loggops_options(Parameters(**LOGGP)))
    assert times == [34914, 24776, 13138, 13138, 1500, 1500, 1500, 1500]


@needs_loggopsim
@pytest.mark.parametrize(
    ("name", "apart"), [("edge.X.8", 3e-4), ("lu.S.4", 0.032), ("mg.S.16", 0.013)]
)
def test_loggopsim_and_hopmap_are_close_on_recorded_traces(tmp_path, lowered, name, apart):
    """LogGOPSim's receivers are busy until the last byte, hopmap's are not: it is never faster."""
    program, parameters = lowered(name), Parameters(**LOGGP)
    network = cluster([1] * program.ranks).with_links(bandwidth=1e300, latency=0)
    mine = simulate(
        program, network, range(program.ranks), parameters=parameters, engine="analytic"
    )
    theirs = max(loggopsim(tmp_path, program, loggops_options(parameters)))
    assert 0 <= theirs / (mine.makespan * 1e9) - 1 <= apart


def test_modes_that_the_format_lacks_are_told(tmp_path):
    program = program_of("modes", [[("bsend", 1, 8)], [("recv", 0, 8)]])
    with pytest.warns(HopmapWarning, match="modes: 1 buffered, synchronous or ready sends are"):
        write_goal(tmp_path / "written", program)
