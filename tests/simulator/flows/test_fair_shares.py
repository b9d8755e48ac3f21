"""Shares that are kept up to date are those of the definition, and bytes are conserved."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.simulator import Parameters, Record, program_of, simulate
from hopmap.simulator.flows.bottleneck_kernels import end_of
from hopmap.simulator.flows.max_min_kernels import allot, close_flow, open_flow
from hopmap.simulator.flows.state import empty_flows, server_table
from hopmap.simulator.row_pointers import first_records
from hopmap.simulator.run_plan import paths, plan_run
from hopmap.topologies import topology_from_spec
from support.slow import examples

NEAR = 1e-9


def filled(capacity, routes, weights):
    """Max-min rates by progressive filling, all over again."""
    rates, left = np.full(len(routes), -1.0), np.array(capacity, float)
    over = np.zeros((len(routes), len(left)))
    for flow, route in enumerate(routes):
        over[flow, route] = 1
    while (rates < 0).any():
        demand = (weights * (rates < 0)) @ over
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.where(demand > 0, left / demand, np.inf)
        full = shares <= shares.min() * (1 + 1e-13)
        held = (rates < 0) & (over[:, full].any(axis=1))
        rates[held] = shares.min() * weights[held]
        left -= rates[held] @ over[held]
    return rates


class Shared:
    """Flows between all pairs of nodes, opened and closed as time goes by."""

    def __init__(self, topology, capacity):
        nodes = topology.nodes
        self.indptr, self.stops = paths(topology, *np.divmod(np.arange(nodes * nodes), nodes))
        self.capacity = np.resize(capacity, topology.links + 3 * nodes).astype(float)
        servers = server_table(self.capacity, np.zeros(len(self.capacity)))
        self.tables = empty_flows(servers, self.indptr, self.stops, nodes * nodes)
        self.rows, self.slots, self.now = first_records(self.tables), {}, 0.0
        self.left, self.weight, self.rate = {}, {}, {}

    def turn(self, flow, size, weight):
        """Open a flow, or close it if it is there."""
        if flow in self.slots:
            close_flow(self.rows, self.slots.pop(flow), self.now)
            return
        ends = self.indptr[flow : flow + 2]
        self.slots[flow] = open_flow(self.rows, *ends, flow, size, weight, self.now)
        self.left[flow], self.weight[flow], self.rate[flow] = size, weight, 0.0

    def look(self, later):
        """Let fair rates hold from now on for a while."""
        allot(self.rows, self.now)
        slots = self.tables.slots[list(self.slots.values())]
        rates = self.tables.levels["share"][slots["bottleneck"]] * slots["weight"]
        self.rate = dict(zip(self.slots, rates.tolist(), strict=True))
        for flow, rate in self.rate.items():
            self.left[flow] -= later * rate
        self.now += later

    def expected(self):
        routes = [self.stops[self.indptr[f] : self.indptr[f + 1]] for f in self.slots]
        weights = np.array([self.weight[f] for f in self.slots])
        return filled(self.capacity, routes, weights)


@st.composite
def changes(draw):
    topology = topology_from_spec(
        draw(st.sampled_from(["torus:3x3", "mesh:4x2", "fattree:3x2:1x2"]))
    )
    capacity = draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))
    weights = draw(st.sampled_from([[1.0], [1.0, 0.25, 7.0]]))
    flow = st.integers(0, topology.nodes**2 - 1)
    steps = st.lists(st.lists(flow, min_size=1, max_size=12), min_size=1, max_size=12)
    return topology, capacity, weights, draw(steps)


@examples(150)
@given(changes())
def test_shares_stay_those_of_filling_and_no_byte_is_lost(run):
    topology, capacity, weights, steps = run
    shared = Shared(topology, capacity)
    for step in steps:
        for flow in step:
            shared.turn(flow, 1e3, weights[flow % len(weights)])
        if not shared.slots:
            continue
        before = shared.now
        shared.look(1e-3)
        rates = np.array(list(shared.rate.values()))
        assert rates == pytest.approx(shared.expected(), rel=NEAR)
        for flow, slot in shared.slots.items():
            left = shared.left[flow] + 1e-3 * shared.rate[flow]
            assert end_of(shared.rows, slot) == pytest.approx(
                before + left / shared.rate[flow], rel=NEAR
            )


def test_what_no_chain_of_servers_joins_is_left_alone():
    # On a ring of 8, 0 -> 1 and 4 -> 5 share nothing.
    shared = Shared(topology_from_spec("torus:8"), [1])
    for flow in (0 * 8 + 1, 4 * 8 + 5):
        shared.turn(flow, 1.0, 1.0)
    shared.look(0.0)
    other = int(shared.tables.slots["bottleneck"][shared.slots[4 * 8 + 5]])
    shared.turn(0 * 8 + 2, 1.0, 1.0)
    noted = allot(shared.rows, 0.0)
    assert noted > 0
    assert other not in shared.tables.noted["place"][:noted]


@pytest.mark.parametrize("algorithm", ["linear", "pairwise"])
def test_every_message_of_an_alltoall_ends_when_its_bytes_are_there(algorithm):
    """Filling between the engine's own starts and ends leaves nothing of a message."""
    ranks, size = 16, 1 << 16
    lists = []
    for rank in range(ranks):
        pairs = [
            (("irecv", (rank - k) % ranks, size), ("isend", (rank + k) % ranks, size))
            for k in range(1, ranks)
        ]
        rounds = pairs if algorithm == "pairwise" else [sum(pairs, ())]
        operations = []
        for once in rounds:
            first = len(operations)
            operations += [*once, *(("wait", first + k) for k in range(len(once)))]
        lists.append(operations)
    program, topology = program_of(algorithm, lists), topology_from_spec("torus:4x4")
    node_of = np.random.default_rng(0).permutation(ranks)
    times = simulate(
        program, topology, node_of, engine="flow", record=Record(messages=True)
    ).message_times
    plan = plan_run(program, topology, node_of, Parameters())
    routes = np.split(plan.servers, plan.indptr[1:-1])
    path = plan.path[program.sends()]
    starts = times.departed + [plan.latency[routes[p]].sum() for p in path]
    left, opened, now, rates = np.full(len(path), float(size)), [], 0.0, np.zeros(0)
    for moment in np.unique(np.concatenate((starts, times.delivered))):
        left[opened] -= rates * (moment - now)
        now = moment
        ended = np.flatnonzero(times.delivered == now)
        assert np.abs(left[ended]).max(initial=0) < NEAR * size
        opened = [f for f in opened if f not in ended] + np.flatnonzero(starts == now).tolist()
        rates = filled(plan.bandwidth, [routes[path[f]] for f in opened], np.ones(len(opened)))
    assert not opened
