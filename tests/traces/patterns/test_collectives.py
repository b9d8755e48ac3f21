"""A collective by name: what it moves, and what is refused."""

from pathlib import Path

import pytest

from hopmap.api.workload import Workload
from hopmap.simulator import ParameterError
from hopmap.traces import TraceError
from hopmap.traces.sources import open_source


def moved(text):
    """Messages and bytes of a collective, and who sends to whom."""
    traffic = Workload(open_source(f"collective:{text}", Path())).sent().traffic
    pairs = set(zip(traffic.src.tolist(), traffic.dst.tolist(), strict=True))
    return int(traffic.messages.sum()), int(traffic.bytes.sum()), pairs


def test_a_ring_sends_to_the_next_rank_alone():
    messages, size, pairs = moved("allreduce=ring,4,4096")
    assert (messages, size) == (4 * 6, 4 * 6 * 1024)  # 2 (p - 1) rounds of n / p
    assert pairs == {(0, 1), (1, 2), (2, 3), (3, 0)}


def test_recursive_doubling_sends_the_whole_buffer_to_log_p_partners():
    messages, size, pairs = moved("allreduce=recursive_doubling,8,1KiB")
    assert (messages, size) == (8 * 3, 8 * 3 * 1024)
    assert pairs == {(rank, rank ^ mask) for rank in range(8) for mask in (1, 2, 4)}


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("alltoall=pairwise,4,4096", 4 * 3 * 1024),
        ("allgather=ring,4,4096", 4 * 3 * 1024),
        ("bcast=binomial,4,4096", 3 * 4096),
        ("reduce=binomial,4,4096", 3 * 4096),
    ],
)
def test_bytes_are_the_whole_buffer(text, size):
    assert moved(text)[1] == size


def test_its_program_has_the_algorithm_that_it_names():
    source = open_source("collective:allreduce=ring,4,4096", Path())
    assert source.has_program
    for algorithms in (None, {"allreduce": "recursive_doubling"}):
        program = Workload(source).program(algorithms)
        assert program.chosen == {"allreduce": {"ring": 1}}


def test_algorithms_have_their_options():
    messages, size, pairs = moved("bcast=chain(fanout=3, segment=1 KiB),4,4096")
    assert (messages, size) == (3 * 4, 3 * 4096)
    assert pairs == {(0, 1), (0, 2), (0, 3)}
    assert moved("allreduce=bine(dims=2x2),4,4KiB")[2] == {
        (rank, rank ^ mask) for rank in range(4) for mask in (1, 2)
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("allreduce", "expected OPERATION=ALGORITHM,RANKS,BYTES"),
        ("allreduce=ring,4", "expected OPERATION=ALGORITHM,RANKS,BYTES"),
        ("bcast=chain(fanout=4,4,1KiB", "expected OPERATION=ALGORITHM,RANKS,BYTES"),
        ("bcast=chain(fanout=4)x,4,1KiB", "expected OPERATION=ALGORITHM,RANKS,BYTES"),
        ("scan=linear,4,1KiB", "scan: expected allgather, allreduce"),
        ("allreduce=ring,0,1KiB", "expected 1 to"),
        ("allreduce=ring,4,1 mile", "expected bytes"),
        ("alltoall=pairwise,3,1KiB", "1024 bytes: expected as many for each of the ranks"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(text, message):
    with pytest.raises(TraceError, match=message) as caught:
        open_source(f"collective:{text}", Path())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("algorithm", ["rings", "ring(segment=4)"])
def test_an_algorithm_that_does_not_exist_is_refused_in_one_line(algorithm):
    source = open_source(f"collective:allreduce={algorithm},4,4096", Path())
    for read in (Workload.program, Workload.sent):
        with pytest.raises(ParameterError, match=r"collective.allreduce.*ring.*expected") as caught:
            read(Workload(source))
        assert "\n" not in str(caught.value)
