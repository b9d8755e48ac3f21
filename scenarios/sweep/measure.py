"""One run: place the ranks, measure the mapping, replay it, store the tables."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from hopmap.api.job import jobs_digest, read_jobs
from hopmap.api.jobs import exclude_used_nodes, place_jobs, simulate_with_jobs
from hopmap.api.machine import Machine
from hopmap.api.named_files import initial_mapping, mapping_digest, split_mapper
from hopmap.api.robust.ranges import draw_models, read_ranges, without_packets
from hopmap.arrays import Floats
from hopmap.mappers.pipeline import time_mapping
from hopmap.scenarios.results import store
from hopmap.scenarios.results.tables import METRICS
from hopmap.simulator import (
    ENGINES,
    DeadlockError,
    Metrics,
    MetricsError,
    ParameterError,
    Program,
    Result,
    Steady,
    evaluate,
    simulate,
)
from hopmap.simulator.explain.sensitivity import free_makespan, without_network
from hopmap.simulator.operations import Record
from hopmap.simulator.parameters.settings import Settings, configure, normalise
from hopmap.simulator.uncertainty import LEAST, prediction_interval
from hopmap.topologies import Mapping, MappingError, Topology
from hopmap.traces import Traffic
from hopmap.traces.summary import Omission

from . import ScenarioError
from .inputs import load_planned_network, load_planned_program, require_unchanged
from .plan import Run

_IDEAL: dict[tuple[Any, ...], float] = {}


def measure(run: Run, results: Path, row: dict[str, Any]) -> None:
    """Do a run: fill its row, and store all its tables but that one.

    If it raises, the row has what was found before.
    """
    row |= {
        "run_id": run.run_id,
        "trace": run.trace.name,
        "topology": run.called,
        "mapper": run.mapper_called or run.mapper,
        "seed": run.seed,
        "engine": run.engine,
        "parameters": json.dumps(normalise(run.settings)),
    }
    traffic = _traffic(results, run.trace.name, run.traffic_of)
    topology, _ = configure(load_planned_network(run.topology, run.network), run.settings)
    usable = usable_network(run)
    row |= {"ranks": traffic.ranks, "nodes": topology.nodes}
    node_of, row["mapping_seconds"] = _place(run, traffic, usable)
    row["node_of"] = node_of.astype(np.int32)
    metrics = evaluate(traffic, topology, node_of)
    row |= _columns(metrics)
    if run.published:
        row |= _published_columns(traffic, topology, node_of)
    assert metrics.link_messages is not None
    assert metrics.link_bytes is not None
    bandwidth = np.array([kind.bandwidth for kind in topology.kinds])[topology.link_kind]
    seconds = metrics.link_bytes / bandwidth
    row |= {
        "link_seconds_total": float(seconds.sum()),
        "link_seconds_max": float(seconds.max(initial=0.0)),
    }
    result = None
    if run.engine is not None:
        replay = _replay.__wrapped__ if run.messages else _replay  # 32 of them would be large
        result = replay(_same_for_all(run), node_of.tobytes())
        if run.others:
            alone, result = result.makespan, _replay_among(_same_for_all(run), node_of.tobytes())
            row["slowdown"] = result.makespan / alone if alone else None
        row |= {
            "replay_seconds": result.wall_seconds,
            "replay_error": result.extrapolated.error if result.extrapolated else None,
            "makespan": result.makespan,
            "makespan_ideal_network": _ideal_makespan(run),
            "compute": float(np.mean(result.compute)),
            "communicate": float(np.mean(result.communicate)),
            "wait": float(np.mean(result.wait)),
            "events": result.events,
            "omitted": _format_omissions(result),
            "replayed_hop_bytes": int(result.link_bytes.sum()),
            "replayed_congestion_max": int(result.link_bytes.max(initial=0)),
        }
        if result.ensemble is not None:
            median, low, high = result.ensemble.interval
            row |= {"makespan_median": median, "makespan_low": low, "makespan_high": high}
            row["makespans"] = result.ensemble.makespans
        if run.models:
            times = _replay_under_models(_same_for_all(run), node_of.tobytes())
            median, low, high = prediction_interval(times[~np.isnan(times)])
            row |= {"makespan_median": median, "makespan_low": low, "makespan_high": high}
            row |= {"makespans": times, "models": len(times)}
        if result.energy is not None:
            transfer = sum(result.energy.transfer.values())
            row |= {"energy": result.energy.total, "energy_transfer": transfer}
        if run.messages:
            store.save_messages(results, run.run_id, result)
    replayed = () if result is None else (result.link_bytes, result.link_busy)
    carried = (metrics.link_messages, metrics.link_bytes)
    store.save_links(results, run.run_id, topology, *carried, *replayed)
    store.save_ranks(results, run.run_id, node_of, result)


def usable_network(run: Run) -> Topology:
    """Return a run's network less the nodes of other jobs, with what they send on its links."""
    return _usable(run.topology, run.network, run.settings, run.others, run.others_digest)


@lru_cache(maxsize=8)
def _usable(topology: str, network: str, settings: Settings, others: str, digest: str) -> Topology:
    machine = Machine(load_planned_network(topology, network), dict(settings))
    if not others:
        return machine.network

    def read() -> Topology:
        return exclude_used_nodes(place_jobs(read_jobs(others)[0], machine), machine.network)

    return require_unchanged(others, read, lambda: jobs_digest(others), digest)


