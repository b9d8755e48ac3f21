"""Simulated annealing with exchanges near a peer.

Sources: Kirkpatrick, Gelatt and Vecchi, Optimization by simulated annealing, Science 220 (1983);
the exchanges are those of the sparse quadratic assignment problem (Schulz and Traeff 2017, see
`annealing_kernels`). The temperature falls geometrically, and its scale is the mean cost of the
proposals that cost something where the search starts: from `hot` to `cold` times that mean.

O(degree) a proposal; memory is linear, but for a table of distances up to a few thousand nodes.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from hopmap.mappers.budget import Clock, Interrupted, Progress, Watch
from hopmap.mappers.mapper import CountOrZero, Seconds, mapper
from hopmap.mappers.objectives import ObjectiveName
from hopmap.mappers.options import AtLeast
from hopmap.mappers.orders.random_mapping import random_mapping
from hopmap.topologies import Mapping, Topology
from hopmap.traces import Traffic

from .annealing_run import AnnealingSearch

PER_RANK = 20_000


@mapper("annealing", source="Kirkpatrick, Gelatt, Vecchi 1983")
def annealing(
    traffic: Traffic,
    topology: Topology,
    *,
    rng: np.random.Generator,
    initial: Mapping | None = None,
    objective: ObjectiveName = "hop_bytes",
    moves: CountOrZero | None = None,
    hot: Annotated[float, AtLeast(0)] | None = None,
    cold: Annotated[float, AtLeast(0)] = 0.01,
    seconds: Seconds = None,
    clock: Clock = "wall",
    progress: Progress | None = None,
) -> Mapping:
    """Anneal by exchanges that bring a rank next to a peer, from random by default.

    Parameters
    ----------
    traffic, topology, rng
        See `map_ranks`.
    initial : ndarray, optional
        Mapping to start from, never worsened; random by default.
    objective : str
        What is minimised or maximised.
    moves : int, optional
        Proposals; by default as many as the time budget allows, or 20,000 a rank without one.
        With moves and without a budget, the same seed gives the same mapping.
    hot, cold : float
        First and last temperature, in units of what a proposal costs on average where the search
        starts, those that cost something; hot is 0.5 by default, 0.1 from a given mapping.
    seconds, clock, progress
        Time budget, elapsed or of the processor, and whom to tell.
    """
    watch = Watch(seconds, progress, clock)
    if hot is None:
        hot = 0.5 if initial is None else 0.1
    if initial is None:
        initial = random_mapping(traffic, topology, rng=rng)
    if moves is None and seconds is None:
        moves = PER_RANK * traffic.ranks
    search = AnnealingSearch(traffic, topology, initial, objective, rng, watch)
    try:
        scale = search.scale()
        search.cool(hot * scale, cold * scale, moves=moves, seconds=watch.left())
    except KeyboardInterrupt:
        raise Interrupted(search.mapping) from None
    return search.mapping
