"""Sources of traffic and programs: what one is, and the table of all kinds of them.

A kind is known by what its text begins with ("stencil:"), by the end of a file's name (".npz"), or
by the content of a file (other tools' traces). The table holds names of functions; only the one
that is asked for is imported. `source_kind` and the entry points of group ``hopmap.sources`` add to
it.
"""

from __future__ import annotations

import hashlib
import os
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

from hopmap.errors import HopmapError, HopmapWarning
from hopmap.plugins import (
    is_installed,
    is_own,
    load_entry_points,
    load_named,
    load_plugins,
    place_of,
    same_function,
)

from .trace import TraceError

if TYPE_CHECKING:
    from .folded import Folded
    from .schedule import Schedule
    from .summary import Summary
    from .trace import Trace
    from .traffic import Traffic


@dataclass(frozen=True)
class Source:
    """A trace or traffic that is not read yet. A kind of sources is a class that extends this one.

    Attributes
    ----------
    name : str
        Short name for reports, like "mg.S.16" or "stencil:8x8,5pt".
    kind : str
        First word of the digest.
    has_program : bool
        Whether the order of messages is known, so that they can be replayed.
    has_calls : bool
        Whether the calls of MPI are known, so that collectives can be expanded.
    needs_rounds : bool
        Whether a replay needs the number of rounds in which traffic is sent.
    has_steps : bool
        Whether fewer time steps than all can be generated.
    assumes_rate : bool
        Whether its ranks compute at an assumed rate.
    is_recorded : bool
        Whether its calls were recorded, so that a pass over them sums up all that is in it.
    """

    name: str
    kind: ClassVar[str] = ""
    has_program: ClassVar[bool] = True
    has_calls: ClassVar[bool] = True
    needs_rounds: ClassVar[bool] = False
    has_steps: ClassVar[bool] = False
    assumes_rate: ClassVar[bool] = False
    is_recorded: ClassVar[bool] = False

    @property
    def has_collectives(self) -> bool:
        """Whether it is known what its collectives send."""
        return self.has_calls

    @property
    def is_short(self) -> bool:
        """Whether its calls are so few that all can be looked through for any question."""
        return False

    @property
    def algorithms(self) -> dict[str, str]:
        """Algorithms of collectives that it names, by operation."""
        return {}

    @property
    def archive(self) -> Path | None:
        """OTF2 archive that it is, if it is one."""
        return None

    def with_steps(self, steps: int) -> Source:
        """Return it with other time steps than all."""
        raise TraceError(f"steps {steps}: {self.name} has none: expected a benchmark like lu.C.64")

    def traffic(self) -> Traffic:
        """Read or compute who sends how much to whom, point to point."""
        from .traffic import traffic_of

        return traffic_of(self.trace())

    def traffic_with_collectives(self) -> Traffic | None:
        """Read traffic with that of collectives, where a file counts these apart."""
        return None

    def calls(self) -> Trace | Folded:
        """Read or compute what every rank does, with loops where these are known."""
        raise TraceError(
            f"{getattr(self, 'path', self.name)}: only traffic, without the order of messages: "
            "expected an OTF2 archive or a benchmark like lu.S.16"
        )

    def trace(self) -> Trace:
        """Read or compute what every rank does, call by call; see `calls`."""
        from .folded import Folded, unfold

        calls = self.calls()
        return unfold(calls) if isinstance(calls, Folded) else calls

    def schedule(self) -> Schedule:
        """Read the operations of a program that has no calls."""
        raise TraceError(f"{self.name}: expected a schedule")

    def summary(self) -> Summary | None:
        """Sum up in one pass what was recorded, traffic and collectives; None of anything else."""
        from .summary import summarize

        return summarize(self.trace()) if self.is_recorded else None

    def files(self) -> list[Path]:
        """Files that it is read from; none if it is generated."""
        return []

    def parts(self) -> tuple[Source, ...]:
        """Return the sources that it is made from."""
        return ()

    def digest(self) -> str:
        """Hash of everything that determines the traffic and the trace, except hopmap's version."""
        digest = hashlib.blake2b(self.kind.encode(), digest_size=16)
        files = self.files()
        if not files:
            digest.update(self.name.lower().encode())
        for file in files:
            status = file.stat()
            digest.update(file.name.encode() + b"\0")
            digest.update(_digest_of(file, status.st_size, status.st_mtime_ns))
        for part in self.parts():
            digest.update(part.digest().encode())
        return digest.hexdigest()


