"""Replay several jobs on one machine at once, and compare each with its run alone.

Jobs may also run already where another one is mapped or replayed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hopmap.arrays import Bools, Ints
from hopmap.launchers.node_names import expand, read_hosts
from hopmap.notebook import ShownMixin
from hopmap.progress import Progress, silent
from hopmap.simulator import DEFAULT_ENGINE, Parameters, Program, Result
from hopmap.simulator import simulate as replay
from hopmap.simulator.jobs import (
    JobResult,
    SharedLinks,
    by_job,
    loads_by_job,
    merge_programs,
    number_names,
    shared_links,
)
from hopmap.simulator.programs.from_traffic import background as others_send
from hopmap.simulator.run_plan import server_name
from hopmap.topologies import Mapping, MappingError, Topology, TopologyError, did_you_mean
from hopmap.topologies.allocation import POLICIES, allocate
from hopmap.topologies.readers.hosts import nodes_of
from hopmap.units import show_seconds

from .job import Background, Job, JobsError, quantity, read_jobs
from .machine import Machine, MachineLike, nodes_of_ranks
from .outputs import Outputs
from .provenance import with_assumed
from .simulated_objective import Others
from .simulation import check_engine

if TYPE_CHECKING:
    import pandas as pd

TRIES = 4  # times that background traffic is made longer than the jobs took


@dataclass(frozen=True, eq=False, repr=False)
class JobsRun(ShownMixin):
    """A run of several jobs; times in seconds.

    Attributes
    ----------
    result : Result
        Of all ranks, job after job, then those that send background traffic.
    jobs : list of JobResult
        Each job's part of it, and that of background traffic.
    alone : list of float or None
        What each job takes alone on the machine, where it was replayed so.
    shared : list of SharedLinks
        Links that two of them share.
    nodes : list of ndarray(int64)
        Node of every rank of each.
    program : Program
        All of them as one; `explain` takes it.
    """

    result: Result
    jobs: list[JobResult]
    alone: list[float | None]
    shared: list[SharedLinks]
    nodes: list[Mapping]
    program: Program

    @property
    def makespan(self) -> float:
        """When the last job has finished; background traffic does not count."""
        return max(job.finish for job in self.jobs if not job.background)

    @property
    def slowdowns(self) -> list[float | None]:
        """How many times as long each job takes as alone."""
        return [
            job.makespan / alone if alone else None
            for job, alone in zip(self.jobs, self.alone, strict=True)
        ]

    def __repr__(self) -> str:
        return (
            f"<JobsRun of {len(self.jobs)} jobs on {self.result.topology}, engine "
            f"{self.result.engine}: {show_seconds(self.makespan)}>"
        )

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each job."""
        import pandas as pd

        return pd.DataFrame([self._row(k) for k in range(len(self.jobs))]).set_index("name")

    def to_dict(self) -> dict[str, Any]:
        """Return what ``simulate --job ... --json`` prints."""
        network = self.result.network
        assert network is not None
        shared = [
            each._asdict() | {"link": server_name(network, each.link).place} for each in self.shared
        ]
        jobs = [self._row(k) | {"node_of": nodes.tolist()} for k, nodes in enumerate(self.nodes)]
        return self.result.to_dict() | {
            "makespan": self.makespan,
            "jobs": jobs,
            "shared": shared,
        }

    def _row(self, k: int) -> dict[str, Any]:
        more = {"makespan": self.jobs[k].makespan, "alone": self.alone[k]}
        return self.jobs[k]._asdict() | more | {"slowdown": self.slowdowns[k]}


