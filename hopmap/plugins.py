"""Mappers and topologies of one's own: where they are found, and the file that they are in."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any


def source_file(function: Callable[..., Any]) -> str:
    """Return the file that a function is defined in; empty where there is none."""
    try:
        file = inspect.getsourcefile(inspect.unwrap(function))
    except TypeError:  # no function of Python's
        return ""
    return file if file and Path(file).is_file() else ""
