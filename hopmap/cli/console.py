"""What the command line prints: JSON or tables on stdout, progress and errors on stderr."""

from __future__ import annotations

import csv
import io
import json
import multiprocessing
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any

from hopmap.errors import AboveDefaultOrderWarning, printable
from hopmap.plugins import Table
from hopmap.progress import Progress, silent
from hopmap.units import show_bytes, show_seconds

if TYPE_CHECKING:
    from hopmap.simulator import Bound, Result
    from hopmap.traces.summary import Omission

INTERRUPTED = 130  # exit code of what Ctrl-C ended
_notes: ContextVar[list[str]] = ContextVar("notes")
_collected: ContextVar[list[str] | None] = ContextVar("collected", default=None)


class ClosedPipeError(Exception):
    """The reader of stdout closed it, as in ``hopmap list mappers | head -1``."""


def hold_notes() -> None:
    """Forget the notes that wait, and have those to come wait for a result."""
    _notes.set([])


def note(text: str) -> None:
    """Have `warn` say this when the first line of the result comes.

    An error comes without it, and so does what no command has called for. Once is enough.
    """
    waiting = _notes.get([])
    if printable(text) not in waiting:
        waiting.append(printable(text))


def print_json(value: object) -> None:
    """Print one JSON document; integers stay integers, numpy's scalars and arrays are converted."""
    say(json.dumps(value, default=_plain, ensure_ascii=False))


def say(text: str = "") -> None:
    """Print a line of result on stdout, after the notes that wait for it."""
    if (lines := _collected.get()) is not None:
        lines.append(text)
        return
    notes = _notes.get([])
    while notes:
        warn(notes.pop(0))
    try:
        print(text)  # noqa: T201
    except BrokenPipeError:
        raise ClosedPipeError from None


@contextmanager
def collected() -> Iterator[list[str]]:
    """Collect what `say` would print."""
    lines: list[str] = []
    token = _collected.set(lines)
    try:
        yield lines
    finally:
        _collected.reset(token)


SHOW: Table[Callable[[object], None]] = Table(
    __package__,
    {
        "Advice": "advise:show_advice",
        "Choice": "advise:show_choice",
        "Explanation": "explain:show_explanation",
        "JobsRun": "simulate:show_jobs",
        "Metrics": "mappings:show_metrics",
        "Placement": "mappings:show_placement",
        "Result": "simulate:show_result",
    },
)


def text_of(result: object) -> str:
    """Return what the command of a result prints of it, for Python's print."""
    with collected() as lines:
        SHOW[type(result).__name__](result)
    return "\n".join(lines)


def print_csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table as CSV, quoted where it has to be."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([columns, *rows])
    say(text.getvalue().rstrip("\n"))


def flush() -> None:
    """Have stdout written, so that a pipe that is closed shows here; see `ClosedPipeError`."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise ClosedPipeError from None


def warn(text: str) -> None:
    """Print a line about the result, not part of it, on stderr."""
    print(f"hopmap: {text}", file=sys.stderr)  # noqa: T201


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[object]], *, title: str = "", left: int = 1
) -> None:
    """Print a table; so many columns are aligned to the left, the others to the right.

    Numbers get thousands separators, floats four significant digits at least, None a dash.
    """
    cells = [list(columns), *([_show(cell) for cell in row] for row in rows)]
    widths = [max(len(row[k]) for row in cells) for k in range(len(columns))]
    lines = [
        "  ".join(
            cell.ljust(width) if k < left else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
    say("\n".join(([title] if title else []) + [lines[0], "-" * len(lines[0]), *lines[1:]]))


def chosen_rows(chosen: Mapping[str, Mapping[str, int]]) -> list[tuple[str, object]]:
    """Lines of a table: operation and algorithm of collectives, calls."""
    return [
        (f"{operation} calls by {algorithm}", calls)
        for operation, taken in sorted(chosen.items())
        for algorithm, calls in sorted(taken.items())
    ]


def say_omissions(omitted: Iterable[Omission], notes: Mapping[str, int]) -> None:
    """Print below a table what a trace leaves out and what it leaves open, with counts."""
    for entry in omitted:
        say(f"{entry.kind}: {entry}")
    for what, count in notes.items():
        say(f"note: {what}: {count:,}")


def say_basis(result: Result) -> None:
    """Print below a run what it leaves out, and link speeds, one line for kinds of equal speed."""
    say_omissions(result.omitted, result.notes)
    by_speed: dict[str, list[str]] = {}
    for kind in result.network.kinds if result.network is not None else ():
        speeds = f"{show_bytes(kind.bandwidth)}/s, {show_seconds(kind.latency)}, {kind.provenance}"
        by_speed.setdefault(speeds, []).append(kind.name)
    for speeds, names in by_speed.items():
        say(f"links {', '.join(names)}: {speeds}" if len(by_speed) > 1 else f"links: {speeds}")


def say_written(*paths: object) -> None:
    """Say which files were written, of those that were asked for."""
    for path in paths:
        if path is not None:
            say(f"written: {path}")


def bound_label(name: str, bound: Bound) -> str:
    """Say what needs so long: "link 3 -> 4", "injection of node 3", "rank 7"."""
    if name == "no_contention":
        return "no contention"
    return {"rank": "", "link": "link "}.get(name, f"{name} of ") + bound.place


def percent(part: float, whole: float) -> str | None:
    """Write a part in percent; of nothing there is none."""
    return f"{100 * part / whole:.1f} %" if whole else None


def rests_on(result: Result) -> str:
    """Say what is assumed: rounds of traffic alone, and parameters that no source confirms."""
    from hopmap.api.provenance import format_keys

    rounds = rounds_of_run(result)
    defaults = f"DEFAULT: {format_keys(result.assumed)}" if result.assumed else "no defaults"
    return f"{rounds}; {defaults}" if rounds else defaults


def rounds_of_run(result: Result) -> str:
    """Say what `in_assumed_rounds` does of a run; of several jobs, of all their rounds."""
    from hopmap.simulator.programs.from_traffic import ASSUMED_ROUNDS

    said = in_assumed_rounds(result.notes.get(ASSUMED_ROUNDS))
    several = result.program is not None and len(result.program.jobs) > 1
    return f"some or all jobs are {said}" if said and several else said


def in_assumed_rounds(rounds: int | None) -> str:
    """Say that only who sends how much to whom is known; "" where the order is, too."""
    many = "1 assumed round" if rounds == 1 else f"{rounds:,} assumed rounds" if rounds else ""
    return f"traffic alone, in {many}, without computation and collectives" if rounds else ""


@contextmanager
def excess_in_result() -> Iterator[None]:
    """Do not warn of mappings above the default order: the result says it itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AboveDefaultOrderWarning)
        yield


