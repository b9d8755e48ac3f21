"""Compiled: words, numbers, blanks and comments of GOAL's text."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopmap.compilation import subroutine

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
    alike = True
    for k in range(len(word)):
        alike &= text[begin + k] == word[k]
    return alike