def simulate_jobs(
    jobs: Sequence[Job],
    machine: MachineLike,
    *,
    background: Sequence[Background] = (),
    engine: str = DEFAULT_ENGINE,
    baseline: bool = True,
    outputs: Outputs | None = None,
    progress: Progress | None = None,
) -> JobsRun:
    """Replay several jobs at once on one machine, and each of them alone.

    Parameters
    ----------
    jobs : sequence of Job
    machine : Machine, str or Topology
    background : sequence of Background
        What others send meanwhile.
    engine, outputs : see `hopmap.simulate`
    baseline : bool
        Whether to also replay each job alone, for its slow-down.

    Examples
    --------
    >>> ring = Job("collective:allreduce=ring,8,1MiB")
    >>> other = Job("collective:alltoall=pairwise,8,1MiB", mapping="random nodes", start="10 us")
    >>> run = simulate_jobs([ring, other], "torus:4x4")
    >>> [round(each, 2) for each in run.slowdowns]
    [1.51, 1.0]
    """
    check_engine(engine)
    if not jobs:
        raise JobsError("jobs: expected at least one")
    report, outputs = progress or silent, outputs or Outputs()
    machine = Machine.of(machine)
    machine.expect_alone("simulate_jobs, which takes all as `jobs`,")
    network, parameters = machine.network, machine.parameters
    workloads = [job.workload for job in jobs]
    lowered = [each.program(parameters.algorithms) for each in workloads]
    # What collectives become is decided by now, and may be different things in different jobs.
    parameters = replace(parameters, algorithms={})
    names = number_names([job.name or job.workload.name for job in jobs])
    starts, repeats = [job.begins for job in jobs], [job.repeat for job in jobs]
    # One by one first, so that what is wrong with one is said of it.
    ready = [
        merge_programs([program], [start], [times], [name])
        for program, start, times, name in zip(lowered, starts, repeats, names, strict=True)
    ]
    nodes = allocate_jobs(jobs, names, [program.ranks for program in ready], network)
    programs = [replace(program, jobs=()) for program in ready]
    loads = _senders(background, nodes, network)
    for each, sit in zip(background, loads, strict=True):  # said before jobs are replayed alone
        _traffic(each, len(sit), 0.0, parameters)
    took: list[float | None] = [None] * len(jobs)
    steps = len(jobs) * baseline + 1
    for k in range(len(jobs) * baseline):
        report(k, steps, f"{names[k]} alone")
        took[k] = replay(
            programs[k], network, nodes[k], parameters=parameters, engine=engine
        ).makespan
    report(steps - 1, steps, "all at once")

    ends = max(start + (one or 0.0) for start, one in zip(starts, took, strict=True))
    everywhere = np.concatenate([*nodes, *loads])

    def run(seconds: float) -> tuple[Program, Result]:
        sending = [
            _traffic(each, len(sit), seconds, parameters)
            for each, sit in zip(background, loads, strict=True)
        ]
        program = merge_programs(
            [*programs, *sending],
            [*starts, *(0.0 for _ in sending)],
            names=number_names([*names, *(each.name for each in sending)]),
            background=[False] * len(programs) + [True] * len(sending),
        )
        outputs.check(program)
        return program, replay(
            program,
            network,
            everywhere,
            parameters=parameters,
            engine=engine,
            record=outputs.record,
        )

    seconds = 2 * ends if ends > 0 else 1e-3
    program, result = run(seconds)
    own = sum(each.ranks for each in programs)
    for _ in range(TRIES):
        last = float(result.finish[:own].max(initial=0.0))
        if last <= seconds or all(each.duration is not None for each in background):
            break
        seconds = 1.5 * last
        program, result = run(seconds)
    else:
        raise JobsError(
            f"background: the jobs did not end within {seconds:g} s of traffic: expected a lower "
            "rate, or a duration"
        )
    generated = any(each.generated for each in workloads)
    result = with_assumed(result, machine.settings, generated=generated)
    outputs.write(result, f"{program.name} on {network.spec}, engine {engine}")
    parts = by_job(result, program)
    shares = shared_links([job.name for job in parts], loads_by_job(program, network, everywhere))
    return JobsRun(
        result, parts, [*took, *(None for _ in loads)], shares, [*nodes, *loads], program
    )


def allocate_jobs(
    jobs: Sequence[Job], names: Sequence[str], ranks: Sequence[int], network: Topology
) -> list[Mapping]:
    """Return the node of every rank of every job."""
    found = {k: _placement(job, ranks[k], network) for k, job in enumerate(jobs) if not job.policy}
    for k, job in enumerate(jobs):
        if job.policy:
            rng = np.random.default_rng(job.seed)
            free = free_nodes([*found.values()], network)
            try:
                found[k] = allocate(network, free, ranks[k], job.policy, rng)
            except MappingError as error:
                raise MappingError(f"{names[k]}: {error}") from None
    nodes = [found[k] for k in range(len(jobs))]
    expect_room(nodes, names, network)
    return nodes


def _placement(job: Job, ranks: int, network: Topology) -> Mapping:
    if job.hosts or job.nodelist:
        if job.mapping is not None:
            raise MappingError(f"{job.mapping}: a mapping and hosts are mutually exclusive")
        order = read_nodes(job, network)
        slots = np.repeat(order, network.slots[order])
        if len(slots) < ranks:
            raise MappingError(
                f"{job.hosts or job.nodelist}: {len(order)} nodes with {len(slots)} slots: "
                f"expected {ranks} for the ranks"
            )
        return slots[:ranks]
    assert job.mapping is not None
    if isinstance(job.mapping, str) and not Path(job.mapping).exists():
        raise MappingError(
            f"{job.mapping}: no such file or policy{did_you_mean(job.mapping, POLICIES)}: expected "
            f"a mapping's file, or one of {', '.join(POLICIES)}"
        )
    return nodes_of_ranks(job.mapping, network, ranks)


