"""Saturation: open-loop traffic gets through up to 1/gamma, and no further."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from injection import flows_of
from open_loop import channel_load, open_loop

from hopmap.simulator import ParameterError
from hopmap.topologies import both_ways, haec, mesh, topology_from_spec, torus
from hopmap.traces import PATTERNS, Traffic, synthetic_traffic

pytestmark = pytest.mark.slow  # an engine is compiled for it
# Channel loads of the patterns in order, ties half and half; last, mean hops of uniform traffic.
LOADS = {
    "torus:8x8": ("1", "7/2", "3", "2", "1", "7/2", "7/2", "4"),
    "mesh:8x8": ("2", "7", "3", "4", "1", "7", "4", "21/4"),
    "torus:4x4x4": ("1/2", "4", "1", "1", "1", "4", "2", "3"),
    "mesh:4x4x4": ("1", "4", "1", "2", "1", "4", "2", "15/4"),
    "haec:4x4x4": ("17/32", "2", "1", "1", "1", "2", "1", "7/4"),
}
ROWS = [
    (spec, pattern, Fraction(load))
    for spec, loads in LOADS.items()
    for pattern, load in zip(PATTERNS, loads[:-1], strict=True)
]
# What each does to a rule: long lines, ties, self messages, many flows to a link, boards.
RUN = [
    ("torus:8x8", "transpose"),
    ("torus:8x8", "tornado"),
    ("torus:8x8", "shuffle"),
    ("mesh:8x8", "transpose"),
    ("mesh:8x8", "complement"),
    ("torus:4x4x4", "bit_reversal"),
    ("mesh:4x4x4", "shuffle"),
    ("haec:4x4x4", "transpose"),
    ("haec:4x4x4", "neighbour"),
]


def ways_of(spec):
    return both_ways(topology_from_spec(spec).with_links(latency=0.0))


def offer(spec, pattern, part, packets=300, **given):
    """Offer a part of 1/gamma; `packets` of every source in the window."""
    ways = ways_of(spec)
    traffic = synthetic_traffic(pattern, ways[0].dims)
    gamma = float(channel_load(traffic, ways))
    window = packets * gamma / part
    rng = np.random.default_rng(1)
    load = open_loop(
        traffic, ways, part / gamma, rng=rng, window=window, warm_up=window / 3, **given
    )
    return load, gamma


@pytest.mark.parametrize(("spec", "pattern", "gamma"), ROWS)
def test_channel_loads_are_the_known_ones(spec, pattern, gamma):
    ways = ways_of(spec)
    assert channel_load(synthetic_traffic(pattern, ways[0].dims), ways) == gamma


@pytest.mark.parametrize("spec", LOADS)
def test_mean_hops_of_uniform_traffic_are_the_known_ones(spec):
    for way in ways_of(spec):
        uniform = synthetic_traffic("uniform", way.dims)
        hops = way.distance(uniform.src, uniform.dst)
        assert Fraction(int(hops.sum()), uniform.pairs) == Fraction(LOADS[spec][-1])


@pytest.mark.parametrize("k", [4, 5, 8, 16])
def test_channel_loads_obey_the_closed_forms(k):
    ring, line = both_ways(torus((k, k))), both_ways(mesh((k, k)))
    assert channel_load(synthetic_traffic("tornado", (k, k)), ring) == (k + 1) // 2 - 1
    assert channel_load(synthetic_traffic("transpose", (k, k)), line) == k - 1
    even = k - k % 2 * Fraction(1, k)  # k, and k - 1/k of an odd one
    assert channel_load(synthetic_traffic("uniform", (k, k)), ring) == even / 8
    assert channel_load(synthetic_traffic("uniform", (k, k)), line) == even / 4


def test_parity_alone_halves_uniform_ties_but_not_those_of_every_pattern():
    one_way = [torus((8, 8), ties="parity")]
    loads = [channel_load(synthetic_traffic(p, (8, 8)), one_way) for p in PATTERNS]
    #                 transpose               bit reversal, shuffle: 7/2 if halved
    assert loads == [1, 4, 3, 2, 1, 4, 3]


@pytest.mark.parametrize(("spec", "pattern"), RUN)
def test_every_flow_gets_through_just_below_saturation(spec, pattern):
    load, gamma = offer(spec, pattern, 0.99)
    assert load.accepted * gamma >= 0.97


@pytest.mark.parametrize(("spec", "pattern"), RUN)
def test_no_more_than_the_limit_gets_through_beyond(spec, pattern):
    for part in (1.05, 1.5):
        load, gamma = offer(spec, pattern, part)
        assert load.accepted * gamma <= 1 + 1 / 300  # a packet at the window's edge


def test_uniform_traffic_saturates_as_well():
    # A flow has only a 16th of its source's packets.
    ways = both_ways(torus((4, 4)).with_links(latency=0.0))
    uniform = synthetic_traffic("uniform", (4, 4))
    gamma = float(channel_load(uniform, ways))
    assert gamma == 0.5
    accepted = [
        open_loop(
            uniform, ways, part / gamma, rng=np.random.default_rng(1), window=3200, warm_up=500
        ).accepted
        * gamma
        for part in (0.99, 1.2)
    ]
    assert accepted[0] >= 0.97
    assert accepted[1] <= 1


def test_where_nothing_queues_nothing_saturates():
    load, gamma = offer("mesh:8x8", "transpose", 1.5, engine="analytic")
    assert load.accepted * gamma == pytest.approx(1.5, rel=0.01)


def test_default_switching_saturates_at_the_same_load():
    below, gamma = offer("mesh:8x8", "transpose", 0.99, switching="cut_through")
    beyond, _ = offer("mesh:8x8", "transpose", 1.2, switching="cut_through")
    assert 0.97 <= below.accepted * gamma < 1
    assert beyond.accepted * gamma <= 1 + 1 / 300


def test_flows_off_the_bottleneck_get_through_all_the_same():
    # So that the mean over all flows is above 1/gamma, and is not the throughput of the pattern.
    load, gamma = offer("mesh:8x8", "transpose", 1.5)
    assert load.mean_accepted * gamma > 1.1 > load.accepted * gamma


@pytest.mark.parametrize("process", ["periodic", "poisson"])
def test_the_engines_of_packets_agree(process):
    given = {"packets": 20, "process": process}
    one, _ = offer("torus:4x4x4", "transpose", 0.9, engine="simpy", **given)
    other, _ = offer("torus:4x4x4", "transpose", 0.9, engine="compiled", **given)
    assert one == other


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
def test_poisson_packets_on_one_link_wait_as_in_pollaczek_and_khinchine(load):
    # M/D/1: the mean wait is load / (2 (1 - load)), to which the link adds 1.
    traffic = Traffic.from_pairs(2, [0], [1], [1], [1])
    ways = both_ways(mesh((2,)).with_links(latency=0.0))
    run = open_loop(
        traffic, ways, load, rng=np.random.default_rng(3), process="poisson", window=300_000
    )
    assert run.latency == pytest.approx(1 + load / (2 * (1 - load)), rel=0.02)


def test_far_below_saturation_a_packet_takes_its_hops():
    load, _ = offer("mesh:8x8", "complement", 0.01, packets=20)
    ways = ways_of("mesh:8x8")
    hops = ways[0].distance(np.arange(64), np.arange(64)[::-1]).mean()
    assert load.latency == pytest.approx(hops, rel=0.02)


def test_pairs_with_a_tie_send_half_each_way_and_others_all_one_way():
    ways = both_ways(torus((4,)))
    flows = flows_of(synthetic_traffic("uniform", (4,)), ways)
    ties = abs(flows.src - flows.dst) == 2
    assert len(ties) == 16 + 4
    assert set(flows.rate[ties]) == {1 / 8}
    assert set(flows.rate[~ties]) == {1 / 4}
    assert not flows.way[~ties].any()
    # One of 0 -> 1 -> 2 and 0 -> 3 -> 2 on each way.
    middle = {int(way.link_to[way.routes([0], [2])[1][0]]) for way in ways}
    assert middle == {1, 3}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"process": "poison"}, r"unknown process 'poison' \(did you mean poisson\?\)"),
        ({"engine": "ns3"}, "unknown engine 'ns3'"),
        ({"offered": 0.0}, "offered load 0.0: expected more than 0"),
        ({"window": 0.0}, "window 0.0: expected more than 0"),
        ({"switching": "wormhole"}, "switching 'wormhole': expected one of"),
    ],
)
def test_what_makes_no_sense_is_an_error(given, message):
    traffic, ways = synthetic_traffic("neighbour", (4,)), both_ways(haec((4, 1, 1)))
    with pytest.raises(ParameterError, match=message):
        open_loop(traffic, ways, given.pop("offered", 0.5), rng=np.random.default_rng(0), **given)
