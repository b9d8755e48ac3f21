"""Partial cubes: hops are Hamming distances, and who is none is refused."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.topologies import (
    PartialCube,
    Topology,
    TopologyError,
    from_networkx,
    partial_cube,
    topology_from_spec,
)
from hopmap.topologies.families.partial_cube import recognise
from support.slow import examples

SIZE = st.integers(1, 5)
EVEN = st.sampled_from([1, 2, 4, 6, 8])


def joined(numbers: list[int], by: str = "x") -> str:
    return by.join(map(str, numbers))


@st.composite
def trees(draw) -> Topology:
    """Any tree, any vertices of which are hosts."""
    parents = [draw(st.integers(0, v)) for v in range(draw(st.integers(1, 12)))]
    graph = nx.Graph((v + 1, parent) for v, parent in enumerate(parents))
    for v in graph:
        graph.nodes[v]["host"] = v == 0 or draw(st.booleans())
    return from_networkx(graph)


SPECS = st.one_of(
    st.lists(SIZE, min_size=1, max_size=4).map(lambda d: f"mesh:{joined(d)}"),
    st.lists(EVEN, min_size=1, max_size=3).map(lambda d: f"torus:{joined(d)}"),
    st.integers(1, 7).map(lambda n: f"hypercube:{n}"),
    st.lists(SIZE, min_size=1, max_size=3).map(lambda m: f"fattree:{joined(m)}"),
    st.lists(SIZE, min_size=1, max_size=3).map(lambda m: f"tree:{joined(m, ':')}"),
    st.sampled_from(["mesh:150", "torus:140", "cluster:80", "fattree:3x2:2x2:1x3"]),
)


def digits(cube: PartialCube) -> np.ndarray:
    """Digits of every node, shape (nodes, dimension)."""
    j = np.arange(cube.dimension)
    return (cube.labels[:, j // 64] >> (j % 64).astype(np.uint64) & np.uint64(1)).astype(bool)


def check_labels(topology: Topology, cube: PartialCube) -> None:
    u, v = (pair.ravel() for pair in np.indices((topology.nodes, topology.nodes)))
    assert cube.hops(u, v).tolist() == topology.hops(u, v).tolist()
    differ = digits(cube)[u] != digits(cube)[v]
    assert cube.hops(u, v).tolist() == differ.sum(axis=1).tolist()
    assert (differ @ cube.price).tolist() == (cube.scale * topology.distance(u, v)).tolist()


@examples(100)
@given(st.one_of(SPECS.map(topology_from_spec), trees()))
def test_hops_are_hamming_distances(topology):
    check_labels(topology, partial_cube(topology))


@examples(60)
@given(SPECS.filter(lambda spec: not spec.startswith("fattree")))
def test_labels_without_a_search_have_the_cuts_that_the_search_finds(spec):
    topology = topology_from_spec(spec)
    fast, general = (sorted(digits(f(topology)).T.tolist()) for f in (partial_cube, recognise))
    assert fast == general


@pytest.mark.parametrize(
    ("spec", "cuts"),
    [
        ("mesh:16x16", 30),
        ("mesh:8x8x8", 21),
        ("torus:16x16", 16),
        ("torus:8x8x8", 12),
        ("hypercube:8", 8),
        ("tree:4:4:4", 84),
    ],
)
def test_dimensions_are_the_numbers_of_cuts(spec, cuts):
    """Of the paper's figures, section 7.2, those of the two tori (32 and 24) are twice as many."""
    topology = topology_from_spec(spec)
    assert partial_cube(topology).dimension == recognise(topology).dimension == cuts


def is_partial_cube(graph: nx.Graph) -> bool:
    """Djokovic (1973): bipartite, and W_xy convex for both directions of every edge."""
    if not nx.is_bipartite(graph):
        return False
    hops = dict(nx.all_pairs_shortest_path_length(graph))
    for x, y in [*graph.edges, *((y, x) for x, y in graph.edges)]:
        near = {v for v in graph if hops[v][x] < hops[v][y]}
        for u in near:
            for v in near:
                between = {w for w in graph if hops[u][w] + hops[w][v] == hops[u][v]}
                if not between <= near:
                    return False
    return True


