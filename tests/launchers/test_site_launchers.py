"""Files of Flux, PALS, jsrun, PRRTE, MPIJobs and likwid-mpirun, each by its own grammar.

Flux, PALS and jsrun are in no package: their files are checked by the examples of their documents.
"""

import re

import numpy as np
import pytest

from hopmap.launchers.flux import encode_taskmap, note_taskmap
from hopmap.launchers.formats import (
    Launch,
    companions,
    export_mapping,
    get_launcher,
    notes,
    usage,
)
from hopmap.launchers.mapping_files import read_mapping
from hopmap.topologies import MappingError, mesh, topology_from_spec, torus
from hopmap.topologies.readers.node import read_node
from support import about

NODES = mesh((3,), slots=4)
HOSTS = ["n1", "n2", "n3"]

# Raw task maps (tasks of node 0; of node 1; ...) and what they are in Flux: RFC 34, test vectors.
VECTORS = {
    "0": [[0, 1, 1, 1]],
    "0;1": [[0, 2, 1, 1]],
    "0-1": [[0, 1, 2, 1]],
    "0-1;2-3": [[0, 2, 2, 1]],
    "0,2;1,3": [[0, 2, 1, 2]],
    "1;0": [[1, 1, 1, 1], [0, 1, 1, 1]],
    "0-3;4-7;8-11;12-15": [[0, 4, 4, 1]],
    "0,4,8,12;1,5,9,13;2,6,10,14;3,7,11,15": [[0, 4, 1, 4]],
    "0-1,8-9;2-3,10-11;4-5,12-13;6-7,14-15": [[0, 4, 2, 2]],
    "0-1;2-3;4-5;6-7;8-11;12-15": [[0, 4, 2, 1], [4, 2, 4, 1]],
    "0,6;1,7;2,8;3,9;4,10,12,14;5,11,13,15": [[0, 6, 1, 2], [4, 2, 1, 2]],
    "14-15;12-13;10-11;8-9;4-7;0-3": [
        [5, 1, 4, 1], [4, 1, 4, 1], [3, 1, 2, 1], [2, 1, 2, 1], [1, 1, 2, 1], [0, 1, 2, 1],
    ],
    "0-1;2-3;4-5;6-7;8-9;12-13;10-11;14-15": [
        [0, 5, 2, 1], [6, 1, 2, 1], [5, 1, 2, 1], [7, 1, 2, 1],
    ],
    "12-15;8-11;4-7;0-3": [[3, 1, 4, 1], [2, 1, 4, 1], [1, 1, 4, 1], [0, 1, 4, 1]],
}  # fmt: skip


def nodes_of(raw):
    """The node of each task of a raw task map."""
    node_of = {}
    for node, tasks in enumerate(raw.split(";")):
        for item in tasks.split(","):
            first, _, last = item.partition("-")
            node_of |= dict.fromkeys(range(int(first), int(last or first) + 1), node)
    return [node_of[task] for task in sorted(node_of)]


def decoded(blocks):
    """The node of each task of a task map of Flux, as RFC 34 says what its blocks mean."""
    return [
        node
        for first, count, each, times in blocks
        for _ in range(times)
        for node in range(first, first + count)
        for _ in range(each)
    ]


@pytest.mark.parametrize("raw", VECTORS)
def test_task_maps_are_those_of_flux_s_own_vectors(raw):
    assert [list(block) for block in encode_taskmap(nodes_of(raw))] == VECTORS[raw]


def test_a_task_map_says_the_node_of_every_task():
    for seed in range(50):
        rng = np.random.default_rng(seed)
        nodes = rng.integers(0, 5, rng.integers(1, 60)).tolist()
        with about(str(seed), str(nodes)):
            assert decoded(encode_taskmap(nodes)) == nodes


def test_flux_gets_hosts_alone_and_the_job_gets_these_hosts():
    """Flux reads every line as a list of hosts, so that there are no comments."""
    node_of = np.array([2, 0, 2])
    assert export_mapping("flux", node_of, NODES, HOSTS) == "n3\nn1\nn3\n"
    command = usage(get_launcher("flux"), Launch(node_of, NODES, HOSTS, "my hosts"))
    assert command.startswith(
        "flux run --nodes=2 --ntasks=3 --requires=hosts:n1,n3 -o taskmap=hostfile:'my hosts'"
    )


