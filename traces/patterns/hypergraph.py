"""Hypergraphs and their partitioning into blocks of equal weight, by Mt-KaHyPar.

A net joins any number of vertices, its pins. What a partition costs is the connectivity metric:
the sum over nets of the number of blocks that they touch, less one. Source of the partitioner:
Gottesbueren, Heuer, Maas, Sanders and Schlag, Scalable high-quality hypergraph partitioning, ACM
Transactions on Algorithms 20 (2024), through the wheel `mtkahypar` (the extra `sparse`).

Its deterministic preset gives the same partition whatever the number of threads, and does not look
at the seed (version 1.7); here the seed numbers the vertices anew before it is called.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.extras import needs
from hopmap.traces.trace import TraceError

IMBALANCE = 0.03  # how much heavier than the mean a block may be


class Hypergraph(NamedTuple):
    """Weighted vertices and the nets that join them.

    Attributes
    ----------
    weight : ndarray(int64, shape=(vertices,))
        Load of every vertex.
    indptr : ndarray(int64, shape=(nets + 1,))
    pins : ndarray(int64)
        Vertices of net j: ``pins[indptr[j]:indptr[j + 1]]``, each once, at least one.
    """

    weight: NDArray[np.int64]
    indptr: NDArray[np.int64]
    pins: NDArray[np.int64]

    def blocks_of_nets(
        self, block: NDArray[np.int64], blocks: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Nets and the blocks that they touch, each pair once, as two columns in that order."""
        net = np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))
        touched = np.unique(net * blocks + block[self.pins])
        return touched // blocks, touched % blocks

    def connectivity(self, block: NDArray[np.int64], blocks: int) -> int:
        """Return the metric of a partition: blocks touched, less one, summed over the nets."""
        return len(self.blocks_of_nets(block, blocks)[0]) - (len(self.indptr) - 1)


def partition_hypergraph(
    hypergraph: Hypergraph, blocks: int, *, seed: int = 0
) -> NDArray[np.int64]:
    """Block of each vertex, with little connectivity and no block above 1.03 times the mean.

    Parameters
    ----------
    hypergraph : Hypergraph
        What to partition.
    blocks : int
        How many blocks; none of them is sure to have a vertex where there are few.
    seed : int
        The same seed gives the same partition.

    Raises
    ------
    TraceError
        Mt-KaHyPar refuses the hypergraph.
    MissingExtraError
        Mt-KaHyPar is not installed.
    """
    vertices = len(hypergraph.weight)
    if blocks == 1:
        return np.zeros(vertices, dtype=np.int64)
    library, initializer = _mtkahypar()
    number = np.random.default_rng(seed).permutation(vertices)
    weight = np.empty(vertices, dtype=np.int64)
    weight[number] = hypergraph.weight
    pins = number[hypergraph.pins].tolist()
    bounds = hypergraph.indptr.tolist()
    nets = [pins[first:end] for first, end in pairwise(bounds)]
    context = initializer.context_from_preset(library.PresetType.DETERMINISTIC)
    context.set_partitioning_parameters(blocks, IMBALANCE, library.Objective.KM1)
    context.logging = False
    try:
        made = initializer.create_hypergraph(
            context, vertices, len(nets), nets, weight.tolist(), [1] * len(nets)
        ).partition(context)
    except (library.InvalidInputError, library.InvalidParameterError) as error:
        reason = " ".join(str(error).split())
        raise TraceError(f"mtkahypar: {blocks} blocks: {reason}") from None
    return np.array(made.get_partition(), dtype=np.int64)[number]


@cache
def _mtkahypar() -> tuple[Any, Any]:
    """Return the module and its initializer."""
    with needs("sparse", "partitioning a hypergraph"):
        import mtkahypar
    return mtkahypar, mtkahypar.initialize(1, False)  # one thread, no warnings
