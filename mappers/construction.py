"""What constructions share: the node that the first rank goes to."""

from __future__ import annotations

from ..topologies import MappingError, Topology
from .minmd import centre


def first_node(name: str, topology: Topology, start: int | None) -> int:
    """Return the given node, or the middle of the machine where none is given.

    Raises
    ------
    MappingError
        There is no such node.
    """
    if start is None:
        return centre(topology)
    if start >= topology.nodes:
        raise MappingError(
            f"mapper {name}: start={start}: expected a node of {topology.spec}, "
            f"0 to {topology.nodes - 1}"
        )
    return start
