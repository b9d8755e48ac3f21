"""Several jobs on one machine: where they sit, what each of them takes, what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

import hopmap as hm
from hopmap.api.job import Background, Job, JobsError, background_of, job_of, read_jobs
from hopmap.api.jobs import allocate_jobs, exclude_used_nodes, place_jobs, simulate_jobs
from hopmap.mappers.objectives import objective_value
from hopmap.simulator import program_of
from support import about
from support.commands import as_json, failed, hopmap

SIZE = 10**6
# One message a job; links of 1 GB/s, no latency and fast ends: seconds are bytes / 1e9.
SETTINGS = {
    "link.bandwidth": 1e9,
    "link.latency": 0,
    "injection.bandwidth": 1e12,
    "ejection.bandwidth": 1e12,
    "injection.latency": 0,
    "ejection.latency": 0,
    "overhead.send": 0,
    "overhead.recv": 0,
    "eager_limit": 10**9,
}


def message(size=SIZE):
    return program_of("message", [[("send", 1, size)], [("recv", 0, size)]])


def test_two_messages_over_one_link_slow_each_other_down_as_known():
    """The second is at its first link at once, and all of it is there before the first's rest."""
    run = simulate_jobs(
        [Job(message(), mapping=[0, 2]), Job(message(), mapping=[1, 3])],
        hm.Machine("mesh:4", settings=SETTINGS),
    )
    assert run.alone == pytest.approx([1e-3, 1e-3])
    assert run.slowdowns == pytest.approx([2.0, 1.0], rel=0.02)
    assert run.makespan == pytest.approx(2e-3, rel=0.01)
    (shared,) = run.shared
    assert shared.jobs == ("message #1", "message #2")
    assert (shared.links, shared.bytes, shared.link_bytes) == (1, (SIZE, SIZE), (SIZE, SIZE))
    assert run.to_dict()["shared"][0]["link"] == "1 -> 2"


def test_a_job_is_measured_from_its_own_start_and_over_all_of_its_runs():
    late = Job(message(), mapping=[1, 3], start="5 ms", repeat=3)
    run = simulate_jobs(
        [Job(message(), mapping=[0, 2]), late], hm.Machine("mesh:4", settings=SETTINGS)
    )
    first, second = run.jobs
    assert (first.makespan, second.start) == (pytest.approx(1e-3), 5e-3)
    assert second.makespan == pytest.approx(3e-3)
    assert second.finish == run.makespan == pytest.approx(8e-3)
    assert (second.messages, second.bytes) == (3, 3 * SIZE)
    assert second.wait == pytest.approx((0 + 3e-3) / 2)
    assert run.slowdowns == pytest.approx([1.0, 1.0])


def test_policies_take_what_given_nodes_leave_in_order_of_the_jobs():
    jobs = [
        Job("lu.S.4", mapping="contiguous", steps=1),
        Job("lu.S.4", mapping=[2, 3, 4, 5], steps=1),
        Job("lu.S.4", mapping="random nodes", steps=1, seed=1),
    ]
    run = simulate_jobs(jobs, "mesh:16", baseline=False)
    assert run.nodes[0].tolist() == [6, 7, 8, 9]
    assert run.nodes[1].tolist() == [2, 3, 4, 5]
    assert not set(run.nodes[2].tolist()) & set(range(2, 10))
    assert run.alone == run.slowdowns == [None] * 3
    network = hm.topology("mesh:16")
    drawn = [
        allocate_jobs([Job("lu.S.4", mapping="random nodes", seed=seed)], ["lu"], [4], network)[0]
        for seed in range(6)
    ]
    assert len({tuple(nodes) for nodes in drawn}) > 1


def test_hosts_are_nodes_of_a_job_in_their_order(tmp_path):
    (tmp_path / "hosts").write_text("node5\nnode3\n", encoding="utf-8")
    listed = Job(message(), nodelist="node[0,2]")
    given = Job(message(), hosts=tmp_path / "hosts")
    run = simulate_jobs([listed, given], "mesh:6", baseline=False)
    assert [nodes.tolist() for nodes in run.nodes] == [[0, 2], [5, 3]]


def test_background_lasts_as_long_as_the_jobs_and_changes_nothing_afterwards():
    """It is made longer until the jobs have ended, which a still longer one does not change."""
    job = Job("lu.S.4", mapping=[0, 2, 4, 6], steps=2)
    load = Background("uniform", "2 GB/s", size="16 KiB")
    free = simulate_jobs([job], "torus:8", background=[load])
    fixed = Background("uniform", "2 GB/s", size="16 KiB", duration=4 * free.makespan)
    longer = simulate_jobs([job], "torus:8", background=[fixed])
    assert free.jobs[1].background
    assert free.jobs[1].finish >= free.makespan
    assert longer.jobs[0] == free.jobs[0]
    assert free.slowdowns[0] > 1
    assert free.nodes[1].tolist() == [1, 3, 5, 7]
    assert free.to_frame()["slowdown"].isna().tolist() == [False, True]


