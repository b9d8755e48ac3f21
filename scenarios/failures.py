"""Any exception as one line for people."""

from __future__ import annotations

import os


def is_explained(error: BaseException) -> bool:
    """Whether the message says what is wrong with the input.

    So do all exceptions that hopmap defines; any other one is a mistake of ours.
    """
    return type(error).__module__.partition(".")[0] == "hopmap"


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
    elif is_explained(error):
        text = str(error)
    elif isinstance(error, MemoryError):
        text = f"out of memory {error}"
    else:
        text = (
            f"a bug in hopmap: {type(error).__name__}: {error} "
            f"(HOPMAP_DEBUG=1 shows where; please report it)"
        )
    return " ".join(text.split())


def debugging() -> bool:
    """Whether tracebacks are wanted."""
    return bool(os.environ.get("HOPMAP_DEBUG"))