def warn_of(name: str, omitted: Iterable[Omission]) -> None:
    """Warn of what takes more of a run than may be left out in silence."""
    for entry in omitted:
        if entry.substantial:
            warn(f"{name}: {entry}")


@contextmanager
def working(label: str, *, compiles: bool = True) -> Iterator[Progress]:
    """Show what is being done while it lasts, on a terminal only.

    Yields ``progress(done, total, text)``: until it is called with a total the bar only moves.
    Long compiling is announced wherever stderr goes, since it happens once and looks like a hang;
    while it lasts, a bar of its own says what is compiled. Listening to the compiler loads it,
    which what compiles nothing need not wait for.
    """
    if compiles:
        announce_compilation()
    if not sys.stderr.isatty():
        yield silent
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bar

    with Bar(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ) as bar:
        task = bar.add_task(label, total=None)
        kernels = bar.add_task("compiling", total=None, visible=False)

        def show(done: int, total: int | None, text: str = "", /) -> None:
            description = f"{label} {text}".rstrip()
            bar.update(task, completed=done, total=total, description=description)

        def compiled(name: str, done: int) -> None:
            said = f"compiling {name}, {done} functions done"
            bar.update(kernels, description=said, visible=bool(name))

        with watch_compiler(compiled) if compiles else nullcontext():
            yield show


def _show(cell: object) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, int) and not isinstance(cell, bool):
        return f"{cell:,}"
    if isinstance(cell, float):
        return f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:,.4g}"
    return str(cell)


def _plain(value: Any) -> object:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no JSON form")


PATIENCE = 0.5
"""Seconds of compiling that need no word."""


@contextmanager
def watch_compiler(show: Callable[[str, int], object]) -> Iterator[None]:
    """Tell the name of what is being compiled, and how many functions are; an empty name: none."""
    from numba.core import event

    class Watcher(event.Listener):
        """Hears of the start and end of each function; callees nest in their callers."""

        depth, done = 0, 0

        def on_start(self, heard: event.Event) -> None:
            self.depth += 1
            show(heard.data["dispatcher"].py_func.__name__, self.done)

        def on_end(self, _: object) -> None:
            self.depth -= 1
            self.done += 1
            if self.depth == 0:
                show("", self.done)

    with event.install_listener("numba:compile", Watcher()):
        yield


@cache
def announce_compilation() -> None:
    """Say so on stderr when this process, or the first of its workers, compiles for long."""
    worker = multiprocessing.parent_process() is not None
    if worker and not multiprocessing.current_process().name.endswith("-1"):
        return
    from numba.core import event

    class Announcer(event.Listener):
        """Hears of the start and end of every pass of the compiler; passes nest."""

        depth, begin, spent = 0, 0.0, 0.0

        def on_start(self, _: Any) -> None:
            now = time.monotonic()
            if self.depth == 0:
                self.begin = now
            self.depth += 1
            if self.spent + now - self.begin > PATIENCE:
                self.spent = float("-inf")
                clear = "\r\033[K" if sys.stderr.isatty() else ""
                print(f"{clear}hopmap: compiling for this machine, once", file=sys.stderr)  # noqa: T201

        def on_end(self, _: object) -> None:
            self.depth -= 1
            if self.depth == 0:
                self.spent += time.monotonic() - self.begin

    event.register("numba:run_pass", Announcer())  # type: ignore[no-untyped-call]