def test_flux_is_said_which_task_map_needs_no_file_and_what_cray_mpich_does_with_it():
    def notes(node_of):
        return note_taskmap(Launch(np.array(node_of), NODES, HOSTS))

    (block,) = notes([0, 0, 1, 1])
    assert "-o taskmap='block'" in block
    cyclic, warning = notes([0, 1, 0, 1])
    assert "-o taskmap='cyclic:1'" in cyclic
    assert "flux-coral2#125" in warning
    # Numbers are of the job's hosts, two of three.
    assert "taskmap='manual:[[1,1,1,1],[0,1,1,1]]', if Flux numbers the job's 2" in notes([2, 0])[0]
    assert "taskmap='manual:[[0,1,3,1],[1,1,1,1]]'" in notes([0, 0, 0, 1])[0]
    scattered = np.random.default_rng(1).permutation(np.repeat(np.arange(64), 4))
    (only,) = note_taskmap(Launch(scattered, torus((64,), slots=4), [f"n{n}" for n in range(64)]))
    assert "MPI_Init hangs" in only  # too long to be typed


# A line as IBM describes it: ranks, then keys with values in braces.
ERF_LINE = re.compile(r"rank: (\d+): \{ hostname: ([\w.-]+); cpu: \{(\d+-\d+(?:,\d+-\d+)*)\} \}")


def test_an_erf_says_preamble_ranks_hosts_and_hardware_threads_of_its_own():
    """On Summit: 42 cores for users, four hardware threads each, logical numbers 0 to 167."""
    launch = Launch(
        np.tile(np.arange(2), 6), torus((2,), slots=6), ["h1", "h2"],
        threads=7, node=read_node("numa=2x21"),
    )  # fmt: skip
    first, second, *lines = get_launcher("jsrun").write(launch)
    assert (first, second) == ("cpu_index_using: logical", "overlapping_rs: warn")
    taken = {"h1": [], "h2": []}
    for rank, line in enumerate(lines):
        number, host, runs = ERF_LINE.fullmatch(line).groups()
        assert (int(number), host) == (rank, launch.hosts[launch.node_of[rank]])
        for run in runs.split(","):
            start, end = map(int, run.split("-"))
            taken[host] += range(start, end + 1)
    for cpus in taken.values():
        assert sorted(cpus) == [*range(168)]


def test_an_erf_of_others_is_read(tmp_path):
    """As IBM's Horovod writes it, and as it stands in OLCF's and others' examples."""
    for text, node_of in [
        (
            "overlapping_rs: allow\ncpu_index_using: logical\n\n"
            "rank: 0: { hostname: n2; cpu: {0-27} ; gpu: * ; mem: * }\n"
            "rank: 1: { hostname: n1; cpu: {0-27} ; gpu: * ; mem: * }\n",
            [1, 0],
        ),
        (
            "app 0: ./a.out\ncpu_index_using: physical\nlaunch_distribution: packed\n"
            "rank: 0: { host: 3; cpu: {0-3}, {4-11} ; gpu: {0,1} } : app 0\n"
            "rank: 1-2: { host: 1; cpu: {4-7},{8-11} } : app 0\n",
            [2, 0, 0],
        ),
    ]:
        (tmp_path / "erf").write_text(text)
        assert read_mapping(tmp_path / "erf", NODES, hosts=HOSTS).tolist() == node_of


def test_pals_fills_the_hosts_of_a_file_in_its_order(tmp_path):
    """Names do not matter, unlike under Slurm; nodes without ranks are not in the file."""
    node_of, names = np.array([2, 0, 0, 2]), ["n10", "n9", "n2"]
    form = get_launcher("pals")
    assert export_mapping("pals", node_of, NODES, names).endswith("\n1,2\n0,3\n")
    launch = Launch(node_of, NODES, names, "order.txt")
    assert "mpiexec -n 4 --ppn 2 --hostfile order_hosts.txt ./a.out" in usage(form, launch)
    (hosts,) = companions(form, tmp_path / "order.txt", launch).values()
    assert hosts == "n10\nn2\n"
    with pytest.raises(MappingError, match="pals: 1 ranks on node 0, 2 on node 2"):
        export_mapping("pals", np.array([2, 2, 0]), NODES, names)