def test_background_sends_from_nodes_that_no_job_and_no_other_load_has():
    loads = [
        Background("uniform", 1e9, duration=1e-6, nodelist="node[1,3]"),
        Background("uniform", 1e9, duration=1e-6),
    ]
    jobs = [Job(message(), mapping=[0, 2])]
    run = simulate_jobs(jobs, "mesh:6", background=loads, baseline=False)
    assert [nodes.tolist() for nodes in run.nodes] == [[0, 2], [1, 3], [4, 5]]


def test_a_load_that_no_job_gets_through_is_said_to_be_one():
    """It is more than the links pass, and what waits for them grows as long as it lasts."""
    load = Background("uniform", 22e9)
    there, back = (("send", 1, 100), ("recv", 1, 100)), (("recv", 0, 100), ("send", 0, 100))
    pings = program_of("pings", [[("repeat", 9, there)], [("repeat", 9, back)]])
    with pytest.raises(JobsError, match="expected a lower rate"):
        simulate_jobs([Job(pings, mapping=[1, 4])], "mesh:6", background=[load])


@pytest.mark.parametrize(
    ("load", "said"),
    [
        (Background("unifrm", 1e9), "unknown background 'unifrm'"),
        (Background("uniform", 0), "0 bytes/s in messages of 65536 bytes: expected more"),
        (Background("uniform", 1e9, duration="2 mss"), "duration 2 mss"),
    ],
)
def test_a_load_that_cannot_be_is_said_before_anything_is_replayed(load, said, monkeypatch):
    monkeypatch.setattr("hopmap.api.jobs.replay", None)
    with pytest.raises(hm.HopmapError, match=said):
        simulate_jobs([Job(message())], "mesh:4", background=[load])


ON_ONE_SLOT = "ranks on node 1: 1 of message #1 and 1 of message #2: expected 1 at most"


def test_what_cannot_be_is_said_in_a_line():
    for jobs, said in [
        ([Job(message(), mapping=[0, 1]), Job(message(), mapping=[1, 2])], ON_ONE_SLOT),
        ([Job(message(), mapping="contigous")], "no such file or policy .did you mean contiguous"),
        ([Job(message(), mapping=[0])], "places 1 ranks: expected 2"),
        ([Job(message(), start=-1.0)], "start -1.0: expected 0 or more"),
        ([Job(message(), start="2 mss")], "start 2 mss"),
        ([Job(message(), start=1e9)], "start 1000000000.0: expected at most 1,000,000 s"),
        ([Job(message(), repeat=0)], "message: repeat 0: expected 1 to 1,000,000"),
        ([Job("lu.S.8")], "lu.S.8: policy contiguous: .* have 8 slots"),
        ([Job(message(), nodelist="node7,node8")], "host node7: expected nodes of mesh:4"),
        ([Job(message(), nodelist="node1")], "node1: 1 nodes with 1 slots: expected 2"),
        ([Job(message(), mapping=[0, 1], nodelist="node1")], "mapping and hosts are mutually"),
        ([], "jobs: expected at least one"),
    ]:
        with about(jobs, said):
            with pytest.raises(hm.HopmapError, match=said) as error:
                simulate_jobs(jobs, "mesh:4")
            assert "\n" not in str(error.value)


def test_words_of_a_job_are_checked():
    for read, text, said in [
        (job_of, "lu.S.4", "expected TRACE,MAPPING"),
        (job_of, "lu.S.4,contiguous,seed=x", "seed 'x': expected a whole number"),
        (job_of, "lu.S.4,contiguous,seed=1,seed=2", "seed twice"),
        (job_of, "lu.S.4,contiguous,sed=1", "unknown key 'sed' .did you mean seed"),
        (background_of, "uniform", "expected PATTERN:RATE"),
        (background_of, "uniform:5GB/s,sze=3", "unknown key 'sze' .did you mean size"),
    ]:
        with about(read, text, said), pytest.raises(JobsError, match=said):
            read(text)


