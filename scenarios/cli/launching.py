"""The file for a launcher that advise and choose write, and what is said of such files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from .arguments import check_out
from .console import note, print_json, say
from .listing import complete_launchers

if TYPE_CHECKING:
    from collections.abc import Callable

    from hopmap.scenarios.exports import Exported
    from hopmap.scenarios.placement import Placement

To: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Launcher to write the best for (see: list formats), in TRACE.LAUNCHER when there is "
        "no --out; csv, hopmap's own, when there is only --out.",
        autocompletion=complete_launchers,
    ),
]


def file_for(trace: str, out: Path | None, to: str | None) -> Path | None:
    """Return the file that is to be written, if any is; checked before the work is done."""
    from hopmap.scenarios.launchers.formats import find_launcher

    form = None if to in (None, "csv", "maplib") else find_launcher(str(to))
    if out is None and to is not None:
        name = re.sub(r"[^A-Za-z0-9_.-]+", "-", Path(trace).name)
        out = Path(f"{form.called}.{name}" if form and form.called else f"{name}.{to}")
    check_out(out)
    return out


def answer(
    best: Placement,
    out: Path | None,
    to: str | None,
    verdict: str,
    facts: dict[str, Any] | None,
    show: Callable[[], None],
) -> None:
    """Write the mapping, and print the answer: the file alone where it goes to stdout.

    Parameters
    ----------
    verdict : str
        The sentence, which is said besides the file on stdout.
    facts : dict, optional
        What is printed as JSON.
    show : callable
        Prints the answer as text.
    """
    from hopmap.scenarios.exports import export_mapping

    aloud = str(out) == "-"
    done = None
    if out is not None:
        done = export_mapping(best, to or "csv", best.topology, out=None if aloud else out)
    if aloud and done is not None:
        note(verdict)
        say(done.text.rstrip("\n"))
    elif facts is not None:
        written = {"command": done.command, "out": str(out)} if done else {}
        print_json(facts | written)
    else:
        show()
        if done is not None:
            say_written(done)


def say_written(done: Exported) -> None:
    """Say what was written, how it is used, and whether its nodes exist."""
    for path in done.files:
        say(f"written: {path}")
    if done.files and done.command:
        say(f"use it:  {done.command}")
    if done.files and done.made_up:
        say(f"nodes:   {done.made_up} are made up: --nodelist, --hosts or --names tells yours")
