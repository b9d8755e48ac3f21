"""Compiled: the text of a GOAL schedule, in one pass."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopmap.compilation import njit

# What a token is.
END, NEWLINE, WORD, NUMBER, MARK = 0, 1, 2, 3, 4
# Words of the language; labels are none of them.
WORDS = (
    *("num_ranks", "rank", "send", "recv", "calc", "requires", "irequires"),
    *("to", "from", "tag", "cpu", "nic", "b"),
)
(NUM_RANKS, RANK, SEND, RECV, CALC, REQUIRES, IREQUIRES) = range(7)
TO, FROM, TAG, CPU, NIC, BYTES = range(7, 13)
# Columns of the table of operations.
KIND, SIZE, PEER, LABEL, OF_TAG, OF_CPU, OF_NIC, OF_RANK, LABEL_BEGIN, LABEL_END = range(10)
COLUMNS = 10
FINE, WRONG_STATEMENT, WRONG_OPERATION, WRONG_NUMBER, WRONG_LABEL, WRONG_END = range(6)
TOO_LARGE, OUTSIDE, WRONG_RANK, TWICE = 6, 7, 8, 9

_SPELLED = np.zeros((len(WORDS), 10), dtype=np.uint8)
_LENGTH = np.array([len(word) for word in WORDS], dtype=np.int64)
for _k, _spelled in enumerate(WORDS):
    _SPELLED[_k, : len(_spelled)] = list(_spelled.encode())
_LETTER = np.zeros(256, dtype=np.bool_)
_LETTER[[*range(ord("a"), ord("z") + 1), *range(ord("A"), ord("Z") + 1), ord("_")]] = True
_DIGIT = np.zeros(256, dtype=np.bool_)
_DIGIT[ord("0") : ord("9") + 1] = True
_SPACE, _TAB, _RETURN, _LINE, _SLASH, _STAR = 32, 9, 13, 10, ord("/"), ord("*")
_MINUS, _COLON, _OPEN, _CLOSE = ord("-"), ord(":"), ord("{"), ord("}")
_MOST = 2**53


@njit(cache=False)
def _token(text: NDArray[np.uint8], at: int) -> Any:
    """Kind, begin, end and value of the token at or behind a place."""
    size = len(text)
    while at < size:
        byte = text[at]
        if byte in (_SPACE, _TAB, _RETURN):
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
            break
    if at >= size:
        return END, size, size, 0
    begin, byte = at, text[at]
    if byte == _LINE:
        return NEWLINE, begin, at + 1, 0
    if _LETTER[byte]:
        while at < size and (_LETTER[text[at]] or _DIGIT[text[at]]):
            at += 1
        return WORD, begin, at, 0
    negative = byte == _MINUS and at + 1 < size and _DIGIT[text[at + 1]]
    if negative:
        at += 1
    if _DIGIT[text[at]]:
        value = np.int64(0)
        while at < size and _DIGIT[text[at]]:
            value = min(value * 10 + np.int64(text[at] - 48), np.int64(_MOST) + 1)
            at += 1
        return NUMBER, begin, at, -value if negative else value
    return MARK, begin, at + 1, int(byte)


@njit(cache=False)
def _word(text: NDArray[np.uint8], begin: int, end: int) -> int:
    """Which of `WORDS` this is, or -1."""
    for word in range(len(_LENGTH)):
        if _LENGTH[word] == end - begin:
            for k in range(end - begin):
                if text[begin + k] != _SPELLED[word, k]:
                    break
            else:
                return word
    return -1


@njit(cache=False)
def _slot(
    text: NDArray[np.uint8],
    begin: int,
    end: int,
    rank: int,
    table: NDArray[np.int64],
    rows: NDArray[np.int64],
) -> Any:
    """Place of a rank's label in the table of labels, or where it would stand."""
    mixed = np.uint64(0xCBF29CE484222325) ^ (np.uint64(rank) * np.uint64(0x9E3779B97F4A7C15))
    for k in range(begin, end):
        mixed = (mixed ^ np.uint64(text[k])) * np.uint64(0x100000001B3)
    mixed ^= mixed >> np.uint64(29)
    at = np.int64(mixed & np.uint64(len(table) - 1))
    while table[at] >= 0:
        row = table[at]
        first, behind = rows[row, LABEL_BEGIN], rows[row, LABEL_END]
        if rows[row, OF_RANK] == rank and behind - first == end - begin:
            same = True
            for k in range(end - begin):
                if text[first + k] != text[begin + k]:
                    same = False
                    break
            if same:
                return at
        at = (at + 1) & (len(table) - 1)
    return at


