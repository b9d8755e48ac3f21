"""Where traffic comes from: a trace, a file; a benchmark or a pattern by its name."""

from __future__ import annotations

import hashlib
import os
import warnings
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hopmap.errors import HopmapWarning
from hopmap.traces.formats.files import FORMATS, files_of, load_traffic

from .folded import Folded, unfolded
from .trace import Trace, TraceError
from .traffic import Traffic, traffic_of

if TYPE_CHECKING:
    from hopmap.traces.foreign.kinds import Recording
    from hopmap.traces.foreign.schedule import Schedule
    from hopmap.traces.scaled.extrapolate import Scaled

STENCIL, COLLECTIVE, TRAINING = "stencil:", "collective:", "training:"
SCALED, FOLDED = "scaled:", "folded:"


@dataclass(frozen=True)
class Source:
    """A trace or traffic, not read yet.

    Attributes
    ----------
    name : str
        Short name for reports, like "mg.S.16" or "stencil:8x8,5pt".
    kind : str
        "archive", an OTF2 archive; "recording", another tool's trace of calls, or "schedule", of
        operations; "traffic", a file of it. To generate are a "benchmark", a "stencil", the call of
        a "collective", and a step of "training" a model. "scaled" is a program at more ranks than
        it was recorded on, "folded" one whose repetitions are loops.
    path : Path or None
        Archive folder (or anchor file), trace or traffic file.
    smaller : tuple of Source
        Of what is scaled: the program at fewer ranks. Of what is folded, the program.
    """

    name: str
    kind: Literal[
        "archive",
        "recording",
        "schedule",
        "traffic",
        "benchmark",
        "stencil",
        "collective",
        "training",
        "scaled",
        "folded",
    ]
    path: Path | None = None
    smaller: tuple[Source, ...] = ()

    @property
    def has_program(self) -> bool:
        """Whether the order of messages is known, so that it can be replayed."""
        return self.kind not in ("traffic", "stencil")

    @property
    def is_monitored(self) -> bool:
        """Whether this is of Open MPI's monitoring, which counts collectives apart."""
        path = self.path
        return (
            self.kind == "traffic"
            and path is not None
            and bool(path.is_dir() or path.suffix == ".prof")
        )

    @property
    def has_collectives(self) -> bool:
        """Whether it is known what its collectives send."""
        return (self.has_program and self.kind != "schedule") or self.is_monitored

    @property
    def algorithms(self) -> dict[str, str]:
        """Algorithms that it names, by operation."""
        if self.kind != "collective":
            return {}
        from hopmap.traces.patterns.collectives import parse_collective

        call = parse_collective(self.name.removeprefix(COLLECTIVE))
        return {call.operation: call.algorithm}

    def traffic(self) -> Traffic:
        """Read or compute who sends how much to whom.

        Raises
        ------
        TraceError
            Unreadable, inconsistent or foreign file; a benchmark that does not exist.
        """
        if self.kind == "benchmark":
            from hopmap.traces.nas.benchmarks import nas_traffic

            return nas_traffic(self.name)
        if self.kind == "stencil":
            from hopmap.traces.patterns.stencils import parse_stencil, traffic_of_stencil

            return traffic_of_stencil(parse_stencil(self.name.removeprefix(STENCIL)))
        if self.kind == "collective":
            from hopmap.traces.patterns.collectives import parse_collective

            call = parse_collective(self.name.removeprefix(COLLECTIVE))
            return Traffic.from_pairs(call.ranks, [], [], [], [])
        if self.kind == "training":
            from hopmap.traces.patterns.training import parse_training, training_traffic

            return training_traffic(parse_training(self.name.removeprefix(TRAINING)))
        if self.kind == "scaled":
            from hopmap.traces.scaled.extrapolate import traffic_of_folded

            return traffic_of_folded(self.scaled().program)
        if self.kind == "folded":
            return self.smaller[0].traffic()
        assert self.path is not None
        if self.kind == "archive":
            from hopmap.traces.otf2.totals import read_traffic

            return read_traffic(self.path)
        if self.kind == "recording":
            from hopmap.traces.foreign.kinds import read_recording

            return traffic_of(read_recording(self.recording()))
        if self.kind == "schedule":
            return self.schedule().traffic()
        return load_traffic(self.path)

    def recording(self) -> Recording:
        """Return the files of another tool's trace."""
        from hopmap.traces.foreign.kinds import recording_of

        assert self.path is not None
        found = recording_of(self.path)
        if found is None:
            raise TraceError(f"{self.path}: is no trace any more: expected one of another tool")
        return found

    def scaled(self) -> Scaled:
        """Extrapolate the program at fewer ranks."""
        from hopmap.traces.scaled.extrapolate import scaled

        ranks = self.name.removeprefix(SCALED).partition(",")[0]
        return scaled([each.calls() for each in self.smaller], int(ranks))

    def schedule(self) -> Schedule:
        """Read a schedule."""
        from hopmap.traces.foreign.goal.read import read_goal

        return read_goal(self.recording().files[0])

    def calls(self, steps: int | None = None) -> Trace | Folded:
        """Read or compute what every rank does, a benchmark's in loops.

        Parameters
        ----------
        steps : int, optional
            Time steps of a benchmark; recorded traces are always whole.

        Raises
        ------
        TraceError
            As `traffic`, and when this is only traffic.
        """
        if self.kind == "benchmark":
            from hopmap.traces.nas.benchmarks import nas_folded

            return nas_folded(self.name, steps=steps)
        if self.kind == "collective":
            from hopmap.traces.patterns.collectives import collective_trace, parse_collective

            return collective_trace(parse_collective(self.name.removeprefix(COLLECTIVE)))
        if self.kind == "training":
            from hopmap.traces.patterns.training import parse_training, training_folded

            return training_folded(parse_training(self.name.removeprefix(TRAINING)), self.name)
        if self.kind == "scaled":
            return self.scaled().program
        if self.kind == "folded":
            return _folded_calls(self)
        if not self.has_program:
            raise TraceError(
                f"{self.path or self.name}: only traffic, without the order of messages: expected "
                f"an OTF2 archive or a benchmark like lu.S.16"
            )
        if self.kind == "schedule":
            raise TraceError(f"{self.path}: a schedule, whose calls are unknown: expected a trace")
        if self.kind == "recording":
            from hopmap.traces.foreign.kinds import read_recording

            return read_recording(self.recording())
        from hopmap.traces.otf2.read import read_trace

        assert self.path is not None
        return read_trace(self.path)

    def trace(self, steps: int | None = None) -> Trace:
        """Read or compute what every rank does, call by call; see `calls`."""
        if self.kind == "benchmark":
            from hopmap.traces.nas.benchmarks import nas_trace

            return nas_trace(self.name, steps=steps)
        if self.kind == "training":
            from hopmap.traces.patterns.training import parse_training, training_trace

            return training_trace(parse_training(self.name.removeprefix(TRAINING)), self.name)
        calls = self.calls(steps)
        return unfolded(calls) if isinstance(calls, Folded) else calls

    def digest(self) -> str:
        """Hash of everything that determines the traffic and the trace, but for hopmap's version.

        Raises
        ------
        TraceError
            No archive, or several.
        OSError
            A file cannot be read.
        """
        digest = hashlib.blake2b(self.kind.encode(), digest_size=16)
        if self.path is None:
            digest.update(self.name.lower().encode())
            for each in self.smaller:
                digest.update(each.digest().encode())
            return digest.hexdigest()
        for file in self._files():
            status = file.stat()
            digest.update(file.name.encode() + b"\0")
            digest.update(_digest_of(file, status.st_size, status.st_mtime_ns))
        return digest.hexdigest()

    def _files(self) -> list[Path]:
        assert self.path is not None
        if self.kind == "traffic":
            return files_of(self.path)
        if self.kind in ("recording", "schedule"):
            return list(self.recording().files)
        from hopmap.traces.otf2.files import archive_files

        return archive_files(self.path)