def read_nodes(job: Job | Background, network: Topology) -> Ints:
    """Return the nodes of a list of hosts, in its order."""
    if job.hosts and job.nodelist:
        raise MappingError("hosts and nodelist are mutually exclusive")
    hosts = read_hosts(job.hosts) if job.hosts else expand(job.nodelist or "")
    try:
        numbers = nodes_of(network, hosts, str(job.hosts or f"node list {job.nodelist}"))
    except TopologyError as error:
        raise MappingError(str(error)) from None
    return np.array(numbers, dtype=np.int64)


def free_nodes(taken: Sequence[Mapping], network: Topology) -> Bools:
    """Which nodes have slots and no rank."""
    free: Bools = network.slots > 0
    for nodes in taken:
        free[nodes] = False
    return free


def expect_room(nodes: Sequence[Mapping], names: Sequence[str], network: Topology) -> None:
    """Raise `MappingError` where jobs have more ranks on a node than it has slots."""
    used = np.bincount(np.concatenate(nodes), minlength=network.nodes)
    over = np.flatnonzero(used > network.slots)
    if not over.size:
        return
    node = int(over[0])
    sitting = [
        f"{int((each == node).sum())} of {name}"
        for each, name in zip(nodes, names, strict=True)
        if (each == node).any()
    ]
    raise MappingError(
        f"ranks on node {node}: {' and '.join(sitting)}: expected {network.slots[node]} at "
        "most, jobs on slots of their own"
    )


def _senders(
    background: Sequence[Background], nodes: Sequence[Mapping], network: Topology
) -> list[Mapping]:
    """Return the nodes that send background traffic, a rank on each."""
    found: list[Mapping] = []
    for each in background:
        if each.hosts or each.nodelist:
            sit = read_nodes(each, network)
        else:
            sit = np.flatnonzero(free_nodes([*nodes, *found], network)).astype(np.int64)
        if len(sit) < 2:
            raise MappingError(
                f"background {each.pattern}: {len(sit)} nodes for it: expected at least 2 that no "
                "job has"
            )
        found.append(sit)
    names = [f"job {k}" for k in range(len(nodes))] + [each.pattern for each in background]
    expect_room([*nodes, *found], names, network)
    return found


def _traffic(load: Background, ranks: int, seconds: float, parameters: Parameters) -> Program:
    duration = load.duration
    return others_send(
        load.pattern,
        ranks,
        rate=quantity(load.rate, "bytes/s", "rate"),
        size=int(quantity(load.size, "bytes", "size")),
        seconds=seconds if duration is None else quantity(duration, "s", "duration"),
        seed=load.seed,
        parameters=parameters,
    )


def place_jobs(jobs: Sequence[Job], machine: Machine) -> Others:
    """Place jobs on a machine, and return what they do there."""
    programs = [job.workload.program(machine.parameters.algorithms) for job in jobs]
    names = number_names([job.name or job.workload.name for job in jobs])
    starts = [job.begins for job in jobs]
    whole = merge_programs(programs, starts, [job.repeat for job in jobs], names)
    nodes = allocate_jobs(jobs, names, [job.ranks for job in whole.jobs], machine.network)
    return Others(whole, np.concatenate(nodes))


def exclude_used_nodes(others: Others, network: Topology) -> Topology:
    """Return the network without the nodes of others, and with what they send on its links."""
    free = free_nodes([others.node_of], network)
    if not free.any():
        raise MappingError(
            f"no node of {network.spec} is free: {others.program.name} has all of them"
        )
    carried = loads_by_job(others.program, network, others.node_of).sum(axis=0)
    return replace(network, slots=np.where(free, network.slots, 0), carried=carried)


def simulate_with_jobs(
    program: Program, node_of: Mapping, machine: Machine, file: str, engine: str
) -> Result:
    """Replay a program while the jobs of a file run (`read_jobs`), each on nodes of its own.

    The result is of this program's ranks; links and servers are as all jobs used them.
    """
    listed, background = read_jobs(file)
    others = place_jobs(listed, machine)
    bounds = pairwise(accumulate((job.ranks for job in others.program.jobs), initial=0))
    jobs = [Job(program, mapping=node_of)]
    jobs += [  # on the nodes that they got before anybody else
        replace(job, mapping=others.node_of[begin:end], hosts=None, nodelist=None)
        for job, (begin, end) in zip(listed, bounds, strict=True)
    ]
    run = simulate_jobs(jobs, machine, background=background, baseline=False, engine=engine)
    own = {
        name: getattr(run.result, name)[: program.ranks]
        for name in ("finish", "compute", "communicate", "wait")
    }
    # Energy is known for the whole machine only, not for each job.
    own |= {"makespan": run.jobs[0].makespan, "energy": None}
    return replace(run.result, program=program, node_of=node_of, **own)
