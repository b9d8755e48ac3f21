"""Sparse matrix-vector products y = A x on ranks: who sends which words of x or y to whom.

Source: Catalyurek and Aykanat, Hypergraph-partitioning-based decomposition for parallel
sparse-matrix vector multiplication, IEEE TPDS 10 (1999). A is square; x and y have the same parts:

| model | vertex | net | a rank has | what is sent |
|---|---|---|---|---|
| column-net | row i | column j: rows with an entry there | rows | x_j to all that need it |
| row-net | column j | row i: columns with an entry there | columns | sums for y_i to its owner |

Net j has vertex j as a pin even where the diagonal is zero, so that the rank with vertex j, which
owns x_j and y_j, is among those that the net touches. Then the words sent in one product are the
partition's connectivity metric exactly. A vertex weighs its nonzeros (at least 1), the
multiplications that it brings. Between two ranks goes one message a product, of 8 bytes a word.

A hypergraph is split into blocks of equal weight by Mt-KaHyPar: Gottesbueren, Heuer, Maas, Sanders
and Schlag, Scalable high-quality hypergraph partitioning, ACM Transactions on Algorithms 20 (2024),
through the wheel `mtkahypar` (the extra `sparse`). What a partition costs is the connectivity
metric: the sum over nets of the number of blocks that they touch, less one. Its deterministic
preset gives the same partition for any number of threads, and does not look at the seed
(version 1.7); here the seed renumbers the vertices before it is called.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from hopmap.arrays import Ints
from hopmap.errors import needs
from hopmap.traces.formats.matrix_market import read_matrix_market
from hopmap.traces.trace import TraceError
from hopmap.traces.traffic import Traffic

IMBALANCE = 0.03  # how much heavier than the mean a block may be


class Hypergraph(NamedTuple):
    """Weighted vertices and the nets that join them."""

    weight: Ints  # (vertices,): load of every vertex
    indptr: Ints  # (nets + 1,)
    # Vertices of net j: ``pins[indptr[j]:indptr[j + 1]]``, each once, at least one
    pins: Ints

    def blocks_of_nets(self, block: Ints, blocks: int) -> tuple[Ints, Ints]:
        """Nets and the blocks that they touch, each pair once, as two columns in that order."""
        net = np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))
        touched = np.unique(net * blocks + block[self.pins])
        return touched // blocks, touched % blocks

    def connectivity(self, block: Ints, blocks: int) -> int:
        """Return the metric of a partition: blocks touched, less one, summed over the nets."""
        return len(self.blocks_of_nets(block, blocks)[0]) - (len(self.indptr) - 1)


def partition_hypergraph(hypergraph: Hypergraph, blocks: int, *, seed: int = 0) -> Ints:
    """Block of each vertex, with little connectivity and no block above 1.03 times the mean.

    None of the blocks is sure to have a vertex where there are few. The same seed gives the same
    partition.
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


Model = Literal["row-net", "column-net"]

WORD = 8  # bytes
MOST_ROWS = 2**24


class Pattern(NamedTuple):
    """Where a square matrix has entries."""

    size: int  # rows and columns
    # (entries,): each entry once
    row: Ints
    column: Ints


def read_pattern(path: str | Path) -> Pattern:
    """Read where a MatrixMarket matrix has entries; zeros that a sparse file lists count."""
    return pattern_of(read_matrix_market(path), name=str(path))


def pattern_of(matrix: Any, *, name: str = "matrix") -> Pattern:
    """Where a matrix of scipy or numpy has entries."""
    from scipy import sparse

    entries = sparse.coo_array(matrix)
    rows, columns = entries.shape
    if rows != columns:
        raise TraceError(f"{name}: {rows} rows, {columns} columns: expected a square matrix")
    if rows == 0:
        raise TraceError(f"{name}: no rows: expected a square matrix")
    if rows > MOST_ROWS:
        raise TraceError(f"{name}: {rows} rows: expected at most {MOST_ROWS}")
    row, column = entries.coords
    once = np.unique(row.astype(np.int64) * rows + column)
    return Pattern(int(rows), once // rows, once % rows)


def hypergraph_of(pattern: Pattern, model: Model) -> Hypergraph:
    """Return the row-net or the column-net hypergraph of a matrix."""
    if model not in get_args(Model):
        raise TraceError(f"model {model!r}: expected {' or '.join(get_args(Model))}")
    size = pattern.size
    net, vertex = pattern.row, pattern.column
    if model == "column-net":
        net, vertex = vertex, net
    weight = np.maximum(np.bincount(vertex, minlength=size), 1)
    pins = np.unique(np.concatenate((net * size + vertex, np.arange(size) * (size + 1))))
    indptr = np.searchsorted(pins, np.arange(size + 1) * size)
    return Hypergraph(weight.astype(np.int64), indptr.astype(np.int64), pins % size)


def spmv_traffic(
    pattern: Pattern,
    ranks: int,
    model: Model,
    *,
    block: Ints | None = None,
    seed: int = 0,
) -> Traffic:
    """Traffic of one product on so many ranks; see the table above for the model.

    `block` (size,) is the rank of every vertex; `partition_hypergraph` partitions them by the seed
    when left out.
    """
    if not 1 <= ranks <= pattern.size:
        raise TraceError(
            f"{ranks} ranks for {pattern.size} rows: expected 1 to {pattern.size} ranks"
        )
    hypergraph = hypergraph_of(pattern, model)
    if block is None:
        block = partition_hypergraph(hypergraph, ranks, seed=seed)
    net, other = hypergraph.blocks_of_nets(block, ranks)
    owner = block[net]
    away = other != owner
    source, target = owner[away], other[away]
    if model == "row-net":
        source, target = target, source
    pairs, words = np.unique(source * ranks + target, return_counts=True)
    metadata = {
        "benchmark": "spmv",
        "model": model,
        "rows": pattern.size,
        "nonzeros": len(pattern.row),
    }
    return Traffic.from_pairs(
        ranks, pairs // ranks, pairs % ranks, np.ones_like(pairs), WORD * words, metadata
    )
