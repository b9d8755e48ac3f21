"""Slurm's lists of hosts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.topologies import TopologyError
from hopmap.topologies.readers.hostlist import LIMIT, expand


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("tux", ["tux"]),
        ("tux[0-3,12,18-20]", [f"tux{n}" for n in (0, 1, 2, 3, 12, 18, 19, 20)]),
        ("n[08-11]", ["n08", "n09", "n10", "n11"]),
        ("a1,b[2-3],c", ["a1", "b2", "b3", "c"]),
        ("a1, b[2-3] ,\tc", ["a1", "b2", "b3", "c"]),
        ("r[0-1]n[0-1]x", ["r0n0x", "r0n1x", "r1n0x", "r1n1x"]),
    ],
)
def test_lists_are_expanded_in_their_order(text, hosts):
    assert expand(text) == hosts


@given(st.lists(st.integers(0, 9999), min_size=1, max_size=20), st.integers(1, 5))
def test_a_range_holds_what_is_written_in_it(numbers, width):
    text = ",".join(str(n).zfill(width) for n in numbers)
    assert expand(f"n[{text}]") == [f"n{str(n).zfill(width)}" for n in numbers]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a list like"),
        ("a,,b", "expected a list like"),
        ("n[1-2", "expected a list like"),
        ("n[2-1]", "range '2-1': expected rising numbers"),
        ("n[1-]", "range '1-'"),
        (f"n[0-{LIMIT}]", "expected rising numbers, at most"),
        ("n[0-9999]m[0-9999]", "more than 262,144 names"),
        ("n m", "expected a list like"),
    ],
)
def test_what_is_no_list_is_refused(text, message):
    with pytest.raises(TopologyError, match=message):
        expand(text)


def test_a_long_list_that_is_none_is_refused_at_once():
    with pytest.raises(TopologyError, match="expected a list like"):
        expand("x9" * 50_000 + "!")  # hours, where a name's parts may be cut in many ways
