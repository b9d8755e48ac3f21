"""Schedules as programs: every dependency is kept, and nothing waits for more."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.simulator import Parameters, Record, lower, program_of, simulate
from hopmap.simulator.export.goal import write_goal
from hopmap.simulator.programs.from_schedule import program_of_schedule
from hopmap.topologies import cluster, mesh
from hopmap.traces import TraceError
from hopmap.traces.foreign.goal.read import read_goal
from hopmap.traces.nas.benchmarks import nas_folded
from support.slow import examples

FREE = Parameters(
    overhead_send=0, overhead_recv=0, gap=0, gap_per_byte=0, injection_latency=0, ejection_latency=0
)


def program_of_text(tmp_path, text):
    file = tmp_path / "x.goal"
    file.write_text(text)
    return program_of_schedule(read_goal(file))


def finish(program, engine="compiled", parameters=FREE, topology=None):
    topology = topology or mesh((program.ranks,))
    nodes = np.arange(program.ranks) % topology.nodes
    return simulate(program, topology, nodes, parameters=parameters, engine=engine).finish


def graph_text(ranks):
    """Write computations with their dependencies: per rank lists of (nanoseconds, needs)."""
    lines = [f"num_ranks {len(ranks)}"]
    for rank, tasks in enumerate(ranks):
        lines.append(f"rank {rank} {{")
        lines += [f"l{k}: calc {time} cpu {k % 3}" for k, (time, _) in enumerate(tasks)]
        for k, (_, needs) in enumerate(tasks):
            lines += [f"l{k} {word} l{of}" for of, word in sorted(needs.items())]
        lines.append("}")
    return "\n".join(lines) + "\n"


@st.composite
def graphs(draw):
    count = draw(st.integers(1, 14))
    tasks = []
    for k in range(count):
        needs = draw(
            st.dictionaries(
                st.integers(0, k - 1), st.sampled_from(("requires", "irequires")), max_size=4
            )
            if k
            else st.just({})
        )
        tasks.append((draw(st.integers(0, 50)) * 1000, needs))
    return tasks


@given(graphs())
@examples(150)
def test_a_rank_takes_as_long_as_its_longest_path(tmp_path_factory, tasks):
    program = program_of_text(tmp_path_factory.mktemp("g"), graph_text([tasks]))
    begin, end = [], []
    for time, needs in tasks:
        at = max((end[of] if word == "requires" else begin[of] for of, word in needs.items()), default=0)  # fmt: skip  # noqa: E501
        begin.append(at)
        end.append(at + time)
    for engine in ("compiled", "simpy"):
        assert finish(program, engine)[0] == pytest.approx(max(end) * 1e-9, abs=1e-15)


@st.composite
def talking(draw):
    """Graphs of several ranks whose messages are sent along rising positions: none can deadlock."""
    ranks, length = draw(st.integers(2, 4)), draw(st.integers(1, 10))
    lines = [[] for _ in range(ranks)]
    needs = [[] for _ in range(ranks)]
    for k in range(length):
        source, target = draw(st.permutations(range(ranks)))[:2]
        size = draw(st.sampled_from((1, 1000, 200_000)))
        lines[source].append(f"l{k}: send {size}b to {target} tag {k % 2}")
        lines[target].append(f"l{k}: recv {size}b from {source} tag {k % 2}")
        extra = draw(st.integers(0, ranks - 1))
        lines[extra].append(f"c{k}: calc {draw(st.integers(0, 30)) * 1000}")
    for rank in range(ranks):
        labels = [line.split(":")[0] for line in lines[rank]]
        # Messages of one channel stay in order, so that both sides meet as they are numbered.
        last = {}
        for at, line in enumerate(lines[rank]):
            key = tuple(word for word in line.split() if not word.endswith("b"))[1:]
            if "calc" not in line and key in last:
                needs[rank].append(f"{labels[at]} irequires {last[key]}")
            last[key] = labels[at]
            for of in draw(st.sets(st.integers(0, at - 1), max_size=2)) if at else ():
                word = draw(st.sampled_from(("requires", "irequires")))
                needs[rank].append(f"{labels[at]} {word} {labels[of]}")
    blocks = [
        "\n".join([f"rank {rank} {{", *lines[rank], *needs[rank], "}"]) for rank in range(ranks)
    ]
    return f"num_ranks {ranks}\n" + "\n".join(blocks) + "\n"


@given(talking())
@examples(100)
def test_schedules_with_messages_end_and_engines_agree(tmp_path_factory, text):
    folder = tmp_path_factory.mktemp("t")
    program = program_of_text(folder, text)
    schedule = read_goal(folder / "x.goal")
    assert program.traffic().same_as(schedule.traffic())
    network = cluster([1] * program.ranks)
    for parameters in (FREE, Parameters(eager_limit=10_000)):
        times = [finish(program, e, parameters, network) for e in ("compiled", "simpy")]
        assert np.array_equal(*times)


def test_chains_on_one_rank_do_not_wait_for_each_other(tmp_path):
    """The second chain's answer is what the first chain's message needs: none may block it."""
    text = """num_ranks 2
