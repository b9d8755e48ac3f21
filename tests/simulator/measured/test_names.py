"""Names of algorithms in measured data: what they are, and which of them are not known."""

from __future__ import annotations

import pytest

from hopmap.simulator.measured.known_names import measured_names, nearest
from hopmap.simulator.measured.names import OPEN_MPI, OTHERS, Known, lookup
from hopmap.simulator.measured.prediction import call_program


@pytest.mark.parametrize(
    ("collective", "name", "algorithm"),
    [
        ("allgather", "bine_send_static_over", "bine_sending"),
        ("allgather", "bine_block_by_block_over_any_even", "bine_any_even"),
        ("reduce_scatter", "bine_block_by_block_any_even", "bine_any_even"),
        ("allreduce", "bine_block_by_block_any_even", "bine_any_even"),
        (
            "allreduce",
            "bine_bdw_remap_segmented_over_16384",
            "bine_halving_in_turns(segment=16384)",
        ),
        ("allreduce", "rabenseifner_mpich", "rabenseifner"),
        ("bcast", "bine_lat_reversed_over", "bine_at_once"),
        ("gather", "bine_over", "bine_ranges"),
    ],
)
def test_names_of_the_library_for_clusters(collective, name, algorithm):
    assert lookup(collective, name) == Known(collective, algorithm)


@pytest.mark.parametrize(
    ("collective", "name"),
    [
        ("allreduce", "default_ompi"),
        ("allreduce", "non_blocking_mpich"),
        ("allreduce", "bine_bdw_remap_segmented_over"),  # two versions, two lengths
        ("bcast", "bine_bdw_remap_segmented_over_16384"),
        ("bcast", "bine_block_by_block_any_even"),
        ("reduce_scatter", "recursive_doubling_mpich"),
        ("gossip", "bine_block_by_block_any_even"),
    ],
)
def test_names_that_mean_the_librarys_choice_or_more_than_one_thing_are_not_known(collective, name):
    assert lookup(collective, name) is None


@pytest.mark.parametrize(
    ("size", "segment"),
    [
        *((4, 0), (24_577, 0), (24_578, 1024), (49_152, 1024), (49_153, 4096), (393_216, 4096)),
        *((393_217, 16384), (6_291_456, 16384), (6_291_457, 65536), (2**29, 65536)),
    ],
)
def test_reductions_by_trees_are_cut_as_the_measurements_asked_for(size, segment):
    """HLC-Lab/bine_trees_fugaku, bench/run_reduce.sh: 1 KiB from 24 KiB on, and so on."""
    for name in ("binary", "binomial"):
        found = lookup("reduce", f"default-{name}", size=size)
        assert found == Known("reduce", f"{name}(segment={segment})")
    found = lookup("reduce", "default-in-order-binary", size=size)
    assert found == Known("reduce", "in_order_binary(segment=65536)")
    # Broadcasts, and what other libraries call so, are not.
    assert lookup("bcast", "default-binomial", size=size) == Known("bcast", "binomial(segment=0)")
    assert lookup("reduce", "binomial_ompi", size=size) == Known("reduce", "binomial(segment=0)")


def test_every_known_name_is_an_algorithm_that_can_be_called():
    for table, library in ((OPEN_MPI, "ompi"), (OTHERS, "over")):
        for collective, names in table.items():
            for name in names:
                entry = lookup(collective, f"{name}_{library}")
                assert entry is not None
                assert len(call_program(entry.operation, entry.algorithm, 8, 4096).kind)


@pytest.mark.parametrize(
    ("name", "algorithm"),
    [
        ("ring", "ring"),
        ("allreduce=ring", "ring"),
        ("segmented_ring(segment=64 KiB)", "segmented_ring(segment=64 KiB)"),
    ],
)
def test_names_of_hopmap_are_its_algorithms(name, algorithm):
    assert lookup("allreduce", name) == Known("allreduce", algorithm)


@pytest.mark.parametrize(
    ("collective", "name"),
    [
        ("allreduce", "rign"),
        ("allreduce", "ring(fanout=4)"),
        ("barrier", "linear"),
        ("bcast", "allreduce=ring"),
    ],
)
def test_other_words_are_none(collective, name):
    assert lookup(collective, name) is None


@pytest.mark.parametrize(
    ("collective", "name", "near"),
    [
        ("allreduce", "rign", "ring"),
        ("allreduce", "recursive-doubling", "recursive_doubling"),
        ("allreduce", "rign_ompi", "ring_ompi"),
        ("allgather", "default-rign", "default-ring"),
        ("allreduce", "BINE_L-UTOFU-0-1", "BINE-L-UTOFU-0-1"),
        ("allgather", "default-trix3", ""),
        ("bcast", "quick", ""),
        ("allreduce", "bine_bdw_remap_segmented_over", ""),  # another version, no misspelling
        ("all_reduce", "ring", "allreduce"),
        ("gossip", "ring", ""),
    ],
)
def test_of_an_unknown_name_the_nearest_of_its_library_is_known(collective, name, near):
    assert nearest(collective, name) == near


def test_every_listed_name_is_known():
    names = [each for each in measured_names() if "SEGMENT" not in each.name]
    assert len(names) > 100
    for each in names:
        assert lookup(each.collective, each.name.replace("BYTES", "1024")), each
    for each in measured_names():
        assert lookup(each.collective, each.name.replace("SEGMENT", "0").replace("BYTES", "1024"))
