"""Jobs that run on a machine already while another one is mapped or replayed there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

import numpy as np

from hopmap.api.job import Job
from hopmap.api.machine import Machine
from hopmap.api.simulated_objective import Others
from hopmap.simulator import Program, Result
from hopmap.simulator.jobs import loads_by_job, merge_programs, numbered_names
from hopmap.topologies import Mapping, MappingError, Topology

from .job_allocation import allocate_jobs, free_nodes
from .job_spec import read_jobs
from .run import simulate_jobs


def place_jobs(jobs: Sequence[Job], machine: Machine) -> Others:
    """Place jobs on a machine, and return what they do there."""
    programs = [job.workload.program(machine.parameters.algorithms) for job in jobs]
    names = numbered_names([job.name or job.workload.name for job in jobs])
    starts = [job.begins for job in jobs]
    whole = merge_programs(programs, starts, [job.repeat for job in jobs], names)
    nodes = allocate_jobs(jobs, names, [job.ranks for job in whole.jobs], machine.network)
    return Others(whole, np.concatenate(nodes))


def exclude_used_nodes(others: Others, network: Topology) -> Topology:
    """Return the network without the nodes of others, and with what they send on its links."""
    free = free_nodes([others.node_of], network)
    if not free.any():
        raise MappingError(f"{others.program.name}: no node of {network.spec} is free beside it")
    carried = loads_by_job(others.program, network, others.node_of).sum(axis=0)
    return replace(network, slots=np.where(free, network.slots, 0), carried=carried)


def simulate_beside(
    program: Program, node_of: Mapping, machine: Machine, file: str, engine: str
) -> Result:
    """Replay a program beside the jobs of a file (`read_jobs`), on nodes that none of them has.

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
    run = simulate_jobs(jobs, machine, background=background, alone=False, engine=engine)
    own = {
        name: getattr(run.result, name)[: program.ranks]
        for name in ("finish", "compute", "communicate", "wait")
    }
    # Of the energy of all nobody can say whose it is.
    own |= {"makespan": run.jobs[0].makespan, "energy": None}
    return replace(run.result, program=program, node_of=node_of, **own)
