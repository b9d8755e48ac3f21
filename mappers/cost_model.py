"""What a mapping costs, as the compiled functions of `cost_kernels` take it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hopmap.arrays import Ints

if TYPE_CHECKING:
    from hopmap.topologies.routing import Router

HOPS = 0
NEAR = 1


class CostModel(NamedTuple):
    """What a mapping costs: a sum over pairs that talk, to be minimised."""

    router: Router  # distances; the same in both directions
    kind: int  # HOPS: a pair costs its weight per hop. NEAR: a pair within one hop earns its weight
    # shape (slots + 1,): peers of rank r are ``peer[indptr[r]:indptr[r + 1]]``; dummy ranks have
    # none
    indptr: Ints
    # peer, weight: shape (2 * undirected pairs,): the other rank and the weight of the pair, both
    # directions added up; no self pairs
    peer: Ints
    weight: Ints
