"""The base of all that hopmap raises and warns of, and any exception as one line for people.

An import that fails says which extra brings what is missing.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches

LONGEST = 1200  # characters of a message; lists of what is known are long


class HopmapError(Exception):
    """An input is wrong, or cannot be used this way; the message says what is wrong.

    It names file, key and value as far as there are any, and what was expected. Any other exception
    that leaves hopmap is a mistake of hopmap's.
    """


class HopmapWarning(UserWarning):
    """Something that the reader of a result should know about it."""


class AboveDefaultOrderWarning(HopmapWarning):
    """A mapper ended above the default order."""


class MissingExtraError(HopmapError, ImportError):
    """Something is asked for that needs a library which is not installed."""


@contextmanager
def needs(extra: str, user: str) -> Iterator[None]:
    """Import in this what an extra ("query") brings, for who needs it ("hopmap query")."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"{user} requires {error.name}: install hopmap with its extra {extra!r}, like "
            f"pip install -e '.[{extra}]'"
        ) from None


def one_line(error: BaseException) -> str:
    """Return what went wrong, without line breaks.

    Examples
    --------
    >>> one_line(PermissionError(13, "Permission denied", "/results"))
    '/results: Permission denied'
    """
    if isinstance(error, OSError) and error.strerror:
        name = [] if error.filename is None else [str(error.filename)]
        text = ": ".join([*name, error.strerror])
    elif isinstance(error, HopmapError):
        text = str(error)
    elif isinstance(error, MemoryError):
        text = f"out of memory {error}"
    else:
        text = (
            f"a bug in hopmap: {type(error).__name__}: {error} "
            f"(HOPMAP_DEBUG=1 shows where; please report it)"
        )
    return printable(text)


def printable(text: str) -> str:
    """Return a text as one line, shortened, without control characters."""
    text = " ".join(text.split())
    if len(text) > LONGEST:
        text = f"{text[: LONGEST // 2]} ... {text[-LONGEST // 2 :]}"
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return " (did you mean X?)" where one of the known words is close, else nothing."""
    near = get_close_matches(word, list(known), 1)
    return f" (did you mean {near[0]}?)" if near else ""


def choice(key: str, value: object, known: Iterable[str]) -> str:
    """Say that a value is none of those that are known, and which is near.

    Examples
    --------
    >>> choice("policy", "randm", ["random", "contiguous"])
    "policy 'randm' (did you mean random?): expected one of random, contiguous"
    """
    words = list(known)
    near = did_you_mean(str(value), words)
    return f"{key} {value!r}{near}: expected one of {', '.join(words)}"


def expect_one_of(error: type[Exception], key: str, value: object, known: Collection[str]) -> None:
    """Raise an error that says so, see `choice`, for a value that is none of those known."""
    if value not in known:
        raise error(choice(key, value, known))


def expect_between(error: type[Exception], said: str, value: float, least: int, most: int) -> None:
    """Raise an error that says the limits of a number outside of them.

    Examples
    --------
    >>> expect_between(HopmapError, "steps 0", 0, 1, 1_000_000)
    Traceback (most recent call last):
    hopmap.errors.HopmapError: steps 0: expected 1 to 1,000,000
    """
    if not least <= value <= most:
        raise error(f"{said}: expected {least:,} to {most:,}")


def debugging() -> bool:
    """Whether tracebacks are wanted."""
    return bool(os.environ.get("HOPMAP_DEBUG"))
