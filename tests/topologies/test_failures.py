"""Links and nodes that are down: which routes change, into what, and which stay."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

import hopmap as hm
from hopmap.simulator.parameters.settings import configure
from hopmap.topologies import topology_from_spec, with_failures
from hopmap.topologies.channel_classes import channel_classes, waiting_cycle
from support.slow import slow

SPECS = (
    "torus:4x4",
    "mesh:3x3x2",
    "haec:3x3x2",
    "dragonfly:1x4x2",
    "fattree:4x4:1x2",
    "hypercube:3",
)


def all_pairs(network):
    return np.divmod(np.arange(network.nodes**2), network.nodes)


def ways(network):
    """Every route as the vertices that it comes to."""
    indptr, links = network.routes(*all_pairs(network))
    ends = np.stack((network.link_from, network.link_to), axis=1)[links]
    return [ends[a:b] for a, b in pairwise(indptr)]


def cables(network, items):
    """The directed links, as ends, that are here and not there any more."""
    there = with_failures(network, items)
    left = list(zip(there.link_from.tolist(), there.link_to.tolist(), strict=True))
    gone = []
    for end in zip(network.link_from.tolist(), network.link_to.tolist(), strict=True):
        if end in left:
            left.remove(end)
        else:
            gone.append(end)
    return there, gone


@settings(max_examples=12, deadline=None)
@given(st.sampled_from(SPECS), st.integers(1, 3), st.integers(0, 99))
def test_routes_avoid_what_is_down_and_others_stay(spec, links, seed):
    """Every route is connected, takes links that are up, is the old one, or a shortest way."""
    before = topology_from_spec(spec)
    after, gone = cables(before, f"links={links},seed={seed}")
    assert len(gone) == 2 * links
    source, target = all_pairs(before)
    graph = csr_array(
        (np.ones(after.links), (after.link_from, after.link_to)), shape=(after.vertices,) * 2
    )
    shortest = shortest_path(graph, unweighted=True)
    for u, v, old, new in zip(source, target, ways(before), ways(after), strict=True):
        if u == v:
            assert len(new) == 0
            continue
        assert (new[0, 0], new[-1, 1]) == (u, v)
        assert (new[1:, 0] == new[:-1, 1]).all()
        if {tuple(hop) for hop in old.tolist()} & set(gone):
            assert len(new) == shortest[u, v]
            for here, there in new.tolist():  # of several ways that to the lowest vertex first
                nearer = shortest[:, v] == shortest[here, v] - 1
                assert there == np.flatnonzero(nearer & (graph[[here]].toarray()[0] > 0))[0]
        else:
            assert new.tolist() == old.tolist()
    far = after.distance(source, target)
    assert (far == [len(way) for way in ways(after)]).all()
    assert (far == after.hops(source, target)).all()
    if not spec.startswith("dragonfly"):  # whose own routes cross one global link, however far
        assert (far >= before.hops(source, target)).all()


def test_what_is_drawn_has_not_failed_yet_and_every_cable_and_node_may_be_drawn():
    """One cable and two more, both ways; two degraded ones; three nodes: whatever the seed."""
    plain, often, seen = topology_from_spec("torus:3x3"), 80, []
    for seed in range(often):
        items = f"link=0-1,link=3-4*0.25,node=5,links=2,degraded=2,nodes=2,seed={seed}"
        cut, gone = cables(plain, items)
        kinds = np.array([kind.name for kind in cut.kinds])[cut.link_kind]
        degraded = [
            (int(cut.link_from[k]), int(cut.link_to[k])) for k in np.flatnonzero(kinds != "link")
        ]
        assert len(set(gone)) == 2 * 3
        assert len(set(degraded)) == 2 * 3
        assert all(end[::-1] in each for each in (gone, degraded) for end in each)
        assert [(kind.share, kind.latency) for kind in cut.kinds] == [
            (share, plain.kinds[0].latency) for share in (1.0, 0.25, 0.5)
        ]
        assert np.bincount(cut.link_kind).tolist() == [36 - 6 - 6, 2, 4]
        down = np.flatnonzero(cut.slots == 0).tolist()
        assert len(down) == 3
        seen.append((frozenset(gone), frozenset(degraded), frozenset(down)))
    every = {(u, v) for u, v in zip(plain.link_from, plain.link_to, strict=True)}
    for k, whole in enumerate((every - {(3, 4), (4, 3)}, every - {(0, 1), (1, 0)}, set(range(9)))):
        assert set().union(*(each[k] for each in seen)) == whole
        assert len({each[k] for each in seen}) > 20


def test_a_ring_is_walked_the_other_way():
    """Between 0 and 1 of a ring of 6: five hops, by closed form; two pairs change and no more."""
    ring, cut = topology_from_spec("torus:6"), topology_from_spec("failed:link=0-1@torus:6")
    assert cut.links == ring.links - 2
    assert cut.distance(0, 1) == cut.distance(1, 0) == 5
    source, target = all_pairs(ring)
    crossed = [any({0, 1} == set(hop) for hop in way.tolist()) for way in ways(ring)]
    around = 6 - ring.distance(source, target)
    assert (
        cut.distance(source, target) == np.where(crossed, around, ring.distance(source, target))
    ).all()


def test_one_way_leaves_the_way_back():
    cut = topology_from_spec("failed:link=0>1@torus:6")
    assert (cut.distance([0], [1])[0], cut.distance([1], [0])[0]) == (5, 1)
    assert cut.links == 11


def test_loads_go_where_routes_go():
    network = topology_from_spec("failed:links=2,seed=3@torus:4x4")
    source, target = all_pairs(network)
    weight = np.arange(len(source))
    loads = np.zeros(network.links, dtype=np.int64)
    indptr, links = network.routes(source, target)
    np.add.at(loads, links, np.repeat(weight, np.diff(indptr)))
    assert (network.loads(source, target, weight) == loads).all()


def test_nothing_that_failed_is_the_same_network():
    plain = topology_from_spec("torus:4x4")
    none = topology_from_spec("failed:links=0,seed=7@torus:4x4")
    assert none.router is plain.router or type(none.router) is type(plain.router)
    assert (none.links, none.kinds, none.dims) == (plain.links, plain.kinds, plain.dims)
    mapping = list(range(16))
    for engine in ("compiled", "simpy", "flow"):
        runs = [
            hm.simulate(hm.Workload("cg.S.16", steps=1), net, mapping, engine=engine)
            for net in (plain, none)
        ]
        assert runs[0].makespan == runs[1].makespan
        assert (runs[0].link_busy == runs[1].link_busy).all()


@pytest.mark.parametrize("spec", SPECS)
def test_engines_agree_on_what_is_left(spec):
    network = topology_from_spec(f"failed:links=2,degraded=1,seed=1@{spec}")
    ranks = min(network.nodes, 8)
    traffic = hm.Traffic.from_pairs(
        ranks, range(ranks), np.roll(range(ranks), 3), [2] * ranks, [50_000] * ranks
    )
    mapping = np.random.default_rng(0).permutation(network.nodes)[:ranks]
    runs = [hm.simulate(traffic, network, mapping, engine=name) for name in ("simpy", "compiled")]
    assert runs[0].makespan == runs[1].makespan
    assert (runs[0].link_busy == runs[1].link_busy).all()
    loads = network.loads(mapping[traffic.src], mapping[traffic.dst], traffic.bytes)
    assert (runs[1].link_bytes == loads).all()


def test_degraded_links_keep_their_share_whatever_is_set():
    network = topology_from_spec("failed:link=0-1*0.25,link=1-2*0.5@torus:4x4")
    assert [kind.name for kind in network.kinds] == ["link", "link_degraded", "link_degraded2"]
    assert np.bincount(network.link_kind).tolist() == [60, 2, 2]
    for settings_, widths in (
        ({}, [10e9, 2.5e9, 5e9]),
        ({"link.bandwidth": "8 GB/s"}, [8e9, 2e9, 4e9]),
        ({"link.bandwidth": "8 GB/s", "link.link_degraded.bandwidth": 1e9}, [8e9, 1e9, 4e9]),
    ):
        changed, _ = configure(network, tuple(settings_.items()))
        assert [kind.bandwidth for kind in changed.kinds] == widths
    slow = hm.Traffic.from_pairs(2, [0], [1], [1], [10**8])
    run = hm.simulate(slow, network, [0, 1])
    assert run.makespan == pytest.approx(10**8 / 2.5e9, rel=1e-2)


@pytest.mark.parametrize("mapper", ["identity", "random", "rcm", *slow("auto(moves=100)")])
def test_a_node_that_failed_takes_no_ranks_and_lets_others_pass(mapper):
    network = topology_from_spec("failed:node=1,nodes=2,seed=0@mesh:8")
    assert network.slots.sum() == 5
    assert network.slots[1] == 0
    assert network.distance(0, 2) == 2
    assert network.slots[hm.map_ranks("lu.S.4", network, mapper).node_of].all()
    with pytest.raises(hm.HopmapError, match="node 1"):
        hm.evaluate("lu.S.4", network, [0, 1, 2, 3])


@pytest.mark.parametrize(
    "mapper", ["minmd", "greedy", *slow("auto(moves=200)", "recursive_bisection", "kl")]
)
def test_mappers_see_the_new_distances(mapper):
    placed = hm.map_ranks("lu.S.16", "failed:links=3,seed=2@torus:4x4", mapper)
    far = placed.topology.distance(*placed.node_of[[placed.traffic.src, placed.traffic.dst]])
    assert placed.metrics().bytes.dilation.sum == (far * placed.traffic.bytes).sum()


def test_finite_buffers_get_classes_without_a_ring_or_are_refused():
    """The way round of a mesh's dimension order can close a ring of waiting packets."""
    network = topology_from_spec("failed:links=3,seed=1@mesh:4x4")
    indptr, links = network.routes(*all_pairs(network))
    links = links.astype(np.int64)
    wanted = channel_classes(network, indptr, links)
    most = int(wanted.max()) + 1
    assert not len(waiting_cycle(indptr, links * most + wanted))
    settings_ = {"network.buffer": 1, "network.virtual_channels": most}
    every = hm.Traffic.from_pairs(
        16,
        *(pairs[np.arange(256) % 17 > 0] for pairs in all_pairs(network)),
        [1] * 240,
        [9000] * 240,
    )
    runs = [
        hm.simulate(
            hm.Workload(every, rounds=1),
            hm.Machine(network, settings=settings_),
            range(16),
            engine=e,
        )
        for e in ("simpy", "compiled")
    ]
    assert runs[0].makespan == runs[1].makespan
    if most > 1:
        with pytest.raises(hm.HopmapError, match="in a ring of"):
            hm.simulate(
                hm.Workload(every, rounds=1),
                hm.Machine(network, settings={"network.buffer": 1}),
                range(16),
            )


