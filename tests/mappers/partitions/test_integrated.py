"""Graphs of many vertices a node: partitioned and mapped in one, never above what a node takes."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import hopmap as hm
from hopmap.mappers import map_ranks, objective_value
from hopmap.mappers.partitions.blocks_kernels import block_cost, fit, improve
from hopmap.mappers.partitions.vcycles import Vertices
from hopmap.topologies import MappingError, check_mapping, topology_from_spec, with_room
from hopmap.traces import Traffic, save_traffic
from support.commands import as_json
from support.slow import examples, slow

SPECS = ["tree:4:2@1:10", "torus:3x3", "mesh:7", "cluster:3*1+2*2", "fattree:3x2"]


def grid(rows: int, columns: int) -> Traffic:
    number = np.arange(rows * columns).reshape(rows, columns)
    src = np.concatenate((number[:-1].ravel(), number[:, :-1].ravel()))
    dst = np.concatenate((number[1:].ravel(), number[:, 1:].ravel()))
    ones = np.ones(len(src), dtype=np.int64)
    return Traffic.from_pairs(rows * columns, src, dst, ones, ones)


def random_graph(vertices: int, pairs: int, seed: int) -> Traffic:
    rng = np.random.default_rng(seed)
    src, dst = rng.integers(vertices, size=(2, pairs))
    return Traffic.from_pairs(
        vertices, src, dst, np.ones(pairs, dtype=np.int64), rng.integers(0, 9, pairs)
    )


def shuffled(traffic: Traffic, seed: int) -> Traffic:
    new = np.random.default_rng(seed).permutation(traffic.ranks)
    return Traffic.from_pairs(
        traffic.ranks, new[traffic.src], new[traffic.dst], traffic.messages, traffic.bytes
    )


@examples(40, least=12)
@given(
    spec=st.sampled_from(SPECS),
    vertices=st.integers(1, 300),
    degree=st.integers(0, 5),
    imbalance=st.sampled_from([0, 0.03, 0.5]),
    hole=st.booleans(),
    stop=st.sampled_from(["cycles=1", "seconds=0.001"]),
    seed=st.integers(0, 9),
)
@example("torus:3x3", 9, 3, 0, False, "cycles=1", 0)
@example("tree:4:2@1:10", 300, 3, 0.03, False, "seconds=0.001", 0)
def test_no_node_gets_more_than_its_share_and_the_imbalance(
    spec, vertices, degree, imbalance, hole, stop, seed
):
    """KaHIP's bound, (1 + e) ceil(n / k); with weights, in proportion to the slots."""
    network = topology_from_spec(spec)
    if hole:
        network = network.only(np.delete(np.arange(network.nodes), 1))
    traffic = random_graph(vertices, degree * vertices, seed)
    room = with_room(network, vertices, imbalance)
    share = np.ceil(vertices * network.slots / network.slots.sum())
    assert (room.slots == np.floor((1 + imbalance) * share + 1e-9)).all()
    node_of = map_ranks(traffic, room, f"integrated({stop})", seed=seed)
    check_mapping(node_of, room, vertices)


@examples(25, least=8)
@given(
    spec=st.sampled_from(SPECS),
    seed=st.integers(0, 99),
    objective=st.sampled_from(["hop_bytes", "hop_messages", "cardinality"]),
)
def test_a_start_is_never_worsened(spec, seed, objective):
    traffic = random_graph(200, 600, seed)
    room = with_room(topology_from_spec(spec), 200, 0.1)
    start = map_ranks(traffic, room, "random", seed=seed)
    mapper = f"integrated(objective={objective})"
    found = map_ranks(traffic, room, mapper, initial=start, seed=seed)
    before, after = (objective_value(traffic, room, m, objective) for m in (start, found))
    assert after >= before if objective == "cardinality" else after <= before


def test_a_plain_grid_is_cut_into_boxes_along_the_levels():
    """64 x 64 on 4 x 4 nodes: quarters share 128 pairs, 10 apart, their quarters 64 each."""
    room = with_room(topology_from_spec("tree:4:4@1:10"), 64 * 64, 0.0)
    node_of = map_ranks(shuffled(grid(64, 64), 1), room, "integrated(cycles=0)")
    value = objective_value(shuffled(grid(64, 64), 1), room, node_of, "hop_bytes")
    assert value == 128 * 10 + 4 * 64


@pytest.mark.parametrize("seed", [0, *slow(1, 2)])
def test_a_plain_grid_on_a_mesh_is_nearly_boxes(seed):
    """64 x 64 on 8 x 8 nodes: boxes of 8 x 8 cut 2 x 7 x 64 pairs, one hop apart."""
    traffic, machine = shuffled(grid(64, 64), 1), hm.Machine("mesh:8x8", imbalance=0.03)
    for mapper in ("integrated(cycles=0)", "integrated(cycles=0,seconds=0.001)"):
        placed = hm.map_ranks(traffic, machine, mapper, seed=seed)
        assert placed.metrics().bytes.dilation.sum < 1.25 * 2 * 7 * 64


