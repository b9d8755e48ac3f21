"""Jobs that sit on a machine already, for whoever maps another one beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hopmap.scenarios.given import GivenSettings, replay_given
from hopmap.scenarios.simulated_objective import Others
from hopmap.simulator.jobs.by_job import loads_by_job
from hopmap.simulator.jobs.together import numbered_names, together
from hopmap.topologies import MappingError, Topology

from .asked import Job
from .placed import free_nodes, placed


def neighbours(jobs: Sequence[Job], network: Topology, settings: GivenSettings) -> Others:
    """Place jobs on a network, and return what they do there.

    Raises
    ------
    MappingError, TraceError, ParameterError
        See `simulate_jobs`.
    """
    inputs = [
        replay_given(job.trace, network, settings=settings, steps=job.steps, rounds=job.rounds)
        for job in jobs
    ]
    names = numbered_names([job.name or run.name for job, run in zip(jobs, inputs, strict=True)])
    starts = [job.begins for job in jobs]
    programs = [run.program for run in inputs]
    whole = together(programs, starts, [job.repeat for job in jobs], names)
    nodes = placed(jobs, names, [job.ranks for job in whole.jobs], network)
    return Others(whole, np.concatenate(nodes))


def around(others: Others, network: Topology) -> Topology:
    """Return the network without the nodes of others, and with what they send on its links.

    Raises
    ------
    MappingError
        No node is left.
    """
    free = free_nodes([others.node_of], network)
    if not free.any():
        raise MappingError(f"{others.program.name}: no node of {network.spec} is free beside it")
    carried = loads_by_job(others.program, network, others.node_of).sum(axis=0)
    return replace(network, slots=np.where(free, network.slots, 0), carried=carried)
