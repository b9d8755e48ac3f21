"""The exact optimum of small grids: by hand, by all partitions, and what is refused."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hopmap.mappers import map_ranks
from hopmap.mappers.cartesian.off_node import outgoing, peers_of
from hopmap.mappers.exact.exact_partition import Ahead, Limits, find_within, row_of
from hopmap.topologies import MappingError, check_mapping, cluster, topology_from_spec
from hopmap.traces import stencil_traffic
from support.slow import examples


def measures(traffic, topology, mapper, amount="bytes"):
    """What leaves all nodes and the worst."""
    node_of = map_ranks(traffic, topology, mapper)
    check_mapping(node_of, topology, traffic.ranks)
    load = outgoing(peers_of(traffic, amount, traffic.ranks), node_of, topology.nodes)
    return int(load.sum()), int(load.max())


def by_all_partitions(traffic, slots):
    """Least sum and least worst node among all mappings that fit."""
    nodes = np.arange(len(slots))[:, None, None]
    node_of = np.indices((len(slots),) * traffic.ranks, dtype=np.int8).reshape(traffic.ranks, -1)
    node_of = node_of[:, (slots >= (node_of == nodes).sum(axis=1).T).all(axis=1)]
    src, dst = node_of[traffic.src], node_of[traffic.dst]
    load = np.where((src == nodes) & (src != dst), traffic.bytes[:, None], 0).sum(axis=1)
    return int(load.sum(axis=0).min()), int(load.max(axis=0).min())


def in_rows(traffic, peers):
    """The order in which ranks are placed, and what a row of it is."""
    dims = traffic.metadata["dims"]
    order = np.arange(traffic.ranks).reshape(dims)
    order = order.transpose(np.argsort([-d for d in dims], kind="stable")).ravel()
    return order, row_of(peers, order, traffic.ranks // max(dims), flat=len(dims) == 2)


@st.composite
def tiny_grids(draw):
    """Traffic of a grid of at most nine ranks, and nodes with slots for them, or for more."""
    dims = draw(st.sampled_from([(7,), (2, 3), (3, 2), (2, 4), (4, 2), (3, 3), (2, 2, 2), (1, 6)]))
    ranks = prod(dims)
    unit = np.eye(len(dims), dtype=int).tolist()
    vector = st.sampled_from([*unit, *(-np.array(unit)).tolist()]) | st.lists(
        st.integers(-2, 2), min_size=len(dims), max_size=len(dims)
    )
    stencil = draw(st.just("star") | st.lists(vector, min_size=1, max_size=6))
    size = 1
    if stencil != "star":
        size = draw(st.lists(st.integers(0, 3), min_size=len(stencil), max_size=len(stencil)))
    periodic = draw(st.lists(st.booleans(), min_size=len(dims), max_size=len(dims)))
    cuts = sorted(draw(st.lists(st.integers(1, ranks - 1), min_size=1, max_size=2, unique=True)))
    slots = np.diff([0, *cuts, ranks + draw(st.integers(0, 2))])
    return stencil_traffic(dims, stencil, periodic=periodic, size=size), slots


@examples(30, least=10)
@given(tiny_grids())
def test_it_is_the_best_of_all_partitions(case):
    traffic, slots = case
    topology, least = cluster(slots), by_all_partitions(traffic, slots)
    assert measures(traffic, topology, "exact_partition")[0] == least[0]
    assert measures(traffic, topology, "exact_partition(measure=worst)")[1] == least[1]


# Of two partial partitions with one border the one of the larger sum is lower on a node.
CROSSED = stencil_traffic((3, 3), [[-1, 0], [0, -2]], periodic=[True, False], size=[6, 8])


@examples(60, least=10)
@given(tiny_grids())
@example((CROSSED, np.array([3, 3, 3])))
def test_the_search_finds_what_is_within_limits_and_nothing_else(case):
    """Without a mapping to begin with, which may be the best already."""
    traffic, slots = case
    peers, (total, worst) = peers_of(traffic, "bytes", traffic.ranks), by_all_partitions(*case)
    order, row = in_rows(traffic, peers)
    most = int(traffic.bytes.sum())
    for limits, least in {
        Limits(most, None): total,
        Limits(total, None): total,
        Limits(total - 1, None): None,
        Limits(most, worst): None,
        Limits(most, worst - 1): None,
    }.items():
        found = find_within(peers, order, slots, row, limits)
        there = limits.sum >= total and (limits.worst is None or limits.worst >= worst)
        assert (found is not None) == there
        if found is not None:
            assert (np.bincount(found, minlength=len(slots)) <= slots).all()
            load = outgoing(peers, found, len(slots))
            assert least is None or load.sum() == least
            assert limits.worst is None or load.max() <= limits.worst


@examples(300)
@given(tiny_grids(), st.integers(0, 2**32 - 1), st.sampled_from(["rows", "columns", "any"]))
def test_its_bounds_never_exceed_what_is_to_come(case, seed, kind):
    """Of any partition, cut off at any rank."""
    traffic, slots = case
    peers = peers_of(traffic, "bytes", traffic.ranks)
    order, row = in_rows(traffic, peers)
    nodes = len(slots)
    rng = np.random.default_rng(seed)
    first = rng.permutation(nodes)
    node = np.repeat(first, slots[first])[: traffic.ranks]
    if kind == "any":
        node = rng.permutation(node)
    elif kind == "columns":
        node = node.reshape(row.length, -1).T.ravel()
    node_of = np.empty_like(node)
    node_of[order] = node
    final = outgoing(peers, node_of, nodes)
    for placed in range(1, traffic.ranks + 1):
        inside = np.isin(traffic.src, order[:placed]) & np.isin(traffic.dst, order[:placed])
        src, dst = node_of[traffic.src], node_of[traffic.dst]
        so_far = np.bincount(
            src[inside & (src != dst)], traffic.bytes[inside & (src != dst)], minlength=nodes
        )
        used = np.bincount(node[:placed], minlength=nodes)[None]
        ahead = Ahead(row, placed, np.array(slots), traffic.ranks)
        rows = node[None].astype(np.int8)
        assert so_far.sum() + ahead.sum(rows, used)[0] <= final.sum()
        assert (so_far + ahead.each(rows, used)[0] <= final).all()


@pytest.mark.parametrize(
    ("dims", "spec", "total", "worst"),
    [
        ((6, 6), "cluster:4*9", 24, 6),  # four squares
        ((4, 4), "cluster:4*4", 16, 4),
        ((6, 6), "cluster:2*18", 12, 6),  # two halves
        pytest.param((6, 6), "cluster:6*6", 36, 8, marks=pytest.mark.slow),
        ((1, 6), "cluster:3*2", 4, 2),
    ],
)
def test_boxes_are_optimal_where_they_fit(dims, spec, total, worst):
    traffic, topology = stencil_traffic(dims, "5pt"), topology_from_spec(spec)
    assert measures(traffic, topology, "exact_partition")[0] == total
    assert measures(traffic, topology, "exact_partition(measure=worst)")[1] == worst


def test_what_counts_is_chosen():
    """Heavy bytes up and down, so that by bytes nodes take columns; by messages, squares."""
    traffic = stencil_traffic((4, 4), "5pt", size=[10, 10, 1, 1])
    topology = topology_from_spec("cluster:4*4")
    assert measures(traffic, topology, "exact_partition(amount=bytes)")[0] == 24
    assert measures(traffic, topology, "exact_partition(amount=messages)", "messages")[0] == 16


@pytest.mark.parametrize(
    ("dims", "spec", "said"),
    [
        ((12, 11), "cluster:12*11", "132 ranks"),
        ((4, 4), "torus:16x8", "128 nodes"),
        ((8, 8), "cluster:16*4", "a border of 7 ranks on 16 nodes"),
    ],
)
def test_large_grids_are_refused_in_one_line(dims, spec, said):
    with pytest.raises(MappingError) as refused:
        map_ranks(stencil_traffic(dims, "5pt"), topology_from_spec(spec), "exact_partition")
    assert str(refused.value) == (
        f"mapper exact_partition: {said}: expected a small grid, like 6x6 on six nodes, or on "
        "three if it is periodic both ways or 4x3x3"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dims", "stencil", "periodic", "spec", "total", "worst"),
    [
        ((6, 6), "5pt", True, "cluster:3*12", 36, 12),  # two rows each
        ((6, 6), "5pt", [True, False], "cluster:4*9", 36, 9),
        pytest.param(
            (3, 3, 3), "7pt", False, "cluster:3*9", 36, None, marks=pytest.mark.slow
        ),  # three layers
        ((4, 3, 3), "7pt", False, "cluster:3*12", 36, None),
        ((8, 8), "5pt", False, "cluster:4*16", 32, 8),
    ],
)
def test_its_reach_is_as_stated(dims, stencil, periodic, spec, total, worst):
    traffic = stencil_traffic(dims, stencil, periodic=periodic)
    found = measures(traffic, topology_from_spec(spec), "exact_partition")
    assert found[0] == total
    assert worst is None or found[1] == worst


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dims", "stencil", "periodic"), [((6, 6), "5pt", True), ((4, 3, 3), "7pt", False)]
)
def test_what_is_beyond_it_is_refused_in_one_line(dims, stencil, periodic):
    traffic = stencil_traffic(dims, stencil, periodic=periodic)
    with pytest.raises(MappingError, match=r"^mapper exact_partition: \d+ partial partitions of"):
        map_ranks(traffic, topology_from_spec("cluster:4*9"), "exact_partition")


def test_case_3_of_section_3_3_of_the_thesis_is_wrong():
    """Messages up and down in columns of 6 that close, nodes of 8: three have a column and a third.

    The thesis says that no node crosses two borders only, as 2 p is no multiple of the column; a
    column of three parts is what its case distinction leaves out, and with it Lemma 3.4.
    """
    traffic = stencil_traffic((4, 6), [(0, 1), (0, -1)], periodic=[False, True])
    topology = topology_from_spec("cluster:3*8")
    assert 2 * 8 % 6 != 0
    assert measures(traffic, topology, "exact_partition(measure=worst)") == (6, 2)
