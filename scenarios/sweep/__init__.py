"""Sweeps of scenarios, and the scenarios that come with hopmap."""

from pathlib import Path

from hopmap.errors import HopmapError

_FOLDER = Path(__file__).parents[1]
SHIPPED = {file.stem: file for file in (*_FOLDER.glob("*.toml"), *_FOLDER.glob("tables/*.toml"))}
"""Files by name; those in ``tables`` redo a published table."""


class ScenarioError(HopmapError, ValueError):
    """A scenario file cannot be used; the message names file, key, value and what was expected."""
