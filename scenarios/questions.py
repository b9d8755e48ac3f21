"""The questions that hopmap answers: where ranks should sit, what that costs; see `replays`, too.

Every function takes what `given.py` describes; its parameters are called as on the command line.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hopmap.errors import HopmapWarning
from hopmap.mappers import LOAD, MAPPERS, OBJECTIVES, Function, parse_pipeline
from hopmap.mappers import map_ranks as place
from hopmap.mappers.objectives import objective_value, unknown_objective
from hopmap.mappers.pipeline import time_mapping
from hopmap.progress import Progress
from hopmap.scenarios.launchers.node_names import on_job
from hopmap.simulator import DEFAULT_ENGINE, ParameterError
from hopmap.simulator.parameters.keys import names_algorithm
from hopmap.topologies import Mapping, MappingError, Topology, check_mapping, with_room

from .given import (
    Given,
    GivenMapping,
    GivenSettings,
    GivenTopology,
    algorithms_of,
    configured,
    mapping_given,
    name_of,
    on_network,
    replay_given,
    traffic_given,
)
from .mistaken import TRACE, expect
from .placement import Placement
from .replays import expect_engine

if TYPE_CHECKING:
    from hopmap.simulator import Metrics
    from hopmap.traces import Traffic

    from .jobs.job_spec import Job

LAUNCHED = "identity"
"""The mapper that places ranks as launchers do when nobody asks."""

MANY, VERTICES, LOOSE = "integrated", 2**14, 0.01
"""What `auto` stands for from so many vertices and such an imbalance on: it moves single ones."""


def map_ranks(
    given: Given,
    topology: GivenTopology,
    mapper: str = "auto",
    *,
    seed: int = 0,
    seconds: float | None = None,
    initial: GivenMapping | None = None,
    objective: str | Function | None = None,
    engine: str | None = None,
    names: str | Path | None = None,
    hosts: str | Path | None = None,
    nodelist: str | None = None,
    spread: bool = False,
    imbalance: float | None = None,
    beside: Sequence[Job] = (),
    collectives: str = "auto",
    rma: str = "include",
    settings: GivenSettings = None,
    steps: int | None = None,
    rounds: int | None = None,
    keep_interrupted: bool = False,
    progress: Progress | None = None,
) -> Placement:
    """Place ranks on nodes.

    Parameters
    ----------
    given : str, Path, Source, Trace, Folded, Program or Traffic
        Who talks to whom.
    topology : str or Topology
    mapper : str
        A pipeline, like "minmd | bokhari(jumps=8)"; see ``hopmap list mappers``.
    seed : int
        The same seed gives the same mapping.
    seconds : float, optional
        Time budget of searches.
    initial : mapping, optional
        What the first mapper starts from.
    objective : str or callable, optional
        "hop_bytes", "hop_messages", "cardinality", "max_link_load"; "makespan" or "energy", which
        replay every mapping that is looked at; "makespan_bound", see `MakespanBound`; or a function
        of the mapping. When left out, each mapper's own.
    engine : str, optional
        Of "makespan" and "energy".
    names : path or str, optional
        What all nodes of the machine are called, in order of their numbers: a file, one a line, or
        Slurm's list.
    hosts, nodelist : optional
        A file with the nodes that the job has, one host a line; or Slurm's list of them. On a
        network without names, as many as it has nodes, they are what these are called.
    spread : bool
        Whether every node takes as many ranks as any other that has room, one more at most. All
        mappers fill nodes otherwise, or as few as their objective wants.
    imbalance : float, optional
        For a graph of more vertices than slots: every node takes (1 + imbalance) times its share of
        the vertices at most, 0.03 is 3 %. "auto" is "integrated" from 16,384 vertices
        and 1 % on, up to 2,048 nodes.
    beside : sequence of Job, optional
        Jobs that are on the machine already: their nodes are not free, "max_link_load" counts what
        they have on links, in all of their run, and "makespan" replays them, too. The objective of
        "auto" is "max_link_load" then, unless another is asked for.
    rma : {"include", "ignore"}
        Whether to count what one-sided operations move.
    collectives : {"auto", "ignore", "expand"}
        Whether to count what collectives send; "auto" does where that outweighs the messages, or
        where algorithms are set.
    settings : mapping, optional
        Like ``{"link.bandwidth": "25 Gbit/s"}``: of "makespan" and "energy" any parameter, of
        collectives that are counted their algorithms.
    steps, rounds : int, optional
        Of "makespan" and "energy"; see `simulate`.
    keep_interrupted : bool
        Whether Ctrl-C in a search ends it with the best mapping so far, and not with
        KeyboardInterrupt; `Placement.interrupted` says so.
    progress : Progress, optional

    Raises
    ------
    MappingError, TraceError, TopologyError, SettingError, ParameterError
        What is given makes no sense, or does not fit.

    Examples
    --------
    >>> placement = map_ranks("lu.S.16", "torus:4x4", "minmd")
    >>> len(placement)
    16
    """
    from hopmap.mappers.stop import Interrupted

    from .jobs.co_running import exclude_used_nodes, neighbours
    from .simulated_objective import BOUND, SIMULATED, Simulated, bound_of, simulated

    expect(TRACE, given)
    pipeline = parse_pipeline(mapper)
    if initial is not None and pipeline[0].info.initial == "ignored":
        raise MappingError(f"initial: {pipeline[0].info.name} starts from no mapping")
    network = on_job(configured(topology)[0], names, hosts, nodelist)
    if imbalance is not None and spread:
        raise MappingError("imbalance: expected spread=False with it, it says what a node takes")
    if beside and imbalance is not None:
        raise MappingError("imbalance: expected no jobs beside with it")
    others = neighbours(beside, network, settings) if beside else None
    if others is not None:
        network = exclude_used_nodes(others, network)
        stage = pipeline[0]
        alone = len(pipeline) == 1 and stage.info.name == "auto"
        objective = _beside(objective, alone and "objective" not in stage.parameters)
    if initial is not None and imbalance is None:
        mapping_given(initial, network, None)  # before anything takes long
    goal: str | Function | None = objective
    if isinstance(objective, str) and objective in (*SIMULATED, BOUND):
        if objective == BOUND and engine is not None:
            raise ParameterError(f"engine {engine}: expected objective makespan with it")
        expect_engine(engine)
        run = replay_given(given, topology, settings=settings, steps=steps, rounds=rounds)
        network = on_job(run.network, names, hosts, nodelist)
        if others is not None:
            network = exclude_used_nodes(others, network)
        if objective == BOUND:
            goal = bound_of(run)
        else:
            goal = simulated(objective, run, engine or DEFAULT_ENGINE, others)
        if collectives == "expand":
            traffic = traffic_given(run.program, collectives, rma=rma).traffic
        elif (found := traffic_given(given, collectives, rma=rma)).expanded:
            one_sided = run.program.one_sided_traffic()
            traffic = run.program.two_sided_traffic()
            traffic = traffic.plus(one_sided) if rma == "include" else traffic
        else:
            traffic = found.traffic
    else:
        given_too = {"engine": engine, "steps": steps, "rounds": rounds}
        for name, value in given_too.items():
            if value is not None:
                raise ParameterError(f"{name} {value}: expected objective makespan with it")
        if isinstance(objective, str) and objective not in (known := (*OBJECTIVES, LOAD)):
            raise unknown_objective(objective, (*known, *SIMULATED, BOUND))
        for key in settings or {}:
            if not names_algorithm(key):
                raise ParameterError(f"{key}: expected objective makespan with it")
        traffic = traffic_given(given, collectives, algorithms_of(settings), rma).traffic
    if imbalance is not None:
        network = with_room(network, traffic.ranks, imbalance)
        mapper = _of_many(mapper, goal, network, traffic.ranks, imbalance)
        pipeline = parse_pipeline(mapper)
    room = network.evenly(traffic.ranks) if spread else network
    start = None if initial is None else mapping_given(initial, network, traffic.ranks)
    interrupted, begin = False, time.perf_counter()
    reasons: list[str] = []
    try:
        node_of, took = time_mapping(
            traffic,
            room,
            mapper,
            seed=seed,
            seconds=seconds,
            initial=start,
            objective=goal,
            progress=progress,
            stopped=reasons.append,
        )
    except Interrupted as stop:
        if not keep_interrupted:
            raise
        interrupted, took = True, time.perf_counter() - begin
        node_of = check_mapping(stop.mapping, room, traffic.ranks)
    replays = goal.replays if isinstance(goal, Simulated) else 0
    if isinstance(goal, Simulated) and seconds is not None and replays < 2 and not interrupted:
        warnings.warn(
            f"--seconds {seconds:g} was over after {replays or 'no'} replay, so that no other "
            "mapping was tried: expected a longer budget, fewer --steps or a faster --engine",
            HopmapWarning,
            stacklevel=2,
        )
    valued = None
    if goal is not None:
        first = place(traffic, room, "sweep") if start is None else start
        before, after = (_value(goal, traffic, network, each) for each in (first, node_of))
        valued = (objective if isinstance(objective, str) else "function", before, after)
    words = " | ".join(map(str, pipeline))
    launched = place(traffic, room, LAUNCHED)
    return Placement(
        *(name_of(given), node_of, traffic, network, words, took, valued, replays),
        launched=launched,
        interrupted=interrupted,
        stopped=reasons[-1] if reasons else None,
    )


def _beside(objective: str | Function | None, free: bool) -> str | Function | None:
    """Return the objective of a job beside others, and say what it does not count of them.

    `free` is whether the mapper takes any and names none.
    """
    from .simulated_objective import SIMULATED

    if objective is None and free:
        return LOAD
    if objective != LOAD and not callable(objective) and objective not in SIMULATED:
        warnings.warn(
            f"objective {objective or 'of each mapper'}: it counts nothing of the jobs beside but "
            f"the nodes that they have ({LOAD} and makespan do)",
            HopmapWarning,
            stacklevel=3,
        )
    return objective


def _of_many(
    mapper: str, goal: str | Function | None, network: Topology, ranks: int, imbalance: float
) -> str:
    """Let `auto` be the mapper of graphs with many vertices a node, where that one can do it."""
    from hopmap.mappers.partitions.integrated import MOST

    many = mapper.strip() == "auto" and ranks >= VERTICES and imbalance >= LOOSE
    few = np.count_nonzero(network.slots) <= MOST
    return (
        MANY if many and few and MAPPERS[MANY].takes("objective", goal or "hop_bytes") else mapper
    )


def _value(goal: str | Function, traffic: Traffic, network: Topology, node_of: Mapping) -> float:
    if callable(goal):
        return goal(node_of)
    return objective_value(traffic, network, node_of, goal)


def evaluate(
    given: Given,
    topology: GivenTopology | GivenMapping | None = None,
    mapping: GivenMapping | None = None,
    *,
    convention: str = "hopmap",
    collectives: str = "auto",
    rma: str = "include",
    settings: GivenSettings = None,
) -> Metrics:
    """Measure a mapping: what stays on nodes, what crosses links, how far, how evenly.

    Parameters
    ----------
    given : see `map_ranks`
    topology : str or Topology, optional
        That of the mapping when left out: a file and a `Placement` name theirs.
    mapping : file, array or Placement
    convention : {"hopmap", "maplib"}
        Correct, or as the HAEC thesis published.
    collectives, rma, settings : see `map_ranks`

    Raises
    ------
    MappingError, TraceError, TopologyError, SettingError, MetricsError
        What is given makes no sense, or does not fit.
    """
    from hopmap.simulator import evaluate as measure

    expect(TRACE, given)
    named, mapping = on_network(topology, mapping)
    network, _ = configured(named)
    mapping_given(mapping, network, None)
    algorithms = algorithms_of(settings)
    traffic = traffic_given(given, collectives, algorithms, rma).traffic
    return measure(traffic, network, mapping_given(mapping, network, traffic.ranks), convention)
