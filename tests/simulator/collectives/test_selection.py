"""Algorithms are named alone or with options, which are checked."""

from itertools import pairwise

import numpy as np
import pytest

from hopmap.simulator import ALGORITHMS
from hopmap.simulator.collectives.algorithms import OPTIONS, choose, options_of, parse_algorithm
from hopmap.simulator.collectives.schedules import AlgorithmError
from hopmap.simulator.collectives.selection import (
    SELECTION,
    Row,
    resolve,
    select,
    size_of,
    substitute,
)
from hopmap.simulator.parameters.keys import ParameterError
from hopmap.simulator.parameters.parameters import parameters_from
from hopmap.traces import Collective

BCAST = ALGORITHMS["bcast"]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("chain", {}),
        ("chain()", {}),
        ("chain(fanout=4)", {"fanout": 4}),
        (" chain ( fanout = 4 , segment = 64 KiB )", {"fanout": 4, "segment": 65536}),
        ("chain(segment=1000)", {"segment": 1000}),
    ],
)
def test_options_are_arguments(text, options):
    name, function = parse_algorithm(text, BCAST)
    ours, theirs = (
        function(9, 2, np.array([10**6])),
        BCAST[name](9, 2, np.array([10**6]), **options),
    )
    assert name == "chain"
    for here, there in zip(ours[:6], theirs[:6], strict=True):
        assert np.array_equal(here, there)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("chains", "'chains': expected one of binomial, "),
        ("chain(fanout=4", "expected one of"),
        ("chain(fan=4)", "option 'fan' (did you mean fanout?): expected one of segment, fanout"),
        ("chain(4)", "option '4': expected one of segment, fanout"),
        ("linear(segment=1)", "option 'segment': expected none: linear has no options"),
        ("chain(fanout=0)", "option fanout 0: expected a whole number of at least 1"),
        ("chain(fanout=1.5)", "option fanout 1.5: expected a whole number of at least 1"),
        ("chain(segment=-1)", "option segment -1: expected a whole number of at least 0"),
        ("chain(segment=1 us)", "option segment: '1 us': unknown unit 'us'"),
        ("chain(fanout=2,fanout=3)", "option fanout is set twice"),
        ("bine(dims=4x0)", "option dims 4x0: expected lengths like 4x4x4"),
    ],
)
def test_what_means_nothing_is_an_error(text, words):
    with pytest.raises(AlgorithmError) as error:
        parse_algorithm(text, BCAST)
    assert words in str(error.value)
    with pytest.raises(ParameterError, match=r"collective\.bcast '"):
        parameters_from({"collective.bcast": text})


def test_every_option_is_known_and_has_a_default():
    for table in ALGORITHMS.values():
        for function in table.values():
            for name, default in options_of(function).items():
                assert name in OPTIONS
                assert default == "" if name == "dims" else default >= 0


def test_a_call_remembers_how_its_algorithm_was_named():
    sent = np.full(8, 800)
    chosen = choose(Collective.BCAST, 0, sent, sent, {"bcast": "chain(fanout=4)"})
    assert chosen.algorithm == "chain(fanout=4)"
    assert (chosen.schedule.src == 0).sum() == 4
    assert parameters_from({"collective.bcast": "chain(fanout=4)"}).algorithms == {
        "bcast": "chain(fanout=4)"
    }


K, M = 1024, 1024 * 1024


BOUNDARIES = [
    # Both sides of boundaries, read off coll_tuned_decision_fixed.c.
    ("allreduce", 8, 8 * K - 1, "recursive_doubling"),
    ("allreduce", 8, 8 * K, "rabenseifner"),
    ("allreduce", 64, 256 * K - 1, "recursive_doubling"),
    ("allreduce", 64, 256 * K, "rabenseifner"),
    ("allreduce", 127, 128 * K, "recursive_doubling"),
    ("allreduce", 128, 128 * K - 1, "reduce_bcast"),
    ("allreduce", 3, 16 * K, "ring"),
    ("allreduce", 4096, 8 * K, "recursive_doubling"),  # a ring, but for 1024 elements
    ("allreduce", 4096, 32 * K, "rabenseifner"),
    ("bcast", 16, M - 1, "binomial"),
    ("bcast", 16, M, "scatter_allgather"),
    ("bcast", 17, M, "scatter_allgather"),
    ("bcast", 64, 100 * M, "knomial"),
    ("bcast", 7, M - 1, "linear"),
    ("bcast", 7, M, "chain"),
    ("bcast", 4096, 16 * K - 1, "binary"),
    ("reduce", 16, 4 * K - 1, "binary"),
    ("reduce", 16, 4 * K, "binomial"),
    ("reduce", 2, 7, "linear"),  # Rabenseifner's, but for less than an element each
    ("allgather", 32, K - 1, "recursive_doubling"),
    ("allgather", 32, K, "neighbour_exchange"),
    ("allgather", 32, 64 * K, "ring"),
    ("allgather", 33, 8, "bruck"),
    ("allgather", 33, K, "ring"),
    ("allgatherv", 8, K - 1, "gather_bcast"),
    ("allgatherv", 8, K, "bruck"),
    ("allgatherv", 2, 10, "ring"),
    ("alltoall", 2, 32 * K - 1, "pairwise"),
    ("alltoall", 2, 32 * K, "linear"),
    ("alltoall", 64, K - 1, "bruck"),
    ("alltoall", 64, K, "linear"),
    ("alltoall", 64, 256 * K, "pairwise"),
    ("alltoallv", 63, 0, "linear"),
    ("alltoallv", 64, 0, "pairwise"),
    ("alltoallw", 64, 0, "linear"),
    ("barrier", 3, 0, "recursive_doubling"),
    ("barrier", 4, 0, "linear"),
    ("barrier", 8, 0, "recursive_doubling"),
    ("barrier", 64, 0, "dissemination"),
    ("barrier", 256, 0, "tree"),
    ("gather", 4, K - 1, "binomial"),
    ("gather", 4, K, "linear"),
    ("gatherv", 4, 8, "linear"),
    ("scatter", 64, 512, "linear_nb"),
    ("scatter", 64, 511, "binomial"),
    ("gather", 3, 128 * K, "linear_sync"),
    ("bcast", 512, 16 * K, "split_binary"),
    ("reduce", 300, 8 * K, "in_order_binary"),
    ("reduce_scatter", 32, 2 * K, "butterfly"),
    ("reduce_scatter", 16, 256 * K - 1, "recursive_halving"),
    ("reduce_scatter", 16, 256 * K, "ring"),
    ("reduce_scatter", 64, 255, "reduce_scatter"),
    ("reduce_scatter_block", 32, 64 * K, "reduce_scatter"),
    ("reduce_scatter_block", 32, 256 * K, "butterfly"),
    ("scan", 64, 8, "linear"),
]


