"""Names of algorithms in measured data, and what they are here.

Names that begin with default- are from Fujitsu MPI 4.0.1, which is Open MPI: what Open MPI
does not have (3dtorus, trix3, blacc3d, crp, gtbc, doublespread, simple, use-bcast, ...) has no
public definition, and neither has what leaves a part of the work to the library's own choice
(default, and linear, nonoverlapping, rdbc, non-overlapping where that is a call of another
collective; basic-linear of bcast, which takes what default takes on 8 and on 4,096 nodes). A forced
algorithm is not segmented, except where the authors' scripts say so, see `_find_forced`:
coll_tuned_*_algorithm_segmentsize is 0 by default, and coll_tuned_*_algorithm_chain_fanout is 4
(Open MPI, ompi/mca/coll/tuned).
Names that end in _ompi are Open MPI's, in _over PICO's authors' (arXiv 2508.16809), in _mpich
Cray MPICH's. All others are hopmap's own, as ``hopmap list algorithms`` prints them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import inf
from typing import NamedTuple

from hopmap.simulator.collectives.algorithms import ALGORITHMS, options_of, parse_algorithm
from hopmap.simulator.collectives.schedules import AlgorithmError


class Known(NamedTuple):
    """An algorithm that is known."""

    operation: str  # a key of `ALGORITHMS`
    algorithm: str  # with its options, as `algorithms.parse_algorithm` reads them
    # whether messages are puts into memory that the receiver has named before: they wait for no
    # receive, like messages of MPI's ready mode
    puts: bool = False
    kept: bool = False  # whether buffers are the library's, kept from call to call
    prepares: bool = False  # whether ranks look partners and buffers up first, as before puts


OPEN_MPI: Mapping[str, Mapping[str, str]] = {
    "allgather": {
        "bruck": "bruck",
        "neighbor": "neighbour_exchange",
        "recursive_doubling": "recursive_doubling",
        "ring": "ring",
    },
    "allreduce": {
        "linear": "linear",
        "rabenseifner": "rabenseifner",
        "recursive_doubling": "recursive_doubling",
        "ring": "ring",
        "ring_segmented": "segmented_ring",
        "allgather_reduce": "allgather_reduce",
    },
    "alltoall": {
        "linear": "linear",
        "linear_sync": "linear_sync",
        "modified_bruck": "bruck",
        "pairwise": "pairwise",
    },
    "bcast": {
        "binary": "binary(segment=0)",
        "binomial": "binomial(segment=0)",
        "chain": "chain(fanout=4, segment=0)",
        "knomial": "knomial(segment=0)",
        "linear": "linear",
        "pipeline": "pipeline(segment=0)",
        "scatter_allgather": "scatter_allgather",
        "scatter_allgather_ring": "scatter_allgather_ring",
        "split_binary": "split_binary(segment=0)",
    },
    "gather": {"binomial": "binomial", "linear": "linear", "linear_synch": "linear_sync"},
    "reduce": {
        "binary": "binary(segment=0)",
        "binomial": "binomial(segment=0)",
        "chain": "chain(fanout=4, segment=0)",
        "in_order": "in_order_binary(segment=0)",
        "linear": "linear",
        "pipeline": "pipeline(segment=0)",
        "rabenseifner": "rabenseifner",
    },
    "reduce_scatter": {"recursive_halving": "recursive_halving", "ring": "ring"},
    "scatter": {"binomial": "binomial", "linear": "linear", "linear_nb": "linear_nb"},
}
# What is behind default-, with _ for every hyphen.
FUJITSU: Mapping[str, Mapping[str, str]] = {
    "allgather": OPEN_MPI["allgather"],
    "allreduce": {
        "basic_linear": "linear",
        "recursive_doubling": "recursive_doubling",
        "ring": "ring",
        "segmented_ring": "segmented_ring(segment=1048576)",
    },
    "alltoall": OPEN_MPI["alltoall"],
    "bcast": {
        "binary_tree": "binary(segment=0)",
        "binomial": "binomial(segment=0)",
        "chain": "chain(fanout=4, segment=0)",
        "pipeline": "pipeline(segment=0)",
        "split_binary_tree": "split_binary(segment=0)",
    },
    "gather": {"basic_linear": "linear", "binomial": "binomial", "linear_sync": "linear_sync"},
    "reduce": {
        "binary": "binary",
        "binomial": "binomial",
        "chain": "chain(fanout=4, segment=0)",
        "in_order_binary": "in_order_binary(segment=65536)",
        "linear": "linear",
        "pipeline": "pipeline(segment=0)",
    },
    "reduce_scatter": OPEN_MPI["reduce_scatter"],
    "scatter": {"basic_linear": "linear", "binomial": "binomial"},
}
# Segments that were asked for of reductions by these trees, by the largest buffer that has them
# (coll_select_reduce_algorithm_segmentsize in HLC-Lab/bine_trees_fugaku, bench/run_reduce.sh, which
# also has the other segmented ones; bench/run_fugaku.sh has the segmented ring).
SEGMENTED = ("binary", "binomial")
SEGMENTS = ((24577, 0), (49152, 1024), (393_216, 4096), (6_291_456, 16384), (inf, 65536))
# Operations of which buffers are kept: these take what their bytes take at 512 MiB, too. The runs
# gave Fujitsu MPI a pool of 1,539 MiB (coll_tuned_prealloc_size); its users are not published.
POOLED = ("gather", "reduce_scatter", "scatter")
# Of the authors' own library for clusters, HLC-Lab/pico (libbine), and of Cray's MPICH those that
# are MPICH's; static and remap differ in where the numbers of blocks are from. Not here: MPICH's
# recursive doubling of reduce_scatter; bine_bdw_remap_segmented without a size, which has been one
# segment for every rank in one public version and a single one in the next; default and
# non_blocking, the libraries' own choice.
OTHERS: Mapping[str, Mapping[str, str]] = {
    "allgather": {
        "bine_2_blocks": "bine_ranges",
        "bine_2_blocks_dtype": "bine_joined",
        "bine_block_by_block": "bine_blocks",
        "bine_permute_remap": "bine",
        "bine_permute_static": "bine",
        "bine_send_remap": "bine_sending",
        "bine_send_static": "bine_sending",
        "brucks": "bruck",
        "k_bruck": "bruck",
        "recursive_doubling": "recursive_doubling",
        "ring": "ring",
        "sparbit": "sparbit",
    },
    "allreduce": {
        "bine_bdw_remap": "bine_halving",
        "bine_bdw_static": "bine_halving",
        "bine_lat": "bine_folded",
        "rabenseifner": "rabenseifner",
        "recursive_doubling": "recursive_doubling",
        "ring": "ring",
    },
    "alltoall": {"bine": "bine"},
    "bcast": {
        "bine_bdw_remap": "bine_scatter_allgather_blocking",
        "bine_bdw_static": "bine_scatter_allgather_once",
        "bine_lat": "bine_increasing",
        "bine_lat_i_new": "bine_at_once",
        "bine_lat_new": "bine_blocking",
        "bine_lat_reversed": "bine_at_once",
        "scatter_allgather": "scatter_allgather",
    },
    "gather": {"bine": "bine_ranges"},
    "reduce": {
        "bine_bdw": "bine_reduce_scatter_gather_copied",
        "bine_lat": "bine_whole",
        "binomial": "binomial(segment=0)",
        "rabenseifner": "rabenseifner",
    },
    "reduce_scatter": {
        "bine_block_by_block": "bine_any_even",
        "bine_permute_remap": "bine",
        "bine_send_remap": "bine_sending",
        "pairwise": "pairwise",
        "recursive_distance_doubling": "butterfly",
        "recursive_halving": "recursive_halving",
        "ring": "ring",
    },
    "scatter": {"bine": "bine_ranges"},
}
ANY_EVEN = re.compile(r"bine_block_by_block(_over)?_any_even")
IN_TURNS = re.compile(r"bine_bdw_remap_segmented_over_([1-9]\d*)")


# NAME-LIBRARY-SEGMENT-PORTS, of HLC-Lab/bine_trees_fugaku: along the dimensions of the job's torus.
BINE: Mapping[str, Mapping[str, str]] = {
    "allgather": {
        "BINE-VEC_DOUBLING_BLOCKS": "bine_blocks",
        "BINE-VEC_DOUBLING_CONT_PERMUTE": "bine",
        "BINE-VEC_DOUBLING_CONT_SEND": "bine_sending",
    },
    "allreduce": {
        "BINE-B_CONT": "bine_halving",
        "BINE-L": "bine",
        "RECDOUB-B_CONT": "torus_halving",
        "RECDOUB-L": "torus_doubling",
    },
    "alltoall": {"BINE-LOG": "bine", "BRUCK-LOG": "bruck_by_blocks"},
    "bcast": {
        "BINE-BINOMIAL_TREE": "bine",
        "BINE-BINOMIAL_TREE_TMPBUF": "bine_with_buffer",
        "BINE-SCATTER_ALLGATHER": "bine_scatter_allgather",
    },
    "gather": {
        "BINE-BINOMIAL_TREE_CONT_PERMUTE": "bine",
        "BINE-BINOMIAL_TREE_CONT_PERMUTE-DEC": "bine",
        "BINE-BINOMIAL_TREE_CONT_PERMUTE-INC": "bine_increasing",
    },
    "reduce": {
        "BINE-BINOMIAL_TREE": "bine",
        "BINE-REDUCE_SCATTER_GATHER": "bine_reduce_scatter_gather",
    },
    "reduce_scatter": {"BINE-VEC_HALVING_CONT_PERMUTE": "bine"},
    "scatter": {
        "BINE-BINOMIAL_TREE_CONT_PERMUTE": "bine",
        "BINE-BINOMIAL_TREE_CONT_PERMUTE-DEC": "bine_decreasing",
        "BINE-BINOMIAL_TREE_CONT_PERMUTE-INC": "bine",
    },
}


# What the authors have over MPI for a line of ranks only (bine_gather_mpi, ...), never cut, in
# buffers that it allocates; all else works in 1.5 GiB set aside (LIBBINE_PREALLOC_SIZE).
ON_A_LINE: Mapping[str, Mapping[str, str]] = {
    "alltoall": {"BINE-LOG": "bine"},
    "gather": {"BINE-BINOMIAL_TREE_CONT_PERMUTE": "bine_ranges"},
    "reduce": {
        "BINE-BINOMIAL_TREE": "bine",
        "BINE-REDUCE_SCATTER_GATHER": "bine_reduce_scatter_gather",
    },
    "scatter": {"BINE-BINOMIAL_TREE_CONT_PERMUTE": "bine_ranges"},
}


SEVERAL_PORTS = re.compile(r"-(MPI|UTOFU)-\d+-(?!1$)\d+$")


def lookup(collective: str, algorithm: str, dims: str = "", size: int = 0) -> Known | None:
    """Find an algorithm by its name in measured data; None if it has no public definition.

    On the bytes of the buffer depends how the measurements cut some of them. `dims` are the lengths
    of the job's torus, like 4x4x2, of which the ranks' numbers follow the last first.
    """
    name, _, library = algorithm.rpartition("_")
    own = algorithm.removeprefix(f"{collective}=")
    if collective in OPEN_MPI and _is_own(collective, own):
        return Known(collective, own)
    if algorithm.startswith("default-"):
        found = _find_forced(collective, algorithm.removeprefix("default-"), size)
        return Known(collective, found, kept=collective in POOLED) if found else None
    if library == "ompi":
        found = OPEN_MPI.get(collective, {}).get(name)
    elif ANY_EVEN.fullmatch(algorithm):
        found = "bine_any_even" if "bine_any_even" in ALGORITHMS.get(collective, {}) else None
    elif match := IN_TURNS.fullmatch(algorithm):
        found = f"bine_halving_in_turns(segment={match[1]})" if collective == "allreduce" else None
    elif library in ("over", "mpich"):
        found = OTHERS.get(collective, {}).get(name)
    else:
        return _bine(collective, algorithm, dims)
    return Known(collective, found) if found else None


def _is_own(collective: str, algorithm: str) -> bool:
    try:
        return bool(parse_algorithm(algorithm, ALGORITHMS[collective]))
    except AlgorithmError:
        return False


def _find_forced(collective: str, name: str, size: int) -> str | None:
    """Find an algorithm of Fujitsu MPI as the measurements forced it, with its segments."""
    found = FUJITSU.get(collective, {}).get(name.replace("-", "_"))
    if collective == "reduce" and found in SEGMENTED:
        segment = next(segment for most, segment in SEGMENTS if size <= most)
        return f"{found}(segment={segment})"
    return found


def _bine(collective: str, algorithm: str, dims: str) -> Known | None:
    match = re.fullmatch(r"(.+)-(MPI|UTOFU)-(\d+)-1", algorithm)
    found = BINE.get(collective, {}).get(match[1]) if match else None
    if match is None or found is None:
        return None
    if match[2] == "MPI" and (line := ON_A_LINE.get(collective, {}).get(match[1])):
        return Known(collective, line)
    known_options = options_of(ALGORITHMS[collective][found])
    puts = match[2] == "UTOFU"
    values = {"dims": dims, "segment": match[3], "puts": str(int(puts))}
    plain = {"dims": "", "segment": "0", "puts": "0"}
    if match[1].endswith("-L"):  # sent whole, even if segments are asked for
        values["segment"] = "0"
    if values["segment"] != "0" and "segment" not in known_options:
        return None
    words = [f"{k}={v}" for k, v in values.items() if v != plain[k] and k in known_options]
    options = f"({', '.join(words)})" if words else ""
    return Known(collective, found + options, puts=puts, kept=True, prepares=True)
