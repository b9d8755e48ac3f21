"""Fixtures of these tests."""

from support.commands import (  # noqa: F401
    case_of,
    compiled_in_silence,
    drawn,
    outlined,
    runs_of,
    unguarded,
)
