"""Fixtures of these tests."""

from support.commands import (  # noqa: F401
    compiled_in_silence,
    drawn,
    outlined,
    unguarded,
)
