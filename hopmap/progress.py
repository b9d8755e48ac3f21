"""How a long step says how far it is."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Called from time to time with the progress of a long step."""

    def __call__(self, done: int, total: int | None, text: str = "", /) -> object:
        """Show that `done` of `total` (None: unknown) is over, of what `text` says."""


def silent(_done: int, _total: int | None, _text: str = "", /) -> None:
    """Show nothing."""