@lru_cache(maxsize=4096)
def _digest_of(file: Path, _size: int, _changed: int) -> bytes:
    """Return the hash of a file, once while neither its size nor its time of change differ."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, hashlib.blake2b).digest()


def open_source(text: str | Path, folder: Path | None = None) -> Source:
    """Say what a trace argument means: a file or folder if there is one, else what is generated.

    Parameters
    ----------
    text : str or Path
        "run1/traces.otf2", "run1", "traffic.npz", "lu.C.64",
        "stencil:12x11x8,7pt,periodic=y" (`parse_stencil`),
        "collective:allreduce=ring,64,1MiB" (`parse_collective`),
        "training:model=175b,tp=8,pp=8,dp=2" (`parse_training`),
        "scaled:256,run16,run64" (`scaled`), "folded:run1" (`fold`).
    folder : Path, optional
        What relative paths are relative to; the working directory when left out.

    Raises
    ------
    TraceError
        Neither a file nor a benchmark, or a benchmark or stencil that makes no sense.
    """
    from hopmap.traces.nas.benchmarks import BENCHMARKS, check_nas_name, is_nas_name

    path = (folder or Path()) / text
    if path.exists():
        if is_nas_name(str(text)) and folder is None and isinstance(text, str):
            _warn(f"{text}: what lies here is taken, not the benchmark: ./{text} says so")
        # A folder may be called X.otf2; then the anchor file lies in it.
        if path.is_dir() and any(path.glob("*.prof")) and not any(path.glob("*.otf2")):
            return Source(path.resolve().name, "traffic", path)
        # Files of other tools are told by what is in them; ours have names.
        if not any(path.name.lower().endswith(end) for end in (".otf2", *FORMATS)) and not (
            path.is_dir() and any(path.glob("*.otf2"))
        ):
            from hopmap.traces.foreign.kinds import recording_of

            recording = recording_of(path)
            if recording is not None:
                kind: Literal["schedule", "recording"] = (
                    "schedule" if recording.kind == "goal" else "recording"
                )
                return Source(recording.name, kind, path)
        if path.is_dir() or path.suffix == ".otf2":
            folder_of = path if path.is_dir() else path.parent
            return Source(folder_of.resolve().name or str(text), "archive", path)
        return Source(path.stem, "traffic", path)
    if str(text).startswith(STENCIL):
        from hopmap.traces.patterns.stencils import parse_stencil

        parse_stencil(str(text).removeprefix(STENCIL))
        return Source(str(text), "stencil")
    if str(text).startswith(COLLECTIVE):
        from hopmap.traces.patterns.collectives import parse_collective

        parse_collective(str(text).removeprefix(COLLECTIVE))
        return Source(str(text), "collective")
    if str(text).startswith(TRAINING):
        from hopmap.traces.patterns.training import parse_training

        parse_training(str(text).removeprefix(TRAINING))
        return Source(str(text), "training")
    if str(text).startswith(SCALED):
        return _scaled_source(str(text), folder)
    if str(text).startswith(FOLDED):
        return _folded_source(str(text), folder)
    if is_nas_name(str(text)):
        benchmark, nas_class, ranks = str(text).split(".")
        if benchmark.lower() not in BENCHMARKS:
            raise TraceError(
                f"{text}: {benchmark} cannot be generated: expected one of "
                f"{', '.join(BENCHMARKS)}, or a recorded trace"
            )
        check_nas_name(str(text))
        for near in _called_alike(path):
            _warn(f"{text}: generated, there is no such file; {near} is another")
        return Source(f"{benchmark.lower()}.{nas_class.upper()}.{ranks}", "benchmark")
    raise TraceError(
        f"{path}: no such file or folder: expected an OTF2 archive, a traffic file, "
        f"a benchmark like lu.C.64, or a stencil like stencil:8x8,5pt"
    )


def _scaled_source(text: str, folder: Path | None) -> Source:
    """Say what "scaled:RANKS,TRACE,..." means."""
    ranks, *traces = text.removeprefix(SCALED).split(",")
    if not (ranks.isascii() and ranks.isdigit() and len(ranks) < 9) or not all([traces, *traces]):
        raise TraceError(f"{text}: expected scaled:RANKS,TRACE,..., like scaled:256,run16,run64")
    smaller = tuple(open_source(each, folder) for each in traces)
    for each in smaller:
        if not each.has_program or each.kind == "schedule":
            raise TraceError(f"{text}: {each.name} has no calls: expected a trace or a benchmark")
        if each.kind == "folded":
            raise TraceError(f"{text}: {each.name}: expected {each.smaller[0].name} itself")
    return Source(text, "scaled", smaller=smaller)


def _folded_source(text: str, folder: Path | None) -> Source:
    """Say what "folded:TRACE" means."""
    program = text.removeprefix(FOLDED)
    if not program:
        raise TraceError(f"{text}: expected folded:TRACE, like folded:run1")
    own = open_source(program, folder)
    if not own.has_program or own.kind == "schedule":
        raise TraceError(f"{text}: {own.name} has no calls: expected a trace")
    return Source(text, "folded", smaller=(own,))


def _folded_calls(source: Source) -> Trace | Folded:
    """Fold a program, and say what became of it."""
    from hopmap.traces.folding.fold import fold

    calls = source.smaller[0].calls()
    if isinstance(calls, Folded):
        return calls
    folded = fold(calls, keep=False)
    said = f"{source.name}: {calls.events:,} events: "
    if not len(folded.times):
        _warn(said + "nothing repeats that can be folded")
    else:
        _warn(
            f"{said}{folded.trace.events:,} of them listed, the others as trips of loops, each of "
            "which computes as long as the average one"
        )
    return folded


def _called_alike(path: Path) -> list[Path]:
    """Return what lies beside a missing file under its name with a suffix, or in other letters."""
    name, ends = path.name.lower(), (*FORMATS, ".otf2")
    alike = {name, *(name + end for end in ends)}
    if not path.parent.is_dir():
        return []
    with os.scandir(path.parent) as beside:
        return [Path(each) for each in beside if each.name.lower() in alike][:1]


def _warn(text: str) -> None:
    warnings.warn(text, HopmapWarning, stacklevel=3)
