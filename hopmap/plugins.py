"""Mappers, topologies and sources of one's own: from files, modules and installed packages.

Files and modules stand in ``HOPMAP_PLUGINS``, joined as in ``PATH``; the option ``--plugin`` adds
to it, and processes that are started inherit it. Packages name theirs in the groups of entry points
``hopmap.mappers``, ``hopmap.topologies`` and ``hopmap.sources``. Each is looked at when a name is
not known, or a list of all is asked for.

hopmap's own tables of names hold "module:name", the module below the table's package. Each module
is imported when it is asked for, and may be missing: lists leave it out (`Table`).
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from .errors import HopmapError, HopmapWarning

VARIABLE = "HOPMAP_PLUGINS"
T = TypeVar("T")


class PluginError(HopmapError, ValueError):
    """A plugin is not there, or fails as it is loaded."""


def add_plugin(plugin: str) -> None:
    """Load a plugin, here and in all processes that this one starts.

    It is a Python file, which may import others of its folder, or the name of a module. Raises
    `PluginError` if it is not there, or fails as it is loaded.
    """
    name = str(Path(plugin).absolute()) if _is_file(plugin) else plugin
    _load(name)
    if name not in (known := plugins()):
        os.environ[VARIABLE] = os.pathsep.join([*known, name])


def plugins() -> list[str]:
    """Files and modules that are named in ``HOPMAP_PLUGINS``."""
    return [name for name in os.environ.get(VARIABLE, "").split(os.pathsep) if name]


def load_plugins() -> None:
    """Load what ``HOPMAP_PLUGINS`` names, each once; see `add_plugin`."""
    for name in plugins():
        _load(name)


@cache
def load_entry_points(group: str, enter: Callable[[str, Any], None]) -> None:
    """Enter what installed packages offer in a group, each by its name.

    Warn of what cannot be loaded, and leave it out.
    """
    from importlib.metadata import entry_points

    for point in entry_points(group=group):
        try:
            enter(point.name, point.load())
        except Exception as error:
            warnings.warn(
                f"{group}: {point.name} ({point.value}) is left out: {_message(error)}",
                HopmapWarning,
                stacklevel=3,
            )


class NotInstalledError(HopmapError, ImportError):
    """A table of hopmap's names a module that was taken out of this installation."""


def load_named(package: str, place: str) -> Any:
    """Import what a table names: "module:name", or a whole "module", below a package."""
    module, _, name = f"{package}.{place}".partition(":")
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if not f"{module}.".startswith(f"{error.name}."):
            raise
        raise NotInstalledError(f"{module} is not part of this installation") from None
    return getattr(found, name) if name else found


def is_installed(package: str, place: str) -> bool:
    """Whether the module that a table names is part of this installation."""
    try:
        return importlib.util.find_spec(f"{package}.{place.partition(':')[0]}") is not None
    except ModuleNotFoundError:  # not even its folder
        return False


class Table(Mapping[str, T]):
    """What stands at "module:name" below a package, by name; imported when it is asked for.

    A name whose module is missing is in the table, but not in lists of it.
    """

    def __init__(self, package: str, places: Mapping[str, str]) -> None:
        self._package, self._places = package, places

    def __getitem__(self, name: str) -> T:
        found: T = load_named(self._package, self._places[name])
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return (k for k, place in self._places.items() if is_installed(self._package, place))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def source_file(function: Callable[..., Any]) -> str:
    """Return the file that a function is defined in; empty where there is none."""
    try:
        file = inspect.getsourcefile(inspect.unwrap(function))
    except TypeError:  # no function of Python's
        return ""
    return file if file and Path(file).is_file() else ""


def same_function(known: Callable[..., Any], new: Callable[..., Any]) -> bool:
    """Whether they are one function defined twice: by its module or by its file."""
    if place_of(known) == place_of(new):
        return True
    file = source_file(new)
    return _qualname(known) == _qualname(new) and file != "" and file == source_file(known)


def place_of(function: Callable[..., Any]) -> str:
    """Return the module and the name of a function."""
    return f"{function.__module__}.{_qualname(function)}"


def _qualname(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", type(function).__qualname__)


def _is_file(plugin: str) -> bool:
    return plugin.endswith(".py") or os.sep in plugin


def _load(plugin: str) -> None:
    """Load a plugin once."""
    if plugin in sys.modules:
        return
    if _is_file(plugin) and not Path(plugin).is_file():
        raise PluginError(f"plugin {plugin}: no such file: expected a Python file, or a module")
    try:
        if _is_file(plugin):
            _run(Path(plugin))
        else:
            importlib.import_module(plugin)
    except Exception as error:
        raise PluginError(f"plugin {_place(error, plugin)}: {_message(error)}") from error


def is_own(function: Callable[..., Any]) -> bool:
    """Whether a function is of hopmap itself, so that its mistakes are hopmap's."""
    return function.__module__.partition(".")[0] == "hopmap"


def describe_error(error: Exception, function: Callable[..., Any]) -> str:
    """Say what a function of somebody else's raised, and where in its file."""
    return f"{_place(error, source_file(function) or place_of(function))}: {_message(error)}"


def _place(error: Exception, file: str) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == file]
    return f"{file}, line {lines[-1]}" if lines else file


def _run(file: Path) -> None:
    """Import a file under its path as its name, which no other module has."""
    name = str(file)
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError("expected a Python file, called NAME.py")
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise


def _message(error: Exception) -> str:
    own = isinstance(error, HopmapError)
    return str(error) if own else f"{type(error).__name__}: {error}"