def test_words_of_a_trace_may_have_commas_and_equals_signs():
    job = job_of("stencil:4x4,9pt,periodic=y,m.csv,start=1us,repeat=2,name=halo")
    assert (job.trace, job.mapping, job.name) == ("stencil:4x4,9pt,periodic=y", "m.csv", "halo")
    assert (job.begins, job.repeat) == (1e-6, 2)
    assert job_of("lu.S.4,hosts=list").trace == "lu.S.4"
    assert background_of("incast:1GB/s,size=1KiB").pattern == "incast"


TABLES = """
[[jobs]]
trace = "lu.S.4"
policy = "random nodes"
seed = 3
steps = 1
[[jobs]]
trace = "lu.S.4"
mapping = "m.csv"
start = "1 ms"
steps = 1
[[background]]
pattern = "uniform"
rate = "100 MB/s"
"""


def test_a_file_of_jobs_says_what_options_say(tmp_path):
    hm.write_mapping(tmp_path / "m.csv", hm.map_ranks("lu.S.4", "torus:4x4", "sweep"))
    (tmp_path / "jobs.toml").write_text(TABLES, encoding="utf-8")
    words = (
        *("--job", "lu.S.4,random-nodes,seed=3,steps=1"),
        *("--job", f"lu.S.4,{tmp_path / 'm.csv'},start=1ms,steps=1"),
        *("--background", "uniform:100MB/s"),
    )
    given = as_json("simulate", "--jobs", tmp_path / "jobs.toml", "-t", "torus:4x4")
    said = as_json("simulate", *words, "-t", "torus:4x4")
    assert given["jobs"] == said["jobs"]
    assert {"name", "ranks", "start", "makespan", "alone", "slowdown", "node_of"} <= set(
        said["jobs"][0]
    )
    assert said["makespan"] == max(job["finish"] for job in said["jobs"][:2])
    assert [job["background"] for job in said["jobs"]] == [False, False, True]
    text = hopmap("simulate", *words, "-t", "torus:4x4")
    assert "slow-down" in text
    assert "uniform background (until then)" in text
    assert "jobs that share links" in text


def test_a_file_of_jobs_that_makes_no_sense_is_refused_in_a_line(tmp_path):
    for tables, said in [
        ("", r"no \[\[jobs\]\]"),
        ("jobs = 3", r"jobs: expected tables \[\[jobs\]\]"),
        ("[[job]]", "unknown key 'job' .did you mean jobs"),
        ("[[jobs]]\nstart = 1", r"jobs\[0\]: key 'trace' is missing"),
        ("[[jobs]]\ntrace = 'lu.S.4'\nstarts = 1", r"jobs\[0\]: unknown key 'starts'"),
        ("[[jobs]]\ntrace = 'lu.S.4'\nseed = 'x'", r"jobs\[0\].seed: 'x': expected a whole"),
        ("[[jobs]]\ntrace = 'lu.S.4'\npolicy = 'any'", r"jobs\[0\].policy: 'any'"),
        ("[[jobs]]\ntrace = 'a'\npolicy = 'contiguous'\nmapping = 'm'", "mutually exclusive"),
        ("[[jobs", "cannot be read as a file of jobs"),
    ]:
        with about(tables, said):
            (tmp_path / "jobs.toml").write_text(tables, encoding="utf-8")
            with pytest.raises(JobsError, match=said) as error:
                read_jobs(tmp_path / "jobs.toml")
            assert str(error.value).startswith(str(tmp_path))
            assert "\n" not in str(error.value)


def test_the_command_refuses_what_several_jobs_have_not():
    some = ("simulate", "--job", "lu.S.4,contiguous")
    assert "--repeat: a run of several jobs has none" in failed(
        *some, "-t", "mesh:4", "--repeat", 6
    )
    assert "expected the machine" in failed(*some)
    assert "expected --job lu.S.4,MAPPING" in failed(
        "simulate", "lu.S.4", *some[1:], "-t", "mesh:4"
    )
    assert "TRACE: expected TRACE and MAPPING, or --job" in failed("simulate")


def test_a_timeline_has_all_jobs(tmp_path):
    words = ("--job", "lu.S.4,contiguous,steps=1", "--job", "lu.S.4,contiguous,steps=1,start=1ms")
    hopmap("simulate", *words, "-t", "mesh:8", "--perfetto", tmp_path / "run.json")
    events = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))["traceEvents"]
    begins = {pid: [] for pid in range(8)}
    for event in events:
        if event["ph"] == "X" and event["pid"] in begins:
            begins[event["pid"]].append(event["ts"])
    assert min(begins[0]) == 0
    assert min(begins[4]) == 1000


