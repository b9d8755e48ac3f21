"""Loops of a word are its tandem repeats, inner ones first, and written out they are the word."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.traces.extrapolation.event_tokens import find_loops, mix


def loops_of(word, apart=(), unclean=(), level=None):
    size = len(word)
    clean = np.ones(size + 1, dtype=bool)
    clean[list(unclean)] = False
    level = np.zeros(size + 1, dtype=np.int64) if level is None else np.array(level)
    held = np.zeros(size, dtype=bool)
    held[list(apart)] = True
    codes = mix(np.array([ord(letter) for letter in word], dtype=np.int64))
    return find_loops(codes, held, clean, level)


def found(word, **more):
    return [tuple(row) for row in loops_of(word, **more).loops.tolist()]


@pytest.mark.parametrize(
    ("word", "loops"),
    [
        ("abcdefgh", []),
        ("aaaaaaaa", [(0, 1, 8)]),
        ("xabababababy", [(1, 2, 5)]),
        ("xabcabcabcaby", [(1, 3, 3)]),
        # A loop in a loop: its first iteration is what the outer one's first iteration holds.
        ("aaaaabaaaaabaaaaab", [(0, 1, 5), (6, 1, 5), (12, 1, 5), (0, 6, 3)]),
        ("abab", []),  # it would save two symbols, which is not worth a loop
    ],
)
def test_words_by_hand(word, loops):
    assert found(word) == loops


def test_no_loop_holds_what_stays_apart():
    assert found("abababababab", apart=[6]) == [(0, 2, 3), (7, 2, 2)][:1]


def test_iterations_begin_and_end_where_they_may():
    """Places 0, 2, 4... lie within a request: iterations begin at 1, and so there is one less."""
    assert found("ababababab") == [(0, 2, 5)]
    assert found("ababababab", unclean=range(0, 11, 2)) == [(1, 2, 4)]
    assert found("ababababab", unclean=range(11)) == []
    # In the middle of a run: the longer part.
    assert found("ababababababab", unclean=[4, 5]) == [(6, 2, 4)]


def test_iterations_end_as_deep_as_they_begin():
    assert found("ababababab", level=range(11)) == []


@st.composite
def words(draw, depth=3):
    letters = draw(st.text("abc", max_size=4))
    if not depth:
        return letters
    times = draw(st.integers(1, 5))
    return letters + draw(words(depth=depth - 1)) * times + draw(words(depth=depth - 1))


def listing(size, loops):
    """Place that each of so many stands for, when later iterations are told by the first."""
    source = np.arange(size)
    for begin, length, iterations in loops:
        body = source[begin : begin + length].copy()
        source[begin : begin + length * iterations] = np.tile(body, iterations)
    return source


@given(words())
def test_written_out_loops_are_the_word(word):
    code = np.array([ord(letter) for letter in word], dtype=np.int64)
    result = loops_of(word)
    source = listing(len(word), result.loops.tolist())
    assert (code[source] == code).all()
    # What is left has a symbol for each outermost loop.
    assert result.start[-1] == len(word)
    assert (np.diff(result.start) > 0).all()


@given(words())
def test_equal_symbols_stand_for_equal_stretches(word):
    result = loops_of(word)
    stretches = {}
    for at, code in enumerate(result.hashes.tolist()):
        stretch = word[result.start[at] : result.start[at + 1]]
        assert stretches.setdefault(code, stretch) == stretch


@given(st.text("abcd", min_size=3, max_size=12), st.integers(3, 40))
def test_what_repeats_throughout_takes_one_body(body, times):
    """No more is listed than the body once, and what a shift of the loop leaves over."""
    result = loops_of(body * times)
    source = listing(len(body) * times, result.loops.tolist())
    assert len(np.unique(source)) <= 2 * len(body) + 3


def test_long_periods_are_found():
    rng = np.random.default_rng(3)
    body = "".join(chr(97 + k) for k in rng.integers(0, 26, 5000))
    ((_, length, iterations),) = found("xyz" + body * 4)
    assert (length, iterations) == (5000, 4)