def test_an_mpijob_gets_a_configmap_whose_hostfile_has_the_pods():
    yaml = pytest.importorskip("yaml")
    pods = [f"train-worker-{n}.train.default.svc" for n in range(3)]
    text = export_mapping("mpijob", np.array([2, 0, 2]), NODES, pods)
    document = yaml.safe_load(text)
    assert (document["apiVersion"], document["kind"]) == ("v1", "ConfigMap")
    assert re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", document["metadata"]["name"])
    assert document["data"]["hostfile"].splitlines() == [pods[2], pods[0], pods[2]]
    form = get_launcher("mpijob")
    assert notes(form, Launch(np.array([2, 0, 2]), NODES, pods)) == []
    (note,) = notes(form, Launch(np.array([2, 0, 2]), NODES, HOSTS))
    assert "pods by names like JOB-worker-0.JOB.NAMESPACE.svc, not n1: give them" in note
    with pytest.raises(MappingError, match="mpijob: 'Node_1': expected names of pods"):
        export_mapping("mpijob", np.array([0]), NODES, ["Node_1", "b", "c"])


def test_likwid_mpirun_fills_hosts_one_after_the_other():
    text = export_mapping("likwid", np.array([2, 2, 0, 0]), NODES, HOSTS)
    assert text.endswith("# ranks on each: 2\nn3\nn1\n")
    assert "likwid-mpirun -mpi intelmpi -hostfile FILE -np 4 -nperdomain N:2 ./a.out" in text
    for node_of in ([2, 0, 2, 0], [2, 2, 0]):
        with pytest.raises(MappingError, match="likwid: expected consecutive ranks on each host"):
            export_mapping("likwid", np.array(node_of), NODES, HOSTS)


def test_damaged_files_are_answered_in_one_line(tmp_path):
    for form, text, message in [
        ("jsrun", "rank: 0: { cpu: {0} }\n", "expected rank: N: { hostname: HOST; cpu: {CPUS} }"),
        ("jsrun", "rank: 0: { host: 4; cpu: {0} }\n", "expected a host from 1 to 3"),
        ("jsrun", "rank: 0-99: { host: 1; cpu: {0} }\n", "expected 12 ranks at most"),
        ("jsrun", "rank: 0: { hostname: n9; cpu: {0} }\n", "host 'n9': expected a name from n1"),
        ("jsrun", "cpu_index_using logical\n", "line 1 is 'cpu_index_using logical': expected"),
        ("mpijob", "kind: ConfigMap\n", "expected a ConfigMap with hostfile: |"),
        ("mpijob", "hostfile: |\n  n1 n2\n", "line 2 is 'n1 n2': expected HOST"),
        ("likwid", "n1\nn 2\n", "line 2 is 'n 2': expected HOST or HOST:SLOTS"),
        ("likwid", "# ranks on each: 99\nn1\n", "expected 12 ranks at most"),
        ("likwid", "# ranks on each: few\nn1\n", "ranks on each: 'few': expected a whole number"),
        ("flux", "n1\nn[2\n", "line 2 is 'n[2': expected HOST"),
        ("prrte", "n1 slots=2\n", "line 1 is 'n1 slots=2': expected HOST"),
        ("pals", "0;1\n", "line 1 is '0;1': expected ranks like 0,1,4-7"),
    ]:
        with about(form, text, message):
            (tmp_path / "bad").write_text(text)
            with pytest.raises(MappingError, match=re.escape(message)) as error:
                read_mapping(tmp_path / "bad", NODES, form=form, hosts=HOSTS)
            assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("spec", "lines"),
    [
        ("tofud:job=4x2x3", ["(1,0,0)", "(0,1,0)", "(0,0,1)"]),
        ("tofud:job=4x2x3*2,order=YZX", ["(0,1,0)", "(0,0,2)", "(1,0,1)"]),
        ("tofud:job=4x6,order=YX", ["(0,1)", "(0,4)", "(1,2)"]),
    ],
)
def test_a_job_on_tofud_has_the_coordinates_of_its_own_box(tmp_path, spec, lines):
    """Nodes 1, 4 and 8: as rank-map-bynode=YZX numbers them, along Y first."""
    network, node_of = topology_from_spec(spec), np.array([1, 4, 8])
    text = export_mapping("fugaku", node_of, network)
    assert text.splitlines() == lines
    (tmp_path / "vcoord").write_text(text)
    assert read_mapping(tmp_path / "vcoord", network).tolist() == [1, 4, 8]
    (tmp_path / "vcoord").write_text("(9,0,0)\n")
    with pytest.raises(MappingError, match="expected a node from 0 0"):
        read_mapping(tmp_path / "vcoord", network)
