"""Mappers by their names, also those that plugins and installed packages bring."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from hopmap.plugins import load_entry_points, load_plugins, source_file
from hopmap.topologies import MappingError, did_you_mean

from .mapper import MAPPERS, MapperInfo, mapper

GROUP = "hopmap.mappers"
"""Entry points: a module that enters mappers, or a function to enter under the point's name."""


def all_mappers() -> MutableMapping[str, MapperInfo]:
    """Return all mappers, those of plugins and installed packages among them.

    Raises
    ------
    PluginError
        A plugin cannot be loaded.
    """
    load_plugins()
    load_entry_points(GROUP, _enter)
    return MAPPERS


def mapper_named(name: str) -> MapperInfo:
    """Return a mapper; plugins and installed packages are loaded for a name that hopmap has not.

    Raises
    ------
    MappingError
        There is none of that name.
    PluginError
        A plugin cannot be loaded.
    """
    if name in MAPPERS:
        return MAPPERS[name]
    known = all_mappers()
    if name not in known:
        raise MappingError(
            f"unknown mapper {name!r}{did_you_mean(name, known)}; "
            f"expected one of {', '.join(sorted(known))}"
        )
    return known[name]


def mapper_source(name: str) -> str:
    """Return the file that a mapper is defined in; empty where there is none, as in a session."""
    return source_file(mapper_named(name).function)


def _enter(name: str, offered: Any) -> None:
    if callable(offered) and name not in MAPPERS:
        mapper(name)(offered)
