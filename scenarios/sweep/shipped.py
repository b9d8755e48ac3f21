"""The scenarios that come with hopmap."""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).parents[1]
SHIPPED = {file.stem: file for file in (*_FOLDER.glob("*.toml"), *_FOLDER.glob("tables/*.toml"))}
"""Files of the scenarios that come with hopmap, by name; those of tables redo a published one."""
