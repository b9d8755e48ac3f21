"""Checks of options before any work is done."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

PICTURES = (".svg", ".png", ".pdf")


def check_options(context: typer.Context, what: str, has: Sequence[str]) -> None:
    """Raise `typer.BadParameter` for an option that is set although it means nothing here.

    --out and --json always mean something, and so do arguments.

    Parameters
    ----------
    what : str
        Which form of the command this is.
    has : sequence of str
        Parameters, by their names in Python, that it understands.
    """
    flags = {str(option.name): option.opts[0] for option in context.command.params}
    for name, flag in flags.items():
        source = context.get_parameter_source(name)
        is_set = source is not None and source.name == "COMMANDLINE" and flag.startswith("--")
        if is_set and name not in (*has, "out", "as_json"):
            known = ", ".join(flags[name] for name in has)
            raise typer.BadParameter(f"{flag}: {what} has none: expected some of {known}")


def check_picture(plot: Path | None) -> None:
    """Raise `typer.BadParameter` for a figure whose name does not say a format that is known."""
    if plot is not None and plot.suffix not in PICTURES:
        raise typer.BadParameter(f"--plot {plot}: expected a name ending in {' '.join(PICTURES)}")


def check_folder(flag: str, folder: Path | None) -> None:
    """Raise `typer.BadParameter` for a folder in whose place, or above it, is a file."""
    places = () if folder is None else (folder, *folder.parents)
    there = next((place for place in places if place.exists()), Path())
    if not there.is_dir():
        what = "" if there == folder else f"{there} "
        raise typer.BadParameter(f"{flag} {folder}: {what}is a file: expected a folder")


def check_out(*paths: Path | None, folder: bool = False) -> None:
    """Raise `typer.BadParameter` for what cannot be written to.

    Parameters
    ----------
    folder : bool
        Whether folders are to be written, not files.
    """
    for path in filter(None, paths):
        if str(path) == "-":
            continue
        if not path.absolute().parent.is_dir():
            raise typer.BadParameter(f"{path}: there is no folder {path.parent}")
        if path.is_dir() and not folder:
            raise typer.BadParameter(f"{path}: is a folder: expected a file to write")
