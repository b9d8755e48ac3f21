"""Memory, asked for before it is needed: what cannot fit is refused at once, in one line.

Needs are stated low, as what a step surely takes, so that nothing is refused that would have run.
What is free is what the machine has; limits that a container or a batch system sets are not seen.
"""

from __future__ import annotations

from hopmap.errors import HopmapError


class OutOfMemoryError(HopmapError, MemoryError):
    """Something that would not fit in the memory that is free."""


def require_memory(need: int, task: str, instead: str, part: tuple[int, str] | None = None) -> None:
    """Check that `need` bytes are free for what is about to begin, or say what to do `instead`.

    With the bytes and the name of a `part`, the error also says how many of these fit.
    """
    import psutil

    free = psutil.virtual_memory().available
    if need > free:
        fit = f", enough for {free // part[0]:,} {part[1]}" if part else ""
        raise OutOfMemoryError(
            f"{task} takes at least {_gib(need)} of memory, {_gib(free)} are free{fit}: {instead}"
        )


def _gib(size: int) -> str:
    return f"{size / 2**30:,.1f} GiB"
