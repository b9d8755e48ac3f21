"""A run that gets stuck says who waits for what."""

from __future__ import annotations

import pytest

from hopmap.simulator import DeadlockError, Parameters, program_of, simulate
from hopmap.topologies import mesh


def stuck(lists, **parameters):
    topology = mesh((len(lists),))
    with pytest.raises(DeadlockError) as error:
        simulate(
            program_of("stuck", lists),
            topology,
            range(len(lists)),
            parameters=Parameters(**parameters),
        )
    assert "\n" not in str(error.value)
    return str(error.value)


def test_large_sends_to_each_other_wait_for_each_other():
    lists = [[("send", 1, 10**6), ("recv", 1, 10**6)], [("send", 0, 10**6), ("recv", 0, 10**6)]]
    assert stuck(lists).endswith(
        "2 of 2 ranks wait: rank 0: send to rank 1 (tag 0, communicator 0); "
        "rank 1: send to rank 0 (tag 0, communicator 0)"
    )
    # Small ones are buffered.
    simulate(program_of("ok", lists), mesh((2,)), [0, 1], parameters=Parameters(eager_limit=10**7))


def test_a_receive_that_nobody_sends_is_named():
    text = stuck([[("recv", 1, 8, 5)], [("compute", 1.0), ("send", 0, 8, 6)]])
    assert text == (
        "stuck: deadlock after 1 s, 1 of 2 ranks wait: "
        "rank 0: recv from rank 1 (tag 5, communicator 0), which no rank sends"
    )


def test_a_large_send_that_nobody_receives_is_named():
    text = stuck([[("isend", 1, 10**6), ("wait", 0)], []])
    assert "rank 0: wait for isend to rank 1 (tag 0, communicator 0), which no rank rec" in text


def test_a_small_send_that_nobody_receives_is_no_deadlock():
    simulate(program_of("lost", [[("send", 1, 8)], []]), mesh((2,)), [0, 1])


def test_only_the_first_few_are_listed():
    text = stuck([[("recv", r, 8)] for r in range(9)])
    assert "9 of 9 ranks wait: rank 0: recv from rank 0" in text
    assert text.endswith("; and 5 more")