def _place(run: Run, traffic: Traffic, topology: Topology) -> tuple[Mapping, float]:
    """Place the ranks as the file says that the run names, if it does, then by its pipeline."""
    usable = topology.evenly(traffic.ranks) if run.spread else topology
    file, pipeline = split_mapper(run.mapper)
    if mapping_digest(run.mapper) != run.mapping:
        raise ScenarioError(f"{file}: changed since the runs were planned: plan them again")
    initial = initial_mapping(run.mapper, topology, usable, traffic.ranks)
    if initial is not None and not pipeline:
        return initial, 0.0
    return time_mapping(traffic, usable, pipeline, seed=run.seed, initial=initial)


@lru_cache(maxsize=32)
def _replay_among(run: Run, nodes: bytes) -> Result:
    """Replay a mapping while the other jobs run."""
    machine = Machine(load_planned_network(run.topology, run.network), dict(run.settings))
    node_of = np.frombuffer(nodes, dtype=np.int64)
    assert run.engine is not None
    return simulate_with_jobs(_program(run), node_of, machine, run.others, run.engine)


def _format_omissions(result: Result) -> str | None:
    """Return what the replay left out or took for something else, None for nothing."""
    notes = (Omission(what, count) for what, count in result.notes.items())
    omissions = [entry.to_dict() for entry in (*result.omitted, *notes)]
    return json.dumps(omissions) if omissions else None


def _columns(metrics: Metrics) -> dict[str, Any]:
    """Return the metric columns of a row."""
    found = metrics.to_dict()
    row: dict[str, Any] = {}
    for quantity in ("messages", "bytes"):
        for metric in METRICS:
            group, part = metric.rsplit("_", 1)
            row[f"{quantity}_{metric}"] = found[quantity][group][part]
        row[f"hop_{quantity}"] = found[quantity]["dilation"]["sum"]
    beyond = next((name for name, value in row.items() if value is not None and value >= 2**63), "")
    if beyond:
        raise MetricsError(f"{beyond} {row[beyond]:,}: expected below 2^63, which the tables hold")
    return row


def _published_columns(traffic: Traffic, topology: Topology, node_of: Mapping) -> dict[str, Any]:
    """Return the same of IeNPC as it was published, for the networks that it was published for."""
    try:
        columns = _columns(evaluate(traffic, topology, node_of, "maplib"))
    except MappingError:
        return {}  # no box, or one too large
    ienpc = {f"{quantity}_{metric}" for quantity in ("messages", "bytes") for metric in METRICS[:4]}
    return {f"maplib_{name}": value for name, value in columns.items() if name in ienpc}


@lru_cache(maxsize=2)
def _traffic(results: Path, name: str, made_of: str) -> Traffic:
    return store.load_traffic(results, name, made_of)


def _program(run: Run) -> Program:
    algorithms = tuple(run.algorithms.items())
    return load_planned_program(run.trace, run.digest, run.steps, run.rounds, algorithms)


def _same_for_all(run: Run) -> Run:
    """Leave out what does not change how a mapping is replayed."""
    return replace(run, mapper="", mapper_called="", mapping="", seed=0)


def _ideal_makespan(run: Run) -> float:
    """Replay the default order on a network that takes no time, once for networks of such nodes."""
    topology, parameters = configure(load_planned_network(run.topology, run.network), run.settings)
    program = _program(run)
    node_of = np.repeat(np.arange(topology.nodes), topology.slots)[: program.ranks]
    assert run.engine is not None
    model = repr(without_network(parameters))
    what = (run.trace, run.digest, run.steps, run.rounds, run.engine, model, node_of.tobytes())
    if what not in _IDEAL:
        _IDEAL[what] = free_makespan(program, topology, node_of, parameters, run.engine)
    return _IDEAL[what]


def _steady(run: Run) -> Steady | None:
    """When the replays of a run may be extrapolated."""
    if run.exact:
        return None
    return Steady() if run.tolerance is None else Steady.within(run.tolerance)


@lru_cache(maxsize=32)
def _replay_under_models(run: Run, nodes: bytes) -> Floats:
    """Return the makespan of a mapping under each model; NaN where it cannot be replayed."""
    network = load_planned_network(run.topology, run.network)
    node_of = np.frombuffer(nodes, dtype=np.int64)
    settings, count = dict(run.settings), run.models or 0
    steady = _steady(run)
    program, engine = _program(run), run.engine or ""
    times, why = np.full(count, np.nan), ""
    for number, model in enumerate(draw_models(read_ranges(None), network, settings, count, 0)):
        if not ENGINES[engine].packets:
            model = without_packets(model)
        try:
            topology, parameters = configure(network, tuple({**settings, **model}.items()))
            result = simulate(
                program, topology, node_of, parameters=parameters, engine=engine, steady=steady
            )
        except (ParameterError, DeadlockError) as error:
            why = str(error)
        else:
            times[number] = result.makespan
    if (left := int((~np.isnan(times)).sum())) < LEAST:
        raise ScenarioError(f"replay.models: {left} of {count} can be replayed: {why}")
    return times


@lru_cache(maxsize=32)
def _replay(run: Run, nodes: bytes) -> Result:
    """Replay a mapping once, even where several mappers or seeds find the same one."""
    topology, parameters = configure(load_planned_network(run.topology, run.network), run.settings)
    program = _program(run)
    node_of = np.frombuffer(nodes, dtype=np.int64)
    assert run.engine is not None
    result = simulate(
        program,
        topology,
        node_of,
        parameters=parameters,
        engine=run.engine,
        record=Record(messages=run.messages),
        steady=_steady(run),
        repeat=run.repeat or 0,
    )
    return replace(result, program=None)  # results of many traces are kept, not their programs
