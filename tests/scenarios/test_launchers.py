"""Launchers' files, read back by a reader of each format written here from the manuals."""

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.scenarios.launchers import LAUNCHERS, export_mapping
from hopmap.topologies import MappingError, cluster, mesh, torus

TOPOLOGY = torus((2, 3, 2), slots=2)
HOSTS = [f"n{node:03}" for node in range(12)]


def _read_openmpi(text):
    lines = [re.fullmatch(r"rank (\d+)=(\w+) slot=(\d+)", line) for line in text.splitlines()]
    assert [int(line[1]) for line in lines] == list(range(len(lines)))
    places = [(line[2], line[3]) for line in lines]
    assert len(set(places)) == len(places), "two ranks on one slot"
    return [HOSTS.index(line[2]) for line in lines]


def _read_hosts(text):
    return [HOSTS.index(line.removesuffix(":1")) for line in text.splitlines()]


def _read_coordinates(text):
    places = [[int(c) for c in re.findall(r"\d+", line)] for line in text.splitlines()]
    return [(z * 3 + y) * 2 + x for x, y, z, *_ in places]


def _read_cray(text):
    """Positions in order are filled node after node, here two ranks each."""
    order = [int(r) for line in text.splitlines() if line[0] != "#" for r in line.split(",")]
    used = [HOSTS.index(host) for host in re.findall(r"^# (n\d+)$", text, flags=re.MULTILINE)]
    node_of = np.empty(len(order), dtype=int)
    node_of[order] = np.repeat(used, len(order) // len(used))
    return node_of.tolist()


READERS = {
    "openmpi": _read_openmpi,
    "slurm": _read_hosts,
    "intel": _read_hosts,
    "simgrid": _read_hosts,
    "fugaku": _read_coordinates,
    "bluegene": _read_coordinates,
    "cray": _read_cray,
    "json": lambda text: json.loads(text)["node_of"],
}


def test_every_launcher_has_a_reader_here():
    assert READERS.keys() == LAUNCHERS.keys()


@pytest.mark.parametrize("launcher", LAUNCHERS)
@given(order=st.permutations(range(24)))
def test_every_format_says_the_same_mapping(launcher, order):
    node_of = np.array(order) // 2
    text = export_mapping(launcher, node_of, TOPOLOGY, HOSTS)
    assert READERS[launcher](text) == node_of.tolist()
    assert text.endswith("\n")


def test_the_rankfile_of_open_mpi_is_as_its_manual_prints_it():
    assert export_mapping("openmpi", np.array([1, 0, 1]), mesh((2,), slots=2)) == (
        "rank 0=node1 slot=0\nrank 1=node0 slot=0\nrank 2=node1 slot=1\n"
    )


def test_crays_rank_order_is_the_inverse():
    text = export_mapping("cray", np.array([2, 0, 1]), mesh((3,)), ["a", "b", "c"])
    assert [line for line in text.splitlines() if line[0] != "#"] == ["1", "2", "0"]


def test_json_lets_a_code_reorder_itself():
    """Processes launched in node order take the rank that belongs to their node."""
    node_of = np.array([2, 0, 1])
    exported = json.loads(export_mapping("json", node_of, mesh((3,))))
    assert exported["rank_at"] == [1, 2, 0]
    assert [node_of[rank] for rank in exported["rank_at"]] == [0, 1, 2]
    assert [exported["rank_at"][p] for p in exported["position_of"]] == [0, 1, 2]


def test_blue_gene_numbers_the_ranks_of_a_node():
    text = export_mapping("bluegene", np.array([1, 1, 0]), mesh((2, 1, 1), slots=2))
    assert text == "1 0 0 0\n1 0 0 1\n0 0 0 0\n"


@pytest.mark.parametrize(
    ("launcher", "node_of", "topology", "hosts", "message"),
    [
        ("pbs", [0], mesh((2,)), None, "launcher 'pbs': expected one of openmpi"),
        ("slurm", [0], mesh((3,)), ["a", "b"], "2 host names: expected one for each of the 3"),
        ("cray", [0, 0, 1, 2, 2], mesh((3,), slots=2), None, "1 to 2 ranks"),
        ("fugaku", [0], mesh((2, 2, 2, 2)), None, "up to 3 dimensions"),
        ("fugaku", [0], cluster([1]), None, "up to 3 dimensions"),
        ("bluegene", [0], cluster([1]), None, "cluster:1 has no coordinates: expected a torus"),
    ],
)
def test_what_a_format_cannot_say_is_refused(launcher, node_of, topology, hosts, message):
    with pytest.raises(MappingError, match=message):
        export_mapping(launcher, np.array(node_of), topology, hosts)
