"""Chakra execution traces: what is in the files, how a rank does its nodes, what is refused."""

import json
import random
from collections import Counter

import numpy as np
import pytest

from hopmap.simulator import lower, simulate
from hopmap.simulator.parameters.parameters import Parameters
from hopmap.topologies import topology_from_spec
from hopmap.traces import Collective, Kind, TraceError
from hopmap.traces.foreign.chakra.nodes import read_nodes
from hopmap.traces.sources import open_source
from support import about

from .files import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    BARRIER,
    BROADCAST,
    COLL,
    COMP,
    GATHER,
    RECV,
    REDUCE,
    REDUCE_SCATTER,
    SCATTER,
    SEND,
    coll,
    counted,
    file_of,
    node,
    write,
)


def read(folder, *ranks):
    return open_source(write(folder / "chakra", *ranks)).calls()


def drawn(seed, ranks=4, count=60):
    """Ranks of as many nodes, with collectives in the same order, and messages round a ring."""
    draw = random.Random(seed)
    kinds = [draw.choice((COMP, COMP, COLL, SEND)) for _ in range(count)]
    sizes = [draw.randrange(1, 10**6) for _ in range(count)]
    deps = [draw.sample(range(k), min(k, draw.randrange(3))) for k in range(count)]
    operations = [draw.choice((ALL_REDUCE, ALL_GATHER, ALL_TO_ALL)) for _ in range(count)]
    for rank in range(ranks):
        nodes = []
        for k, kind in enumerate(kinds):
            if kind == COMP:
                nodes.append(node(k, COMP, draw.randrange(500), deps[k]))
            elif kind == COLL:
                nodes.append(coll(k, operations[k], sizes[k], deps[k]))
            else:
                about_it = {"comm_tag": k, "comm_size": sizes[k]}
                nodes += [
                    node(k, SEND, 1, deps[k], comm_dst=(rank + 1) % ranks, **about_it),
                    node(count + k, RECV, 1, deps[k], comm_src=(rank - 1) % ranks, **about_it),
                ]
        yield nodes


@pytest.mark.parametrize("seed", range(8))
def test_everything_in_the_files_is_read(seed, tmp_path):
    """Counts of nodes, times, dependencies and bytes are those of another parser."""
    ranks = list(drawn(seed))
    trace = read(tmp_path, *ranks)
    sent = 0
    for rank, nodes in enumerate(ranks):
        file = tmp_path / "chakra" / f"step.{rank}.et"
        types, sums = counted(file.read_bytes())
        read_back = read_nodes(file)
        assert types == Counter(int(each.type) for each in read_back)
        computed = sum(n.seconds for n in read_back)
        assert round(computed * 1e6) == sums["micros"] and sums["data"] == sum(
            len(n.data) for n in read_back
        )
        own = slice(*trace.offsets[rank : rank + 2])
        kinds = trace.kind[own]
        assert np.count_nonzero(kinds == Kind.COLLECTIVE_REQUEST) == types[COLL]
        assert np.count_nonzero(kinds == Kind.COLLECTIVE_COMPLETE) == types[COLL]
        assert np.count_nonzero(kinds == Kind.ISEND) == types[SEND] == types[RECV]
        sent += sums["bytes"]
        ours = sum(n["micros"] for n in nodes if n["kind"] == COMP)
        assert trace.time[own][-1] == pytest.approx(ours * 1e-6, abs=1e-12)
    messages = lower(trace).p2p_traffic()
    collectives = sum(
        n["values"]["comm_size"] for nodes in ranks for n in nodes if n["kind"] == COLL
    )
    assert 2 * messages.bytes.sum() + collectives == sent


