"""Binary hypercubes: a box of two nodes in every dimension.

Bit k of a node's number is its coordinate in dimension k. Routes correct the lowest bit that
differs first (e-cube, which is dimension order).
Source: Dally and Towles, Principles and Practices of Interconnection Networks (2004), 3 and 8.
"""

from __future__ import annotations

from dataclasses import replace

from hopmap.topologies.topology import Topology, TopologyError, whole

from .grid import mesh


def hypercube(dimensions: int, *, slots: int = 1) -> Topology:
    """2-ary n-cube; e-cube routing, lowest dimension first.

    Parameters
    ----------
    dimensions : int
        There are 2^dimensions nodes.
    slots : int
        Ranks that each node can take.

    Raises
    ------
    TopologyError
        Dimensions below 1 or above 20, slots below 1.
    """
    (dimensions,) = whole("hypercube: dimensions", dimensions)
    if not 1 <= dimensions <= 20:
        raise TopologyError(f"hypercube: {dimensions} dimensions: expected 1 to 20")
    if slots < 1:
        raise TopologyError(f"hypercube: {slots} slots a node: expected at least 1")
    spec = f"hypercube:{dimensions}" + (f"*{slots}" if slots > 1 else "")
    return replace(mesh([2] * dimensions, slots=slots), spec=spec)
