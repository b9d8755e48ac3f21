"""GPAW's runs on Blue Gene/P: map files, messages and static counts of benchmarks/gpaw."""

import numpy as np
import pytest
from gpaw import lateness, replay
from gpaw_messages import LARGE, MAPPINGS, SMALL, halos, machine, place, ring, ring_counts

import hopmap as hm

CASES = pytest.mark.parametrize("case", [SMALL, LARGE], ids=["512", "1024"])
BOTH = pytest.mark.parametrize("mapping", MAPPINGS)


@CASES
@BOTH
def test_map_files_are_made_by_rule(case, mapping, shared):
    shape = "x".join(map(str, (*case.domains, case.groups)))
    path = shared / "measured" / "gpaw" / f"BGMAP_{mapping}_{shape}"
    node_of = place(case, mapping)
    assert hm.read_mapping(path, machine(case)).tolist() == node_of.tolist()
    assert hm.export_mapping(node_of, "bluegene", machine(case)).text == path.read_text()


@CASES
@BOTH
def test_a_place_holds_one_rank(case, mapping):
    assert (np.bincount(place(case, mapping)) == 4).all()


@pytest.mark.parametrize(
    ("case", "mapping", "counts"),
    [
        (SMALL, "band", (0.0, 0, 0)),
        (SMALL, "domain", (2.0, 2, 8)),
        (LARGE, "band", (1.0, 1, 4)),
        (LARGE, "domain", (4.5, 7, 16)),
    ],
)
def test_hops_of_a_ring_and_messages_on_the_busiest_link_are_the_map_files(case, mapping, counts):
    assert ring_counts(case, mapping) == counts


@CASES
def test_calls_send_what_the_source_says(case):
    """5.83 MB a block: 186.6 MB a call of calc_matrix, 280 and 326.6 MB of rotate_psi."""
    assert case.block == 27 * 27_000 * 8
    assert case.blocks * (case.groups // 2) * case.block == pytest.approx(186.6e6, rel=1e-3)
    steps = case.blocks * (case.groups - 1)
    assert steps * case.block == pytest.approx({4: 280e6, 8: 326.6e6}[case.groups], rel=1e-3)


def test_a_step_without_computation_takes_the_busiest_link_and_hides_behind_longer_computation():
    busy = 16 * LARGE.block / 375e6
    assert replay(ring(LARGE, [(1, 0.0, 0.0)]), LARGE, "domain", {}) == pytest.approx(
        busy, rel=1e-3
    )
    for tail, seconds in ((0.0, 2 * busy), (0.5, 2.5 * busy)):
        program = ring(LARGE, [(1, 0.0, 2 * busy)], tail)
        assert replay(program, LARGE, "domain", {}) == pytest.approx(seconds, rel=1e-3)


def test_every_rank_sends_to_the_group_before_and_receives_from_the_one_behind():
    traffic = ring(SMALL, [(2, 0.0, 0.0)], tail=0.25).traffic()
    domains = SMALL.ranks // SMALL.groups
    assert len(traffic.src) == SMALL.ranks
    assert ((traffic.src - domains) % SMALL.ranks == traffic.dst).all()
    assert set(traffic.messages) == {4}
    assert set(traffic.bytes) == {2 * SMALL.block}


def test_halos_go_to_six_neighbours_and_grow_from_axis_to_axis():
    traffic = halos(LARGE, ((0, 3),)).traffic()
    x, y, z = LARGE.domains
    pairs = 2 * LARGE.groups * ((x - 1) * y * z + x * (y - 1) * z + x * y * (z - 1))
    assert len(traffic.src) == pairs
    assert set(traffic.bytes) == {3 * 30 * 15 * 8, 3 * 66 * 15 * 8, 3 * 66 * 36 * 8}


@CASES
def test_domains_in_the_middle_are_last_and_corners_first(case):
    late = lateness(case).reshape(case.groups, *case.domains)
    assert late[0, 0, 0, 0] == 0
    assert late[-1, case.domains[0] // 2, case.domains[1] // 2, case.domains[2] // 2] == 1
