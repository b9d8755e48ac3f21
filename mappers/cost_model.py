"""What a mapping costs, as the compiled functions of `cost_kernels` take it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hopmap.mappers.arrays import Ints

if TYPE_CHECKING:
    from hopmap.topologies.routing import Router

HOPS = 0
NEAR = 1


class CostModel(NamedTuple):
    """What a mapping costs: a sum over pairs that talk, to be minimised.

    Attributes
    ----------
    router : Router
        Distances; the same in both directions.
    kind : int
        HOPS: a pair costs its weight per hop. NEAR: a pair within one hop earns its weight.
    indptr : ndarray(int64, shape=(slots + 1,))
        Peers of rank r are ``peer[indptr[r]:indptr[r + 1]]``; dummy ranks have none.
    peer, weight : ndarray(int64, shape=(2 * undirected pairs,))
        The other rank and the weight of the pair, both directions added up; no self pairs.
    """

    router: Router
    kind: int
    indptr: Ints
    peer: Ints
    weight: Ints
