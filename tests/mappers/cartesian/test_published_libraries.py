"""Coordinates of the authors' own libraries, rank by rank."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from hopmap.mappers import map_ranks
from hopmap.mappers.cartesian.boxes import gropp_all
from hopmap.mappers.cartesian.halvings import hyperplane_all, skewed_kd_tree_all
from hopmap.mappers.cartesian.strips import stencil_strips_all
from hopmap.simulator import evaluate
from hopmap.topologies import topology_from_spec
from hopmap.traces import stencil_traffic

MAPPERS = {
    "hyperplane": hyperplane_all,
    "stencil_strips": stencil_strips_all,
    "skewed_kd_tree": lambda dims, size, stencil: skewed_kd_tree_all(dims, stencil),
    "gropp": lambda dims, size, stencil: gropp_all(dims, size),
}


def rows(file):
    """Algorithm, dims, ranks a node, stencil and numbers of every line; provenance is its head."""
    lines = (Path(__file__).parent / file).read_text(encoding="utf-8").splitlines()
    for row in csv.DictReader(line for line in lines if not line.startswith("#")):
        yield (
            row["algorithm"],
            tuple(map(int, row["dims"].split("x"))),
            int(row["node_size"]),
            [tuple(map(int, vector.split(":"))) for vector in row["stencil"].split()],
            list(map(int, row["numbers"].split())),
        )


@pytest.mark.parametrize("algorithm", ["hyperplane", "stencil_strips", "skewed_kd_tree"])
def test_all_ranks_are_where_mpicartreorderlib_puts_them(algorithm):
    cases = [row for row in rows("mpicartreorderlib.csv") if row[0] == algorithm]
    assert len(cases) == 57
    for _, dims, size, stencil, numbers in cases:
        found = MAPPERS[algorithm](dims, size, stencil)
        assert np.ravel_multi_index(tuple(found.T), dims).tolist() == numbers, (dims, stencil)


def test_all_ranks_are_where_nodecart_puts_them():
    cases = list(rows("nodecart.csv"))
    assert len(cases) == 12
    for algorithm, dims, size, stencil, numbers in cases:
        found = MAPPERS[algorithm](dims, size, stencil)
        assert np.ravel_multi_index(tuple(found.T), dims).tolist() == numbers, (dims, size)


def test_the_worst_node_of_6_x_6_x_3_ranks_is_the_library_s():
    """24 messages: smaller parts are at the nearer border; 27 if they are always the lower ones."""
    traffic, topology = stencil_traffic((6, 6, 3), "7pt"), topology_from_spec("cluster:9*12")
    node_of = map_ranks(traffic, topology, "hyperplane")
    assert evaluate(traffic, topology, node_of).messages.off_node.max == 24