def test_groups_have_the_bytes_that_their_operation_means(tmp_path):
    """Bytes that each rank sends where rings and pairs carry them out, of 4 ranks and 4,000 B."""
    rings = {"allreduce": "ring", "allgather": "ring", "alltoall": "pairwise"}
    rings |= {"reduce_scatter_block": "pairwise", "bcast": "linear", "reduce": "linear"}
    rings |= {"gather": "linear", "scatter": "linear"}
    for operation, expected in (
        (ALL_REDUCE, [6000] * 4),
        (ALL_GATHER, [12000] * 4),
        (ALL_TO_ALL, [3000] * 4),
        (REDUCE_SCATTER, [3000] * 4),
        (BROADCAST, [12000, 0, 0, 0]),
        (REDUCE, [0, 4000, 4000, 4000]),
        (GATHER, [0, 4000, 4000, 4000]),
        (SCATTER, [3000, 0, 0, 0]),
        (BARRIER, None),
    ):
        trace = read(tmp_path, *[[coll(1, operation, 4000)]] * 4)
        traffic = lower(trace, rings).traffic()
        sent = np.bincount(traffic.src, traffic.bytes, minlength=4).tolist()
        with about(operation):
            assert expected is None or sent == expected
            assert len(traffic.bytes)


def test_the_root_is_a_rank_of_the_group(tmp_path):
    ranks = [[coll(1, BROADCAST, 800, root=2, pg_name="g")] for _ in range(4)]
    ranks[0] = [node(1, COMP, 1)]
    trace = read(tmp_path, *ranks)
    assert [each.tolist() for each in trace.communicators] == [[0, 1, 2, 3], [1, 2, 3]]
    assert set(lower(trace, {"bcast": "linear"}).traffic().src.tolist()) == {2}
    assert not any("root" in key for key in trace.ignored)
    assert any("root" in key for key in read(tmp_path, *[[coll(1, BROADCAST, 8)]] * 2).ignored)


def test_groups_are_listed_in_a_file_or_are_those_that_name_them(tmp_path):
    ranks = [[coll(1, ALL_REDUCE, 8, pg_name="abba"[rank])] for rank in range(4)]
    trace = read(tmp_path, *ranks)
    assert [each.tolist() for each in trace.communicators[1:]] == [[0, 3], [1, 2]]
    listed = tmp_path / "chakra" / "comm_group.json"
    source = open_source(tmp_path / "chakra")
    before = source.digest()
    listed.write_text('{"a": [3, 0], "b": [1, 2]}')
    assert [each.tolist() for each in source.calls().communicators[1:]] == [[3, 0], [1, 2]]
    assert source.digest() != before
    for text, said in (
        ('{"a": [3, 4]}', "comm_group.json: expected groups like"),
        ('{"a": [3, 3]}', "comm_group.json: expected groups like"),
        ('["a"', "comm_group.json: expected groups like"),
        ('{"a": [3]}', r"step.0.et: group 'a': comm_group.json lists ranks \[3\]: expected rank 0"),
    ):
        listed.write_text(text)
        with about(text), pytest.raises(TraceError, match=said):
            source.calls()


QUICK = dict.fromkeys(("overhead_send", "overhead_recv", "injection_latency"), 0.0)


def runtime(trace, size):
    network, parameters = topology_from_spec(f"cluster:{size}"), Parameters(**QUICK)
    program = lower(trace, {"allreduce": "ring"})
    return simulate(program, network, range(size), engine="flow", parameters=parameters).makespan


def test_communication_goes_on_while_the_rank_computes(tmp_path):
    """c1, then an allreduce that c3 waits for and c2 does not: both take c1 + the longer + c3."""
    for second in (100, 9000):
        nodes = [
            node(1, COMP, 1000),
            coll(2, ALL_REDUCE, 40_000_000, [1]),
            node(3, COMP, 2000, [2]),
            node(4, COMP, second, [1]),
        ]
        trace = read(tmp_path, nodes, nodes)
        alone = runtime(read(tmp_path, *[[coll(1, ALL_REDUCE, 40_000_000)]] * 2), 2)
        assert alone > 3.9e-3
        expected = 1e-3 + max(alone, second * 1e-6) + 2e-3
        assert runtime(trace, 2) == pytest.approx(expected, rel=0.01)