rank 0 {
a: recv 8b from 1 tag 1
b: calc 1000
c: recv 8b from 1 tag 2
d: calc 1000
e: send 8b to 1 tag 3
b requires a
d requires c
e requires d
}
rank 1 {
a: recv 8b from 0 tag 3
b: send 8b to 0 tag 1
c: send 8b to 0 tag 2
b requires a
}
"""
    assert finish(program_of_text(tmp_path, text))[0] >= 2e-6


def test_a_fan_out_of_branches_is_joined(tmp_path):
    lines = ["num_ranks 1", "rank 0 {", "a: calc 1000"]
    for k in range(200):
        lines += [f"b{k}: calc {k}", f"b{k} requires a"]
    lines += ["z: calc 5"] + [f"z requires b{k}" for k in range(200)] + ["}", ""]
    program = program_of_text(tmp_path, "\n".join(lines))
    assert finish(program)[0] == pytest.approx(1204e-9)


def test_a_circle_is_refused(tmp_path):
    text = "num_ranks 1\nrank 0 {\na: calc 1\nb: calc 1\na requires b\nb requires a\n}\n"
    with pytest.raises(TraceError, match="rank 0: operation 0 waits for itself"):
        program_of_text(tmp_path, text)


def test_open_receives_are_given_to_senders_and_told(tmp_path):
    text = """num_ranks 3
rank 0 {
a: recv 8b from -1 tag 5
b: recv 8b from 2 tag -1
}
rank 1 {
a: send 8b to 0 tag 5
}
rank 2 {
a: send 8b to 0 tag 6
}
"""
    program = program_of_text(tmp_path, text)
    assert finish(program)[0] > 0
    assert [entry.count for entry in program.omitted] == [2]
    with pytest.raises(TraceError, match=r"rank 0, operation 1.*no message is left"):
        program_of_text(tmp_path, text.replace("tag 6", "tag 5").replace("to 0 tag 5\n}\nr", "to 1 tag 5\n}\nr"))  # fmt: skip  # noqa: E501


def test_processors_and_interfaces_are_told(tmp_path):
    text = "num_ranks 1\nrank 0 {\na: calc 5 cpu 1\nb: calc 7 cpu 1\nc: send 1b to 0 nic 1\nd: recv 1b from 0\n}\n"  # noqa: E501
    said = [str(entry) for entry in program_of_text(tmp_path, text).omitted]
    assert said == [
        "operations on processors (cpu) other than 0, ordered by dependencies alone: 2",
        "computations that may overlap others on their processor (cpu): 1",
        "operations on network interfaces (nic) other than 0, treated as one interface: 1",
    ]


@pytest.mark.parametrize("name", ["lu.S.4", "mg.S.8", "is.S.4", "cg.S.4"])
def test_what_is_written_replays_as_before(tmp_path, name):
    program = lower(nas_folded(name, steps=2))
    write_goal(tmp_path / "x.goal", program)
    again = program_of_schedule(read_goal(tmp_path / "x.goal"))
    # GOAL has no messages of 0 bytes, and whole nanoseconds.
    assert np.array_equal(again.traffic().messages, program.traffic().messages)
    network = cluster([1] * program.ranks)
    times = [finish(each, parameters=Parameters(), topology=network) for each in (program, again)]
    assert np.allclose(*times, rtol=1e-6)


def test_background_tasks_are_written_and_read_again(tmp_path):
    operations = [
        [("compute", 1e-6), ("isend", 1, 100, 7), ("irecv", 1, 100, 3), ("wait", 2), ("wait", 1)],
        [("irecv", 0, 100, 7), ("compute", 5e-6), ("send", 0, 100, 3), ("wait", 0)],
    ]
    program = program_of("hand", operations)
    write_goal(tmp_path / "x.goal", program)
    again = program_of_schedule(read_goal(tmp_path / "x.goal"))
    for parameters in (FREE, Parameters()):
        assert np.allclose(finish(program, parameters=parameters), finish(again, parameters=parameters))  # fmt: skip  # noqa: E501


def test_operations_of_a_schedule_are_in_order(tmp_path):
    """Timelines need what each WAIT is for, in whichever task it began."""
    tasks = [(1000, {}), (2000, {}), (500, {0: "requires", 1: "requires"}), (10, {1: "requires"})]
    program = program_of_text(tmp_path, graph_text([tasks]))
    result = simulate(program, mesh((1,)), [0], parameters=FREE, record=Record(operations=True))
    operations = result.operations
    assert operations.end.max() == pytest.approx(2.5e-6)
    assert (operations.begin <= operations.end).all()