@given(st.integers(0, 50))
@settings(max_examples=4, deadline=None)
def test_a_seed_draws_the_same_and_no_node_is_cut_off(seed):
    for spec in ("mesh:3x3", "fattree:4x4:1x2"):
        first, again = (topology_from_spec(f"failed:links=2,seed={seed}@{spec}") for _ in range(2))
        assert (first.link_from == again.link_from).all()
        assert (first.link_to == again.link_to).all()


def test_a_file_says_the_same_as_words_and_its_spec_reads_back(tmp_path):
    file = tmp_path / "down.txt"
    file.write_text(
        "# since Monday\nlink=0-1\n\nlink = 1-2*0.5, node=5  # fans\n", encoding="utf-8"
    )
    network = topology_from_spec(f"failed:{file}@torus:4x4")
    assert network.spec == "failed:link=0-1,link=1-2*0.5,node=5@torus:4x4"
    words = topology_from_spec(network.spec)
    assert (words.link_from == network.link_from).all()
    assert words.kinds == network.kinds
    placed = hm.map_ranks("lu.S.4", network, "random")
    hm.write_mapping(tmp_path / "m.csv", placed)
    assert (hm.read_mapping(tmp_path / "m.csv") == placed.node_of).all()
    before = hm.map_ranks("lu.S.4", "torus:4x4", "identity")
    hm.write_mapping(tmp_path / "n.csv", before)
    assert hm.evaluate("lu.S.4", network, tmp_path / "n.csv").bytes.dilation.sum > 0


