"""Which algorithm a collective takes where none is named: Open MPI's, by members and bytes.

Traces count bytes, where Open MPI goes back to another algorithm if there are fewer elements than
members: an element is taken to have 8 bytes.

The rows are the fixed decision rules of Open MPI 5.0.9's component coll/tuned, for operations that
commute (ompi/mca/coll/tuned/coll_tuned_decision_fixed.c); operations that it leaves to coll/basic
are linear. Bytes are those that Open MPI looks at: the whole buffer of a bcast, reduce or
allreduce; the block of one member, of allgatherv the mean, of alltoall that for one other member;
of reduce_scatter all blocks together.

What is not there is replaced by what is nearest: recursive doubling of reduce_scatter_block by
recursive halving. What is the same is one: alltoall's synchronised and plain linear ones as long as
requests are not limited, a segmented and a plain ring, what it has for two members and what does
the same for any. The rules set no segments and no fan-out, so that Open MPI's pipeline and its
chain are one chain here. Where it nests operations (reduce and bcast for allreduce, ...) these
rules are asked again. Non-blocking collectives take the same algorithms.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from hopmap.arrays import Ints

OPENMPI = "openmpi"  # the word for this choice, among the names of algorithms
ELEMENT = 8  # bytes
# Operations that have the algorithms of another, on blocks of sizes of their own or of one size.
VARIANT_OF = {
    "gatherv": "gather",
    "scatterv": "scatter",
    "allgatherv": "allgather",
    "alltoallv": "alltoall",
    "alltoallw": "alltoall",
    "reduce_scatter_block": "reduce_scatter",
}
# Where there is less than an element for each member.
_FEW: Mapping[tuple[str, str], str] = {
    ("bcast", "scatter_allgather"): "linear",
    ("allreduce", "ring"): "recursive_doubling",
    ("allreduce", "rabenseifner"): "linear",
    ("reduce", "rabenseifner"): "linear",
}
# Where there is another number of members: Open MPI's functions call each other.
_EVEN_ONLY = {"neighbour_exchange": "ring"}
_POWERS_ONLY = {("allgather", "recursive_doubling"): "bruck"}
# What is not Open MPI's and for all multiples of a number; a ring else.
_MULTIPLES = {"bine_folded": 1, "bine_halving_in_turns": 1, "bine_any_even": 2}
# What is not Open MPI's, and for powers of two alone: by algorithm, else by operation.
_INSTEAD = {
    ("bcast", "bine_scatter_allgather"): "scatter_allgather",
    ("bcast", "bine_scatter_allgather_once"): "scatter_allgather",
    ("bcast", "bine_scatter_allgather_blocking"): "scatter_allgather",
    ("reduce", "bine_reduce_scatter_gather"): "rabenseifner",
    ("reduce", "bine_reduce_scatter_gather_copied"): "rabenseifner",
    ("allreduce", "bine_halving"): "rabenseifner",
    ("allreduce", "torus_halving"): "rabenseifner",
    ("allreduce", "torus_doubling"): "recursive_doubling",
}
_FOR_BINE = {
    "bcast": "binomial",
    "reduce": "binomial",
    "gather": "binomial",
    "scatter": "binomial",
    "allgather": "bruck",
    "alltoall": "bruck",
    "allreduce": "recursive_doubling",
    "reduce_scatter": "recursive_halving",
}


ANY = math.inf

# By operation and members below: bytes below, and the algorithm for them; the first that fits.
DECISIONS: Mapping[str, Mapping[float, str]] = {
    "barrier": {
        4: "recursive_doubling",
        8: "linear",
        64: "recursive_doubling",
        256: "dissemination",
        512: "tree",
        1024: "dissemination",
        4096: "tree",
        ANY: "dissemination",
    },
    "bcast": {
        4: (
            "<32 chain, <256 binary, <512 chain, <1K knomial, <32K linear, <128K binary, "
            "<256K chain, <512K linear, <1M binomial, binary"
        ),
        8: "<64 binary, <128 binomial, <2K binary, <8K binomial, <1M linear, chain",
        16: "<8 knomial, <64 binary, <4K knomial, <16K binary, <32K binomial, linear",
        32: "<4K knomial, <1M binomial, scatter_allgather",
        64: "<2K binomial, knomial",
        128: "knomial",
        256: "<2 binomial, <16K binary, <32K linear, <64K binary, knomial",
        1024: "<16K knomial, <32K split_binary, knomial",
        2048: "<512K knomial, scatter_allgather",
        4096: "<256K knomial, scatter_allgather",
        ANY: "<8K knomial, <16K binary, <256K knomial, scatter_allgather",
    },
    "gather": {
        4: "<2 linear_sync, <4 linear, <32K binomial, <64K linear, <128K binomial, linear_sync",
        8: "<1K binomial, <8K linear, <32K binomial, <256K linear, linear_sync",
        256: "binomial",
        512: "<2K binomial, <8K linear, binomial",
        ANY: "binomial",
    },
    "scatter": {
        4: "<2 linear_nb, <128K linear, <256K linear_nb, linear",
        8: "<2K binomial, <4K linear, <8K binomial, <32K linear, <1M linear_nb, linear",
        16: "<16K binomial, <1M linear_nb, linear",
        32: "<16K binomial, <32K linear, linear_nb",
        64: "<512 binomial, <8K linear_nb, <16K binomial, linear_nb",
        ANY: "<512 binomial, linear_nb",
    },
    "allgather": {
        32: "recursive_doubling",
        64: "<1K recursive_doubling, <64K neighbour_exchange, ring",
        128: "<512 recursive_doubling, <64K neighbour_exchange, ring",
        256: (
            "<512 recursive_doubling, <128K neighbour_exchange, <512K ring, "
            "<1M neighbour_exchange, ring"
        ),
        512: (
            "<32 recursive_doubling, <128 bruck, <1K recursive_doubling, "
            "<128K neighbour_exchange, <512K ring, <1M neighbour_exchange, ring"
        ),
        1024: "<64 recursive_doubling, <256 bruck, <2K recursive_doubling, neighbour_exchange",
        2048: (
            "<4 recursive_doubling, <8 bruck, <16 recursive_doubling, <32 bruck, "
            "<256 recursive_doubling, <512 bruck, <4K recursive_doubling, neighbour_exchange"
        ),
        4096: (
            "<32 bruck, <128 recursive_doubling, <512 bruck, <4K recursive_doubling, "
            "neighbour_exchange"
        ),
        ANY: (
            "<2 recursive_doubling, <8 bruck, <16 recursive_doubling, <512 bruck, "
            "<4K recursive_doubling, neighbour_exchange"
        ),
    },
    "allgatherv": {
        3: "ring",
        8: (
            "<256 gather_bcast, <4K neighbour_exchange, <8K ring, <16K neighbour_exchange, "
            "<256K bruck, neighbour_exchange"
        ),
        16: "<1K gather_bcast, bruck",
        32: "<128 gather_bcast, <256K bruck, ring",
        64: "<256 gather_bcast, <8K bruck, ring",
        128: "<256 gather_bcast, <4K bruck, ring",
        256: "<1K bruck, <64K neighbour_exchange, ring",
        512: "<1K bruck, ring",
        1024: "<512 bruck, <1K gather_bcast, <4K bruck, <1M neighbour_exchange, ring",
        ANY: "<4K bruck, neighbour_exchange",
    },
    "alltoall": {
        3: "<32K pairwise, <256K linear, pairwise",
        8: "<512K linear, <1M pairwise, linear",
        16: "linear",
        32: "<4 linear, <512 bruck, linear",
        64: "<512 bruck, linear",
        256: "<1K bruck, <256K linear, pairwise",
        512: "<1K bruck, <32K linear, pairwise",
        1024: "<512 bruck, <256K linear, pairwise",
        2048: "<512 bruck, linear",
        4096: "<1K bruck, linear",
        ANY: "<2K bruck, linear",
    },
    "alltoallv": {
        4: "pairwise",
        64: "linear",
        128: "pairwise",
        256: "linear",
        1024: "pairwise",
        ANY: "linear",
    },
    "allreduce": {
        4: (
            "<8 ring, <4K recursive_doubling, <8K ring, <16K recursive_doubling, <256K ring, "
            "rabenseifner"
        ),
        8: "<16 ring, <8K recursive_doubling, rabenseifner",
        16: "<8K recursive_doubling, rabenseifner",
        32: "<64 ring, <4K recursive_doubling, rabenseifner",
        64: "<128 ring, rabenseifner",
        128: "<256K recursive_doubling, rabenseifner",
        256: "<128K reduce_bcast, <256K recursive_doubling, rabenseifner",
        512: "<4K reduce_bcast, rabenseifner",
        2048: "<2K reduce_bcast, <16K recursive_doubling, rabenseifner",
        4096: "<2K reduce_bcast, <4K ring, <16K recursive_doubling, rabenseifner",
        ANY: "<2K reduce_bcast, <16K ring, <32K recursive_doubling, rabenseifner",
    },
    "reduce": {
        4: "<8 rabenseifner, <16 binary, <32 chain, <256K linear, chain",
        8: "<4K binary, <64K chain, <256K binomial, <512K linear, <1M binomial, linear",
        16: "<8K binary, binomial",
        32: "<4K binary, binomial",
        256: "binomial",
        512: "<8K binomial, <16K in_order_binary, binomial",
        2048: "binomial",
        4096: "<512 binomial, <1K in_order_binary, <8K binomial, <16K in_order_binary, binomial",
        ANY: (
            "<16 binomial, <32 in_order_binary, <1K binomial, <2K in_order_binary, <8K binomial, "
            "<16K in_order_binary, binomial"
        ),
    },
    "reduce_scatter": {
        4: "<64K ring, <128K butterfly, ring",
        8: "<8 reduce_scatter, <256K recursive_halving, ring",
        32: "<256K recursive_halving, ring",
        64: "<64 reduce_scatter, <2K recursive_halving, <512K butterfly, ring",
        128: (
            "<256 reduce_scatter, <512 recursive_halving, <2K butterfly, <4K recursive_halving, "
            "butterfly"
        ),
        256: "<256 reduce_scatter, <512 recursive_halving, butterfly",
        512: "<256 reduce_scatter, <1K recursive_halving, butterfly",
        1024: (
            "<512 reduce_scatter, <2K recursive_halving, <8K butterfly, <16K recursive_halving, "
            "butterfly"
        ),
        2048: (
            "<512 reduce_scatter, <4K recursive_halving, <16K butterfly, <32K recursive_halving, "
            "butterfly"
        ),
        4096: "<512 reduce_scatter, <4K recursive_halving, butterfly",
        ANY: "<1K reduce_scatter, <8K recursive_halving, butterfly",
    },
    "reduce_scatter_block": {
        4: (
            "<4 recursive_halving, <8 butterfly, <16 recursive_halving, <128 butterfly, "
            "<256 recursive_halving, <4K butterfly, <8K recursive_halving, <128K butterfly, "
            "reduce_scatter"
        ),
        8: (
            "<32 recursive_halving, <256 butterfly, <8K recursive_halving, <16K butterfly, "
            "<1M recursive_halving, reduce_scatter"
        ),
        16: (
            "<4 reduce_scatter, <32 recursive_halving, <128 butterfly, <512K recursive_halving, "
            "<4M reduce_scatter, butterfly"
        ),
        32: (
            "<32 reduce_scatter, <512K recursive_halving, <2M reduce_scatter, "
            "<4M recursive_halving, butterfly"
        ),
        ANY: (
            "<4 recursive_halving, <16 reduce_scatter, <64K butterfly, <256K reduce_scatter, "
            "butterfly"
        ),
    },
    "gatherv": {ANY: "linear"},
    "scatterv": {ANY: "linear"},
    "alltoallw": {ANY: "linear"},
    "scan": {ANY: "linear"},
    "exscan": {ANY: "linear"},
}


class Row(NamedTuple):
    """An algorithm for fewer than `members` members and fewer than `size` bytes."""

    members: float
    size: float
    algorithm: str


def _rows(by_members: Mapping[float, str]) -> tuple[Row, ...]:
    """Read "<4K ring, bruck" as ring below 4096 bytes, else bruck."""
    rows = []
    for members, line in by_members.items():
        for entry in line.split(", "):
            *bound, algorithm = entry.split()
            rows.append(Row(members, _bytes(bound[0]) if bound else ANY, algorithm))
    return tuple(rows)


def _bytes(bound: str) -> int:
    digits = bound.strip("<KM")
    return int(digits) << {"K": 10, "M": 20}.get(bound[-1], 0)


SELECTION: Mapping[str, tuple[Row, ...]] = {
    operation: _rows(by_members) for operation, by_members in DECISIONS.items()
}


def select(operation: str, members: int, size: int) -> str:
    """Name the algorithm that Open MPI takes, for bytes as `size_of` says."""
    chosen = next(
        row.algorithm for row in SELECTION[operation] if members < row.members and size < row.size
    )
    return substitute(operation, fallback(operation, chosen, members, size // ELEMENT), members)


def fallback(operation: str, algorithm: str, members: int, elements: int) -> str:
    """Return the algorithm, or what replaces it if a buffer has not so many elements."""
    # Rabenseifner's algorithm cuts the buffer for the last power of two.
    needed = 1 << (members.bit_length() - 1) if algorithm == "rabenseifner" else members
    return _FEW.get((operation, algorithm), algorithm) if elements < needed else algorithm


def resolve(operation: str, algorithm: str, members: int) -> str:
    """Return the algorithm, or the one that Open MPI's function calls for so many members."""
    if members > 1 and members % 2 and algorithm in _EVEN_ONLY:
        return _EVEN_ONLY[algorithm]
    if members & (members - 1):
        return _POWERS_ONLY.get((VARIANT_OF.get(operation, operation), algorithm), algorithm)
    return algorithm


def substitute(operation: str, algorithm: str, members: int) -> str:
    """Return the algorithm, or what replaces it if it is not for so many members."""
    if members & (members - 1) == 0:
        return algorithm
    if algorithm in _MULTIPLES:
        return algorithm if members % _MULTIPLES[algorithm] == 0 else "ring"
    bine = algorithm.startswith("bine")
    instead = _FOR_BINE[VARIANT_OF.get(operation, operation)] if bine else algorithm
    instead = _INSTEAD.get((operation, algorithm), instead)
    return resolve(operation, instead, members)


def size_of(operation: str, volume: Ints) -> int:
    """Bytes that Open MPI's rules look at, from what an operation moves."""
    if operation == "allgatherv":
        return int(volume.sum()) // len(volume)
    if operation == "reduce_scatter":
        return int(volume.sum())
    return int(volume.max(initial=0))