def test_all_small_graphs_are_recognised():
    from networkx.generators.atlas import graph_atlas_g

    found = {True: 0, False: 0}
    for graph in graph_atlas_g():
        if len(graph) < 2 or (len(graph) > 6 and not nx.is_bipartite(graph)):
            continue
        if not nx.is_connected(graph):
            continue
        expected = is_partial_cube(graph)
        found[expected] += 1
        topology = from_networkx(graph)
        if expected:
            check_labels(topology, partial_cube(topology))
        else:
            with pytest.raises(TopologyError, match=r"is no partial cube, .*: expected a mesh"):
                partial_cube(topology)
    assert min(found.values()) > 30


@examples(60)
@given(st.integers(2, 5), st.integers(2, 5), st.randoms(use_true_random=False))
def test_bipartite_graphs_are_recognised(left, right, random):
    every = [(u, left + v) for u in range(left) for v in range(right)]
    graph = nx.Graph(random.sample(every, random.randint(left + right - 1, len(every))))
    graph = graph.subgraph(max(nx.connected_components(graph), key=len))
    try:
        partial_cube(from_networkx(graph))
    except TopologyError:
        assert not is_partial_cube(graph)
    else:
        assert is_partial_cube(graph)


@pytest.mark.parametrize(
    ("graph", "dimension"),
    [
        (nx.cycle_graph(4), 2),
        (nx.cycle_graph(10), 5),
        (nx.desargues_graph(), 5),
        (nx.full_rary_tree(3, 40), 39),
        (nx.complete_graph(3), None),
        (nx.cycle_graph(5), None),
        (nx.complete_bipartite_graph(2, 3), None),
        (nx.heawood_graph(), None),
        (nx.petersen_graph(), None),
    ],
)
def test_graphs_of_the_literature(graph, dimension):
    topology = from_networkx(graph)
    if dimension is None:
        with pytest.raises(TopologyError, match="no partial cube"):
            partial_cube(topology)
    else:
        assert partial_cube(topology).dimension == dimension


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("torus:4x3", "odd cycle through the link 4 - 8"),
        ("torus:5", "odd cycle"),
        ("haec:2x2x3", "odd cycle"),
        ("haec:4x4x4", "odd cycle"),
        ("dragonfly:2x4x2", "odd cycle"),
    ],
)
def test_who_is_none_is_refused_with_the_reason(spec, reason):
    with pytest.raises(TopologyError, match=rf"^{spec} is no partial cube, .*{reason}.*: expected"):
        partial_cube(topology_from_spec(spec))


@pytest.mark.parametrize(("spec", "like"), [("haec:4x4x1", "torus:4x4"), ("haec:1x1x5", "mesh:5")])
def test_families_are_not_refused_by_name(spec, like):
    """One board of a HAEC Box is a torus, and a stack of single nodes a line."""
    topology = topology_from_spec(spec)
    cube = partial_cube(topology)
    check_labels(topology, cube)
    assert cube.dimension == partial_cube(topology_from_spec(like)).dimension


def test_a_thick_fat_tree_has_the_labels_of_its_tree():
    """Its own graph is none: two leaf switches that share three spines are a K_2,3."""
    thick, thin = (topology_from_spec(f"fattree:4x4{parents}") for parents in ("", ":1x1"))
    assert np.array_equal(partial_cube(thick).labels, partial_cube(thin).labels)
    with pytest.raises(TopologyError, match="in two classes of links"):
        recognise(thick)


def test_labels_that_are_too_long_are_refused():
    with pytest.raises(TopologyError, match=r"^cluster:20000: labels of 20000 nodes take 20000"):
        partial_cube(topology_from_spec("cluster:20000"))
