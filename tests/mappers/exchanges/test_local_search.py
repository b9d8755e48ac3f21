"""Local search: optima of the neighbourhoods of the VieM paper, however gains are computed."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.mappers import OBJECTIVES, map_ranks, objective_value, parse_pipeline
from hopmap.mappers.cost_kernels import own_costs, swap_gain, total_cost
from hopmap.mappers.exchanges.local_search import start_search
from hopmap.mappers.exchanges.local_search_kernels import WITHIN, dense_gain, exchange, improve
from hopmap.mappers.objectives import cost_model, least_distance, with_free_slots
from hopmap.topologies import MappingError, topology_from_spec
from hopmap.traces import Traffic, nas_traffic
from support.slow import examples
from support.traffic import placed_anywhere

SPECS = [
    "tree:2:3:2@1:10:100",
    "torus:4x3",
    "mesh:2x2*3",
    "haec:2x2x3",
    "fattree:4x3",
    "tree:6:2@0:5",
]


def partners(traffic: Traffic, neighbourhood: str, s: int) -> set[tuple[int, int]]:
    """Pairs of ranks of the neighbourhood, by definition."""
    pairs = traffic.without_self().undirected()
    graph = nx.Graph()
    graph.add_nodes_from(range(traffic.ranks))
    graph.add_edges_from(zip(pairs.src.tolist(), pairs.dst.tolist(), strict=True))
    if neighbourhood == "N2":
        return {(u, v) for u in graph for v in graph if u < v}
    if neighbourhood == "Np":
        return {(u, v) for u in graph for v in graph if u < v and u // s == v // s}
    within = dict(nx.all_pairs_shortest_path_length(graph, cutoff=int(neighbourhood)))
    return {(u, v) for u in graph for v in within[u] if u < v}


@examples(80)
@given(
    placed_anywhere(SPECS),
    st.sampled_from(["1", "2", "3", "10", "Np", "N2"]),
    st.integers(1, 8),
    st.sampled_from(list(OBJECTIVES)),
)
def test_it_ends_where_no_exchange_of_the_neighbourhood_gains(case, neighbourhood, s, objective):
    traffic, topology, start = case
    stage = f"local_search(neighbourhood={neighbourhood}, s={s}, objective={objective})"
    end = map_ranks(traffic, topology, stage, initial=start)
    before, after = (objective_value(traffic, topology, m, objective) for m in (start, end))
    assert after >= before if OBJECTIVES[objective].maximised else after <= before
    model = cost_model(traffic, topology, objective)
    places = with_free_slots(end, topology)
    for u, v in partners(traffic, neighbourhood, s):
        assert swap_gain(model, places, u, v) <= 0
    if neighbourhood == "N2":  # free slots as well: no move gains
        for u in range(traffic.ranks):
            for slot in range(traffic.ranks, len(places)):
                assert swap_gain(model, places, u, slot) <= 0


@st.composite
def full_machines(draw):
    """Paths with chords in disorder, a rank on every node; what is near is seldom all."""
    topology = topology_from_spec(draw(st.sampled_from(["torus:4x3", "mesh:14", "tree:2:3:2"])))
    neighbourhood, s = draw(st.sampled_from(["1", "2", "3", "Np"])), draw(st.integers(2, 5))
    ranks = topology.nodes
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    path = rng.permutation(ranks)
    chords = rng.integers(0, ranks, (2, 3))
    src, dst = np.concatenate((path[:-1], chords[0])), np.concatenate((path[1:], chords[1]))
    traffic = Traffic.from_pairs(ranks, src, dst, *rng.integers(1, 9, (2, len(src))))
    return traffic, topology, rng.permutation(ranks), neighbourhood, s


@examples(80, 40)
@given(full_machines())
def test_all_of_the_neighbourhood_is_exchanged_and_nothing_else(case):
    """Farther ranks of N_d and other blocks of N_p stay, whatever they would gain."""
    traffic, topology, places, neighbourhood, s = case
    stage = f"local_search(neighbourhood={neighbourhood}, s={s})"
    model = cost_model(traffic, topology, "hop_bytes")
    pairs = sorted(partners(traffic, neighbourhood, s))

    def gaining(places):
        return [(u, v) for u, v in pairs if swap_gain(model, places, u, v) > 0]

    assert not gaining(map_ranks(traffic, topology, stage, initial=places))
    while found := gaining(places):
        u, v = found[0]
        places[[u, v]] = places[[v, u]]
    assert map_ranks(traffic, topology, stage, initial=places).tolist() == places.tolist()


def test_ranks_are_visited_in_random_order():
    """Where they are visited in the order of their numbers, no order of partners ends elsewhere."""
    topology, start = topology_from_spec("mesh:5"), np.array([3, 2, 0, 1, 4])
    traffic = Traffic.from_pairs(5, [3, 4, 4], [4, 1, 0], [1] * 3, [5, 2, 3])
    ends = {
        tuple(map_ranks(traffic, topology, "local_search(neighbourhood=1)", initial=start, seed=k))
        for k in range(20)
    }
    assert ends == {(4, 3, 0, 1, 2), (3, 4, 0, 1, 2)}


def test_partners_are_tried_in_random_order():
    """A star whose centre may change places with any leaf between it and the others."""
    topology = topology_from_spec("mesh:9")
    traffic = Traffic.from_pairs(9, [8] * 8, range(8), [1] * 8, [1] * 8)
    model, start = cost_model(traffic, topology, "hop_bytes"), np.arange(9)
    first = set()
    for seed in range(20):
        search = start_search(model, start, topology, np.random.default_rng(seed))
        improve(model, search, np.array([8]), 0, 1000, WITHIN, 1)
        first.add(tuple(search.places))
    assert len(first) > 1


@examples(40)
@given(
    placed_anywhere(SPECS),
    st.sampled_from(["1", "10", "Np", "N2"]),
    st.sampled_from(list(OBJECTIVES)),
)
def test_fast_and_slow_gains_make_the_same_exchanges(case, neighbourhood, objective):
    traffic, topology, start = case
    ends = [
        map_ranks(
            traffic,
            topology,
            f"local_search(neighbourhood={neighbourhood}, objective={objective}, gain={gain})",
            initial=start,
            seed=5,
        ).tolist()
        for gain in ("sparse", "dense")
    ]
    assert ends[0] == ends[1]


@examples(60)
@given(placed_anywhere(SPECS), st.sampled_from(list(OBJECTIVES)), st.data())
def test_a_gain_is_what_the_exchange_takes_off_the_cost(case, objective, data):
    traffic, topology, start = case
    model = cost_model(traffic, topology, objective)
    search = start_search(model, start, topology, np.random.default_rng(0), dense=True)
    assert (search.own >= search.least).all()
    item = st.integers(0, len(search.places) - 1)
    for _ in range(4):
        u, v = data.draw(item), data.draw(item)
        before = total_cost(model, search.places)
        gain = swap_gain(model, search.places, u, v)
        assert dense_gain(model, search, u, v) == gain
        exchange(model, search, u, v)
        assert before - total_cost(model, search.places) == gain
        assert search.own.tolist() == own_costs(model, search.places).tolist()


@pytest.mark.parametrize("spec", SPECS)
def test_no_two_slots_are_nearer_than_the_bound_says(spec):
    topology = topology_from_spec(spec)
    slots = np.repeat(np.arange(topology.nodes), topology.slots)
    u, v = np.triu_indices(len(slots), 1)
    assert topology.distance(slots[u], slots[v]).min() >= least_distance(topology)


def test_larger_neighbourhoods_find_better_mappings(compiled):
    """Table 3: N_1, N_2 and N_10 from a poor start, N_10 about as good as N^2."""
    traffic, topology = nas_traffic("lu.D.256"), topology_from_spec("tree:4:16:4@1:10:100")
    mean = {
        n: np.mean(
            [
                objective_value(
                    traffic,
                    topology,
                    map_ranks(
                        traffic, topology, f"random | local_search(neighbourhood={n})", seed=k
                    ),
                    "hop_bytes",
                )
                for k in range(5)
            ]
        )
        for n in ("1", "2", "10", "N2")
    }
    assert mean["1"] > mean["2"] > mean["10"]
    assert mean["10"] == pytest.approx(mean["N2"], rel=0.1)


def test_pruned_blocks_as_large_as_the_machine_are_all_pairs():
    traffic, topology = nas_traffic("lu.S.16"), topology_from_spec("tree:4:4@1:10")
    start = map_ranks(traffic, topology, "random", seed=3)
    pruned, every = (
        map_ranks(traffic, topology, f"local_search(neighbourhood={n})", initial=start).tolist()
        for n in ("Np", "N2")
    )
    assert pruned == every


def test_ranks_move_to_free_slots():
    topology = topology_from_spec("mesh:50")
    traffic = Traffic.from_pairs(2, [0], [1], [1], [1])
    end = map_ranks(traffic, topology, "local_search", initial=[3, 44])
    assert topology.distance(end[0], end[1]) == 1


@pytest.mark.parametrize("text", ["0", "N0", "-1", "N3x", "all", "1.5"])
def test_an_unknown_neighbourhood_is_refused(text):
    topology, traffic = topology_from_spec("mesh:4"), nas_traffic("lu.S.4")
    with pytest.raises(MappingError, match=f"neighbourhood={text}: expected N2, Np, or a number"):
        map_ranks(traffic, topology, f"sweep | local_search(neighbourhood={text})")


@pytest.mark.parametrize("text", ["1", "N1", "N_1", "n1"])
def test_a_neighbourhood_may_be_written_as_in_the_paper(text):
    assert parse_pipeline(f"random | local_search(neighbourhood={text})")
    topology, traffic = topology_from_spec("torus:4x4"), nas_traffic("lu.S.16")
    plain, written = (
        map_ranks(traffic, topology, f"random | local_search(neighbourhood={n})").tolist()
        for n in ("1", text)
    )
    assert plain == written


def test_spent_time_leaves_the_start_as_it_is():
    topology, traffic = topology_from_spec("torus:4x4"), nas_traffic("lu.S.16")
    start = map_ranks(traffic, topology, "random")
    end = map_ranks(traffic, topology, "local_search", initial=start, seconds=0)
    assert end.tolist() == start.tolist()