def test_boundaries():
    for operation, members, size, expected in BOUNDARIES:
        assert select(operation, members, size) == expected, (operation, members, size)


def test_a_ring_and_halves_need_an_element_for_everyone():
    assert select("allreduce", 16, 8) == "recursive_doubling"  # below 64 bytes it would be a ring
    assert select("allreduce", 32, 32 * 8 - 1) == "linear"
    assert select("allreduce", 32, 32 * 8) == "rabenseifner"
    assert select("allreduce", 63, 32 * 8) == "rabenseifner"  # it cuts for 32 members
    assert select("allreduce", 2, 7) == "recursive_doubling"


def test_the_table_is_whole_and_every_row_can_be_reached():
    assert SELECTION.keys() == ALGORITHMS.keys()
    for operation, rows in SELECTION.items():
        assert {row.algorithm for row in rows} <= set(ALGORITHMS[operation])
        assert (rows[-1].members, rows[-1].size) == (np.inf, np.inf)
        assert list(rows) == sorted(rows, key=lambda row: (row.members, row.size))
        assert len({row[:2] for row in rows}) == len(rows)
        for here, there in pairwise(rows):
            # A line of members ends without a bound on bytes, and says what changes only.
            assert (here.members == there.members) != (here.size == np.inf)
            assert here.members != there.members or here.algorithm != there.algorithm


def test_rows_of_the_table():
    assert SELECTION["scatter"][1:4] == (
        Row(4, 128 * K, "linear"),
        Row(4, 256 * K, "linear_nb"),
        Row(4, np.inf, "linear"),
    )


@pytest.mark.parametrize(
    ("operation", "algorithm", "members", "expected"),
    [
        ("allgather", "neighbour_exchange", 5, "ring"),
        ("allgather", "neighbour_exchange", 6, "neighbour_exchange"),
        ("allgatherv", "recursive_doubling", 6, "bruck"),
        ("allgatherv", "recursive_doubling", 8, "recursive_doubling"),
        ("allreduce", "bine_halving", 6, "bine_halving"),  # not Open MPI's
        ("allreduce", "torus_doubling", 6, "torus_doubling"),
    ],
)
def test_open_mpi_calls_others_for_some_members_of_its_own_alone(
    operation, algorithm, members, expected
):
    assert resolve(operation, algorithm, members) == expected


@pytest.mark.parametrize("operation", ALGORITHMS)
def test_what_does_not_suit_is_replaced_by_what_does(operation):
    table = ALGORITHMS[operation]
    for members in range(1, 40):
        volume = np.ones((members, members) if "alltoall" in operation else members, dtype=int)
        for algorithm in table:
            instead = substitute(operation, algorithm, members)
            assert substitute(operation, instead, members) == instead
            if instead == algorithm:
                table[algorithm](members, 0, volume)
            else:
                with pytest.raises(ValueError, match=rf"{members} members: expected"):
                    table[algorithm](members, 0, volume)


def test_bytes_that_the_rules_look_at():
    blocks = np.array([10, 0, 5])
    assert size_of("allgatherv", blocks) == 5
    assert size_of("reduce_scatter", blocks) == 15
    assert size_of("gather", blocks) == 10
    assert size_of("bcast", np.array([7])) == 7


def test_a_call_takes_what_is_asked_for_or_what_open_mpi_would():
    p, n = 8, 100_000
    total = np.full(p, n * p)  # as OTF2 counts an allreduce
    chosen = choose(Collective.ALLREDUCE, -1, total, total)
    assert (chosen.operation, chosen.algorithm) == ("allreduce", "rabenseifner")
    assert len(chosen.schedule.src) == 2 * 3 * p
    ring = choose(Collective.ALLREDUCE, -1, total, total, {"allreduce": "ring"})
    assert (ring.algorithm, len(ring.schedule.src)) == ("ring", 2 * (p - 1) * p)
    again = choose(Collective.ALLREDUCE, -1, total, total, {"allreduce": "openmpi"})
    assert again.algorithm == "rabenseifner"
    handle = choose(Collective.CREATE_HANDLE, -1, total, total, {"barrier": "tree"})
    assert (handle.operation, handle.algorithm) == ("barrier", "tree")
    odd = np.full(5, 50)
    gathered = choose(Collective.ALLGATHER, -1, odd, odd, {"allgather": "neighbour_exchange"})
    assert gathered.algorithm == "ring"
