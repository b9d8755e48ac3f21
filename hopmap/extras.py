"""What only parts of hopmap need: an import that fails says which extra brings it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hopmap.errors import HopmapError


class MissingExtraError(HopmapError, ImportError):
    """Something is asked for that needs a library which is not installed."""


@contextmanager
def needs(extra: str, what: str) -> Iterator[None]:
    """Import in this what an extra ("query") brings, for who needs it ("hopmap query")."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"{what} needs {error.name}: pip install 'hopmap[{extra}]'"
        ) from None