def test_cpu_and_gpu_work_at_once_and_each_does_one_node_at_a_time(tmp_path):
    nodes = [
        node(1, COMP, 700, is_cpu_op=True),
        node(2, COMP, 300),
        node(3, COMP, 500),
        coll(4, ALL_REDUCE, 8, [1, 2, 3]),
    ]
    trace = read(tmp_path, nodes)
    assert trace.time[-1] == pytest.approx(800e-6)
    assert [n for key, n in trace.ignored.items() if "overlap" in key] == [2]


def test_messages_go_from_stage_to_stage(tmp_path):
    ranks = [
        [node(1, COMP, 1000), node(2, SEND, 1, [1], comm_dst=1, comm_tag=7, comm_size=10_000_000)],
        [node(1, RECV, 1, comm_src=0, comm_tag=7, comm_size=10_000_000), node(2, COMP, 500, [1])],
    ]
    trace = read(tmp_path, *ranks)
    sent = lower(trace).p2p_traffic()
    assert (sent.src.tolist(), sent.dst.tolist(), sent.bytes.tolist()) == ([0], [1], [10_000_000])
    alone = runtime(read(tmp_path, ranks[0][1:] and [ranks[0][1] | {"deps": ()}], ranks[1][:1]), 2)
    assert runtime(trace, 2) == pytest.approx(1e-3 + alone + 0.5e-3, rel=1e-3)


def test_collectives_of_a_group_begin_in_one_order_on_all_ranks(tmp_path):
    """Whatever a rank's computations take, the lower number comes first if nothing else orders."""
    ranks = [
        [node(1, COMP, slow), node(2, COMP, 900 - slow), coll(3, ALL_REDUCE, 8, [1]),
         coll(4, ALL_GATHER, 8, [2])]
        for slow in (100, 800)
    ]  # fmt: skip
    for rank, nodes in enumerate(ranks):
        for each in nodes[:2]:
            each["values"]["is_cpu_op"] = each["number"] == 2 - rank
    trace = read(tmp_path, *ranks)
    done = trace.records.operation[trace.records.operation != 255]
    assert done.tolist() == [Collective.ALLREDUCE, Collective.ALLGATHER] * 2
    assert len(lower(trace).traffic().bytes)


def test_communication_behind_communication_is_said_to_wait(tmp_path):
    nodes = [coll(1, REDUCE_SCATTER, 800), coll(2, ALL_GATHER, 400, [1]), node(3, COMP, 10)]
    trace = read(tmp_path, nodes, nodes)
    assert [n for key, n in trace.ignored.items() if "wait for others" in key] == [2]
    last = trace.time[trace.kind == Kind.COLLECTIVE_REQUEST]
    assert last.tolist() == pytest.approx([0, 10e-6] * 2)


def test_control_dependencies_order_a_rank_without_others(tmp_path):
    nodes = [node(2, COMP, 5, control=[1]), node(1, COMP, 3), coll(3, ALL_REDUCE, 8, control=[2])]
    trace = read(tmp_path, nodes)
    assert trace.time[trace.kind == Kind.COLLECTIVE_REQUEST] == pytest.approx(8e-6)
    assert not any("control" in key for key in trace.ignored)
    nodes.append(node(4, COMP, 1, [3], control=[99]))
    trace = read(tmp_path, nodes)
    assert trace.time[trace.kind == Kind.COLLECTIVE_REQUEST] == pytest.approx(0)
    assert [n for key, n in trace.ignored.items() if "control" in key] == [3]


def test_operations_without_a_time_take_one_at_an_assumed_rate(tmp_path):
    trace = read(tmp_path, [node(1, COMP, 0, num_ops=4 * 10**11), node(2, COMP, 7, num_ops=9)])
    assert trace.time[-1] == pytest.approx(1e-3 + 7e-6)
    assert trace.ignored == {"computations known by num_ops, at 4e+14 operations a second, in": 1}


def test_a_communication_of_the_cpu_is_computation(tmp_path):
    nodes = [node(1, COLL, 70, is_cpu_op=True), coll(2, ALL_REDUCE, 8, [1])]
    trace = read(tmp_path, nodes)
    assert np.count_nonzero(trace.kind == Kind.COLLECTIVE_REQUEST) == 1
    assert trace.time[-1] == pytest.approx(70e-6)


