"""The command record: run an MPI program and keep what it does as a trace."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain, count
from pathlib import Path
from typing import Annotated, Any

import typer

from .console import print_json, print_table, say, warn, working
from .options import AsJson, check_out

BUFFER = "HOPMAP_RECORD_BUFFER"  # bytes of a process that wait to be written
_SIGNAL = 128  # what shells add to the number of the signal that ended a program


def record(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="-- COMMAND ...", help="What starts the program, like mpirun -np 16 ./app."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="A new folder ending in .otf2; with --profile, a new file of traffic: .npz .mtx "
            ".csv .graph .grf. Default: the next free of recorded.otf2, recorded-2.otf2, ..."
        ),
    ] = None,
    mpicc: Annotated[
        str | None,
        typer.Option(help="The C compiler of the program's MPI; mpicc next to mpirun if omitted."),
    ] = None,
    profile: Annotated[
        bool, typer.Option("--profile", help="Keep counts only: who sends how much to whom.")
    ] = False,
    batch: Annotated[
        bool, typer.Option("--batch", help="Print the lines for a batch script, and run nothing.")
    ] = False,
    merge: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Write the archive from a batch job's recordings."),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Run an MPI program and record its calls: an OTF2 archive, or traffic with --profile."""
    from hopmap.traces.recorder.launch import as_line, is_profile

    if bool(words) == (merge is not None):
        raise typer.BadParameter("expected a command behind --, like -- mpirun -np 16 ./app")
    counts = profile or (merge is not None and is_profile(merge))
    if out is not None:
        if (out.suffix == ".otf2") == counts:
            wanted = "a file of traffic, like run.npz" if counts else "a folder ending in .otf2"
            raise typer.BadParameter(f"--out {out}: expected {wanted}")
        _expect_new(out)
        check_out(out, folder=not counts)
    if merge is not None:
        _finish(merge, out or next(_free_names(counts)), as_json)
        return 0
    assert words
    out, folder = _claim(out, counts, batch)
    try:
        command, settings = _with_library(words, mpicc, folder, profile)
        if batch:
            say(as_line(command, settings))
            say(as_line(["hopmap", "record", "--merge", str(folder), "--out", str(out)], {}))
            return 0
        code = _run(command, settings, to_stderr=as_json)
        _finish(folder, out, as_json, words[0], code)
    except BaseException:
        if not any(folder.iterdir()):
            folder.rmdir()
        else:
            warn(f"kept: {folder}: hopmap record --merge {folder} tries again")
        raise
    shutil.rmtree(folder)
    return code


def _expect_new(out: Path) -> None:
    """Refuse to replace anything: a recording may have waited for a day in a queue."""
    if out.exists() or out.is_symlink():
        raise typer.BadParameter(
            f"--out {out}: exists: expected a new name, as recordings are never replaced"
        )


def _free_names(counts: bool) -> Iterator[Path]:
    """Names of recordings by number, without those that exist."""
    suffix = ".npz" if counts else ".otf2"
    numbered = (Path(f"recorded-{number}{suffix}") for number in count(2))
    names = chain([Path(f"recorded{suffix}")], numbered)
    return (name for name in names if not (name.exists() or name.is_symlink()))


def _claim(out: Path | None, counts: bool, batch: bool) -> tuple[Path, Path]:
    """Return the name of a recording, and a new folder for its processes that reserves the name."""
    for name in _free_names(counts) if out is None else [out]:
        folder = name.absolute().with_name(f"{name.name}.raw")
        # Lines for a batch script may be asked for again, until its job begins.
        waits = batch and out is not None and folder.is_dir() and not any(folder.iterdir())
        with suppress(FileExistsError):
            folder.mkdir(exist_ok=waits)
            return name, folder
    raise typer.BadParameter(f"{folder}: of another recording: expected another --out")


def _with_library(
    words: Sequence[str], mpicc: str | None, folder: Path, profile: bool
) -> tuple[list[str], dict[str, str]]:
    from hopmap.traces.recorder.build import build
    from hopmap.traces.recorder.launch import find_compiler, with_library

    with working("building the recorder"):
        built = build(mpicc or find_compiler(words))
    settings = {"HOPMAP_RECORD_DIR": str(folder)}
    if profile:
        settings["HOPMAP_RECORD_PROFILE"] = "1"
    if os.environ.get(BUFFER):
        settings[BUFFER] = os.environ[BUFFER]
    return with_library(words, built, settings, os.environ)


def _run(words: Sequence[str], new: dict[str, str], *, to_stderr: bool) -> int:
    """Run a command to its end, also when Ctrl-C ends it; return its exit code."""
    stdout = sys.stderr if to_stderr else None
    with subprocess.Popen(words, env=os.environ | new, stdout=stdout) as process:
        while process.poll() is None:
            with suppress(KeyboardInterrupt):  # the launcher has had it, too
                process.wait()
    return process.returncode if process.returncode >= 0 else _SIGNAL - process.returncode


def _finish(folder: Path, out: Path, as_json: bool, command: str = "", code: int = 0) -> None:
    from hopmap.traces.recorder.build import RecorderError
    from hopmap.traces.recorder.launch import collectives_of, finish, is_profile
    from hopmap.traces.sources import open_source

    from .traces.reading import one_sided_rows

    if code and not any(folder.glob("*.events")):
        raise RecorderError(f"{command}: ended with {code} before MPI_Init: nothing was recorded")
    _expect_new(out)  # still
    with working("putting the recording together") as progress:
        missed = finish(folder, out)
        facts: dict[str, Any] = {"out": str(out), "exit_code": code, "missed": list(missed)}
        if is_profile(folder):
            facts |= open_source(out).traffic().to_dict()
            facts["collectives"] = collectives_of(folder)
        else:
            from hopmap.traces.otf2.totals import read_summary

            facts = read_summary(out, progress=progress).to_dict() | facts
    if as_json:
        print_json(facts)
    else:
        keys = ("ranks", "events", "messages", "pairs", "bytes")
        rows: list[tuple[str, object]] = [(key, facts[key]) for key in keys if key in facts]
        for name, calls in facts["collectives"].items():
            text = f"{calls[0]:,}, {calls[1]:,} B" if isinstance(calls, tuple) else calls
            rows.append((f"{name} calls", text))
        for line in missed:
            warn(line)
        print_table(("", out.name), rows + one_sided_rows(facts))
    if code:
        warn(f"{command} ended with {code}")
    if not as_json:
        say(f"written: {out}")
