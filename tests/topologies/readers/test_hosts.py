"""Hosts of a job: lists, tables and archives of them, and a job on a machine."""

import tarfile
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.mappers import map_ranks
from hopmap.topologies import TopologyError, topology_from_spec, torus
from hopmap.topologies.readers.hosts import (
    LIMIT,
    expand,
    hosts_in,
    hosts_of_ranks,
    lists_in,
    nodes_of,
    read_hosts,
    slots_in,
)
from hopmap.traces import parse_stencil, traffic_of_stencil

TABLE = "MPI_Rank,allocation,xname\n1,n3.site,x1c0\n0,n2.site,x1c1\n2,n3.site,x1c0\n"


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("n2\nn1\n", ["n2", "n1"]),
        ("n2 slots=4\nn1:3\n# n9\n\nn2\n", ["n2", "n1"]),
        (TABLE, ["n2.site", "n3.site"]),  # by rank, each host once
        ("0,a\n1,b\n", ["a", "b"]),
        ("0,a\n\0\0\0" + "1,b\n", ["a", "b"]),  # holes, of ranks that wrote at once
    ],
)
def test_lists_and_tables_name_the_hosts_in_order(text, hosts):
    assert hosts_in(text, "hosts") == hosts


def test_lists_that_count_slots_say_how_many_each_host_has():
    """A line a slot (Slurm, PBS), slots= (Open MPI), np= (Torque), or a colon (MPICH, Intel)."""
    four_and_two = {"n2": 4, "n1": 2}
    for text in (
        "n2\nn2\nn2\nn2\nn1\nn1\n",
        "n2\nn1\nn2\nn1\nn2\nn2\n",
        "n2 slots=4\nn1 max_slots=9 slots=2\n",
        "n2 np=4 gpus=1\nn1 np = 2\n",
        "n2:4\nn1:2 # two\n",
        "n2:3\nn1:2\nn2\n",
    ):
        assert slots_in(text, "hosts") == four_and_two, text
    for text in ("n2\nn1\n", "n2 slots=1\nn1\n", TABLE, "n2 max_slots=4\n"):
        assert slots_in(text, "hosts") == {}, text


def test_a_job_has_the_slots_that_its_list_counts(tmp_path):
    file = tmp_path / "machinefile"
    file.write_text("n1.site\nn1\nn3\nn1\nn3\n")
    one = topology_from_spec(f"job:{file}@names:n[0-3]@torus:4")
    assert one.slots.tolist() == [0, 3, 0, 2]
    larger = topology_from_spec(f"job:{file}@names:n[0-3]@torus:4*8")
    assert larger.slots.tolist() == [0, 3, 0, 2]
    with pytest.raises(TopologyError, match=r"host n1 has 3 slots here, and 2 in .*: expected"):
        topology_from_spec(f"job:{file}@names:n[0-3]@torus:4*2")


def test_every_rank_has_a_host():
    assert hosts_of_ranks(TABLE, "hosts") == ["n2.site", "n3.site", "n3.site"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "hosts: no hosts: expected at least one"),
        ("MPI_Rank,allocation\n", "no hosts"),
        ("n1\n!\n", "line 2 is '!': expected a host name"),
        ("rank,host\n0,n1\nx,n2\n", "line 3 is 'x,n2': expected rank,host"),
        ("rank,host\n0,n1\n1\n", "line 3 is '1': expected rank,host"),
        ("rank,host\n0,n1\n0,n2\n", "a rank is listed twice"),
    ],
)
def test_what_is_no_list_of_hosts_is_refused_in_one_line(text, message):
    with pytest.raises(TopologyError, match=message) as caught:
        hosts_in(text, "hosts")
    assert "\n" not in str(caught.value)


