"""Bytes that Score-P records of collectives.

Written after Score-P 9.0, src/adapters/mpi/c/scorep_mpi_coll.inc.c.
"""

from __future__ import annotations

import numpy as np

from hopmap.traces import Collective

C = Collective
WITH_ROOT = (C.BCAST, C.REDUCE, C.GATHER, C.SCATTER, C.GATHERV, C.SCATTERV)
OF_BLOCKS = (C.GATHERV, C.SCATTERV, C.ALLGATHERV, C.REDUCE_SCATTER)


def recorded(operation, blocks, root=-1, in_place=False):
    """(sent, received) at every member; of whole buffers and equal blocks all `blocks` are b."""
    blocks = np.array(blocks, dtype=np.int64)
    members, b = len(blocks), int(blocks[0])
    parts = members - in_place
    me = np.arange(members)
    at_root = me == root
    whole = int(blocks.sum()) - in_place * blocks
    match operation:
        case C.BCAST:
            return np.where(at_root, b * members, 0), np.full(members, b)
        case C.REDUCE | C.GATHER | C.GATHERV | C.SCATTER | C.SCATTERV:
            own = np.where(at_root & in_place, 0, blocks)
            other = np.where(at_root, whole, 0)
            return (other, own) if operation in (C.SCATTER, C.SCATTERV) else (own, other)
        case C.ALLGATHERV:
            return parts * blocks, whole
        case C.REDUCE_SCATTER:
            return whole, parts * blocks
        case C.SCAN if not in_place:
            return (members - me) * b, (me + 1) * b
        case C.SCAN | C.EXSCAN:
            return (members - me - 1) * b, me * b
    return np.full(members, parts * b), np.full(members, parts * b)