JSON = [
    {"Id": 216, "Name": "aten::add(0)", "NodeType": 4, "ctrlDeps": [3], "data_deps": [],
     "runtime": 318, "is_cpu_op": True},
    {"Id": 435, "Name": "ncclKernel", "NodeType": 7, "data_deps": [216], "runtime": 28,
     "is_cpu_op": False, "comm_type": 0, "comm_size": 4096},
]  # fmt: skip


def test_the_json_form_is_the_same(tmp_path):
    for rank in range(2):
        (tmp_path / f"x.{rank}.json").write_text(json.dumps({"workload_graph": JSON}))
    trace = open_source(tmp_path / "x.0.json").calls()
    assert trace.ranks == 2
    assert trace.time[trace.kind == Kind.COLLECTIVE_REQUEST].tolist() == pytest.approx([318e-6] * 2)
    assert trace.records.size.max() == 2 * 4096


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("Id", "x", "node 1 of workload_graph: id 'x': expected a whole number"),
        ("Id", 216, "node 216 stands there twice"),
        ("NodeType", 8, "type 8 of node 435: expected 0 to 7"),
        ("runtime", -1, "duration -1 of node 435: expected microseconds"),
        ("data_deps", [9], "node 435 waits for node 9, which is not there"),
        ("data_deps", ["9"], "data_deps: expected a list of numbers of nodes"),
        ("comm_type", 11, "node 435: comm_type is 11: expected 0 to 9"),
        ("comm_size", None, "node 435: comm_size is nothing: expected 0 to 9007199254740992"),
        ("num_ops", 1 << 400, "num_ops of node 435: expected at most"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_wrong_values_are_named(key, value, said, tmp_path):
    last = JSON[1] | {key: value} | ({"NodeType": 4, "runtime": 0} if key == "num_ops" else {})
    (tmp_path / "x.0.json").write_text(json.dumps({"workload_graph": [JSON[0], last]}))
    with pytest.raises(TraceError, match=said):
        open_source(tmp_path / "x.0.json").calls()


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        (
            [node(1, SEND, 1, comm_size=8)],
            "step.0.et: node 1: comm_dst is nothing: expected 0 to 0",
        ),
        ([node(1, COMP, 1, [2]), node(2, COMP, 1, [1])], "node 1 waits for itself, over others"),
        ([coll(1, BROADCAST, 8, root=5)], "node 1: root 5: expected a rank of its group"),
        ([], "no trace by its name or its content"),
    ],
)
def test_what_makes_no_sense_is_refused(nodes, said, tmp_path):
    with pytest.raises(TraceError, match=said):
        read(tmp_path, nodes)


def test_ranks_that_disagree_are_refused(tmp_path):
    trace = read(tmp_path, [coll(1, ALL_REDUCE, 8)], [coll(1, ALL_GATHER, 8)])
    with pytest.raises(TraceError):
        lower(trace)


def test_damaged_files_are_a_trace_or_one_line(tmp_path):
    """Cut anywhere, and with any bit turned round."""
    nodes = next(drawn(3, ranks=1, count=25))
    nodes = [each for each in nodes if each["kind"] not in (SEND, RECV)]
    nodes = [
        each | {"deps": [d for d in each["deps"] if d in {n["number"] for n in nodes}]}
        for each in nodes
    ]
    whole, draw = file_of(nodes), random.Random(0)
    file = write(tmp_path / "chakra", nodes)
    refused = 0
    for _ in range(400):
        at = draw.randrange(len(whole))
        turned = bytes((whole[at] ^ 1 << draw.randrange(8),))
        for damaged in (whole[:at], whole[:at] + turned + whole[at + 1 :]):
            file.write_bytes(damaged)
            try:
                lower(open_source(file).calls())
            except TraceError as error:
                assert "\n" not in str(error)
                refused += 1
    assert refused > 400
