"""The flow engine: fair rates, times that can be written down, and a naive solver beside it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.simulator import Parameters, Record, program_of, simulate
from hopmap.simulator.flows.max_min_kernels import allot, close_flow, open_flow
from hopmap.simulator.flows.state import empty_flows, server_table
from hopmap.simulator.row_pointers import first_records
from hopmap.topologies import mesh, topology_from_spec
from support.free_ends import FREE
from support.slow import examples

EXACT = 1e-12


class Network:
    """Servers and flows over paths, as the kernels see them."""

    def __init__(self, capacity, paths):
        self.indptr = np.cumsum([0, *map(len, paths)])
        servers = server_table(np.array(capacity, float), np.zeros(len(capacity)))
        self.tables = empty_flows(servers, self.indptr, np.concatenate(paths), len(paths))
        self.rows = first_records(self.tables)

    def open(self, path, weight=1.0):
        return open_flow(self.rows, *self.indptr[path : path + 2], path, 1e9, weight, 0.0)

    def close(self, slot):
        close_flow(self.rows, slot, 0.0)

    def rates(self, slots):
        allot(self.rows, 0.0)
        rows = self.tables.slots[list(slots)]
        return (self.tables.levels["share"][rows["bottleneck"]] * rows["weight"]).tolist()


def fair(capacity, paths, weights=None):
    """Rates by the kernels, all flows opened at once."""
    network = Network(capacity, paths)
    weights = weights or [1.0] * len(paths)
    return network.rates([network.open(path, weights[path]) for path in range(len(paths))])


def naive(capacity, paths, weights=None):
    """Max-min rates by the definition, in fractions: raise all until a server is full, repeat."""
    rates, weights = {}, weights or [1] * len(paths)
    while len(rates) < len(paths):
        shares = {}
        for server, whole in enumerate(capacity):
            over = [p for p, path in enumerate(paths) if server in path]
            free = [p for p in over if p not in rates]
            if free:
                given_away = sum(rates[p] for p in over if p in rates)
                shares[server] = (Fraction(whole) - given_away) / sum(weights[p] for p in free)
        least = min(shares.values())
        full = [server for server, s in shares.items() if s == least]
        for p, path in enumerate(paths):
            if p not in rates and any(server in path for server in full):
                rates[p] = least * weights[p]
    return [rates[p] for p in range(len(paths))]


# Rates


def test_parking_lot_shares_every_link_in_two():
    # One flow over all links, one over each: Bertsekas and Gallager's example.
    assert fair([1.0, 1.0, 1.0], [[0, 1, 2], [0], [1], [2]]) == [0.5, 0.5, 0.5, 0.5]


def test_parking_lot_with_more_on_one_link():
    assert fair([1, 1, 1], [[0, 1, 2], [0], [1], [1], [1], [2]]) == [0.25, 0.75] + [0.25] * 3 + [
        0.75
    ]


def test_dumbbell_shares_the_middle():
    # Three pairs over one link in the middle; the access link of the first is slower still.
    access = [0.2, 5, 5]
    paths = [[k, 3, 4 + k] for k in range(3)]
    assert fair([*access, 1.0, 5, 5, 5], paths) == pytest.approx([0.2, 0.4, 0.4], rel=EXACT)


@pytest.mark.parametrize("senders", [1, 2, 7, 100])
def test_incast_shares_the_last_link(senders):
    paths = [[k, senders] for k in range(senders)]
    assert fair([1.0] * senders + [1.0], paths) == pytest.approx([1 / senders] * senders, rel=EXACT)


networks = st.integers(1, 6).flatmap(
    lambda servers: st.tuples(
        st.lists(st.integers(1, 20), min_size=servers, max_size=servers),
        st.lists(
            st.lists(st.integers(0, servers - 1), min_size=1, max_size=servers, unique=True),
            min_size=1,
            max_size=8,
        ),
    )
)


@examples(300)
@given(networks)
def test_rates_are_those_of_a_naive_solver(network):
    capacity, paths = network
    assert fair(capacity, paths) == pytest.approx(
        list(map(float, naive(capacity, paths))), rel=1e-12
    )


@examples(200)
@given(networks, st.lists(st.integers(1, 1000), min_size=8, max_size=8))
def test_weighted_rates_are_those_of_a_naive_solver(network, weights):
    capacity, paths = network
    expected = list(map(float, naive(capacity, paths, weights)))
    assert fair(capacity, paths, list(map(float, weights))) == pytest.approx(expected, rel=1e-9)


@examples(150)
@given(networks, st.lists(st.tuples(st.integers(0, 7), st.booleans()), max_size=25))
def test_rates_stay_fair_as_flows_come_and_go(network, changes):
    # Any number of changes between two looks, on what is left of the changes before.
    capacity, paths = network
    net, slots = Network(capacity, paths), {}
    for which, look in changes:
        path = which % len(paths)
        if path in slots:
            net.close(slots.pop(path))
        else:
            slots[path] = net.open(path)
        if look:
            expected = naive(capacity, [paths[p] for p in slots])
            rates = net.rates(slots.values())
            assert rates == pytest.approx(list(map(float, expected)), rel=1e-12)


def test_a_flow_that_opens_as_another_ends_finds_nothing_of_its_share():
    network = Network([8, 6], [[0, 1], [1, 0]])
    first = network.open(1)
    assert network.rates([first]) == [6.0]
    network.close(first)
    assert network.rates([network.open(1), network.open(0)]) == [3.0, 3.0]


# Times


def flow_times(lists, topology, node_of, **parameters):
    return simulate(
        program_of("flows", lists),
        topology,
        node_of,
        parameters=Parameters(**FREE | parameters),
        engine="flow",
        record=Record(messages=True),
    )


def test_two_flows_share_a_link_half_and_half():
    lists = [[("send", 2, 10**6)], [("send", 2, 10**6)], [("recv", 0, 10**6), ("recv", 1, 10**6)]]
    result = flow_times(lists, mesh((3,)).with_links(bandwidth=1e9, latency=1e-3), [0, 1, 2])
    # The one that comes from farther away starts a latency later, and ends alone.
    first, last = result.message_times.delivered[1], result.message_times.delivered[0]
    # From 1 ms to 2 ms the second is alone and moves all of its 1 MB.
    assert first == pytest.approx(2e-3, rel=EXACT)
    assert last == pytest.approx(3e-3, rel=EXACT)
    both = flow_times(lists, mesh((3,)).with_links(bandwidth=1e9, latency=0.0), [0, 1, 2])
    assert both.message_times.delivered.tolist() == pytest.approx([2e-3, 2e-3], rel=EXACT)


def test_what_a_flow_leaves_goes_to_the_others():
    # 3 MB and 1 MB over one link of 1 GB/s: half each for 2 ms, then all for 2 ms more.
    lists = [[("send", 2, 3 * 10**6)], [("send", 2, 10**6)], [("recv", 0, 0), ("recv", 1, 0)]]
    topology = mesh((3,)).with_links(bandwidth=1e9, latency=0.0)
    result = flow_times(lists, topology, [0, 1, 2])
    assert result.message_times.delivered == pytest.approx([4e-3, 2e-3], rel=EXACT)
    assert result.link_busy.max() == pytest.approx(4e-3, rel=EXACT)


@pytest.mark.parametrize("senders", [2, 5, 16])
def test_incast_ends_when_the_last_link_has_carried_all(senders):
    size = 10_000
    lists = [[("send", senders, size)]] * senders + [[("recv", s, size) for s in range(senders)]]
    topology = mesh((2,), slots=senders).with_links(bandwidth=10e9, latency=1e-7)
    result = flow_times(lists, topology, [0] * senders + [1])
    assert result.makespan == pytest.approx(1e-7 + senders * size / 10e9, rel=EXACT)
    assert np.ptp(result.message_times.delivered) < 1e-18


def test_one_message_takes_what_docs_model_says():
    lists = [[("send", 1, 10**6)], [("recv", 0, 10**6)]]
    for limit in (0, 2**60):
        times = [
            simulate(
                program_of("one", lists),
                mesh((4,)),
                [0, 3],
                parameters=Parameters(eager_limit=limit, control_bytes=64),
                engine=engine,
            ).makespan
            for engine in ("simpy", "flow")
        ]
        assert times[0] == pytest.approx(times[1], rel=EXACT)


def test_simgrid_lv08_example():
    """SimGrid's Models.rst: 100 kB over 10 ms and 1 Mbit/s in 0.996079 s under LV08.

    0.01 * 13.01 + 800000 / (0.97 * 1e6 / 1.05) = 0.996079
    """
    topology = mesh((2,)).with_links(bandwidth=1e6 / 8, latency=0.01)
    result = flow_times(
        [[("send", 1, 100_000)], [("recv", 0, 100_000)]],
        topology,
        [0, 1],
        flow_latency_factor=13.01,
        flow_bandwidth_factor=0.97,
        flow_cross_traffic=1.05,
    )
    assert result.makespan == pytest.approx(0.01 * 13.01 + 800000 / (0.97 * 1e6 / 1.05), rel=EXACT)
    assert round(result.makespan, 6) == 0.996079


@pytest.mark.parametrize(
    ("sharing", "weight_s", "share"),
    [("equal", 0, 1 / 2), ("round_trip", 0, 2 / 3), ("round_trip", 8000, 8 / 13)],
)
def test_flows_of_a_long_round_trip_have_smaller_shares(sharing, weight_s, share):
    # Over 4 MB/s into node 0 meet a path of 1 ms and one of 2 ms, 32 kB each. The first is alone
    # for 1 ms and moves 4 kB. Weight-S adds its time on 2 servers and on 3, of 2 ms each.
    lists = [[("send", 2, 32_000)], [("send", 2, 32_000)], [("recv", 0, 0), ("recv", 1, 0)]]
    result = flow_times(
        lists,
        mesh((2, 2)).with_links(bandwidth=4e6, latency=1e-3),
        [1, 3, 0],
        ejection_bandwidth=4e6,
        flow_sharing=sharing,
        flow_weight_s=weight_s,
    )
    near = 2e-3 + 28_000 / (4e6 * share)
    assert result.message_times.delivered == pytest.approx([near, 17e-3], rel=EXACT)


def test_without_latency_all_shares_are_equal():
    lists = [[("send", 2, 32_000)], [("send", 2, 32_000)], [("recv", 0, 0), ("recv", 1, 0)]]
    topology = mesh((2, 2)).with_links(bandwidth=4e6, latency=0.0)
    ends = {"ejection_bandwidth": 4e6, "flow_sharing": "round_trip", "flow_weight_s": 8000}
    result = flow_times(lists, topology, [1, 3, 0], **ends)
    assert result.message_times.delivered == pytest.approx([16e-3, 16e-3], rel=EXACT)


def test_packets_tend_to_flows_as_they_shrink_on_one_bottleneck():
    # Three sizes from three nodes over the link from 4 to 7.
    lists = [[("send", 3, k * 10**5)] for k in (1, 2, 4)] + [[("recv", s, 0) for s in range(3)]]
    node_of, topology = [1, 3, 5, 7], mesh((3, 3)).with_links(latency=0.0)
    ends = FREE | {"injection_bandwidth": 10e9, "ejection_bandwidth": 10e9}

    def delivered(engine, packet):
        return simulate(
            program_of("flows", lists),
            topology,
            node_of,
            parameters=Parameters(**ends, packet_size=packet),
            engine=engine,
            record=Record(messages=True),
        ).message_times.delivered

    fluid = delivered("flow", 1)
    assert fluid == pytest.approx(np.array([3, 5, 7]) * 1e-5, rel=EXACT)
    off = [np.abs(delivered("simpy", p) - fluid).max() for p in (10**5, 10**4, 10**3, 10**2)]
    assert np.all(np.diff(off) < 0)
    assert off[-1] <= 3 * 100 / 10e9


@st.composite
def floods(draw):
    """Every rank sends some messages at some times, and waits for nothing."""
    topology = topology_from_spec(draw(st.sampled_from(["mesh:5", "torus:4x2*2", "haec:2x2x2*2"])))
    for kind in topology.kinds:
        topology = topology.with_links(
            kind.name, bandwidth=draw(st.integers(1, 9)), latency=draw(st.integers(0, 2))
        )
    ranks = draw(st.integers(2, topology.nodes))
    message = st.tuples(
        st.integers(0, ranks - 1),
        st.integers(0, ranks - 1),
        st.integers(0, 50),
        st.integers(0, 6),
    )
    messages = draw(st.lists(message, max_size=12))
    ends = {
        f"{end}_{what}": draw(st.integers(low, 9))
        for end in ("injection", "ejection", "memory")
        for what, low in (("bandwidth", 1), ("latency", 0))
    }
    return messages, topology, ranks, ends


def fluid(starts, sizes, capacity, paths):
    """Deliveries of flows by the definition, in fractions."""
    left, now, ends = {}, Fraction(0), [None] * len(starts)
    while None in ends:
        opened = [f for f, end in enumerate(ends) if end is None and f in left]
        coming = [starts[f] for f, end in enumerate(ends) if end is None and f not in left]
        rates = naive(capacity, [paths[f] for f in opened])
        moments = [now + left[f] / rate for f, rate in zip(opened, rates, strict=True)] + coming
        then = min(moments)
        for f, rate in zip(opened, rates, strict=True):
            left[f] -= rate * (then - now)
            if left[f] == 0:
                ends[f] = then
        now = then
        for f, start in enumerate(starts):
            if f not in left and start <= now:
                left[f] = Fraction(sizes[f])
                if not sizes[f]:
                    ends[f] = start
    return ends


@examples(80)
@given(floods())
def test_times_are_those_of_a_naive_simulation(run):
    messages, topology, ranks, ends = run
    lists = [[("irecv", s, 0) for s, d, *_ in messages if d == r] for r in range(ranks)]
    clock = [0] * ranks
    order = []
    for r in range(ranks):
        for source, target, size, pause in messages:
            if source == r:
                lists[r] += [("compute", float(pause)), ("isend", target, size)]
                clock[r] += pause
                order.append((clock[r], source, target, size))
    result = flow_times(lists, topology, range(ranks), **ends)

    indptr, hops = topology.routes([s for _, s, *_ in order], [d for *_, d, _ in order])
    links, nodes = topology.links, topology.nodes
    speed = [int(topology.kinds[k].bandwidth) for k in topology.link_kind]
    delay = [int(topology.kinds[k].latency) for k in topology.link_kind]
    for end in ("injection", "ejection", "memory"):
        speed += [ends[f"{end}_bandwidth"]] * nodes
        delay += [ends[f"{end}_latency"]] * nodes
    paths = [
        [links + s, *hops[indptr[k] : indptr[k + 1]].tolist(), links + nodes + d]
        if s != d
        else [links + 2 * nodes + s]
        for k, (_, s, d, _) in enumerate(order)
    ]
    starts = [
        Fraction(at + sum(delay[server] for server in path))
        for (at, *_), path in zip(order, paths, strict=True)
    ]
    expected = fluid(starts, [size for *_, size in order], speed, paths)
    assert result.message_times.delivered == pytest.approx(list(map(float, expected)), rel=1e-9)
