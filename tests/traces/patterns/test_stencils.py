"""Stencils against their definition, edge by edge."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.traces import (
    TraceError,
    load_traffic,
    parse_stencil,
    save_traffic,
    stencil_traffic,
    traffic_of_stencil,
)
from support import about
from support.slow import examples


def edges(traffic):
    """Messages of every pair."""
    pairs = zip(traffic.src.tolist(), traffic.dst.tolist(), strict=True)
    return dict(zip(pairs, traffic.messages.tolist(), strict=True))


@st.composite
def grids(draw):
    dims = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    vector = st.tuples(*[st.integers(-6, 6)] * len(dims))
    vectors = draw(st.lists(vector, min_size=1, max_size=5))
    return dims, vectors, draw(st.tuples(*[st.booleans()] * len(dims)))


@examples(100)
@given(grids())
def test_every_rank_sends_to_itself_plus_every_vector(grid):
    """Lehr 2019, section 2.3.2: E = {(v, v + s)}, around the periodic borders."""
    dims, vectors, periodic = grid
    expected = Counter()
    for cell, vector in product(product(*map(range, dims)), vectors):
        there = [x + step for x, step in zip(cell, vector, strict=True)]
        if all(p or 0 <= x < d for x, d, p in zip(there, dims, periodic, strict=True)):
            around = tuple(x % d for x, d in zip(there, dims, strict=True))
            expected[
                int(np.ravel_multi_index(cell, dims)), int(np.ravel_multi_index(around, dims))
            ] += 1
    traffic = stencil_traffic(dims, vectors, periodic=periodic)
    assert edges(traffic) == expected
    assert (np.diff(traffic.src.astype(int) * traffic.ranks + traffic.dst) > 0).all()


def test_the_last_dimension_varies_fastest_as_mpi_numbers_ranks():
    assert edges(stencil_traffic((2, 3), [(0, 1)])) == {(0, 1): 1, (1, 2): 1, (3, 4): 1, (4, 5): 1}


def test_a_periodic_dimension_of_two_has_both_neighbours_in_one_rank():
    assert edges(stencil_traffic((2,), "star", periodic=True)) == {(0, 1): 2, (1, 0): 2}


def test_a_periodic_dimension_of_one_is_its_own_neighbour():
    assert edges(stencil_traffic((1,), "star", periodic=True)) == {(0, 0): 2}
    assert edges(stencil_traffic((1,), "star")) == {}


def test_named_stencils_have_as_many_vectors_as_their_figures():
    """In a grid large enough every inner rank has each neighbour once."""
    for stencil, dimensions, vectors in [
        ("5pt", 2, 4),
        ("7pt", 3, 6),
        ("9pt", 2, 8),
        ("27pt", 3, 26),
        ("edge_detection", 2, 6),
        ("component", 2, 2),
        ("component", 3, 4),
        ("asymmetric", 2, 5),
        ("star", 5, 10),
        ("box", 4, 80),
        ("hops", 2, 8),
    ]:
        with about(stencil, dimensions, vectors):
            traffic = stencil_traffic([7] * dimensions, stencil)
            middle = traffic.src == traffic.ranks // 2
            assert middle.sum() == vectors == len(traffic.metadata["stencil"])
            assert len({tuple(vector) for vector in traffic.metadata["stencil"]}) == vectors


def test_the_component_stencil_takes_the_grid_apart():
    same_column = {(a, b) for a, b in product(range(12), repeat=2) if a % 4 == b % 4}
    assert edges(stencil_traffic((3, 4), "component")).keys() <= same_column


def test_the_asymmetric_stencil_has_a_diagonal_and_not_its_opposite():
    pairs = edges(stencil_traffic((2, 2), "asymmetric"))
    assert (0, 3) in pairs
    assert (3, 0) not in pairs


def test_every_vector_may_have_bytes_of_its_own():
    traffic = stencil_traffic((3,), [(1,), (-1,)], size=[10, 1])
    assert dict(zip(edges(traffic), traffic.bytes.tolist(), strict=True)) == {
        (0, 1): 10,
        (1, 0): 1,
        (1, 2): 10,
        (2, 1): 1,
    }


@pytest.mark.parametrize("periodic", [False, True])
def test_bytes_beyond_what_is_exact_are_refused(periodic):
    with pytest.raises(TraceError, match="the sum of all bytes: expected at most 2\\^53"):
        stencil_traffic((3, 3), "5pt", periodic=periodic, size=2**51)


def test_npz_keeps_dims_stencil_and_periodicity(tmp_path):
    traffic = stencil_traffic((2, 3), "5pt", periodic=(False, True), size=8)
    save_traffic(tmp_path / "t.npz", traffic)
    again = load_traffic(tmp_path / "t.npz")
    assert again.same_as(traffic)
    assert again.metadata == {
        "benchmark": "stencil",
        "dims": [2, 3],
        "stencil": [[1, 0], [-1, 0], [0, 1], [0, -1]],
        "stencil_bytes": [8, 8, 8, 8],
        "periodic": [False, True],
    }


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("4x3,5pt", stencil_traffic((4, 3), "5pt")),
        ("4x3,5pt,periodic=y", stencil_traffic((4, 3), "5pt", periodic=(False, True))),
        ("4x3,5pt,periodic=10", stencil_traffic((4, 3), "5pt", periodic=(True, False))),
        ("4x3,5pt,periodic=all,bytes=9", stencil_traffic((4, 3), "5pt", periodic=True, size=9)),
        ("4x3,1:0/-1:0,bytes=2:1", stencil_traffic((4, 3), [(1, 0), (-1, 0)], size=[2, 1])),
        (
            "2x2x2x2x3,star,periodic=w",
            stencil_traffic((2, 2, 2, 2, 3), "star", periodic=(False, False, False, True, False)),
        ),
    ],
)
def test_a_stencil_is_written_in_one_line(text, same):
    assert traffic_of_stencil(parse_stencil(text)).same_as(same)


def test_what_makes_no_sense_is_refused_in_one_line():
    for text, said in [
        ("3x3", "expected DIMS,STENCIL"),
        ("3x3,", "expected DIMS,STENCIL"),
        ("3x3,5pt,foo=1", "expected DIMS,STENCIL"),
        ("3x3,5pt,bytes=1,bytes=2", "expected DIMS,STENCIL"),
        ("3y3,5pt", "dims 3y3: expected"),
        ("3x0,5pt", "dims 3x0: expected whole numbers of at least 1"),
        ("3x3,7pt", "stencil 7pt has 3 dimensions: 3x3 has 2"),
        ("3x3,1:0:0", "stencil vector 1:0:0 has 3 dimensions: 3x3 has 2"),
        ("3x3,5p", "'5p' (did you mean 5pt?)"),
        ("3x3,5pt,periodic=z", "periodic z: expected all, none, letters of xy"),
        ("3x3,5pt,periodic=010", "periodic 010: expected"),
        ("3x3,5pt,bytes=-1", "bytes -1: expected"),
        ("3x3,5pt,bytes=1:2", "one for each of the 4 vectors"),
        ("99999x99999,5pt", "expected at most"),
    ]:
        with about(text, said):
            with pytest.raises(TraceError) as refused:
                parse_stencil(text)
            assert said in str(refused.value)
            assert "\n" not in str(refused.value)


def test_periodic_of_another_length_is_refused():
    with pytest.raises(TraceError, match=r"^stencil: periodic in 1 dimensions: expected 2 as in"):
        stencil_traffic((3, 3), "5pt", periodic=[True])


def test_a_stencil_without_vectors_is_refused():
    with pytest.raises(TraceError, match="expected at least one"):
        stencil_traffic((3, 3), [])