@njit
def parse(
    text: NDArray[np.uint8],
    rows: NDArray[np.int64],
    edges: NDArray[np.int64],
    table: NDArray[np.int64],
    blocks: NDArray[np.int64],
    told: NDArray[np.int64],
) -> tuple[int, int, int]:
    """Fill operations and edges.

    Parameters
    ----------
    rows : ndarray(int64, shape=(operations + 1, COLUMNS))
        Room for the operations, with the tag -1 for any and the peer -1 for anyone.
    edges : ndarray(int64, shape=(edges + 1, 3))
        After, before, whether a begin is enough.
    table : ndarray(int64)
        Of a power of two, filled with -1, for labels.
    blocks : ndarray(int64)
        Ranks, in the order in which they stand there.
    told : ndarray(int64, shape=(5,))
        Number of ranks that the text says, operations, edges, labels given again, and blocks.

    Returns
    -------
    code, place, rank : int
        `FINE`, or what is wrong at which byte, in which rank (-1 outside).
    """
    at, rank, count, dependencies = 0, -1, 0, 0
    told[:] = 0
    told[0] = -1
    while True:
        kind, begin, end, value = _token(text, at)
        start = begin
        if kind == END:
            break
        at = end
        if kind == NEWLINE:
            continue
        if kind == MARK and value == _CLOSE and rank >= 0:
            rank = -1
            continue
        if kind != WORD:
            return WRONG_STATEMENT, start, rank
        word = _word(text, begin, end)
        if word == NUM_RANKS and rank < 0:
            kind, begin, at, value = _token(text, at)
            if kind != NUMBER or value < 0 or told[0] >= 0:
                return WRONG_RANK, start, rank
            told[0] = value
            continue
        if word == RANK and rank < 0:
            kind, begin, at, value = _token(text, at)
            if kind != NUMBER or value < 0 or value >= told[0]:
                return WRONG_RANK, start, rank
            rank = value
            kind, begin, at, value = _token(text, at)
            while kind == NEWLINE:
                kind, begin, at, value = _token(text, at)
            if kind != MARK or value != _OPEN:
                return WRONG_RANK, start, rank
            blocks[told[4]] = rank
            told[4] += 1
            continue
        if rank < 0:
            return OUTSIDE, start, rank
        first, behind = -1, -1
        if word < SEND or word > CALC:
            first, behind = begin, end
            kind, begin, at, value = _token(text, at)
            if kind == WORD:
                word = _word(text, begin, at)
                if word not in (REQUIRES, IREQUIRES):
                    return WRONG_STATEMENT, start, rank
                kind, begin, at, value = _token(text, at)
                if kind != WORD:
                    return WRONG_LABEL, start, rank
                after = table[_slot(text, first, behind, rank, table, rows)]
                before = table[_slot(text, begin, at, rank, table, rows)]
                if after < 0 or before < 0:
                    return WRONG_LABEL, start, rank
                edges[dependencies, 0], edges[dependencies, 1] = after, before
                edges[dependencies, 2] = word == IREQUIRES
                dependencies += 1
                kind, begin, at, value = _token(text, at)
                if kind not in (NEWLINE, END):
                    return WRONG_END, start, rank
                continue
            if kind != MARK or value != _COLON:
                return WRONG_STATEMENT, start, rank
            kind, begin, at, value = _token(text, at)
            word = _word(text, begin, at) if kind == WORD else -1
            if word < SEND or word > CALC:
                return WRONG_OPERATION, start, rank
        row = rows[count]
        row[:] = 0
        row[KIND], row[OF_RANK], row[PEER] = word - SEND + 1, rank, -1
        kind, begin, at, value = _token(text, at)
        if kind != NUMBER or value < 0:
            return WRONG_NUMBER, start, rank
        if value > _MOST:
            return TOO_LARGE, start, rank
        row[SIZE] = value
        if word != CALC:
            kind, begin, at, value = _token(text, at)
            if kind != WORD or _word(text, begin, at) != BYTES:
                return WRONG_OPERATION, start, rank
            kind, begin, at, value = _token(text, at)
            if kind != WORD or _word(text, begin, at) != (TO if word == SEND else FROM):
                return WRONG_OPERATION, start, rank
            kind, begin, at, value = _token(text, at)
            if kind != NUMBER or value < (0 if word == SEND else -1):
                return WRONG_NUMBER, start, rank
            if value >= told[0]:
                return WRONG_RANK, start, rank
            row[PEER] = value
        kind, begin, at, value = _token(text, at)
        while kind == WORD:
            option = _word(text, begin, at)
            if option not in (TAG, CPU, NIC) or (option != CPU and word == CALC):
                return WRONG_END, start, rank
            kind, begin, at, value = _token(text, at)
            if kind != NUMBER or value < (-1 if option == TAG and word == RECV else 0):
                return WRONG_NUMBER, start, rank
            if value > (2**32 - 1 if option == TAG else 255):
                return TOO_LARGE, start, rank
            column = OF_TAG if option == TAG else OF_CPU if option == CPU else OF_NIC
            row[column] = value
            kind, begin, at, value = _token(text, at)
        if kind == MARK and value == _CLOSE:
            at = begin
        elif kind not in (NEWLINE, END):
            return WRONG_END, start, rank
        row[LABEL_BEGIN], row[LABEL_END] = first, behind
        if first >= 0:
            slot = _slot(text, first, behind, rank, table, rows)
            if table[slot] >= 0:
                told[3] += 1  # the first one counts, as for txt2bin
            else:
                table[slot] = count
        count += 1
    told[1], told[2] = count, dependencies
    if rank >= 0:
        return WRONG_END, len(text), rank
    return FINE, 0, -1