@dataclass(frozen=True)
class FileSource(Source):
    """A source that is read from a file or a folder."""

    path: Path


@lru_cache(maxsize=4096)
def _digest_of(file: Path, _size: int, _changed: int) -> bytes:
    """Return the hash of a file, once while neither its size nor its time of change differ."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, hashlib.blake2b).digest()


Opener: TypeAlias = Callable[[str, Path | None], Source]
"""Takes the words behind "kind:" and the folder of relative paths, or a file's path and None."""
F = TypeVar("F", bound=Opener)

GROUP = "hopmap.sources"
"""Entry points: a module that enters kinds, or a function to enter under the point's name."""
TABLE = "formats.files:open_traffic_file"
ARCHIVE = "otf2.read:open_archive"
KINDS: dict[str, str | Opener] = {
    "stencil:": "patterns.stencils:open_stencil",
    "collective:": "patterns.collectives:open_collective",
    "training:": "patterns.training:open_training",
    "scaled:": "extrapolation.extrapolate:open_scaled",
    "folded:": "extrapolation.fold:open_folded",
    ".otf2": ARCHIVE,
    ".prof": "formats.openmpi_monitoring:open_monitoring",
    **dict.fromkeys((".npz", ".csv", ".mtx", ".graph", ".grf"), TABLE),
}
"""Functions that open sources, by what a text begins with or a file's name ends in."""
BENCHMARK = "nas.benchmarks:open_benchmark"
BY_CONTENT, TOOLS = "foreign.recognition:open_recording", "foreign.recognition:tools"

BENCHMARK_NAME = re.compile(r"([a-zA-Z]{2})\.([a-zA-Z])\.([0-9]+)")


def is_nas_name(text: str) -> bool:
    """Whether the text has the form of a benchmark's name, like "lu.C.64"."""
    return BENCHMARK_NAME.fullmatch(text) is not None


def is_source_name(text: str) -> bool:
    """Whether the text names something to generate: a benchmark, or a kind before a colon."""
    return is_nas_name(text) or text.partition(":")[0] + ":" in KINDS


def source_kind(name: str) -> Callable[[F], F]:
    """Enter a function that opens sources in `KINDS`.

    The name is ``"kind:"`` for texts that begin so, or ``".suffix"`` for names of files.
    """

    def register(function: F) -> F:
        known = KINDS.get(name)
        if not (name[1:].isidentifier() and name[0] == ".") and not (
            name[:-1].isidentifier() and name[-1] == ":"
        ):
            raise TraceError(f"source {name!r}: expected a name like 'kind:' or '.suffix'")
        if isinstance(known, str) or (known and not same_function(known, function)):
            place = known if isinstance(known, str) else place_of(known)
            raise TraceError(
                f"two kinds of sources are called {name!r}: {place} and {place_of(function)}: "
                "expected a name of its own"
            )
        KINDS[name] = function
        return function

    return register


def _enter(name: str, extension: Any) -> None:
    if callable(extension) and name not in KINDS:
        source_kind(name)(extension)


