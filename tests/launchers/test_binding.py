"""Which cores and GPUs the ranks of a node get."""

import pytest

from hopmap.launchers.binding import seats_on
from hopmap.topologies import MappingError
from hopmap.topologies.readers.node import Domain, read_node
from support import about


def seats(node, ranks, threads=1):
    return [
        (seat.slots, seat.domain, seat.gpu) for seat in seats_on(ranks, threads, read_node(node))
    ]


def test_the_ranks_of_a_node_are_spread_over_its_domains_in_blocks():
    assert seats("numa=4x16", 4, 16) == [
        ("0-15", 0, None),
        ("16-31", 1, None),
        ("32-47", 2, None),
        ("48-63", 3, None),
    ]
    assert [place for place, *_ in seats("numa=2x8", 4, 2)] == ["0-1", "2-3", "8-9", "10-11"]
    assert [place for place, *_ in seats("numa=4x16", 2)] == ["0", "32"]
    assert [domain for _, domain, _ in seats("numa=4x16", 6)] == [0, 0, 1, 2, 2, 3]


def test_no_core_has_two_ranks_and_no_rank_two_domains():
    for domains in range(1, 6):
        for cores in range(1, 9):
            for threads in range(1, cores + 1):
                for ranks in range(1, domains * (cores // threads) + 1):
                    with about(domains, cores, threads, ranks):
                        node = read_node(f"numa={domains}x{cores}")
                        placed = seats_on(ranks, threads, node)
                        used = [core for seat in placed for core in seat.cores]
                        assert len(used) == len(set(used)) == ranks * threads
                        assert all(set(s.cores) <= set(node[s.domain].cores) for s in placed)
                        counts = [sum(s.domain == d for s in placed) for d in range(domains)]
                        assert max(counts) - min(counts) <= 1
                        assert [s.domain for s in placed] == sorted(s.domain for s in placed)


def test_ranks_go_where_the_gpus_are_as_long_as_there_are_enough():
    """Here at every second domain. More ranks share the nearest GPU, or have none."""
    node = tuple(
        Domain(tuple(range(6 * d, 6 * d + 6)), (d // 2,) if d % 2 else ()) for d in range(8)
    )
    assert [(s.domain, s.gpu) for s in seats_on(4, 6, node)] == [(1, 0), (3, 1), (5, 2), (7, 3)]
    assert [(s.domain, s.gpu) for s in seats_on(2, 6, node)] == [(1, 0), (5, 2)]
    assert [s.gpu for s in seats_on(8, 6, node)] == [None, 0, None, 1, None, 2, None, 3]
    assert [gpu for *_, gpu in seats("numa=2x8,gpu=4", 4)] == [0, 1, 2, 3]
    assert [gpu for *_, gpu in seats("numa=1x8,gpu=2", 4)] == [0, 0, 1, 1]
    assert [gpu for *_, gpu in seats("numa=4x4,gpu=4", 16)] == [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4


def test_ranks_that_the_domains_of_the_gpus_have_no_cores_for_go_elsewhere():
    node = (Domain((0, 1), (0, 1, 2)), Domain((2, 3)))
    assert [(s.slots, s.gpu) for s in seats_on(3, 1, node)] == [("0", 0), ("1", 1), ("2", None)]


def test_ranks_of_more_threads_than_a_domain_span_them():
    assert seats("numa=4x16", 2, 32) == [("0-31", None, None), ("32-63", None, None)]


def test_more_threads_than_cores_are_refused():
    with pytest.raises(MappingError, match="5 ranks of 16 threads a node: expected 64 cores"):
        seats("numa=4x16", 5, 16)
