"""Any graph as a network: networkx, GraphML, what is refused."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.topologies import TopologyError, from_networkx, topology_from_spec
from hopmap.topologies.families import graph as graphs
from support.slow import examples


@st.composite
def connected(draw) -> nx.Graph:
    size = draw(st.integers(1, 12))
    graph = nx.random_labeled_tree(size, seed=draw(st.integers(0, 999)))
    vertex = st.integers(0, size - 1)
    graph.add_edges_from(draw(st.lists(st.tuples(vertex, vertex), max_size=12)))
    switches = draw(st.sets(vertex, max_size=size - 1))
    nx.set_node_attributes(graph, {v: v not in switches for v in graph}, "host")
    return graph


@examples(60)
@given(connected())
def test_routes_are_shortest_and_of_these_the_lowest_next_vertex(graph):
    topology = from_networkx(graph)
    order = [v for v in graph if graph.nodes[v]["host"]]
    order += [v for v in graph if not graph.nodes[v]["host"]]
    assert (topology.nodes, topology.vertices) == (
        sum(nx.get_node_attributes(graph, "host").values()),
        len(graph),
    )
    renamed = nx.relabel_nodes(graph, {v: n for n, v in enumerate(order)})
    hops = dict(nx.all_pairs_shortest_path_length(renamed))
    for u in range(topology.nodes):
        for v in range(topology.nodes):
            route = [u]
            while route[-1] != v:
                beside = (x for x in renamed[route[-1]] if hops[x][v] < hops[route[-1]][v])
                route.append(min(beside))
            _, links = topology.routes([u], [v])
            assert topology.link_from[links].tolist() == route[:-1]
            assert topology.link_to[links].tolist() == route[1:]
            assert topology.distance(u, v)[0] == hops[u][v]
    assert topology.diameter() == max(hops[u][v] for u in range(topology.nodes) for v in range(topology.nodes))  # fmt: skip  # noqa: E501


def test_a_graph_of_a_torus_has_its_distances():
    torus = topology_from_spec("torus:4x3")
    graph = nx.Graph()
    graph.add_nodes_from(range(12))
    graph.add_edges_from(zip(torus.link_from.tolist(), torus.link_to.tolist(), strict=True))
    u, v = (x.ravel() for x in np.indices((12, 12)))
    assert from_networkx(graph).distance(u, v).tolist() == torus.distance(u, v).tolist()


def rack() -> nx.Graph:
    """Two hosts and a third with two slots, on a chain of two switches."""
    graph = nx.Graph()
    for switch in ("s0", "s1"):
        graph.add_node(switch, host=False)
    for host, switch in (("a", "s0"), ("b", "s1"), ("c", "s1")):
        graph.add_node(host, slots=2 if host == "c" else 1)
        graph.add_edge(host, switch, kind="copper", bandwidth=5e9, latency=1e-7)
    graph.add_edge("s0", "s1", kind="fibre", bandwidth=2e10, latency=5e-7)
    return graph


def test_graphml_is_read_with_slots_hosts_and_kinds(tmp_path):
    path = tmp_path / "rack, old.graphml"
    nx.write_graphml(rack(), path)
    topology = topology_from_spec(f"file:{path}")
    assert topology_from_spec(topology.spec).spec == topology.spec == f"file:{path}"
    assert topology.slots.tolist() == [1, 1, 2]
    assert (topology.nodes, topology.switches, topology.links) == (3, 2, 8)
    assert [(k.name, k.bandwidth, k.latency) for k in topology.kinds] == [
        ("copper", 5e9, 1e-7),
        ("fibre", 2e10, 5e-7),
    ]
    assert topology.kinds[0].provenance == "from the graph"
    assert topology.distance([0, 0, 1], [1, 2, 2]).tolist() == [3, 3, 2]
    _, links = topology.routes([0], [1])
    assert topology.link_kind[links].tolist() == [0, 1, 0]


def test_edges_without_a_kind_share_one_a_speed():
    graph = nx.path_graph(4)
    nx.set_edge_attributes(graph, {(1, 2): 4e9}, "bandwidth")
    assert [k.name for k in from_networkx(graph).kinds] == ["link", "link2"]
    assert [k.sources for k in from_networkx(graph).kinds] == [
        ("DEFAULT", "DEFAULT"),
        ("from the graph", "DEFAULT"),
    ]


def changed(change) -> nx.Graph:
    graph = rack()
    change(graph)
    return graph


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (nx.DiGraph([(0, 1)]), "directed: expected simple undirected edges"),
        (nx.MultiGraph([(0, 1), (0, 1)]), "has parallel edges"),
        (nx.empty_graph(2), "no way from 0 to 1: expected a connected graph"),
        (nx.Graph(), "no vertex is a host"),
        (changed(lambda g: g.add_node("lost", host=False)), "no way from 'a' to 'lost'"),
        (changed(lambda g: g.add_node("a", slots=0)), "slots of 'a': 0: expected a whole number"),
        (changed(lambda g: g.add_node("a", slots="two")), "slots of 'a': 'two'"),
        (changed(lambda g: g.add_node("a", host="maybe")), "host of 'a' is 'maybe'"),
        (changed(lambda g: g.add_edge("a", "s0", bandwidth="5 GB/s")), "expected a number in"),
        (changed(lambda g: g.add_edge("a", "s0", bandwidth=0)), "bandwidth 0.0: expected > 0"),
        (changed(lambda g: g.add_edge("a", "s0", bandwidth=1e9)), "other speeds than kind"),
        (nx.star_graph(9000), "expected a product of at most 67108864"),
    ],
)
def test_what_is_refused_is_refused_in_one_line(graph, message):
    with pytest.raises(TopologyError, match=message) as caught:
        from_networkx(graph)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "nodes", "<graphml", "<graphml/>", "<a><b/></a>"])
def test_a_file_that_is_no_graphml_is_refused_in_one_line(tmp_path, text):
    path = tmp_path / "bad.graphml"
    path.write_text(text)
    with pytest.raises(
        TopologyError, match=r"bad\.graphml: (cannot be read as|expected one of|root)"
    ) as caught:
        topology_from_spec(f"file:{path}")
    assert "\n" not in str(caught.value)


def test_a_way_that_is_too_long_is_refused():
    chain = nx.path_graph(2**15 + 1)
    nx.set_node_attributes(chain, False, "host")
    for end in (0, 2**15):
        chain.nodes[end]["host"] = True
    with pytest.raises(TopologyError, match="a way of more than 32,767 links"):
        from_networkx(chain)
    chain.remove_node(2**15)
    chain.nodes[2**15 - 1]["host"] = True
    assert from_networkx(chain).diameter() == 2**15 - 1


def test_the_limit_keeps_the_table_within_128_mib():
    assert graphs.LIMIT * 2 == 128 * 2**20
