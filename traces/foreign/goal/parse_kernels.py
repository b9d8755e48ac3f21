"""Compiled: the text of a GOAL schedule, in one pass; its words, numbers, blanks and comments."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Bools, Ints
from hopmap.compilation import njit, subroutine

_LETTER, _DIGIT, _BLANK = 1, 2, 3
_CLASS = np.zeros(256, dtype=np.uint8)
_CLASS[[*range(ord("a"), ord("z") + 1), *range(ord("A"), ord("Z") + 1), ord("_")]] = _LETTER
_CLASS[ord("0") : ord("9") + 1] = _DIGIT
_CLASS[list(b" \t\r")] = _BLANK
_LINE, _SLASH, _STAR, _MINUS = ord("\n"), ord("/"), ord("*"), ord("-")
_ZERO = ord("0")
MOST, WRAP = 2**53, 2**32


@subroutine
def next_token(text: NDArray[np.uint8], at: int) -> int:
    """First place that is no blank or comment, or the end."""
    size = len(text)
    while at < size:
        byte = text[at]
        if _CLASS[byte] == _BLANK:
            at += 1
        elif byte == _SLASH and at + 1 < size and text[at + 1] == _SLASH:
            while at < size and text[at] != _LINE:
                at += 1
        elif byte == _SLASH and at + 1 < size and text[at + 1] == _STAR:
            at += 2
            while at + 1 < size and not (text[at] == _STAR and text[at + 1] == _SLASH):
                at += 1
            at += 2
        else:
            return at
    return size


@subroutine
def name_at(text: NDArray[np.uint8], at: int) -> Any:
    """End, hash of all but the last digits, and the number that these are, of a word."""
    size, mixed, number = len(text), np.uint64(0), np.uint64(0)
    if at < size and _CLASS[text[at]] == _LETTER:
        while at < size:
            sort = _CLASS[text[at]]
            if sort == _DIGIT:
                number = number * np.uint64(10) + np.uint64(text[at] - _ZERO)
            elif sort == _LETTER:
                mixed = (mixed ^ number ^ np.uint64(text[at])) * np.uint64(0x9E3779B97F4A7C15)
                number = np.uint64(0)
            else:
                break
            at += 1
    return at, mixed, number


@subroutine
def number_at(text: NDArray[np.uint8], at: int, wraps: bool) -> Any:
    """End and value of a number; what is too large is beyond `MOST`, or wraps."""
    size, value = len(text), np.int64(0)
    negative = at + 1 < size and text[at] == _MINUS and _CLASS[text[at + 1]] == _DIGIT
    if negative:
        at += 1
    while at < size and _CLASS[text[at]] == _DIGIT:
        value = value * 10 + np.int64(text[at] - _ZERO)
        if wraps:
            value %= WRAP
        elif value > MOST:
            value = np.int64(MOST + 1)
        at += 1
    return at, -value if negative else value


@subroutine
def is_word(text: NDArray[np.uint8], begin: int, end: int, word: NDArray[np.uint8]) -> bool:
    """Whether a word is this one."""
    if end - begin != len(word):
        return False
    equal = True
    for k in range(len(word)):
        equal &= text[begin + k] == word[k]
    return equal


FINE, WRONG_STATEMENT, WRONG_OPERATION, WRONG_NUMBER, WRONG_LABEL, WRONG_END = range(6)
TOO_LARGE, OUTSIDE, WRONG_RANK = 6, 7, 8
SEND, RECV, CALC = 1, 2, 3

WIDEST = 2**16 - 1  # of processors and interfaces
_COLON, _OPEN, _CLOSE, _B = ord(":"), ord("{"), ord("}"), ord("b")


def _bytes_of(word: str) -> NDArray[np.uint8]:
    return np.frombuffer(word.encode(), dtype=np.uint8)


_NUM_RANKS, _RANK = _bytes_of("num_ranks"), _bytes_of("rank")
_SEND, _RECV, _CALC = _bytes_of("send"), _bytes_of("recv"), _bytes_of("calc")
_REQUIRES, _IREQUIRES = _bytes_of("requires"), _bytes_of("irequires")
_TO, _FROM = _bytes_of("to"), _bytes_of("from")
_TAG, _CPU, _NIC = _bytes_of("tag"), _bytes_of("cpu"), _bytes_of("nic")


class Operations(NamedTuple):
    """Columns of the operations, with room for more; peer and tag are -1 for any.

    `first` and `behind` say where an operation's label stands, or are -1.
    """

    kind: NDArray[np.uint8]
    size: Ints
    peer: Ints
    tag: Ints
    cpu: NDArray[np.uint16]
    nic: NDArray[np.uint16]
    rank: Ints
    first: Ints
    behind: Ints


class Edges(NamedTuple):
    """Columns of the dependencies, with room for more; see `Schedule`."""

    after: Ints
    before: Ints
    begun: Bools


@subroutine
def _operation(text: NDArray[np.uint8], begin: int, end: int) -> int:
    """Which operation a word is, or 0."""
    if end - begin != 4:
        return 0
    if is_word(text, begin, end, _SEND):
        return SEND
    if is_word(text, begin, end, _RECV):
        return RECV
    return CALC if is_word(text, begin, end, _CALC) else 0


@subroutine
def _slot(
    text: NDArray[np.uint8],
    begin: int,
    end: int,
    mixed: Any,
    number: Any,
    rank: int,
    table: Ints,
    rows: Operations,
) -> Any:
    """Place of a rank's label in the table of labels, or where it would stand.

    Labels that count up stand next to each other; what meets another one goes far away.
    """
    whole = (mixed ^ np.uint64(rank)) * np.uint64(0xD6E8FEB86659FD93)
    whole ^= whole >> np.uint64(32)
    mask = np.uint64(len(table) - 1)
    at = (whole + number) & mask
    step = ((whole ^ number) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(20)) | np.uint64(1)
    while table[at] >= 0:
        row = table[at]
        first = rows.first[row]
        if rows.rank[row] == rank and rows.behind[row] - first == end - begin:
            same = True
            for k in range(end - begin):
                if text[first + k] != text[begin + k]:
                    same = False
                    break
            if same:
                return at
        at = (at + step) & mask
    return at


@njit
def room(text: NDArray[np.uint8]) -> tuple[int, int, int]:
    """Count statements at most (one a line, the last before a bracket), labels, and ranks."""
    statements, labels, ranks = 2, 0, 0
    for byte in text:
        statements += (byte == _LINE) | (byte == _CLOSE)
        labels += byte == _COLON
        ranks += byte == _OPEN
    return statements, labels, ranks


@njit
def parse(
    text: NDArray[np.uint8],
    rows: Operations,
    edges: Edges,
    table: Ints,
    blocks: Ints,
    summary: Ints,
) -> tuple[int, int, int]:
    """Fill operations and edges; both have room for one a line or closing bracket, and one more.

    `table` is for labels: of a power of two, filled with -1. `blocks` are the ranks in the order in
    which they stand there. The last argument gets the number of ranks that the text says,
    operations, edges, repeated labels, and blocks.

    Returned are `FINE` or what is wrong, at which byte, and in which rank (-1 outside).
    """
    size = len(text)
    at, rank, count, dependencies = 0, -1, 0, 0
    summary[:] = 0
    summary[0] = -1
    while True:
        start = at = next_token(text, at)
        if at >= size:
            break
        if text[at] == _LINE:
            at += 1
            continue
        if text[at] == _CLOSE and rank >= 0:
            rank = -1
            at += 1
            continue
        end, mixed, number = name_at(text, at)
        if end == at:
            return WRONG_STATEMENT, start, rank
        if rank < 0:
            outside = 1 if is_word(text, at, end, _RANK) else 0
            if not outside and not is_word(text, at, end, _NUM_RANKS):
                return OUTSIDE, start, rank
            at = next_token(text, end)
            end, value = number_at(text, at, False)
            if end == at or value < 0:
                return WRONG_RANK, start, rank
            at = end
            if not outside:
                if summary[0] >= 0:
                    return WRONG_RANK, start, rank
                summary[0] = value
                continue
            if value >= summary[0]:
                return WRONG_RANK, start, rank
            rank = value
            at = next_token(text, at)
            while at < size and text[at] == _LINE:
                at = next_token(text, at + 1)
            if at >= size or text[at] != _OPEN:
                return WRONG_RANK, start, rank
            at += 1
            blocks[summary[4]] = rank
            summary[4] += 1
            continue
        first: Any = np.int64(-1)
        behind: Any = np.int64(-1)
        hashed, last = mixed, number
        word = _operation(text, at, end)
        if not word:
            first, behind = at, end
            at = next_token(text, end)
            if at < size and text[at] == _COLON:
                at = next_token(text, at + 1)
                end, _, _ = name_at(text, at)
                word = _operation(text, at, end)
                if not word:
                    return WRONG_OPERATION, start, rank
            else:
                end, _, _ = name_at(text, at)
                begun = is_word(text, at, end, _IREQUIRES)
                if not begun and not is_word(text, at, end, _REQUIRES):
                    return WRONG_STATEMENT, start, rank
                at = next_token(text, end)
                end, mixed, number = name_at(text, at)
                if end == at:
                    return WRONG_LABEL, start, rank
                after = table[_slot(text, first, behind, hashed, last, rank, table, rows)]
                before = table[_slot(text, at, end, mixed, number, rank, table, rows)]
                if after < 0 or before < 0:
                    return WRONG_LABEL, start, rank
                edges.after[dependencies], edges.before[dependencies] = after, before
                edges.begun[dependencies] = begun
                dependencies += 1
                at = next_token(text, end)
                if at < size and text[at] != _LINE:
                    return WRONG_END, start, rank
                continue
        at = next_token(text, end)
        end, value = number_at(text, at, False)
        if end == at or value < 0:
            return WRONG_NUMBER, start, rank
        if value > MOST:
            return TOO_LARGE, start, rank
        rows.kind[count], rows.rank[count], rows.size[count] = word, rank, value
        rows.peer[count], rows.tag[count] = -1, 0
        rows.cpu[count], rows.nic[count] = 0, 0
        at = end
        if word != CALC:
            at = next_token(text, at)
            end, _, _ = name_at(text, at)
            if end - at != 1 or text[at] != _B:
                return WRONG_OPERATION, start, rank
            at = next_token(text, end)
            end, _, _ = name_at(text, at)
            if not is_word(text, at, end, _TO if word == SEND else _FROM):
                return WRONG_OPERATION, start, rank
            at = next_token(text, end)
            end, value = number_at(text, at, False)
            if end == at or value < (0 if word == SEND else -1):
                return WRONG_NUMBER, start, rank
            if value >= summary[0]:
                return WRONG_RANK, start, rank
            rows.peer[count] = value
            at = end
        at = next_token(text, at)
        end, _, _ = name_at(text, at)
        while end > at:
            is_tag, is_nic = is_word(text, at, end, _TAG), is_word(text, at, end, _NIC)
            if not (is_tag or is_nic or is_word(text, at, end, _CPU)) or (
                word == CALC and (is_tag or is_nic)
            ):
                return WRONG_END, start, rank
            at = next_token(text, end)
            end, value = number_at(text, at, is_tag)
            if end == at or value < (-1 if is_tag and word == RECV else 0):
                return WRONG_NUMBER, start, rank
            if not is_tag and value > WIDEST:
                return TOO_LARGE, start, rank
            if is_tag:
                rows.tag[count] = -1 if word == RECV and value == WRAP - 1 else value
            elif is_nic:
                rows.nic[count] = value
            else:
                rows.cpu[count] = value
            at = next_token(text, end)
            end, _, _ = name_at(text, at)
        if at < size and text[at] != _LINE and text[at] != _CLOSE:
            return WRONG_END, start, rank
        rows.first[count], rows.behind[count] = first, behind
        if first >= 0:
            slot = _slot(text, first, behind, hashed, last, rank, table, rows)
            if table[slot] >= 0:
                summary[3] += 1  # the first one counts, as for txt2bin
            else:
                table[slot] = count
        count += 1
    summary[1], summary[2] = count, dependencies
    if rank >= 0:
        return WRONG_END, size, rank
    return FINE, 0, -1
