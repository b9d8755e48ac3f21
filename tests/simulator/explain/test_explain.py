"""Explaining a run: bottlenecks and who is behind them, and what doubling a parameter does."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from hopmap.simulator import (
    KEYS,
    DeadlockError,
    ParameterError,
    Parameters,
    bottlenecks,
    double_parameters,
    explain,
    hot_links,
    lower,
    program_of,
    simulate,
)
from hopmap.topologies import haec, mesh, torus
from support.collective_calls import collective, trace_of_calls
from support.random_loops import any_runs


@pytest.fixture
def mg(lowered):
    return lowered("mg.S.16")


def test_where_all_links_are_alike_the_links_that_need_longest_are_the_hot_ones(mg):
    topology, node_of, parameters = torus((4, 4)), np.arange(16)[::-1], Parameters()
    topology = topology.with_links(bandwidth=1e8)
    result = simulate(mg, topology, node_of, engine="compiled")
    given = result, mg.traffic(), topology, node_of, parameters
    found = bottlenecks(*given, top=10**6, pairs=4)
    hot = hot_links(mg.traffic(), topology, node_of, top=topology.links, pairs=4)
    hot = [link for link in hot if link.bytes]
    assert sorted((server.bytes, server.place) for server in found if server.kind == "link") == (
        sorted((link.bytes, f"{link.source} -> {link.target}") for link in hot)
    )
    pairs = {f"{link.source} -> {link.target}": link.pairs for link in hot}
    for server in found:
        if server.kind == "link":
            assert server.seconds == server.bytes / 1e8
            assert server.pairs == [(s, d, size) for s, d, _, size in pairs[server.place] if size]
    assert [s.seconds for s in found] == sorted((s.seconds for s in found), reverse=True)


def test_the_pairs_behind_a_server_carry_all_its_bytes(mg):
    topology = haec((2, 2, 2), slots=2)
    node_of = np.repeat(np.arange(8), 2)
    parameters = Parameters(control_bytes=64, eager_limit=1000, compute_scale=0.0)
    result = simulate(mg, topology, node_of, parameters=parameters, engine="compiled")
    given = result, mg.traffic(), topology, node_of, parameters
    with pytest.raises(ParameterError, match="expected one of bytes, queued"):
        bottlenecks(*given, by="byte")
    loaded, queued = (bottlenecks(*given, by=by, top=999, pairs=999) for by in ("bytes", "queued"))
    kinds = {"optical", "wireless", "injection", "ejection", "memory"}
    assert {server.kind for server in loaded} == kinds
    for server in loaded + queued:
        assert sum(size for *_, size in server.pairs) == server.bytes
        assert server.busy >= server.seconds * (1 - 1e-9)
    assert sum(server.queued for server in queued) == pytest.approx(
        result.link_waited.sum()
        + sum(ends.waited.sum() for ends in (result.injection, result.ejection, result.memory))
    )


@settings(max_examples=15, deadline=None)
@given(run=any_runs())
def test_what_is_not_doubled_would_change_nothing(run):
    program, topology, node_of, parameters = run
    parameters = replace(parameters, eager_limit=parameters.eager_limit or 700)

    def makespan(topology, parameters):
        return simulate(
            program, topology, node_of, parameters=parameters, engine="compiled"
        ).makespan

    try:
        found = {d.key: d for d in double_parameters(program, topology, node_of, parameters)}
    except DeadlockError:
        return
    once = makespan(topology, parameters)
    for doubling in found.values():
        assert doubling.makespan == pytest.approx(once * (1 + doubling.change), rel=1e-12)
    for key, entry in KEYS.items():
        if not entry.field or entry.choices:
            continue
        if key == "nic.rails" and parameters.nic == "fifo":
            continue  # one is all there is
        twice = replace(parameters, **{entry.field: 2 * getattr(parameters, entry.field)})
        assert makespan(topology, twice) == (found[key].makespan if key in found else once)
    for kind in topology.kinds:
        name = "link" if len(topology.kinds) == 1 else f"link.{kind.name}"
        for quantity in ("bandwidth", "latency"):
            twice = topology.with_links(kind.name, **{quantity: 2 * getattr(kind, quantity)})
            key = f"{name}.{quantity}"
            assert makespan(twice, parameters) == (found[key].makespan if key in found else once)


def test_the_cost_of_requests_counts_where_many_senders_make_small_messages_ask():
    send = [("send", 0, 8)]
    program = program_of("gather", [[("recv", 1, 8), ("recv", 2, 8)], send, send])
    for peers in (0, 1):
        parameters = Parameters(overhead_control=1e-3, eager_peers=peers, eager_limit_beyond=8)
        doubled = double_parameters(program, mesh((3,)), np.arange(3), parameters)
        assert ("overhead.control" in {each.key for each in doubled}) == (peers == 1)


def test_sensitivity_of_a_closed_form():
    # 1 s of computing, 1 s of sending: 2^30 bytes at as many a second, and nothing else.
    program = program_of("one", [[("compute", 1.0), ("send", 1, 2**30)], [("recv", 0, 2**30)]])
    parameters = Parameters(
        overhead_send=0.0,
        overhead_recv=0.0,
        eager_limit=2**40,
        packet_size=2**30,
        injection_latency=0.0,
        ejection_latency=0.0,
        injection_bandwidth=1e300,
        ejection_bandwidth=1e300,
    )
    topology = mesh((2,)).with_links(bandwidth=2.0**30, latency=0.0)
    first, second, *rest = double_parameters(program, topology, np.arange(2), parameters)
    assert (first.key, first.value, first.unit) == ("compute.scale", 1.0, "1")
    assert (first.makespan, first.change) == (3.0, 0.5)
    assert (second.key, second.value, second.unit) == ("link.bandwidth", 2.0**30, "bytes/s")
    assert (second.makespan, second.change) == (1.5, -0.25)
    # Of latencies and overheads twice nothing is nothing, and no message is as large as a limit.
    assert {doubling.key for doubling in rest} == {"injection.bandwidth", "ejection.bandwidth"}


@pytest.mark.parametrize(
    ("operation", "doubled"),
    [
        ("BCAST", set()),
        ("ALLGATHER", {"collective.copy_per_byte"}),
        ("ALLREDUCE", {"collective.copy_per_byte", "collective.reduce_per_byte"}),
    ],
)
def test_copying_and_adding_up_are_doubled_only_where_something_is(operation, doubled):
    call = collective(
        operation, 0.0, 0.0, root=0 if operation == "BCAST" else -1, sent=8, received=8
    )
    program = lower(trace_of_calls([[call]] * 2))
    parameters = Parameters(collective_copy_per_byte=1e-9, collective_reduce_per_byte=1e-9)
    found = double_parameters(program, mesh((2,)), np.arange(2), parameters)
    assert {d.key for d in found if d.key.startswith("collective.")} == doubled


@pytest.mark.parametrize("engine", ["flow", "analytic"])
def test_factors_of_flows_are_doubled_for_flows_only(engine):
    program = program_of("one", [[("send", 1, 1000)], [("recv", 0, 1000)]])
    found = double_parameters(program, mesh((2,)), np.arange(2), Parameters(), engine=engine)
    assert any(doubling.key.startswith("flow.") for doubling in found) == (engine == "flow")


def test_an_explanation_holds_together(mg):
    topology, node_of = mesh((4, 4)).with_links(bandwidth=1e8), np.arange(16)
    calls = []
    parameters = Parameters(compute_scale=0.01)
    found = explain(
        mg,
        topology,
        node_of,
        parameters=parameters,
        top=3,
        progress=lambda *given: calls.append(given),
    )
    makespan = found.result.makespan
    assert makespan == simulate(mg, topology, node_of, parameters=parameters).makespan
    assert sum(found.path.seconds.values()) == pytest.approx(makespan, rel=1e-12)
    assert max(bound.seconds for bound in found.bounds.values()) <= makespan * (1 + 1e-12)
    assert found.bounds["link"].place == found.loaded[0].place
    assert found.bounds["link"].seconds == pytest.approx(found.loaded[0].seconds, rel=1e-12)
    assert len(found.loaded) == len(found.queued) == len(found.path.servers) == 3
    assert len(calls) == len(found.doublings)
    said = json.loads(json.dumps(found.to_dict()))
    assert said["critical_path"]["seconds"]["queue"] == found.path.seconds["queue"]
    assert said["sensitivity"][0]["key"] == found.doublings[0].key
    assert said["bounds"]["link"] == found.bounds["link"]._asdict()
    assert not explain(mg, topology, node_of, sensitivity=False).doublings


def test_gaps_are_no_part_of_the_bound_without_contention():
    program = program_of("gaps", [[("send", 1, 1001)] * 2, [("recv", 0, 1001)] * 2])
    found = explain(program, mesh((2,)), [0, 1], parameters=Parameters(gap=1.0), sensitivity=False)
    assert found.bounds["no_contention"].seconds < 1e-5
    assert found.bounds["end point"].seconds == 1.0 < found.result.makespan


def test_the_verdict_is_what_a_free_network_saves_and_what_the_order_as_launched_takes():
    # 0 and 2 talk: two hops in order, each the time of 1 MB at 1 MB/s and no more
    rows = [("send", 2, 10**6)], [], [("compute", 0.5), ("recv", 0, 10**6)]
    program = program_of("far", [list(each) for each in rows])
    topology = mesh((3,)).with_links(bandwidth=1e6, latency=0.0)
    quiet = Parameters(
        overhead_send=0.0,
        overhead_recv=0.0,
        packet_size=10**6,
        switching="store_and_forward",
    )
    far, near = (
        explain(program, topology, np.array(each), parameters=quiet, sensitivity=False)
        for each in ([0, 1, 2], [0, 2, 1])
    )
    assert near.default_order == far.default_order == far.result.makespan
    assert near.free == far.free
    assert near.network_share == pytest.approx(1 - near.free / near.result.makespan)
    assert near.result.makespan < far.result.makespan
    assert "shorter than the default order" in near.verdict
    assert "no practical difference from the default order" in far.verdict
    assert far.to_dict()["verdict"] == far.verdict
    lazy = program_of("lazy", [[("compute", 100.0), ("send", 1, 8)], [("recv", 0, 8)]])
    slow = explain(lazy, topology, np.arange(2), parameters=quiet, sensitivity=False)
    assert slow.network_share < 0.01
    assert slow.verdict.startswith("placement makes no practical difference: 100.0 % of the run is")
