"""Exchanges of stencils that stencil_bench.c timed, beside what the model says of them."""

from __future__ import annotations

import numpy as np
import pytest

import hopmap as hm
from hopmap.simulator.measured.files import MeasuredError
from hopmap.validation.validation import validate

HEAD = (
    "collective,nodes,tasks_per_node,mpi,mpi_version,gpu_aware,notes,algorithm,buffer_bytes,"
    "iterations,median_ns,min_ns,max_ns\n"
)
SETTINGS = {"link.bandwidth": 1e9, "overhead.send": 0.0, "overhead.recv": 0.0}


def predicted(tmp_path, rows, topology, settings=SETTINGS, **given):
    path = tmp_path / "times.csv"
    path.write_text(HEAD + "".join(rows))
    return validate(path, topology, settings=settings, **given).prediction


def row(collective, algorithm, size, *, nodes=4, tasks=4):
    job = f"{nodes},{tasks},MPICH,4.0.2,no,worst node 0 sum 0"
    return f'"{collective}",{job},{algorithm},{size},3,5.0,4,6\n'


@pytest.mark.parametrize("algorithm", ["mpi", "row_major", "kd_tree", "hyperplane"])
def test_an_exchange_is_the_stencil_replayed_under_the_mapper(tmp_path, algorithm):
    """The same by the door: stencil, mapper, one round."""
    made = predicted(tmp_path, [row("stencil:4x4,star", algorithm, 20_000)], "cluster:4*4")
    grid = "stencil:4x4,star,bytes=20000"
    mapped = hm.map_ranks(grid, "cluster:4*4", "row_major" if algorithm == "mpi" else algorithm)
    replay = hm.simulate(grid, hm.Machine("cluster:4*4", settings=SETTINGS), mapped.node_of)
    assert made.time.tolist() == [replay.makespan]
    assert made.why == ("",)


def test_squares_are_faster_than_rows(tmp_path):
    """Rows send up to eight messages off a node, squares four: k-d trees win where links count."""
    rows = [row("stencil:4x4,star", algorithm, 10**6) for algorithm in ("mpi", "kd_tree")]
    in_order, squares = predicted(tmp_path, rows, "cluster:4*4").time
    assert squares < 0.8 * in_order


def test_processes_sit_on_the_hosts_of_their_job(tmp_path):
    """Nodes 0 and 3 of a line of four are three links apart, nodes 0 and 1 one."""
    alloc = tmp_path / "alloc.csv"
    times, no_bandwidth = [], {"link.bandwidth": 1e18, "link.latency": 1e-6}
    for far in ("node1", "node3"):
        alloc.write_text(f"MPI_Rank,allocation\n0,node0\n1,{far}\n")
        rows = [row("stencil:2x1,star", "mpi", 8, nodes=2, tasks=1)]
        times.append(predicted(tmp_path, rows, "mesh:4", no_bandwidth, alloc=alloc).time[0])
    assert times[1] - times[0] == pytest.approx(2 * 1e-6, rel=1e-9)


def test_what_is_not_simulated_says_why(tmp_path):
    rows = [
        row("cart_create", "kd_tree", 0),
        row("stencil:4x4,round", "kd_tree", 8),
        row("stencil:4x4,star", "nobody", 8),
        row("stencil:5x4,star", "mpi", 8),
        row("stencil:4x4,star", "mpi", 8),
    ]
    made = predicted(tmp_path, rows, "cluster:4*4")
    assert np.isnan(made.time).tolist() == [True] * 4 + [False]
    assert made.why[0] == "makes a communicator: not modelled"
    for word, why in zip(("round", "nobody", "20"), made.why[1:-1], strict=True):
        assert word in why


def test_more_nodes_than_the_machine_has_are_one_line(tmp_path):
    with pytest.raises(MeasuredError, match="5 nodes: cluster:4\\*4 has 4: expected as many"):
        predicted(tmp_path, [row("stencil:4x4,star", "mpi", 8, nodes=5)], "cluster:4*4")