@pytest.mark.parametrize("seed", [0, *slow(1, 2)])
def test_a_grid_of_blocks_on_its_hierarchy_is_cut_along_the_blocks(seed):
    """32 x 32 in 4 x 4 blocks; pairs weigh 100 in a block, 10 between those of a quarter, else 1.

    There are 64 pairs between the quarters, 10 apart, and 4 x 32 of weight 10 within them, 1 apart.
    """
    cells, pairs = np.indices((32, 32)).reshape(2, -1), grid(32, 32)
    same = [(cells // size)[:, pairs.src] == (cells // size)[:, pairs.dst] for size in (8, 16)]
    block, quarter = (each.all(axis=0) for each in same)
    weight = np.where(block, 100, np.where(quarter, 10, 1))
    traffic = Traffic.from_pairs(1024, pairs.src, pairs.dst, pairs.messages, weight)
    mapper = "integrated(starts=40,cycles=20)"
    placed = hm.map_ranks(
        shuffled(traffic, seed), hm.Machine("tree:4:4@1:10", imbalance=0.03), mapper, seed=seed
    )
    assert placed.metrics().bytes.dilation.sum == 64 * 10 + 4 * 32 * 10
    assert (np.bincount(placed.node_of) == 64).all()


def test_a_ring_of_vertices_goes_round_a_ring_of_nodes():
    """Eight cuts, each between neighbours: what the mapping costs at least on eight nodes."""
    around = np.arange(800)
    ring = Traffic.from_pairs(800, around, (around + 1) % 800, around * 0 + 1, around * 0 + 1)
    placed = hm.map_ranks(shuffled(ring, 1), hm.Machine("torus:8", imbalance=0.03), "integrated")
    assert placed.metrics().bytes.dilation.sum == 8


def test_a_search_from_vertices_leaves_what_is_above_its_room():
    """A path of 6 on two blocks of room 3, all of it on the first."""
    indptr = np.array([0, 1, 3, 5, 7, 9, 10])
    peer = np.array([1, 0, 2, 1, 3, 2, 4, 3, 5, 4])
    weight, size = np.ones(10), np.ones(6, dtype=np.int64)
    block = np.array([0, 0, 0, 0, 0, 1], dtype=np.int32)
    room, far = np.array([3, 3]), 1.0 - np.eye(2)
    random = np.array([7], dtype=np.uint64)
    assert block_cost(indptr, peer, weight, block, far) == 1
    assert improve(Vertices(indptr, peer, weight, size), block, room, far, 3, 10, random) == 0
    assert block.tolist() == [0, 0, 0, 1, 1, 1]
    block[:] = 0
    fit(indptr, peer, weight, block, room, far)
    assert np.bincount(block).tolist() == [3, 3]


def test_little_time_is_enough_for_less_than_half_of_random():
    traffic = random_graph(600, 1200, 1)
    room = with_room(topology_from_spec("tree:4:4@1:10"), 600, 0.03)
    values = [
        objective_value(traffic, room, map_ranks(traffic, room, mapper, seed=0), "hop_bytes")
        for mapper in ("integrated(seconds=0.001)", "integrated(cycles=0)", "random")
    ]
    assert values[0] < min(1.2 * values[1], values[2] / 2)


def test_the_same_seed_gives_the_same_mapping():
    traffic, room = (
        random_graph(200, 800, 0),
        with_room(topology_from_spec("torus:4x4"), 200, 0.03),
    )
    one, same, other = (map_ranks(traffic, room, "integrated", seed=s) for s in (1, 1, 2))
    assert (one == same).all()
    assert (one != other).any()


def test_too_many_nodes_are_refused():
    with pytest.raises(MappingError, match="has 4,096 nodes with slots: expected 2,048 at most"):
        map_ranks(grid(64, 64), topology_from_spec("torus:64x64"), "integrated")


def test_auto_is_integrated_where_there_are_many_vertices_and_slack():
    traffic = shuffled(grid(128, 128), 0)
    placed = hm.map_ranks(traffic, hm.Machine("torus:2x2", imbalance=0.03))
    assert placed.mapper == "integrated"
    assert placed.topology.spec == "torus:2x2*4218"
    assert (
        hm.map_ranks("lu.S.16", hm.Machine("torus:2x2", imbalance=0.5), "auto(moves=0)").mapper
        != "integrated"
    )


def test_imbalance_changes_nothing_where_there_is_a_slot_for_every_rank():
    one, same = (
        hm.map_ranks("lu.S.16", hm.Machine("torus:4x4", imbalance=i), "kd_tree")
        for i in (None, 0.03)
    )
    assert (one.node_of == same.node_of).all()
    assert one.topology.spec == same.topology.spec == "torus:4x4"


@pytest.mark.parametrize(
    ("network", "options", "said"),
    [
        ("torus:2x2", {"imbalance": -0.1}, "imbalance -0.1: expected a number >= 0, 0.03 is 3 %"),
        ("torus:2x2", {"imbalance": float("nan")}, "imbalance nan: expected a number >= 0"),
        ("torus:2x2", {"imbalance": 0.1, "balanced": True}, "imbalance and balanced are mutually"),
        ("torus:2x2", {}, "16 ranks do not fit on torus:2x2, which has 4 slots"),
    ],
)
def test_what_makes_no_sense_is_one_line(network, options, said):
    with pytest.raises(MappingError, match=said) as error:
        hm.map_ranks("lu.S.16", hm.Machine(network, **options), "sweep")
    assert "\n" not in str(error.value)


def test_the_command_writes_a_file_that_evaluate_reads(tmp_path):
    graph, file = tmp_path / "mesh.graph", tmp_path / "mapping.csv"
    save_traffic(graph, grid(20, 20))
    words = ["map", graph, "-t", "tree:2:4", "-m", "integrated", "--imbalance", "0.03"]
    made = as_json(*words, "--out", file)
    assert np.bincount(made["node_of"]).max() <= 51
    assert file.read_text().startswith("# hopmap mapping on tree:2:4@1:10*51\n")
    measured = as_json("evaluate", graph, file)
    assert measured["bytes"]["dilation"]["sum"] == made["hop_bytes"]