@pytest.fixture
def archive(tmp_path):
    for name, text in (("jobs/1.txt", "node2\nnode0\n"), ("jobs/2.txt", "node1\nnode3\n")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    path = tmp_path / "jobs.tar.gz"
    with tarfile.open(path, "w:gz") as made:
        made.add(tmp_path / "jobs", "jobs")
    return path


def test_an_archive_holds_lists(archive):
    assert lists_in(str(archive)) == [f"{archive}#jobs/1.txt", f"{archive}#jobs/2.txt"]
    assert read_hosts(f"{archive}#jobs/2.txt") == ["node1", "node3"]
    folder = archive.parent / "jobs"
    assert lists_in(str(folder)) == [f"{folder}/1.txt", f"{folder}/2.txt"]
    assert lists_in(f"{folder}/1.txt") == [f"{folder}/1.txt"]


def test_a_file_that_is_not_in_the_archive_or_an_archive_cut_off_is_refused(archive):
    with pytest.raises(TopologyError, match="no such file in the archive"):
        read_hosts(f"{archive}#jobs/3.txt")
    archive.write_bytes(archive.read_bytes()[:-40])
    with pytest.raises(TopologyError, match="cannot be read"):
        read_hosts(f"{archive}#jobs/2.txt")


def test_hosts_are_found_without_their_domain_and_by_number_in_tables_of_numbers():
    numbered = replace(torus((3,)), names=("0001", "0002", "0010"))
    assert nodes_of(numbered, ["lrdn0010.site", "lrdn0001"], "hosts") == [2, 0]
    named = replace(torus((2,)), names=("a", "b"))
    assert nodes_of(named, ["b.site", "a"], "hosts") == [1, 0]
    with pytest.raises(TopologyError, match="hosts: host c1: expected nodes of torus:2, a to b"):
        nodes_of(named, ["a", "c1"], "hosts")


def test_a_job_has_slots_on_its_hosts_and_identity_follows_its_list(archive):
    job = topology_from_spec(f"job:{archive}#jobs/1.txt@torus:4x1*2")
    assert job.slots.tolist() == [2, 0, 2, 0]
    assert job.spec == f"job:{archive}#jobs/1.txt@torus:4x1*2"
    traffic = traffic_of_stencil(parse_stencil("4x1,5pt"))
    assert map_ranks(traffic, job, "identity").tolist() == [2, 2, 0, 0]
    assert map_ranks(traffic, job, "sweep").tolist() == [0, 0, 2, 2]


def test_nodes_are_named_by_a_list_of_slurm(tmp_path):
    (tmp_path / "hosts").write_text("nid003\nnid001\n")
    job = topology_from_spec(f"job:{tmp_path}/hosts@names:nid[001-004]@tree:2:2@1:10")
    assert job.order.tolist() == [2, 0]
    assert job.distance(0, 2) == 10


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("job:hosts", "expected a file of hosts, @ and the machine's spec"),
        ("job:absent@torus:4", "absent: cannot be read as a list of hosts"),
        ("names:a,b@torus:4", "names a,b: 2 of them: expected one for each of the 4 nodes"),
        ("names:a,a@torus:2", "a twice: expected once"),
        ("job:absent@tours:4", "unknown family 'tours'"),
    ],
)
def test_a_job_that_makes_no_sense_is_refused_in_one_line(spec, message):
    with pytest.raises(TopologyError, match=message) as caught:
        topology_from_spec(spec)
    assert "\n" not in str(caught.value)


def test_a_network_of_a_job_is_read_again_when_its_file_changes(tmp_path):
    (tmp_path / "hosts").write_text("a\n")
    conf = tmp_path / "topology.conf"
    conf.write_text("SwitchName=s Nodes=a,b\n")
    spec = f"job:{tmp_path}/hosts@file:{conf}"
    assert topology_from_spec(spec).nodes == 2
    conf.write_text("SwitchName=s Nodes=b,c,a\n")
    assert topology_from_spec(spec).nodes == 3


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("tux", ["tux"]),
        ("tux[0-3,12,18-20]", [f"tux{n}" for n in (0, 1, 2, 3, 12, 18, 19, 20)]),
        ("n[08-11]", ["n08", "n09", "n10", "n11"]),
        ("a1,b[2-3],c", ["a1", "b2", "b3", "c"]),
        ("a1, b[2-3] ,\tc", ["a1", "b2", "b3", "c"]),
        ("r[0-1]n[0-1]x", ["r0n0x", "r0n1x", "r1n0x", "r1n1x"]),
    ],
)
def test_lists_are_expanded_in_their_order(text, hosts):
    assert expand(text) == hosts


@given(st.lists(st.integers(0, 9999), min_size=1, max_size=20), st.integers(1, 5))
def test_a_range_holds_what_is_written_in_it(numbers, width):
    text = ",".join(str(n).zfill(width) for n in numbers)
    assert expand(f"n[{text}]") == [f"n{str(n).zfill(width)}" for n in numbers]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a list like"),
        ("a,,b", "expected a list like"),
        ("n[1-2", "expected a list like"),
        ("n[2-1]", "range '2-1': expected rising numbers"),
        ("n[1-]", "range '1-'"),
        (f"n[0-{LIMIT}]", "expected rising numbers, at most"),
        ("n[0-9999]m[0-9999]", "more than 262,144 names"),
        ("n m", "expected a list like"),
    ],
)
def test_what_is_no_list_is_refused(text, message):
    with pytest.raises(TopologyError, match=message):
        expand(text)


def test_a_long_list_that_is_none_is_refused_at_once():
    with pytest.raises(TopologyError, match="expected a list like"):
        expand("x9" * 50_000 + "!")  # hours, where a name's parts may be cut in many ways