def open_source(text: str | Path, folder: Path | None = None) -> Source:
    """Say what a trace argument means: a file or folder if there is one, else what is generated.

    Parameters
    ----------
    text : str or Path
        "run1/traces.otf2", "run1", "traffic.npz", "lu.C.64",
        "stencil:12x11x8,7pt,periodic=y" (`parse_stencil`),
        "collective:allreduce=ring,64,1MiB" (`parse_collective`),
        "training:model=175b,tp=8,pp=8,dp=2" (`parse_training`),
        "scaled:256,run16,run64", "scaled:256,weak,run16" (`extrapolate`), "folded:run1" (`fold`).
    folder : Path, optional
        What relative paths are relative to; the working directory when left out.
    """
    path = (folder or Path()) / text
    if path.exists():
        if is_nas_name(str(text)) and folder is None and isinstance(text, str):
            _warn(f"{text}: reads this file, not the benchmark; ./{text} avoids this warning")
        return _open_file(path)
    if path.is_symlink():
        raise TraceError(f"{path}: a broken link, to {path.readlink()}: expected a file or folder")
    begin, colon, words = str(text).partition(":")
    if colon and (found := _kind_of(begin + colon, str.__eq__)):
        return _open(found, words, folder)
    if is_nas_name(str(text)):
        source = _open(BENCHMARK, str(text), None)
        for near in _similar_files(path):
            _warn(f"{text}: no such file, so the benchmark is generated; did you mean {near}?")
        return source
    raise TraceError(
        f"{path}: no such file or folder: expected an OTF2 archive, a traffic file, "
        f"a benchmark like lu.C.64, or a stencil like stencil:8x8,5pt"
    )


def _open_file(path: Path) -> Source:
    """Open what is there; files that no suffix tells are other tools' traces by their content."""
    # A folder may be called X.otf2; then the anchor file lies in it.
    if path.is_dir():
        for suffix in (".otf2", ".prof"):
            if any(path.glob(f"*{suffix}")):
                return _open(KINDS[suffix], str(path), None)
    if anchor := _anchor_above(path):
        _warn(f"{path}: a part of an OTF2 archive, so {anchor} is read")
        return _open(ARCHIVE, str(anchor), None)
    if found := _kind_of(path.name.lower(), str.endswith):
        return _open(ARCHIVE if path.is_dir() else found, str(path), None)
    if is_installed(__package__, BY_CONTENT):
        recording: Source | None = load_named(__package__, BY_CONTENT)(str(path), None)
        if recording is not None:
            return recording
    others = ", ".join(tools())
    tables = ", ".join(name for name in KINDS if name[0] == "." and name not in (".otf2", ".prof"))
    raise TraceError(
        f"{path}: no trace by its name or its content: expected an OTF2 archive, "
        f"{f'a trace of {others}, ' if others else ''}or traffic, {tables} or a folder of .prof"
    )


def _anchor_above(path: Path) -> Path | None:
    """Return the anchor file of the archive of which a folder or a file is a part."""
    whole = path.resolve()  # of ".", too
    places = [whole] if whole.is_dir() else [whole.with_suffix(""), whole.parent]
    if not whole.is_dir() and whole.suffix not in (".def", ".evt"):
        return None
    found = (place.with_name(f"{place.name}.otf2") for place in places)
    return next((anchor for anchor in found if anchor.is_file()), None)


def tools() -> Mapping[str, Any]:
    """Return the kinds of traces that are recognised by content, by the tool that wrote them."""
    found: Mapping[str, Any] = (
        load_named(__package__, TOOLS)() if is_installed(__package__, TOOLS) else {}
    )
    return found


def _kind_of(text: str, matches: Callable[[str, str], bool]) -> str | Opener | None:
    """Return what opens a text; plugins are loaded for one of a kind that hopmap has not."""
    for load in (False, True):
        if load:
            load_plugins()
            load_entry_points(GROUP, _enter)
        for name, function in KINDS.items():
            if matches(text, name):
                return function
    return None


def _open(kind: str | Opener, words: str, folder: Path | None) -> Source:
    function: Any = load_named(__package__, kind) if isinstance(kind, str) else kind
    try:
        source = function(words, folder)
    except ValueError as error:
        if isinstance(error, HopmapError) or is_own(function):
            raise
        raise TraceError(str(error)) from error
    if not isinstance(source, Source):
        raise TraceError(f"{place_of(function)} returns {source!r}: expected a Source")
    return source


def _similar_files(path: Path) -> list[Path]:
    """Return a file of a missing file's folder, of its name with a suffix or in other letters."""
    name, ends = path.name.lower(), [kind for kind in KINDS if kind[0] == "."]
    names = {name, *(name + end for end in ends)}
    if not path.parent.is_dir():
        return []
    with os.scandir(path.parent) as entries:
        return [Path(each) for each in entries if each.name.lower() in names][:1]


def _warn(text: str) -> None:
    warnings.warn(text, HopmapWarning, stacklevel=3)
