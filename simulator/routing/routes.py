"""What a run needs whose routes are chosen on the way: the algorithm, tables, what draws are of."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.simulator.parameters.keys import ROUTING, ParameterError
from hopmap.simulator.parameters.parameters import Parameters
from hopmap.topologies import Topology

if TYPE_CHECKING:
    from hopmap.topologies.next_hops import NextHops

Ints = NDArray[np.int64]

FIXED, ADAPTIVE, SPRAYING, VALIANT, UGAL_L, UGAL_G, PAR = range(len(ROUTING))


class Routes(NamedTuple):
    """How packets find their way.

    Attributes
    ----------
    algorithm : int
        Place in `ROUTING`.
    hops : NextHops
    groups : bool
        Whether places form groups, as in dragonflies.
    crosses : ndarray(bool, shape=(links,))
        Links between groups.
    drawn : ndarray(int64, shape=(nodes,))
        Nodes of which Valiant's is drawn, those of a group behind each other.
    first, size : ndarray(int64, shape=(regions,))
        Of each group in `drawn`, where it begins, and how many it has. Where there are no groups
        nothing is left out, and both are 0.
    longest : int
        Servers that a packet comes to at most.
    """

    algorithm: int
    hops: NextHops
    groups: bool
    crosses: NDArray[np.bool_]
    drawn: Ints
    first: Ints
    size: Ints
    longest: int


def routes_of(topology: Topology, targets: Ints, parameters: Parameters) -> Routes | None:
    """Return how packets to some nodes find their way; None where routes are the topology's own.

    Raises
    ------
    ParameterError
        An algorithm for dragonflies on another network.
    TopologyError
        See `next_hops`.
    """
    algorithm = ROUTING.index(parameters.network_routing)
    if algorithm == FIXED:
        return None
    from hopmap.topologies.next_hops import NO_WAY, has_groups, next_hops

    hops = next_hops(topology, np.arange(topology.nodes) if algorithm >= VALIANT else targets)
    groups = has_groups(hops)
    if algorithm >= VALIANT and (hops.port == NO_WAY).any():
        raise ParameterError(
            f"network.routing {parameters.network_routing}: {topology.spec} has switches without "
            f"a way to every node: expected adaptive or spraying"
        )
    if algorithm == PAR and not groups:
        raise ParameterError(
            f"network.routing par: {topology.spec} has no groups: expected a dragonfly"
        )
    region = hops.region[hops.home]
    size = np.bincount(region, minlength=len(hops.region)) * groups
    first = np.cumsum(size) - size
    place = hops.place
    begin, end = place[topology.link_from], place[topology.link_to]
    inner = (begin >= 0) & (end >= 0)
    crosses = inner & (hops.region[begin] != hops.region[end]) & groups
    return Routes(
        algorithm=algorithm,
        hops=hops,
        groups=groups,
        crosses=crosses,
        drawn=np.argsort(region, kind="stable"),
        first=first,
        size=size,
        longest=2 * int(hops.hops.max(initial=0)) + 4,
    )