def test_a_mapping_beside_others_takes_free_nodes_and_keeps_off_their_links():
    """On a ring of 8, a job of nodes 0 and 2 has the links between them; free are the others.

    What is left is mapped so that the busiest link has the least with theirs counted.
    """
    network = hm.topology("torus:8")
    other = Job(program_of("far", [[("send", 1, 10**6)], [("recv", 0, 10**6)]]), mapping=[0, 2])
    found = hm.map_ranks(message(10**5), hm.Machine(network, co_running=(other,)), seed=1)
    assert found.objective[0] == "max_link_load"
    assert not {0, 2} & set(found.node_of.tolist())
    assert found.objective[2] == 10**6  # theirs: ours is on other links
    traffic = hm.open("stencil:2x3,5pt").traffic()
    room = exclude_used_nodes(place_jobs([other], hm.Machine(network)), network)
    for nodes in ([1, 3, 4, 5, 6, 7], [7, 6, 5, 4, 3, 1]):
        own = network.loads(
            np.array(nodes)[traffic.src], np.array(nodes)[traffic.dst], traffic.bytes
        )
        assert objective_value(traffic, room, nodes, "max_link_load") == (own + room.carried).max()


def test_all_that_others_send_in_all_of_their_runs_is_on_their_links():
    network = hm.topology("mesh:8")
    others = [Job(message(), mapping=[0, 2]), Job(message(), mapping=[5, 4], repeat=3)]
    carried = exclude_used_nodes(place_jobs(others, hm.Machine(network)), network).carried
    ends = zip(network.link_from.tolist(), network.link_to.tolist(), strict=True)
    there = {end: load for end, load in zip(ends, carried.tolist(), strict=True) if load}
    assert there == {(0, 1): SIZE, (1, 2): SIZE, (5, 4): 3 * SIZE}


def test_a_makespan_beside_others_is_that_of_the_replay_with_them():
    network = hm.topology("mesh:6", {"link.bandwidth": 1e9})
    other = Job("collective:alltoall=pairwise,3,3MiB", mapping=[0, 2, 4], repeat=2, start="1 ms")
    lu, machine = hm.Workload("lu.S.2", steps=1), hm.Machine(network, co_running=(other,))
    found = hm.map_ranks(lu, machine, "auto(evaluations=3)", objective="makespan")
    run = simulate_jobs(
        [Job("lu.S.2", mapping=found.node_of, steps=1), other], network, baseline=False
    )
    assert found.objective[2] == run.jobs[0].makespan
    alone = hm.simulate(hm.Workload("lu.S.2", steps=1), network, found.node_of).makespan
    assert found.objective[2] > alone


def test_an_objective_that_does_not_see_the_others_says_so():
    other = Job(message(), mapping=[0, 1])
    with pytest.warns(hm.HopmapWarning, match="ignores the traffic of co-running jobs"):
        hm.map_ranks(message(), hm.Machine("mesh:4", co_running=(other,)), objective="hop_bytes")
    with pytest.raises(hm.HopmapError, match="no node of mesh:2 is free"):
        hm.map_ranks(message(), hm.Machine("mesh:2", co_running=(other,)))


def test_map_takes_jobs_beside_as_words():
    words = ("map", "lu.S.4", "-t", "torus:4x4", "--with-job", "lu.S.8,contiguous", "--seed", 1)
    found = as_json(*words)
    assert min(found["node_of"]) >= 8
    assert found["nodes"] == 8
    assert found["objective"]["name"] == "max_link_load"


def test_explanations_are_of_all_jobs(tmp_path):
    words = ("--job", "lu.S.4,contiguous", "--job", "lu.S.4,contiguous,start=5ms", "-t", "mesh:8")
    run = as_json("simulate", *words)
    found = as_json("explain", *words, "--no-sensitivity")
    assert found["makespan"] == run["makespan"]
    assert found["critical_path"]["seconds"]["job_start"] == 5e-3
    assert "ranks 4 to 7: lu.S.4 #2" in hopmap("explain", *words, "--no-sensitivity")
    assert "expected --job lu.S.4,MAPPING" in failed("explain", "lu.S.4", *words)
    assert "expected TRACE and MAPPING" in failed("explain", "lu.S.4", "-t", "mesh:8")
    assert "--steps: a run of several jobs has none" in failed("explain", *words, "--steps", 2)
    (tmp_path / "jobs.toml").write_text(
        '[[jobs]]\ntrace = "lu.S.4"\n[[background]]\npattern = "uniform"\nrate = 1e9\n'
    )
    said = failed("explain", "--jobs", tmp_path / "jobs.toml", "-t", "mesh:8")
    assert "expected no [[background]]" in said
