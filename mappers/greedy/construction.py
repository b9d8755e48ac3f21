"""What constructions share: the node that the first rank goes to, and a word on quadratic time."""

from __future__ import annotations

import warnings

from hopmap.topologies import MappingError, Topology

from .minmd import centre

MANY = 2**15


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


def announce_quadratic(name: str, ranks: int) -> None:
    """Warn where a construction whose time grows with the square of the ranks has very many."""
    if ranks > MANY:
        warnings.warn(
            f"mapper {name}: time grows with the square of the ranks, and {ranks} are more than "
            f"{MANY}: topdown takes far less",
            stacklevel=3,
        )