def test_of_parallel_cables_one_fails_for_each_item():
    spec = "fattree:2x2:1x2:1x2"
    plain = topology_from_spec(spec)
    number = {tuple(end) for end in np.stack((plain.link_from, plain.link_to), axis=1).tolist()}
    assert len(number) < plain.links  # there are parallel ones
    ends = np.stack((plain.link_from, plain.link_to), axis=1).tolist()
    one, other = next(end for end in ends if ends.count(end) > 1)
    item = f"link=s{one - plain.nodes}-s{other - plain.nodes}"
    assert topology_from_spec(f"failed:{item}@{spec}").links == plain.links - 2
    assert topology_from_spec(f"failed:{item},{item}@{spec}").links == plain.links - 4
    slow = topology_from_spec(f"failed:{item}*0.5,{item}*0.25@{spec}")
    shares = np.array([kind.share for kind in slow.kinds])[slow.link_kind]
    assert np.sort(shares)[:5].tolist() == [0.25, 0.25, 0.5, 0.5, 1]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("failed:link=0-1@mesh:4", "node 0 is cut off: expected a way to every node"),
        ("failed:link=0-5@mesh:4x4", "link=0-5: no such link"),
        ("failed:link=0-1,link=0-1@torus:4x4", "link=0-1: no such link, or none that has not"),
        ("failed:link=0-99@mesh:4", "99: expected nodes 0 to 3"),
        ("failed:node=s0@fattree:4x4", "s0: expected nodes 0 to 15"),
        ("failed:link=0-1*2@mesh:4", "expected a share of the bandwidth above 0 and below 1"),
        ("failed:factor=nan@mesh:4", "expected a share"),
        ("failed:lnks=3@mesh:4", "'lnks=3': expected link=3-4"),
        ("failed:links=-1@mesh:4", "'links=-1': expected"),
        ("failed:links=1@mesh:4", "links=1: expected at most 0 on mesh:4"),
        ("failed:nodes=5@mesh:4", "nodes=5: expected at most 4 on mesh:4"),
        ("failed:nodes=4@mesh:4", "no node is left"),
        ("failed:no_file@mesh:4", "no_file: cannot be read"),
        ("failed:links=1@torus:32x32x16", "expected 8,192 at most"),
        ("failed:links=1", "expected links and nodes that are down"),
    ],
)
def test_what_cannot_have_failed_is_one_line(spec, said):
    with pytest.raises(hm.HopmapError) as caught:
        topology_from_spec(spec)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
